"""What ``compile-and-run`` tells: tables for a person, json for a program."""
from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from irscope.lazy import np
from irscope.version import __version__

if TYPE_CHECKING:
    from irscope.cli.run_request import Request
    from irscope.cli.running import Outcome


def print_tables(request: Request, outcome: Outcome, drawn: list[str]) -> None:
    """Outputs, times and errors, as tables on stdout; faults on stderr."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if drawn:
        shown = ", ".join(drawn[:4]) + (f" and {len(drawn) - 4} more" if len(drawn) > 4 else "")
        print(f"note: drawn from seed {request.seed}: {shown}", file=sys.stderr)
    table = Table(box=None, pad_edge=False, show_header=True, header_style="bold")
    for heading in ("output", "type", "values"):
        table.add_column(heading, overflow="fold")
    for i, array in enumerate(outcome.outputs[:20]):
        table.add_row(_label(i, outcome), _type(array), Text(_values(array)))
    if len(outcome.outputs) > 20:
        table.add_row("...", f"{len(outcome.outputs) - 20} more", "")
    console.print(table)
    console.print()
    for label, text in _facts(request, outcome):
        console.print(Text(f"{label:<10}", style="bold") + Text(text), soft_wrap=True)
    for comparison in outcome.comparisons:
        if comparison.fault:
            print(f"error: {comparison.name}: {comparison.fault}", file=sys.stderr)


def print_json(outcome: Outcome) -> None:
    """All of it, as one object."""
    from irscope.graph import dtype_of
    told: dict[str, Any] = {
        "ok": outcome.ok,
        "outputs": [{"name": f"out{i}", "dtype": dtype_of(a.dtype).name, "shape": list(a.shape)} for i, a in enumerate(outcome.outputs)],
        "kernels": outcome.kernels,
        "interpreted_ops": outcome.interpreted_ops,
        "threads": outcome.threads,
        "load_s": round(outcome.load_s, 6),
        "compile_s": round(outcome.compile_s, 6),
        "flops": outcome.flops,
        "peak_rss_mb": _peak_rss_mb(),
        "version": __version__,
    }
    if outcome.samples_us:
        told["samples_us"] = [round(s, 3) for s in outcome.samples_us]
        told["median_us"], told["min_us"] = round(_median(outcome.samples_us), 3), round(min(outcome.samples_us), 3)
    if outcome.comparisons:
        told["max_abs_error"] = max(c.max_abs for c in outcome.comparisons)
        told["max_rel_error"] = max(c.max_rel for c in outcome.comparisons)
        told["faults"] = [f"{c.name}: {c.fault}" for c in outcome.comparisons if c.fault]
    print(json.dumps(told))


def _facts(request: Request, outcome: Outcome) -> list[tuple[str, str]]:
    facts: list[tuple[str, str]] = []
    if request.engine == "llvm":
        threads = f"{outcome.threads} thread{'s' * (outcome.threads != 1)}"
        facts.append(("compiled", f"{outcome.kernels} kernels in {_seconds(outcome.compile_s)}, {threads}"))
    else:
        facts.append(("engine", "reference (numpy)"))
    if outcome.samples_us:
        middle, best = _median(outcome.samples_us), min(outcome.samples_us)
        rate = f", {outcome.flops / best / 1e3:.1f} GFLOP/s" if outcome.flops else ""
        facts.append(("time", f"median {_micros(middle)}, min {_micros(best)} of {len(outcome.samples_us)} samples{rate}"))
    if outcome.comparisons:
        worst = max(c.max_abs for c in outcome.comparisons)
        relative = max(c.max_rel for c in outcome.comparisons)
        against = " and ".join(what for asked, what in ((request.check, "the reference"), (request.expect, "what is expected")) if asked)
        verdict = "agrees with" if outcome.ok else "differs from"
        facts.append(("check", f"{verdict} {against}: largest error {worst:.2e}, {relative:.2e} of the largest value"))
    if request.save_outputs:
        facts.append(("saved", request.save_outputs))
    return facts


def _label(number: int, outcome: Outcome) -> str:
    """The name of an output; of several devices also which result of which device it is."""
    if outcome.devices == 1:
        return f"out{number}"
    device, result = divmod(number, len(outcome.outputs) // outcome.devices)
    return f"out{number} (out{result}@{device})"


def _type(array: Any) -> str:
    from irscope.graph import dtype_of

    return f"{dtype_of(array.dtype).name}[{','.join(map(str, array.shape))}]"


def _values(array: Any) -> str:
    """The values of a small array, the range of a large one."""
    if not array.size:
        return "empty"
    if array.size <= 4:
        return " ".join(f"{v:.6g}" if array.dtype.kind == "f" else str(v) for v in array.reshape(-1))
    if array.dtype.kind in "bc":
        return f"{int(array.sum())} of {array.size} true" if array.dtype.kind == "b" else f"{array.reshape(-1)[0]} ..."
    wide = array.astype(np.float64)
    with np.errstate(all="ignore"):
        finite = wide[np.isfinite(wide)]
    odd = array.size - finite.size
    if not finite.size:
        return "no finite value"
    text = f"{finite.min():.6g} to {finite.max():.6g}, mean {finite.mean():.6g}"
    return text + (f", {odd} not finite" if odd else "")


def _seconds(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _micros(us: float) -> str:
    return f"{us:.2f} us" if us < 1e3 else f"{us / 1e3:.3f} ms" if us < 1e6 else f"{us / 1e6:.3f} s"


def _median(samples: list[float]) -> float:
    return float(np.median(samples))


def _peak_rss_mb() -> float:
    """The most memory that this process has held, in MB; 0 where the system does not say.

    Linux keeps ``ru_maxrss`` over fork and exec: a process that a large one starts would report its parent's size. ``VmHWM`` is its own.
    """
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return round(int(line.split()[1]) / 1024, 1)  # in kB
    except OSError:  # no /proc
        pass
    try:
        import resource
    except ImportError:  # not on Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1024 if sys.platform != "darwin" else 1024 * 1024), 1)
