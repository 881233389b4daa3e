"""The GPUs that XLA's cost model supports here: the numbers of XLA's own target texts."""
from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from irscope.fusion.xla.durations import single
from irscope.source import UserError, did_you_mean
from irscope.source.files import read_plain_text


@dataclass(frozen=True, slots=True)
class Device:
    """The parameters of a GPU in the cost model. ``bandwidth`` in bytes a second, ``clock`` in GHz; ``capability`` selects the cycle table.

    ``whole_rate``: truncates the operations of a unit in a nanosecond to an integer, as XLA did until the end of 2024.
    """

    name: str
    cores: int
    fpus: int
    clock: float
    bandwidth: float
    l2: int
    shared_memory: int = 49152
    threads_per_core: int = 2048
    capability: str = "sm_90"
    l1_per_core: int = 2 * 1024
    line: int = 64
    transactions: int = 32
    whole_rate: bool = False

    @property
    def operations(self) -> float:
        """Operations of a unit in a nanosecond (``ComputeTime``)."""
        return int(self.clock * 2) if self.whole_rate else single(self.clock) * 2

    @property
    def threads(self) -> int:
        """The number of threads that run at once."""
        return self.cores * self.threads_per_core


DEVICES: dict[str, Device] = {
    "h100": Device("h100", 132, 128, 1.98, 3352320000000, 52428800, capability="sm_90"),
    "a100": Device("a100", 108, 64, 1.41, 2039040000000, 41943040, capability="sm_80"),
    "b200": Device("b200", 148, 128, 1.965, 7672320000000, 132644864, capability="sm_100"),
}
"""H100 SXM, A100 SXM 80 GB and B200, from XLA's target texts."""


LEAST, MOST = 1e-3, 1e18
"""The range of the numbers of a target text."""


def device_named(name: str | None) -> Device:
    """A device by name (default: h100), or by the file that holds XLA's target text. Raises UserError for anything else."""
    if name is None:
        return DEVICES["h100"]
    if name.lower() in DEVICES:
        return DEVICES[name.lower()]
    if not os.path.isfile(name):
        raise UserError(f"there is no device {name!r}",
                        did_you_mean(name, DEVICES) or f"the devices are: {', '.join(DEVICES)}; or name a file with XLA's target text")
    return device_of(read_plain_text(name), Path(name).stem)


def device_of(text: str, name: str) -> Device:
    """The device that a target text (GpuTargetConfigProto) describes. Raises UserError when it lacks a number, or has an impossible one."""
    def number(key: str) -> float:
        found = re.search(rf"^[ \t]*{key}:\s*([0-9.eE+]+)", text, re.MULTILINE)
        if found is None:
            raise UserError(f"{name} is not a target text of XLA: it has no {key}", "it begins with gpu_device_info {")
        try:
            value = float(found[1])
        except ValueError:
            value = 0.0
        if not LEAST <= value <= MOST:
            raise UserError(f"{name}: {key} is {found[1][:40]}", f"it is a number from {LEAST:g} to {MOST:g}")
        return value

    def digits(key: str, pattern: str, default: str) -> str:
        found = re.search(pattern, text)
        if found is not None and len(found[1]) > 3:
            raise UserError(f"{name}: {key} is {found[1][:40]}", "it has at most three digits")
        return found[1] if found is not None else default

    capability = digits("major", r"\bmajor:\s*(\d+)", "9") + digits("minor", r"cuda_compute_capability\s*\{[^}]*\bminor:\s*(\d+)", "0")
    return Device(name, int(number("core_count")), int(number("fpus_per_core")), number("clock_rate_ghz"), number("memory_bandwidth"),
                  int(number("l2_cache_size")), int(number("shared_memory_per_block")), int(number("threads_per_core_limit")),
                  f"sm_{capability}")
