"""``irscope opt``: graph passes, one after the other, and proof that the meaning stayed."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from irscope.cli.errors import FINDINGS, OK
from irscope.cli.input import binding_options, from_option, load_ok
from irscope.graph import Module, Reading
from irscope.source import UserError

if TYPE_CHECKING:
    from irscope.passes import Pass
    from irscope.passes.manager import Step


@click.command()
@click.argument("file")
@from_option
@click.option("--passes", required=True, metavar="a,b{x=1},c", help="Which passes, in order, options in braces: irscope list passes.")
@click.option("--load", "loads", multiple=True, metavar="FILE.py", help="Bring in passes of your own.")
@click.option("--opt-level", type=int, metavar="N", help="Leave out passes above this level.")
@click.option("--require", multiple=True, metavar="PASS", help="Run this one whatever the level.")
@click.option("--disable", multiple=True, metavar="PASS", help="Leave this one out.")
@click.option("--print-before", multiple=True, metavar="PASS|all", help="Print the graph before a pass, on standard error.")
@click.option("--print-after", multiple=True, metavar="PASS|all", help="Print the graph after a pass, on standard error.")
@click.option("--print-changes", is_flag=True, help="Tell what each pass changed, on standard error.")
@click.option("--timing", is_flag=True, help="Tell how long each pass took and what it left, on standard error.")
@click.option("--verify", is_flag=True, help="Run both graphs on the same random inputs; exit 1 when they differ.")
@click.option("--bisect", is_flag=True, help="Verify after every pass, and name the first that breaks types or numbers.")
@click.option("--rtol", type=float, default=1e-4, show_default=True, help="How far --verify lets values differ, relative to the largest.")
@click.option("--seed", type=int, default=0, show_default=True, help="The seed of the random inputs.")
@click.option("--to", "to", type=click.Choice(["hlo", "relay"]), help="Print in another IR: the primitives as HLO, or irscope's own.")
@click.option("-o", "--output", default="-", metavar="FILE", help="Write the result there instead of to standard output.")
@binding_options
def command(file: str, from_: str | None, passes: str, loads: tuple[str, ...], opt_level: int | None, require: tuple[str, ...],
            disable: tuple[str, ...], print_before: tuple[str, ...], print_after: tuple[str, ...], print_changes: bool, timing: bool,
            verify: bool, bisect: bool, rtol: float, seed: int, to: str | None, output: str, shapes: dict[str, tuple[int, ...]],
            dtypes: dict[str, str]) -> int:
    """Run graph passes over a dump and print the result in the IR that it came in.

    \b
    Examples:
      irscope opt model.relay --passes fuse-conv-relu,remove-dead --verify
      irscope opt model.hlo --passes simplify-algebra,share-equal --timing -o out.hlo
    """
    from irscope.expand import bind_types
    from irscope.passes.manager import chosen, run_passes

    module = bind_types(load_ok(file, from_).module(), shapes, dtypes)
    first = module
    broke: list[str] = []
    running = chosen(_named(passes, loads), opt_level, require, disable)
    for step in run_passes(module, running, lambda name, m: _show(f"before {name}", m, name, print_before)):
        _show(f"after {step.name}", step.after, step.name, print_after)
        _tell(step, timing, print_changes)
        wrong = bool(step.broke)
        if bisect and step.after is not step.before and not wrong:
            click.echo(f"{step.name}: ", nl=False, err=True)
            wrong = not _same_numbers(step.before, step.after, rtol, seed)
        broke += [step.name] if wrong else []
        module = step.after
    text = _printed(module, to)
    if output == "-":
        click.echo(text, nl=False)
    else:
        Path(output).write_text(text)
    if bisect:
        click.echo(f"bisect: {broke[0]} is the first pass that breaks the graph" if broke else "bisect: no pass breaks the graph", err=True)
    different = verify and not _same_numbers(first, module, rtol, seed)
    return FINDINGS if broke or different else OK


def _tell(step: Step, timing: bool, changes: bool) -> None:
    """What a pass did, on standard error."""
    if timing:
        a, b = step.nodes
        click.echo(f"{step.name:<24} {step.seconds * 1e3:9.2f} ms   {a:>7} -> {b:<7} statements", err=True)
    for declined in step.declined:
        click.echo(f"{step.name}: {declined}", err=True)
    for finding in step.broke:
        click.echo(f"error: {step.name} broke a type: {finding.message}", err=True)
    if changes and step.after is not step.before:
        from irscope.diff import compare
        from irscope.diff.report import as_text

        click.echo(as_text(compare(step.before, step.after), f"before {step.name}", f"after {step.name}"), err=True)


def _named(passes: str, loads: tuple[str, ...]) -> list[Pass]:
    from irscope.passes import made, pass_named, split_outside
    from irscope.passes.manager import load_passes

    own: dict[str, type[Pass]] = {}
    for path in loads:
        own.update(load_passes(path))
    names = split_outside(passes)
    if not names:
        raise UserError("no pass is named", "irscope list passes names them")
    running: list[Pass] = []
    for text in names:
        name, _, options = text.removesuffix("}").partition("{")
        running.append(made(own[name], options) if name in own else pass_named(text))
    return running


def _show(title: str, module: Module, name: str, wanted: tuple[str, ...]) -> None:
    if name in wanted or "all" in wanted:
        click.echo(f"// {title}\n{_printed(module, None)}", err=True)


def _printed(module: Module, to: str | None) -> str:
    from irscope.formats import format_named

    if to == "hlo" or (to == "relay" and module.format != "relay"):
        from irscope.expand import expand

        return format_named(to).print_module(expand(module))
    return format_named(to or module.format).print_module(module)


def _same_numbers(before: Module, after: Module, rtol: float, seed: int) -> bool:
    """Compile and run both on the same random inputs, and tell the mean squared and the largest error."""
    import numpy as np

    from irscope import api
    from irscope.backends.arguments import drawn

    models = [api.compile(Reading(m.source, m.format, [m])) for m in (before, after)]
    values = drawn(models[0].inputs, range(len(models[0].inputs)), seed)
    by_name = {port.name: values[i] for i, port in enumerate(models[0].inputs)}
    outputs = [models[0](*values.values()), models[1](*(by_name[p.name] for p in models[1].inputs))]
    squared = largest = size = 0.0
    for a, b in zip(*outputs, strict=True):
        x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
        with np.errstate(invalid="ignore"):
            away = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
        squared += float(np.sum(away * away))
        size += x.size
        scale = float(np.max(np.abs(x[np.isfinite(x)]), initial=0.0))
        largest = max(largest, float(np.max(away, initial=0.0)) / max(scale, 1e-30) if np.any(away) else 0.0)
    ok = bool(largest <= rtol)
    click.echo(f"verify: mean squared error {squared / max(size, 1):.3g}, largest {largest:.3g} of the largest value: "
               f"{'the same' if ok else 'NOT the same'}", err=True)
    return ok
