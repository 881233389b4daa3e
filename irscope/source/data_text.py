"""Parses data that a text holds: JSON, TOML, Python literals. Whatever is wrong with the text is a ValueError. Writes JSON.

The parsers of Python raise other errors too: RecursionError for deep nesting, TypeError for the key of a dict that is a list. Only this
file calls them.
"""
from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from irscope.lazy import LazyModule

if TYPE_CHECKING:
    import ast
    import tomllib
else:
    ast, tomllib = LazyModule("ast"), LazyModule("tomllib")


def json_value(text: str | bytes | bytearray) -> Any:
    """The value of a JSON text. Raises ValueError for another text, and for one that is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def first_json_value(text: str) -> Any:
    """The JSON value that a text begins with, whatever follows. Raises ValueError as :func:`json_value` does."""
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def strict_json(value: object, **style: Any) -> str:
    """The JSON text of a value; ``style`` as for json.dumps. Infinity and NaN, which Python writes and JSON does not have, become null.

    >>> strict_json({"a": [1.5, float("nan")]})
    '{"a": [1.5, null]}'
    """
    try:
        return json.dumps(value, allow_nan=False, **style)
    except ValueError:
        return json.dumps(json.loads(json.dumps(value), parse_constant=lambda _: None), **style)


MAX_BITS = 2048
"""The largest integer of a table: Python prints none of more than 4,300 digits, as messages do."""


def toml_table(text: str) -> dict[str, Any]:
    """The table of a TOML text. Raises ValueError for another text, for one that is nested too deeply, and for giant integers."""
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise ValueError("the TOML is nested too deeply") from None
    todo: list[Any] = [found]
    for value in todo:
        if isinstance(value, dict):
            todo += value.values()
        elif isinstance(value, list):
            todo += value
        elif isinstance(value, int) and value.bit_length() > MAX_BITS:
            raise ValueError(f"an integer has more than {MAX_BITS} bits")
    return found


def python_literal(text: str) -> Any:
    """A number, text, list, tuple, dict or set as Python writes it. Raises ValueError for another text.

    >>> python_literal("[1, 'a']")
    [1, 'a']
    >>> python_literal("{[]: 1}")
    Traceback (most recent call last):
    ...
    ValueError: no Python literal: unhashable type: 'list'
    """
    try:
        return ast.literal_eval(text)
    except (SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError(f"no Python literal: {error}") from None


def whole_number(value: object) -> int:
    """A number of such data as an int. Raises ValueError for fractions, infinity, NaN, truth values and what is no number.

    >>> whole_number(json_value("1e999"))
    Traceback (most recent call last):
    ...
    ValueError: inf is no whole number
    """
    try:
        number = int(value)  # type: ignore[call-overload]
    except (OverflowError, TypeError):
        raise ValueError(f"{value!r} is no whole number") from None
    if isinstance(value, bool) or (isinstance(value, float) and number != value):
        raise ValueError(f"{value!r} is no whole number")
    return int(number)


def finite_number(value: object) -> float:
    """A number of such data as a float. Raises ValueError for infinity, NaN, what is larger than floats, and what is no number.

    >>> finite_number(json_value("3"))
    3.0
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise ValueError("no finite number")
    return float(value)
