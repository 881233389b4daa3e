"""A number with its noun."""
from __future__ import annotations


def plural(n: float, one: str, many: str = "", figure: str = "") -> str:
    """``1 node``, ``2 nodes``. ``many`` is an irregular plural, ``figure`` the number as it is to be written (empty: as Python writes it).

    >>> plural(1, "more sum"), plural(3, "pass", "passes"), plural(1500, "edge", figure="1,500")
    ('1 more sum', '3 passes', '1,500 edges')
    """
    return f"{figure or n} {one if n == 1 else many or one + 's'}"
