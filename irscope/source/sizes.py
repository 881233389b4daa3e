"""Parses and formats sizes in bytes."""
from __future__ import annotations

import re

from irscope.source.errors import UserError

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgtKMGT]?)(i?)[bB]?)$")
MAX_DIGITS = 40
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_size(text: str | int) -> int:
    """The bytes of ``512``, ``300kB``, ``1.5GiB``. Raises UserError for an invalid size."""
    if isinstance(text, int):
        return text
    found = _SIZE.match(text.strip())
    if found is None:
        raise UserError(f"{text!r} is not a size", "sizes are written 4096, 300kB, 1.5GiB")
    if len(found[1]) > MAX_DIGITS:
        raise UserError(f"{text[:20]!r}... is larger than any memory", "sizes are written 4096, 300kB, 1.5GiB")
    unit: int = (1024 if found[3] else 1000) ** _POWERS[found[2].lower()]
    return round(float(found[1]) * unit)


def told_bytes(count: int) -> str:
    """``1.5 GiB``."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} TiB"
