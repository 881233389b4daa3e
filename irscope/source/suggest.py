"""Suggests the nearest known word for an unknown one."""
from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence that names the closest of ``known``, or the empty string when none is near.

    >>> did_you_mean("recude", ["reduce", "reshape"])
    'did you mean reduce?'
    """
    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else ""
