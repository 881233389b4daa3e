"""``irscope opt``: graph passes, one after the other, and proof that the meaning stayed."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from irscope.cli.errors import FINDINGS, OK
from irscope.cli.input import binding_options, from_option, load_ok
from irscope.graph import Module, Reading
from irscope.source import UserError


@click.command()
@click.argument("file")
@from_option
@click.option("--passes", required=True, metavar="a,b,c", help="Which passes, in order: irscope list passes.")
@click.option("--load", "loads", multiple=True, metavar="FILE.py", help="Bring in passes of your own.")
@click.option("--print-before", multiple=True, metavar="PASS|all", help="Print the graph before a pass, on standard error.")
@click.option("--print-after", multiple=True, metavar="PASS|all", help="Print the graph after a pass, on standard error.")
@click.option("--timing", is_flag=True, help="Tell how long each pass took and what it left, on standard error.")
@click.option("--verify", is_flag=True, help="Run both graphs on the same random inputs; exit 1 when they differ.")
@click.option("--rtol", type=float, default=1e-4, show_default=True, help="How far --verify lets values differ, relative to the largest.")
@click.option("--seed", type=int, default=0, show_default=True, help="The seed of the random inputs.")
@click.option("--to", "to", type=click.Choice(["hlo", "relay"]), help="Print in another IR: the primitives as HLO, or irscope's own.")
@click.option("-o", "--output", default="-", metavar="FILE", help="Write the result there instead of to standard output.")
@binding_options
def command(file: str, from_: str | None, passes: str, loads: tuple[str, ...], print_before: tuple[str, ...], print_after: tuple[str, ...],
            timing: bool, verify: bool, rtol: float, seed: int, to: str | None, output: str, shapes: dict[str, tuple[int, ...]],
            dtypes: dict[str, str]) -> int:
    """Run graph passes over a dump and print the result in the IR that it came in.

    \b
    Examples:
      irscope opt model.relay --passes fuse-conv-relu,remove-dead --verify
      irscope opt model.hlo --passes simplify-algebra,share-equal --timing -o out.hlo
    """
    from irscope.expand import bind_types
    from irscope.passes.manager import run_passes

    module = bind_types(load_ok(file, from_).module(), shapes, dtypes)
    chosen = _chosen(passes, loads)
    first = module
    broke = False
    for step in run_passes(module, chosen, lambda name, m: _show(f"before {name}", m, name, print_before)):
        _show(f"after {step.name}", step.after, step.name, print_after)
        a, b = step.nodes
        if timing:
            click.echo(f"{step.name:<24} {step.seconds * 1e3:9.2f} ms   {a:>7} -> {b:<7} statements", err=True)
        for declined in getattr(chosen[[p.name for p in chosen].index(step.name)], "declined", ()):
            click.echo(f"{step.name}: left %{declined.convolution} and %{declined.follower} apart: {declined.why}", err=True)
        for finding in step.broke:
            click.echo(f"error: {step.name} broke a type: {finding.message}", err=True)
            broke = True
        module = step.after
    text = _printed(module, to)
    if output == "-":
        click.echo(text, nl=False)
    else:
        Path(output).write_text(text)
    if verify:
        broke = not _same_numbers(first, module, rtol, seed) or broke
    return FINDINGS if broke else OK


def _chosen(passes: str, loads: tuple[str, ...]) -> list[Any]:
    from irscope.passes import pass_named
    from irscope.passes.manager import load_passes

    own: dict[str, Any] = {}
    for path in loads:
        own.update(load_passes(path))
    names = [name.strip() for name in passes.split(",") if name.strip()]
    if not names:
        raise UserError("no pass is named", "irscope list passes names them")
    return [own[name]() if name in own else pass_named(name) for name in names]


def _show(title: str, module: Module, name: str, wanted: tuple[str, ...]) -> None:
    if name in wanted or "all" in wanted:
        click.echo(f"// {title}\n{_printed(module, None)}", err=True)


def _printed(module: Module, to: str | None) -> str:
    from irscope.formats import format_named

    if to == "hlo":
        from irscope.expand import expand

        return format_named("hlo").print_module(expand(module))
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
