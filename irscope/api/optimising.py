"""``irscope.opt``: runs graph passes in order, and verifies that the results stay the same."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

from irscope.analysis.soundness import Use, require
from irscope.api.loading import Source, first_module, whole
from irscope.api.options import OptOptions
from irscope.api.verification import RTOL, Verification
from irscope.api.watching import PassWatcher
from irscope.expand import bind_types, expand
from irscope.formats import format_named
from irscope.graph import Module
from irscope.lazy import LazyModule
from irscope.passes.base import Pass
from irscope.passes.manager import Step, chosen, run_passes
from irscope.passes.registry import created, load_passes, pass_named, split_outside
from irscope.query.snapshots import picked
from irscope.render.units import plural
from irscope.source import UserError, did_you_mean
from irscope.source.notebook import Viewable

if TYPE_CHECKING:
    from irscope.api import stages, verifying
else:
    stages = LazyModule("irscope.api.stages")
    verifying = LazyModule("irscope.api.verifying")

ALL = "all"
"""In ``print_before`` and ``print_after``: every pass."""


@dataclass(slots=True)
class OptResult(Viewable):
    """The result of running passes over a module.

    ``steps`` has each pass that ran, with its seconds, the module before and after, and the type errors that it introduced. ``broken`` are
    the passes that broke types or, with ``bisect``, results, in order. ``verification`` compares the first module with the last
    (None without ``verify``). ``text`` is the module printed as the options specify, or the page of the passes.
    """

    before: Module
    module: Module
    steps: list[Step] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    verification: Verification | None = None
    text: str = ""

    def __repr__(self) -> str:
        return f"<{plural(len(self.steps), 'pass', 'passes')} over {self.before.name}{'' if self.ok else ', with faults'}>"

    @property
    def ok(self) -> bool:
        """Whether no pass broke anything that was checked."""
        return not self.broken and (self.verification is None or self.verification.same)


def opt(what: Source, options: OptOptions | None = None, *, watch: PassWatcher | None = None) -> OptResult:
    """Run graph passes over the first module of a dump.

    Raises :class:`irscope.UserError` for an unknown pass, for a pass that fails, and for a dump with too many errors to run passes on.
    A pass that breaks types or results raises nothing: ``result.ok`` is False.

    >>> text = "ENTRY main {{ p = f32[2,2] parameter(0)\\n {}ROOT t = f32[2,2] negate(p) }}"
    >>> result = opt(text.format("dead = f32[2,2] exponential(p)\\n "), OptOptions(passes="remove-dead", verify=True))
    >>> result.ok, [node.op.name for node in result.module.main().nodes]
    (True, ['parameter', 'negate'])
    """
    options, watch = options or OptOptions(), watch or PassWatcher()
    if not (options.passes or options.infer or options.to or options.style or options.types):
        raise UserError("no pass is named: --passes a,b", "irscope list passes names them")
    reading = whole(what, options.source_format)
    taken = first_module(reading, watch) if options.snapshot is None else picked(reading, options.snapshot)
    first = bind_types(taken, options.shapes, options.dtypes)
    running = _chosen(options)
    compares = options.verify or options.bisect
    for use in dict.fromkeys([*(p.needs for p in running), *([Use.PASSES] if options.to else []), *([Use.RUN] if compares else [])]):
        require(reading, first, use)
    own = max([p.rtol for p in running], default=RTOL)
    rtol = options.rtol if options.rtol is not None else own if own > RTOL else None
    verifier = verifying.Verifier(first, [p.name for p in running], options.seed, rtol, watch) if compares else None
    result = OptResult(first, first)
    for step in run_passes(first, running, lambda name, module: _report(watch.before, name, module, options.print_before)):
        _report(watch.after, step.name, step.after, options.print_after)
        watch.step(step)
        wrong = bool(step.broke)
        if options.bisect and verifier is not None and step.after is not step.before and not wrong:
            found = verifier.compare(step.before, step.after)
            watch.verified(step, found)
            wrong = not found.same
        result.broken += [step.name] if wrong else []
        result.steps.append(step)
        result.module = step.after
    if options.page:
        result.text = stages.page_of_passes(result.steps)
    else:
        result.text = printed(result.module, options.to, options.style, options.types or options.infer)
    watch.done(result.text, result.steps, result.broken)
    if options.verify and verifier is not None:
        result.verification = verifier.compare(first, result.module)
        watch.verified(None, result.verification)
    return result


def _report(hear: Callable[[str, Module], None], name: str, module: Module, wanted: tuple[str, ...]) -> None:
    """Report the module before or after a pass, if the options request it."""
    if name in wanted or ALL in wanted:
        hear(name, module)


def _chosen(options: OptOptions) -> list[Pass]:
    """The passes that run. Raises UserError for options that name others."""
    named = named_passes(options)
    known = {name for p in named for name in (p.name, *p.requires)}
    _known(known, options.require, "--require")
    _known(known, options.disable, "--disable")
    _known(known, (*options.print_before, *options.print_after), "--print-before, --print-after")
    return chosen(named, options.opt_level, options.require, options.disable)


def named_passes(options: OptOptions) -> list[Pass]:
    """The passes that the options name, including those of plug-in files. Raises UserError for an unknown name."""
    own = {name: kind for path in options.load for name, kind in load_passes(path).items()}
    running: list[Pass] = [pass_named("infer-types")] if options.infer else []
    for text in split_outside(options.passes):
        name, _, braces = text.removesuffix("}").partition("{")
        running.append(created(own[name], braces) if name in own else pass_named(text))
    return running


def _known(known: set[str], names: Iterable[str], option: str) -> None:
    """Raise UserError if an option names a pass that neither runs nor is required by one that runs."""
    for name in names:
        if name != ALL and name not in known:
            near = did_you_mean(name, known) or f"they are {', '.join(sorted(known))}"
            raise UserError(f"{option} names {name}, which is not among the passes", near)


class _Styled(Protocol):
    """The printer of a format that has several styles."""

    def print_module(self, module: Module, style: str | None, types: bool) -> str: ...


def printed(module: Module, to: str | None = None, style: str | None = None, types: bool = False) -> str:
    """A module as text: in its own format, or expanded to primitives in the format ``to``."""
    own = module.dialect
    if to is not None and (to != own.name or own.primitive):
        return format_named(to).print_module(expand(module))
    if own.styles:
        return cast(_Styled, format_named(own.name)).print_module(module, style, types)
    return format_named(own.name).print_module(module)
