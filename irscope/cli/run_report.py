"""The text report of ``compile-and-run``: outputs, times and errors."""
from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from irscope.api.options import RunOptions
from irscope.api.run_result import RunResult
from irscope.cli.terminal import TERMINAL
from irscope.render.arrays import range_of, type_of
from irscope.render.units import micros, plural, seconds, some


def print_tables(request: RunOptions, result: RunResult) -> None:
    """Outputs, times and errors, as tables on stdout; faults on stderr."""
    console = Console(highlight=False)
    if result.drawn:
        TERMINAL.note(f"drawn from seed {request.seed}: {some(result.drawn, 4)}")
    table = Table(box=None, pad_edge=False, show_header=True, header_style="bold")
    for heading in ("output", "type", "values"):
        table.add_column(heading, overflow="fold")
    for i, array in enumerate(result.outputs[:20]):
        table.add_row(Text(result.label(i)), type_of(array), Text(range_of(array)))
    if len(result.outputs) > 20:
        table.add_row("...", f"{len(result.outputs) - 20} more", "")
    console.print(table)
    console.print()
    for label, text in _facts(request, result):
        console.print(Text(f"{label:<10}", style="bold") + Text(text), soft_wrap=True)
    if result.profile is not None:
        console.print(Text(result.profile.as_text()), soft_wrap=True)
    for comparison in result.comparisons:
        if comparison.fault:
            print(f"error: {comparison.name}: {comparison.fault}", file=sys.stderr)


def _facts(request: RunOptions, result: RunResult) -> list[tuple[str, str]]:
    facts: list[tuple[str, str]] = []
    if request.engine == "llvm":
        how, cached = ("loaded", " from the cache") if result.from_cache else ("compiled", "")
        facts.append((how, f"{plural(result.kernels, 'kernel')}{cached} in {seconds(result.compile_s)}, "
                           f"{plural(result.threads, 'thread')}"))
    else:
        facts.append(("engine", "reference (numpy)"))
    if result.samples_us:
        middle, best = result.median_us, min(result.samples_us)
        rate = f", {result.flops / best / 1e3:.1f} GFLOP/s" if result.flops else ""
        facts.append(("time", f"median {micros(middle)}, min {micros(best)} of {len(result.samples_us)} samples{rate}"))
    if result.comparisons:
        pairs = (request.check, "the reference"), (request.expect, "what is expected"), (request.expect_from, request.expect_from)
        against = " and ".join(what for compared, what in pairs if compared and what)
        verdict = "agrees with" if result.ok else "differs from"
        facts.append(("check", f"{verdict} {against}: largest error {result.max_abs_error:.2e}, "
                               f"{result.max_rel_error:.2e} of the largest value"))
    if request.save_outputs:
        facts.append(("saved", request.save_outputs))
    return facts
