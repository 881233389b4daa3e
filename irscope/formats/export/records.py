"""JSON from a stranger: every look-up checks the kind of value, and a fault names the path to it.

    graph_module.graph.nodes[3].target: a text is expected, but here is a number
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from irscope.source.budget import require, tick
from irscope.source.data_text import json_value

KINDS: dict[type, str] = {str: "a text", int: "a number", float: "a number", bool: "a bool", dict: "an object", list: "a list",
                          type(None): "null"}
GROWTH = 12
"""JSON takes about so many times its bytes as Python's objects."""


class BadRecord(ValueError):
    """A value of JSON is missing, or of another kind than the schema says; the message begins with its path."""


def parse(data: bytes, what: str) -> Record:
    """The object that a JSON text is. Raises BadRecord where it is none."""
    require(GROWTH * len(data), what)
    if not data.strip():
        raise BadRecord("it is empty: JSON is expected")
    try:
        found = json_value(data)
    except ValueError as error:
        raise BadRecord(f"it is not JSON: {str(error)[:100]}") from None
    return Record(found, "")


class Record:
    """One object of JSON, and the path to it."""

    __slots__ = ("path", "values")

    def __init__(self, values: object, path: str) -> None:
        if not isinstance(values, dict):
            raise BadRecord(f"{path or 'the file'}: an object is expected, but here is {_kind(values)}")
        self.values: Mapping[str, Any] = values
        self.path = path

    def at(self, key: str) -> str:
        """The path of a key."""
        return f"{self.path}.{key}" if self.path else key

    def fault(self, key: str, message: str) -> BadRecord:
        """The fault of a value."""
        return BadRecord(f"{self.at(key)}: {message}")

    def has(self, key: str) -> bool:
        """Whether there is a value, and not null."""
        return self.values.get(key) is not None

    def _value(self, key: str, *kinds: type) -> Any:
        if key not in self.values:
            raise BadRecord(f"{self.path or 'the file'}: the key {key!r} is missing")
        value = self.values[key]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise self.fault(key, f"{KINDS[kinds[0]]} is expected, but here is {_kind(value)}")
        return value

    def text(self, key: str) -> str:
        """A text."""
        return str(self._value(key, str))

    def number(self, key: str) -> int:
        """A whole number."""
        return int(self._value(key, int))

    def flag(self, key: str, otherwise: bool = False) -> bool:
        """A bool; ``otherwise`` where it is missing or null."""
        return bool(self._value(key, bool)) if self.has(key) else otherwise

    def record(self, key: str) -> Record:
        """An object."""
        return Record(self._value(key, dict), self.at(key))

    def items(self, key: str) -> list[Any]:
        """A list of anything."""
        return list(self._value(key, list))

    def records(self, key: str) -> Iterator[Record]:
        """A list of objects."""
        path = self.at(key)
        for i, value in enumerate(self._value(key, list)):
            tick()
            yield Record(value, f"{path}[{i}]")

    def only(self) -> str:
        """The one key of a union. Raises BadRecord where there are none or several."""
        if len(self.values) != 1:
            raise BadRecord(f"{self.path}: an argument has one kind, but here are {len(self.values)}: {', '.join(self.values)[:80]}")
        return next(iter(self.values))


def _kind(value: object) -> str:
    return KINDS.get(type(value), "another value") + (f" ({value!r:.40})" if isinstance(value, str | int | float) else "")
