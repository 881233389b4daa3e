"""The pass manager: runs passes in order and records what each changed, how long it took, and whether the module is still valid."""
from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from irscope.graph import Module
from irscope.graph.walk import post_order
from irscope.passes import pass_named
from irscope.passes.analyses import KNOWN, Analyses
from irscope.passes.base import Pass
from irscope.passes.soundness import unsound
from irscope.source import Finding, Severity, UserError

PACKAGE = Path(__file__).resolve().parent.parent

Observer = Callable[[str, Module], None]


@dataclass(frozen=True, slots=True)
class Step:
    """One pass that ran: the module before and after, the seconds, new type errors, and what it declined.

    ``checking`` are the seconds of the type check; ``required_by`` is the pass that required this one, if the user did not name it.
    """

    name: str
    before: Module
    after: Module
    seconds: float
    broke: tuple[Finding, ...]
    declined: tuple[str, ...] = ()
    checking: float = 0.0
    required_by: str = ""

    @property
    def nodes(self) -> tuple[int, int]:
        """Statements before and after."""
        return _nodes(self.before), _nodes(self.after)


def run_passes(module: Module, passes: Sequence[Pass | str], before: Observer | None = None, check: bool = True) -> Iterator[Step]:
    """Run passes one after the other and return a step for each. ``before`` is called with the module right before a pass.

    The passes that a pass requires run right before it, unless their results are still valid. With ``check`` the types are inferred after
    each pass; errors that the module had before do not count. Raises UserError for an unknown name, and for a pass that fails or returns
    an invalid module.
    """
    chosen = [pass_named(p) if isinstance(p, str) else p for p in passes]
    analyses = Analyses(module)
    faults = {_key(f) for f in _errors(analyses)} if check else set()
    holds: set[str] = set()
    for named in chosen:
        for each in (*_required(named, holds), named):
            if before is not None:
                before(each.name, module)
            after, seconds = _timed(each, module, analyses)
            began = time.perf_counter()
            broke: tuple[Finding, ...] = ()
            if after is not module:
                holds.intersection_update(each.preserves)
                analyses.moved_to(after, each.preserves)
                broke = tuple(f for f in _errors(analyses) if _key(f) not in faults) if check else ()
            holds.add(each.name)
            checking = time.perf_counter() - began
            yield Step(each.name, module, after, seconds, broke, tuple(each.declined), checking, "" if each is named else named.name)
            module = after


def chosen(passes: Sequence[Pass], opt_level: int | None = None, required: Sequence[str] = (), disabled: Sequence[str] = ()) -> list[Pass]:
    """The passes that run, as TVM's PassContext picks them: not disabled, and required or not above the level (None: any level)."""
    return [p for p in passes if p.name not in disabled and (p.name in required or opt_level is None or p.opt_level <= opt_level)]


def _required(wanted: Pass, holds: set[str]) -> list[Pass]:
    """The passes that must run before one, deepest first, without those whose results are valid. Analyses are computed on demand."""
    def missing(each: Pass) -> list[str]:
        return [name for name in each.requires if name not in KNOWN and name not in holds]
    return [pass_named(name) for name in post_order(missing(wanted), lambda name: missing(pass_named(name)))]


def _timed(each: Pass, module: Module, analyses: Analyses) -> tuple[Module, float]:
    """The module after a pass, and the seconds that it took. An error in a plug-in pass is reported with its source line."""
    each.analyses = analyses
    for name in each.requires:
        if name in KNOWN:
            analyses.of(name)
    began = time.perf_counter()
    try:
        after = each.run(module)
    except Exception as error:
        if type(each).__module__.startswith("irscope."):
            raise
        if isinstance(error, UserError):
            raise UserError(f"the pass {each.name} fails: {error.message}", error.help or _place(error)) from error
        raise UserError(f"the pass {each.name} fails: {type(error).__name__}: {error}", _place(error)) from error
    seconds = time.perf_counter() - began
    if after is not module and (fault := unsound(after)) is not None:
        raise UserError(f"the pass {each.name} gives no sound module: {fault}")
    return after, seconds


def _place(error: Exception) -> str:
    """The last line of a traceback outside irscope: where the user's pass failed."""
    own = [f for f in traceback.extract_tb(error.__traceback__) if PACKAGE not in Path(f.filename).parents]
    return f"{own[-1].filename}, line {own[-1].lineno}: {own[-1].line}" if own else ""


def _nodes(module: Module) -> int:
    return sum(not node.synthetic for graph in module.graphs.values() for node in graph.nodes)


def _errors(analyses: Analyses) -> list[Finding]:
    return [f for f in analyses.of("types") if f.severity is Severity.ERROR]


def _key(finding: Finding) -> tuple[str, str]:
    return finding.node, finding.message
