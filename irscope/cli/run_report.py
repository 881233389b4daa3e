"""The text report of ``compile-and-run``: outputs, times and errors."""
from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from irscope.api.options import RunOptions
from irscope.api.run_result import RunResult
from irscope.cli.terminal import TERMINAL
from irscope.render.arrays import range_of, type_of
from irscope.render.units import bytes_, count, micros, percent, plural, seconds

if TYPE_CHECKING:
    from irscope.api.profiling import Profile  # it imports the compiler


def print_tables(request: RunOptions, result: RunResult) -> None:
    """Outputs, times and errors, as tables on stdout; faults on stderr."""
    console = Console(highlight=False)
    drawn = result.drawn
    if drawn:
        TERMINAL.note(f"drawn from seed {request.seed}: {', '.join(drawn[:4])}" + (f" and {len(drawn) - 4} more" if len(drawn) > 4 else ""))
    table = Table(box=None, pad_edge=False, show_header=True, header_style="bold")
    for heading in ("output", "type", "values"):
        table.add_column(heading, overflow="fold")
    for i, array in enumerate(result.outputs[:20]):
        table.add_row(result.label(i), type_of(array), Text(range_of(array)))
    if len(result.outputs) > 20:
        table.add_row("...", f"{len(result.outputs) - 20} more", "")
    console.print(table)
    console.print()
    for label, text in _facts(request, result):
        console.print(Text(f"{label:<10}", style="bold") + Text(text), soft_wrap=True)
    if result.profile is not None:
        console.print()
        _print_profile(console, result.profile)
    for comparison in result.comparisons:
        if comparison.fault:
            print(f"error: {comparison.name}: {comparison.fault}", file=sys.stderr)


def _facts(request: RunOptions, result: RunResult) -> list[tuple[str, str]]:
    facts: list[tuple[str, str]] = []
    if request.engine == "llvm":
        threads = f"{result.threads} thread{'s' * (result.threads != 1)}"
        label, how = ("loaded", " from the cache") if result.from_cache else ("compiled", "")
        facts.append((label, f"{result.kernels} kernels{how} in {seconds(result.compile_s)}, {threads}"))
    else:
        facts.append(("engine", "reference (numpy)"))
    if result.samples_us:
        middle, best = result.median_us, min(result.samples_us)
        rate = f", {result.flops / best / 1e3:.1f} GFLOP/s" if result.flops else ""
        facts.append(("time", f"median {micros(middle)}, min {micros(best)} of {len(result.samples_us)} samples{rate}"))
    if result.comparisons:
        worst = result.max_abs_error
        relative = result.max_rel_error
        pairs = (request.check, "the reference"), (request.expect, "what is expected")
        against = " and ".join(what for compared, what in pairs if compared)
        verdict = "agrees with" if result.ok else "differs from"
        facts.append(("check", f"{verdict} {against}: largest error {worst:.2e}, {relative:.2e} of the largest value"))
    if request.save_outputs:
        facts.append(("saved", request.save_outputs))
    return facts


def _print_profile(console: Console, profile: Profile) -> None:
    """A row for each kernel, and the parts of a call."""
    table = Table(box=None, pad_edge=False, show_header=True, header_style="bold")
    table.add_column("kernel", overflow="fold")
    for heading in ("runs", "time", "share", "GFLOP/s", "GB/s", "of roofline"):
        table.add_column(heading, justify="right", no_wrap=True)
    call = profile.call
    for row in call.kernels:
        rates = profile.rates(row)
        roofline = "?" if rates.roofline_share is None else f"{percent(rates.roofline_share)} {rates.bound}"
        table.add_row(Text(row.name), str(row.runs), micros(row.us), percent(row.us / call.total_us), _rate(rates.gflops), _rate(rates.gbs),
                      roofline)
    console.print(table)
    console.print()
    lines = [Text(f"{row.name}: {row.code}") for row in call.kernels if row.code is not None]
    for line in [*lines, Text()] if lines else []:
        console.print(line, soft_wrap=True)
    waited = f", in which {plural(call.threads, 'thread')} waited {micros(call.idle_us)} in all" if call.threads > 1 else ""
    peak = profile.peak
    for label, text in (
        ("call", f"{micros(call.total_us)}: checks {micros(call.checks_us)}, launch {micros(call.launch_us)}, "
                 f"kernels {micros(call.kernels_us)}{waited}; the fastest of {count(call.calls)}"),
        ("peak", f"{peak.gflops:.0f} GFLOP/s, {', '.join(map(_level, peak.levels))} on {plural(peak.threads, 'thread')} ({peak.source})"),
    ):
        console.print(Text(f"{label:<10}", style="bold") + Text(text), soft_wrap=True)


def _level(level: Any) -> str:
    return f"{level.gbs:.0f} GB/s" + (" of memory" if level.bytes is None else f" up to {bytes_(level.bytes)}")


def _rate(rate: float | None) -> str:
    return "?" if rate is None else f"{rate:.1f}"
