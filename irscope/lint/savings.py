"""What a fix would save: bytes of memory traffic, kernels, and microseconds estimated from them."""

from __future__ import annotations

CPU_BYTES_PER_US = 42_000.0
"""Copy bandwidth of one core from DRAM, 42 GB/s (measured with a triad over 384 MB; see docs/performance.md)."""

KERNEL_US = 1.0
"""What starting a kernel costs, 1 us: XLA's own constant for a launch."""


def saving(bytes: float = 0.0, kernels: float = 0.0) -> dict[str, float]:
    """The ``saves`` of a finding: traffic that falls away, kernels that fall away, and the time of both."""
    return {"us": round(bytes / CPU_BYTES_PER_US + kernels * KERNEL_US, 3), "bytes": bytes, "kernels": kernels}


def human_bytes(n: float) -> str:
    """``1536`` is ``1.5 KiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return f"{n:.0f} {unit}" if unit == "B" or n >= 100 else f"{n:.3g} {unit}"
        n /= 1024
    return ""
