"""``irscope opt``: graph passes, one after the other, and proof that the meaning stayed."""
from __future__ import annotations

from typing import TYPE_CHECKING

import click

from irscope.cli.errors import FINDINGS, OK
from irscope.cli.input import binding_options, first_module, from_option, load_ok
from irscope.cli.output import opened
from irscope.graph import Module
from irscope.source import UserError

if TYPE_CHECKING:
    from irscope.cli.verifying import Verifier
    from irscope.passes import Pass
    from irscope.passes.manager import Step


@click.command()
@click.argument("file")
@from_option
@click.option("--passes", default="", metavar="a,b{x=1},c", help="Which passes, in order, options in braces: irscope list passes.")
@click.option("--infer", is_flag=True, help="Infer all types first, and print them with the graph (Relay).")
@click.option("--load", "loads", multiple=True, metavar="FILE.py", help="Bring in passes of your own.")
@click.option("--opt-level", type=int, metavar="N", help="Leave out passes above this level.")
@click.option("--require", "required", multiple=True, metavar="PASS", help="Run this one whatever the level.")
@click.option("--disable", multiple=True, metavar="PASS", help="Leave this one out.")
@click.option("--print-before", multiple=True, metavar="PASS|all", help="Print the graph before a pass, on standard error.")
@click.option("--print-after", multiple=True, metavar="PASS|all", help="Print the graph after a pass, on standard error.")
@click.option("--print-changes", is_flag=True, help="Tell what each pass changed, on standard error.")
@click.option("--timing", is_flag=True, help="Tell how long each pass took and what it left, on standard error.")
@click.option("--verify", is_flag=True, help="Run both graphs on the same random inputs; exit 1 when they differ.")
@click.option("--bisect", is_flag=True, help="Verify after every pass, and name the first that breaks types or numbers.")
@click.option("--rtol", type=click.FloatRange(0),
              help="How far --verify lets values differ, relative to the largest (default: 1e-4, or what a pass that narrows says).")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The seed of the random inputs.")
@click.option("--to", "to", type=click.Choice(["hlo", "relay"]), help="Print in another IR: the primitives as HLO, or irscope's own.")
@click.option("--style", type=click.Choice(["course", "relay"]), help="Print Relay as lessons write it, or as TVM reads it.")
@click.option("--types", is_flag=True, help="Print the type of every value (Relay).")
@click.option("--pass", "pass_", metavar="PASS|N", help="Of a log of passes: the graph after this one, or the N-th (default: the first).")
@click.option("-o", "--output", default="-", metavar="FILE", help="Write the result there instead of to standard output.")
@binding_options
def command(file: str, from_: str | None, passes: str, infer: bool, loads: tuple[str, ...], opt_level: int | None,
            required: tuple[str, ...], disable: tuple[str, ...], print_before: tuple[str, ...],
            print_after: tuple[str, ...], print_changes: bool, timing: bool,
            verify: bool, bisect: bool, rtol: float | None, seed: int, to: str | None, style: str | None, types: bool,
            pass_: str | None, output: str, shapes: dict[str, tuple[int, ...]], dtypes: dict[str, str]) -> int:
    """Run graph passes over a dump and print the result in the IR that it came in.

    \b
    Examples:
      irscope opt model.relay --passes fuse-conv-relu,remove-dead --verify
      irscope opt model.hlo --passes simplify-algebra,share-equal --timing -o out.hlo
      irscope opt model.relay --infer --shape data=1,3,224,224
    """
    from irscope.analysis.soundness import Use, require
    from irscope.cli.verifying import Verifier
    from irscope.expand import bind_types
    from irscope.passes.manager import chosen, run_passes
    from irscope.query.snapshots import picked

    if not (passes or infer or to or style or types):
        raise UserError("no pass is named: --passes a,b", "irscope list passes names them")
    reading = load_ok(file, from_)
    taken = first_module(reading) if pass_ is None else picked(reading, pass_)
    first = module = bind_types(taken, shapes, dtypes)
    named = named_passes(passes, loads, infer)
    known = {name for p in named for name in (p.name, *p.requires)}
    _known(known, required, "--require")
    _known(known, disable, "--disable")
    _known(known, (*print_before, *print_after), "--print-before, --print-after")
    running = chosen(named, opt_level, required, disable)
    for use in dict.fromkeys([*(p.needs for p in running), *([Use.PASSES] if to else []), *([Use.RUN] if verify or bisect else [])]):
        require(reading, module, use)
    rtol = max([p.rtol for p in running], default=1e-4) if rtol is None else rtol
    verifier = Verifier(first, [p.name for p in running], seed)
    steps: list[Step] = []
    broke: list[str] = []
    for step in run_passes(module, running, lambda name, m: _show("before", name, m, print_before)):
        _show("after", step.name, step.after, print_after)
        _tell(step, print_changes)
        wrong = bool(step.broke)
        if bisect and step.after is not step.before and not wrong:
            wrong = not _same(verifier, step.before, step.after, rtol, f"{step.name}: ")
        broke += [step.name] if wrong else []
        steps.append(step)
        module = step.after
    _write(printed(module, to, style, types or infer), output, file)
    if timing:
        _tell_times(steps)
    if bisect:
        click.echo(f"bisect: {broke[0]} is the first pass that breaks the graph" if broke else "bisect: no pass breaks the graph", err=True)
    different = verify and not _same(verifier, first, module, rtol)
    return FINDINGS if broke or different else OK


def named_passes(passes: str, loads: tuple[str, ...], infer: bool) -> list[Pass]:
    """The passes of a command line, those of the user's own files among them. Raises UserError for an unknown name."""
    from irscope.passes import made, pass_named, split_outside
    from irscope.passes.own import load_passes

    own: dict[str, type[Pass]] = {}
    for path in loads:
        own.update(load_passes(path))
    running: list[Pass] = [pass_named("infer-types")] if infer else []
    for text in split_outside(passes):
        name, _, options = text.removesuffix("}").partition("{")
        running.append(made(own[name], options) if name in own else pass_named(text))
    return running


def _known(known: set[str], names: tuple[str, ...], option: str) -> None:
    """Raise UserError for a pass that an option names and that is not among those that --passes names or that they require."""
    from irscope.source import did_you_mean

    for name in names:
        if name != "all" and name not in known:
            near = did_you_mean(name, known) or f"they are {', '.join(sorted(known))}"
            raise UserError(f"{option} names {name}, which is not among the passes", near)


def _tell(step: Step, changes: bool) -> None:
    """What a pass did, on standard error."""
    for declined in step.declined:
        click.echo(f"{step.name}: {declined}", err=True)
    for finding in step.broke:
        click.echo(f"error: {step.name} broke a type: {finding.message}", err=True)
    if not changes:
        return
    if step.after is step.before:
        click.echo(f"{step.name} changed nothing", err=True)
        return
    from irscope.diff import compare
    from irscope.diff.report import as_text

    click.echo(as_text(compare(step.before, step.after), f"before {step.name}", f"after {step.name}"), err=True)


def _tell_times(steps: list[Step]) -> None:
    """A line a pass: what it took, its share, the look at the types behind it, and the statements before and after."""
    total = sum(s.seconds + s.checking for s in steps)
    width = max([20, *(len(s.name) for s in steps)])
    click.echo(f"{'timing':<{width}} {'pass':>12} {'share':>6} {'types':>12}   statements", err=True)
    for s in steps:
        a, b = s.nodes
        share = f"{(s.seconds + s.checking) / total:.0%}" if total else ""
        asked = f"   for {s.asked_by}" if s.asked_by else ""
        click.echo(f"{s.name:<{width}} {s.seconds * 1e3:>9.2f} ms {share:>6} {s.checking * 1e3:>9.2f} ms   {a} -> {b}{asked}", err=True)
    passes, types = sum(s.seconds for s in steps), sum(s.checking for s in steps)
    click.echo(f"{'all':<{width}} {passes * 1e3:>9.2f} ms {'':>6} {types * 1e3:>9.2f} ms", err=True)


def _same(verifier: Verifier, before: Module, after: Module, rtol: float, prefix: str = "") -> bool:
    """Whether two graphs give the same numbers, told on standard error."""
    found = verifier.difference(before, after)
    click.echo(prefix + found.told(rtol) + (f"\nnote: {verifier.note}" if verifier.note else ""), err=True)
    return found.within(rtol)


def _show(when: str, name: str, module: Module, wanted: tuple[str, ...]) -> None:
    """The graph around a pass, as TVM's PassPrintingInstrument prints it: such a log is read back by ``irscope show``."""
    if name in wanted or "all" in wanted:
        click.echo(f"Print IR {when}: {name}\n{printed(module, None)}\n", err=True)


def printed(module: Module, to: str | None = None, style: str | None = None, types: bool = False) -> str:
    """A module as text, in the IR that it came in or another."""
    from irscope.formats import format_named

    if module.format == "relay" and to in (None, "relay"):
        from irscope.formats.relay import print_module

        return print_module(module, style, types)
    if to == "hlo" or (to == "relay" and module.format != "relay"):
        from irscope.expand import expand

        return format_named(to).print_module(expand(module))
    return format_named(to or module.format).print_module(module)


def _write(text: str, output: str, file: str) -> None:
    with opened(output, (file,), verbatim=True) as stream:
        stream.write(text)
