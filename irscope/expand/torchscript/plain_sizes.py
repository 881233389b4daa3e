"""Bounds plain Python values that a program computes: a line of text must not make a number of a billion digits, or such a list.

TorchScript's int has 64 bits, Python's has any number; lists and strings repeat at will in both. The size of a result is computed
before the operator runs, because nothing can interrupt Python inside one such operation.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from irscope.graph.walk import leaves_of
from irscope.ops.faults import TypeFault
from irscope.source.budget import NODES, require_nodes

INT_BITS = 64
LARGEST_FACTORIAL = 20
"""21! has more than 64 bits."""
LONGEST_NUMBER = 24
"""The characters of the longest int or float."""
_WIDTH = re.compile(r"[0-9]{1,5}")
_WIDE = re.compile(r"\d{6,}")


def require_plain(name: str, values: Sequence[object]) -> None:
    """Raise TypeFault where the result has more bits than torch's int, BudgetExceeded where it has more elements or characters than
    a graph may have nodes."""
    measure = _MEASURES.get(name)
    if measure is not None:
        measure(values)
    else:
        _require_elements(sum(len(v) for v in values if isinstance(v, list | tuple | str)), name)


def require_int(value: object) -> Any:
    """The value. Raises TypeFault for an int beyond torch's 64 bits."""
    if isinstance(value, int) and not -1 << INT_BITS - 1 <= value < 1 << INT_BITS - 1:
        raise TypeFault(f"torch's int has {INT_BITS} bits, and this one has {value.bit_length() + 1:,}")
    return value


def _require_elements(count: int, what: str) -> None:
    require_nodes(count, what, of="elements")


def _repeated(values: Sequence[object]) -> None:
    if len(values) != 2:
        return
    held, times = values if isinstance(values[0], list | tuple | str) else values[::-1]
    if isinstance(held, list | tuple | str) and isinstance(times, int):
        _require_elements(len(held) * times, "repeating a list or text")


def _power(values: Sequence[object]) -> None:
    if len(values) != 2:
        return
    base, exponent = values
    if isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1 and (base.bit_length() - 1) * exponent > INT_BITS:
        raise TypeFault(f"{base} ** {exponent} has more than {INT_BITS} bits")


def _shifted(values: Sequence[object]) -> None:
    if len(values) > 1 and isinstance(values[1], int) and values[1] >= INT_BITS:
        raise TypeFault(f"torch's int has {INT_BITS} bits, and cannot be shifted by {values[1]}")


def _factorial(values: Sequence[object]) -> None:
    if values and isinstance(values[0], int) and values[0] > LARGEST_FACTORIAL:
        raise TypeFault(f"the factorial of {values[0]} has more than {INT_BITS} bits")


def _padded(values: Sequence[object]) -> None:
    if len(values) > 1 and isinstance(values[1], int):
        _require_elements(values[1], "padding a text")


def _formatted(values: Sequence[object]) -> None:
    if values and isinstance(values[0], str) and (_WIDE.search(values[0]) or "*" in values[0]):
        _require_elements(NODES + 1, "formatting a text to a width")
    widths = [int(number) for v in values[:1] if isinstance(v, str) for number in _WIDTH.findall(v)]
    _require_elements(sum(widths) + _length(values), "formatting a text")


def _written(values: Sequence[object]) -> None:
    _require_elements(_length(values), "writing values as a text")


def _length(values: Sequence[object]) -> int:
    """About as many characters as the values have in a text, in which a list that another one contains twice is there twice."""
    leaves = leaves_of(list(values), lambda value: list(value.items()) if isinstance(value, dict) else
                       value if isinstance(value, list | tuple) else None)
    return sum(len(leaf) if isinstance(leaf, str) else LONGEST_NUMBER for leaf in leaves)


def _replaced(values: Sequence[Any]) -> None:
    if len(values) > 2 and all(isinstance(v, str) for v in values[:3]):
        _require_elements((len(values[0]) + 1) * max(1, len(values[2])), "replacing in a text")


def _joined(values: Sequence[object]) -> None:
    if len(values) > 1 and isinstance(values[0], str) and isinstance(values[1], list):
        _require_elements(len(values[0]) * len(values[1]) + sum(len(v) for v in values[1] if isinstance(v, str)), "joining texts")


_MEASURES: dict[str, Callable[[Sequence[object]], None]] = {
    "aten::mul": _repeated, "aten::pow": _power, "aten::__lshift__": _shifted, "aten::factorial": _factorial, "aten::rjust": _padded,
    "aten::ljust": _padded, "aten::center": _padded, "aten::zfill": _padded,
    "aten::percentFormat": _formatted, "aten::str": _written, "aten::format": _written, "aten::replace": _replaced, "aten::join": _joined,
}
