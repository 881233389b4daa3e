"""Numbers as people read them."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.source.plural import plural as plural_of

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")


def count(n: float) -> str:
    """``15,740``; from ten million on ``15.7 M``."""
    if n < 10_000_000:
        return f"{n:,.0f}"
    return _scaled(n, 1000.0, _DECIMAL)


def cell(n: float) -> str:
    """A count that fits into a column of seven: ``15,740``, ``1.5 M``."""
    return f"{n:,.0f}" if n < 1_000_000 else _scaled(n, 1000.0, _DECIMAL)


def bytes_(n: float, is_open: bool = False) -> str:
    """``1.5 MiB``; if a part of the figure is unknown (``is_open``), ``1.5 MiB+``, or ``?`` where no part is known."""
    return _open(_scaled(n, 1024.0, _BINARY), n, is_open)


def flops(n: float, is_open: bool = False) -> str:
    """``4.1 GFLOP``; if ``is_open``, ``4.1 GFLOP+`` or ``?``, as for :func:`bytes_`."""
    return _open(_scaled(n, 1000.0, _DECIMAL, "FLOP"), n, is_open)


def _open(text: str, n: float, is_open: bool) -> str:
    return text if not is_open else f"{text}+" if n else "?"


def percent(share: float) -> str:
    """``12 %``, and ``0.4 %`` below one."""
    return f"{share * 100:.1f} %" if 0 < share < 0.0095 else f"{share * 100:.0f} %"


def seconds(n: float) -> str:
    """``12 ms``; from a second on ``1.25 s``."""
    return f"{n * 1e3:.0f} ms" if n < 1 else f"{n:.2f} s"


def micros(us: float) -> str:
    """Microseconds: ``12.50 us``, ``1.250 ms``, ``2.000 s``."""
    return f"{us:.2f} us" if us < 1e3 else f"{us / 1e3:.3f} ms" if us < 1e6 else f"{us / 1e6:.3f} s"


def plural(n: float, one: str, many: str = "") -> str:
    """``1 kernel``, ``2 kernels``."""
    return plural_of(n, one, many, count(n))


def some(names: Sequence[str], most: int) -> str:
    """``a, b and 3 more``: the first ``most`` names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def short(text: str, width: int) -> str:
    """A text cut in its middle to ``width`` characters, because names differ at their ends.

    >>> short("broadcast_maximum_fusion.123", 16)
    'broadca..ion.123'
    """
    if len(text) <= width:
        return text
    if width <= 4:
        return text[:width]
    head = (width - 2) // 2
    return text[:head] + ".." + text[len(text) - (width - 2 - head):]


def _scaled(n: float, base: float, units: tuple[str, ...], unit: str = "") -> str:
    size, i = float(n), 0
    while size >= base * 0.9995 and i < len(units) - 1:
        size /= base
        i += 1
    number = f"{size:.0f}" if i == 0 and size == int(size) else f"{size:.3g}" if size < 999.5 else f"{size:.0f}"
    return f"{number} {units[i]}{unit}".rstrip()
