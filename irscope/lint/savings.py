"""What a rule counts where it has no change to try: bytes of memory traffic and kernels that a fix would save."""

from __future__ import annotations


def saving(bytes: float = 0.0, kernels: float = 0.0) -> dict[str, float]:
    """The ``saves`` of a finding: bytes of traffic and kernels that a fix removes. The context adds the time, by the machine."""
    return {"us": 0.0, "bytes": bytes, "kernels": kernels}


def human_bytes(n: float) -> str:
    """``1536`` is ``1.5 KiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return f"{n:.0f} {unit}" if unit == "B" or n >= 100 else f"{n:.3g} {unit}"
        n /= 1024
    return ""


def human_us(us: float) -> str:
    """``1536`` microseconds are ``1.54 ms``."""
    for unit, size in (("us", 1e3), ("ms", 1e6)):
        if us < size * 0.9995:
            return f"{us / (size / 1e3):.3g} {unit}"
    return f"{us / 1e6:,.3g} s" if us < 9.995e8 else f"{us / 1e6:,.0f} s"
