"""The profile of a run: kernels against the roofline of this machine, and the parts of a call."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from irscope.api.options import RunOptions
from irscope.backends import llvm_compile
from irscope.backends.loaded_model import Model
from irscope.backends.peaks import CacheLevel, Peak, measured_peak, table_peak
from irscope.backends.profiling import CallProfile, KernelTime, Ports, profiled
from irscope.backends.varying import VaryingExecutable, padded
from irscope.lazy import Array
from irscope.render.units import bytes_, count, micros, percent, plural

HEADINGS = ("kernel", "runs", "time", "share", "GFLOP/s", "GB/s", "of roofline")
DIGITS = 6
"""Decimals of numbers in json."""


@dataclass(frozen=True, slots=True)
class Rates:
    """How fast a kernel runs, in 1e9 operations and 1e9 bytes per second; None is unknown. ``roofline_share`` is the time that the kernel
    would take at the peak, divided by its time. ``bound`` says which of the two limits it there: ``compute``, or ``memory``, at the rate
    of the smallest cache that holds the bytes of a launch."""

    gflops: float | None
    gbs: float | None
    roofline_share: float | None
    bound: str | None

    @staticmethod
    def of(row: KernelTime, peak: Peak) -> Rates:
        """The rates of a kernel."""
        if row.us <= 0:
            return Rates(None, None, None, None)
        gflops = None if row.flops is None else row.flops / row.us / 1e3
        gbs = row.bytes / row.us / 1e3
        if gflops is None:
            return Rates(None, gbs, None, None)  # the unknown FLOPs may be the bound
        shares = {"compute": gflops / (peak.gflops / (2 if row.is_double else 1)), "memory": gbs / peak.gbs(row.bytes / row.runs)}
        bound = max(shares, key=lambda name: shares[name])
        return Rates(gflops, gbs, shares[bound], bound)


@dataclass(frozen=True, slots=True)
class Profile:
    """The fastest of many calls, and the peak of this machine."""

    call: CallProfile
    peak: Peak

    def as_text(self) -> str:
        """A row for each kernel, a line on the code of each, the parts of the call, and the peak; ``?`` is unknown."""
        call, peak = self.call, self.peak
        waited = f", in which {plural(call.threads, 'thread')} waited {micros(call.idle_us)} in all" if call.threads > 1 else ""
        code = [f"{row.name}: {row.code}" for row in call.kernels if row.code is not None]
        return "\n".join([
            "", *aligned([HEADINGS, *map(self._cells, call.kernels)]), "", *code, *[""] * bool(code),
            f"{'call':<10}{micros(call.total_us)}: checks {micros(call.checks_us)}, launch {micros(call.launch_us)}, kernels "
            f"{micros(call.kernels_us)}{waited}; the fastest of {count(call.calls)}",
            f"{'peak':<10}{peak.gflops:.0f} GFLOP/s, {', '.join(map(_level, peak.levels))} on {plural(peak.threads, 'thread')} "
            f"({peak.source})"])

    def _cells(self, row: KernelTime) -> list[str]:
        rates = Rates.of(row, self.peak)
        roofline = "?" if rates.roofline_share is None else f"{percent(rates.roofline_share)} {rates.bound}"
        share = percent(row.us / self.call.total_us)
        return [row.name, str(row.runs), micros(row.us), share, _rate(rates.gflops), _rate(rates.gbs), roofline]

    def as_json(self) -> dict[str, Any]:
        """The key ``profile`` of the json of a run."""
        call, peak = self.call, self.peak
        return {
            "threads": call.threads, "calls": call.calls,
            "call": {name: round(getattr(call, name), 3) for name in ("total_us", "checks_us", "launch_us", "kernels_us", "idle_us")},
            "peak": {"gflops": round(peak.gflops, 3), "threads": peak.threads, "measured": peak.is_measured, "source": peak.source,
                     "levels": [{"bytes": level.bytes, "gbs": round(level.gbs, 3)} for level in peak.levels]},
            "kernels": [self._row(row) for row in call.kernels],
        }

    def _row(self, row: KernelTime) -> dict[str, Any]:
        rates = {name: None if value is None else value if isinstance(value, str) else round(value, DIGITS)
                 for name, value in asdict(Rates.of(row, self.peak)).items()}
        code = row.code
        return {
            "name": row.name, "nodes": list(row.kernel.origin) if row.kernel is not None else [], "runs": row.runs,
            "us": round(row.us, 3), "busy_us": round(row.busy_us, 3), "flops": row.flops, "bytes": row.bytes, **rates,
            "code": None if code is None else {
                "vector_bits": code.vector_bits, "fmas": code.fmas, "loads": code.loads, "spills": code.spills,
                "loads_per_fma": None if code.loads_per_fma is None else round(code.loads_per_fma, 3)},
            "schedule": dict(row.kernel.schedule) if row.kernel is not None else {},
        }


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of a table as lines: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]


def _rate(rate: float | None) -> str:
    return "?" if rate is None else f"{rate:.1f}"


def _level(level: CacheLevel) -> str:
    return f"{level.gbs:.0f} GB/s" + (" of memory" if level.bytes is None else f" up to {bytes_(level.bytes)}")


def profile_of(model: Model, arrays: Sequence[Array], options: RunOptions, threads: int) -> Profile:
    """Profile a compiled module with these inputs, for ``options.bench_seconds``."""
    executable = model.executable
    if isinstance(executable, VaryingExecutable):
        arrays = padded(arrays, executable.inputs, executable.varying)
        executable = executable.executable
    call = profiled(model.program, Ports(executable.inputs, executable.outputs), arrays, threads, options.cpu, options.bench_seconds)
    machine = llvm_compile.host(options.cpu)
    return Profile(call, (measured_peak if options.peak == "measured" else table_peak)(machine, threads))
