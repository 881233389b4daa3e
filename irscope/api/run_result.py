"""The result of a run, as Python and as json."""
from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from irscope.graph import dtype_of
from irscope.lazy import Array, np
from irscope.version import __version__

if TYPE_CHECKING:
    from irscope.api.profiling import Profile
    from irscope.backends.comparison import ResultComparison

if sys.platform != "win32":
    import resource


@dataclass(slots=True)
class RunResult:
    """The result of a run. Times are in seconds, ``samples_us`` in microseconds; ``flops`` count one run.

    ``outputs`` are numpy arrays in the order of the entry's results; with several ``devices``, all of device 0 first. With the reference
    engine ``kernels`` is 0 and ``interpreted_ops`` names all operators. ``comparisons`` has one entry per output and requested comparison.
    ``drawn`` names the inputs whose values were drawn at random. ``from_cache``: the whole program came from the cache; ``compile_s`` is
    then the time to load it. ``profile`` is there where it was requested. ``paths`` are the places of the outputs in what the user's
    function returns (``['y'][0]``), where the dump states it.
    """

    outputs: list[Array]
    kernels: int
    interpreted_ops: list[str]
    threads: int
    compile_s: float = 0.0
    flops: float = 0.0
    samples_us: list[float] = field(default_factory=list)
    comparisons: list[ResultComparison] = field(default_factory=list)
    load_s: float = 0.0
    devices: int = 1
    drawn: list[str] = field(default_factory=list)
    paths: Sequence[str] = ()
    from_cache: bool = False
    profile: Profile | None = None

    def __repr__(self) -> str:
        shapes = ", ".join(f"{array.dtype}{list(array.shape)}" for array in self.outputs[:8]) + (", ..." if len(self.outputs) > 8 else "")
        return f"<result of a run: {shapes or 'no outputs'}{'' if self.ok else ', which differs from what was expected'}>"

    @property
    def ok(self) -> bool:
        """Whether no comparison failed."""
        return all(c.fault is None for c in self.comparisons)

    @property
    def median_us(self) -> float:
        """The median of the samples, in microseconds; NaN if nothing was timed."""
        return float(np.median(self.samples_us))

    @property
    def max_abs_error(self) -> float:
        """The largest error of all comparisons."""
        return max(c.max_abs for c in self.comparisons)

    @property
    def max_rel_error(self) -> float:
        """The largest error of all comparisons, relative to the largest value of its output."""
        return max(c.max_rel for c in self.comparisons)

    def _output(self, number: int, array: Array) -> dict[str, object]:
        """One output: ``shape`` counts elements, ``path`` is its place in what the user's function returns, where the dump states it."""
        path = {"path": self.paths[number]} if self.paths else {}
        return {"name": f"out{number}", "dtype": dtype_of(array.dtype).name, "shape": list(array.shape), **path}

    def label(self, number: int) -> str:
        """The name of an output; of several devices also which result of which device it is."""
        if self.devices == 1:
            return f"out{number} {self.paths[number]}".rstrip() if self.paths else f"out{number}"
        device, own = divmod(number, len(self.outputs) // self.devices)
        return f"out{number} (out{own}@{device})"

    def as_json(self) -> dict[str, object]:
        """The object that ``--format json`` prints: ``irscope/schemas/compile-and-run.json``."""
        record: dict[str, object] = {
            "ok": self.ok,
            "outputs": [self._output(i, array) for i, array in enumerate(self.outputs)],
            "kernels": self.kernels,
            "interpreted_ops": self.interpreted_ops,
            "threads": self.threads,
            "load_s": round(self.load_s, 6),
            "compile_s": round(self.compile_s, 6),
            "from_cache": self.from_cache,
            "flops": self.flops,
            "peak_rss_mb": peak_rss_mb(),
            "version": __version__,
        }
        if self.samples_us:
            record["samples_us"] = [round(s, 3) for s in self.samples_us]
            record["median_us"], record["min_us"] = round(self.median_us, 3), round(min(self.samples_us), 3)
        if self.comparisons:
            record["max_abs_error"], record["max_rel_error"] = _json_number(self.max_abs_error), _json_number(self.max_rel_error)
            record["faults"] = [f"{c.name}: {c.fault}" for c in self.comparisons if c.fault]
        if self.profile is not None:
            record["profile"] = self.profile.as_json()
        return record


def _json_number(value: float) -> float | None:
    """The value; None for NaN and infinities, which JSON does not have."""
    return value if math.isfinite(value) else None


def peak_rss_mb() -> float:
    """The peak memory of this process, in MB; 0 if the system does not report it.

    Linux keeps ``ru_maxrss`` over fork and exec: a process that a large one starts would report its parent's size. ``VmHWM`` is its own.
    """
    with suppress(OSError), open("/proc/self/status", encoding="ascii", errors="replace") as status:  # there may be no /proc
        for line in status:
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) / 1024, 1)  # in kB
    if sys.platform == "win32":
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1024 if sys.platform != "darwin" else 1024 * 1024), 1)
