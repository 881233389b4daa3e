"""Typed access to the attributes of an operation: missing and ill-typed ones are faults of the operation."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, TypeVar

from irscope.formats.stablehlo.attributes import Array, Attribute, Number, Record, Symbol, Text, Unit, Word
from irscope.graph import TensorType
from irscope.lazy import np
from irscope.ops.attrs import Literal
from irscope.ops.faults import TypeFault
from irscope.source.budget import require

T = TypeVar("T")
Ints: TypeAlias = tuple[int, ...]
MAX_INTS = 1 << 20
"""The most numbers that a list of dimensions, sizes or devices may hold."""


class Fields:
    """The attributes of one operation, or the fields of one of its records; ``owner`` is its name for messages."""

    __slots__ = ("owner", "values")

    def __init__(self, owner: str, values: Mapping[str, Attribute]) -> None:
        self.owner, self.values = owner, values

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def fault(self, name: str, wanted: str) -> TypeFault:
        """The fault of an attribute that is missing or is not what is wanted."""
        if name not in self.values:
            return TypeFault(f"'{self.owner}' op requires attribute '{name}'")
        return TypeFault(f"attribute '{name}' of '{self.owner}' must be {wanted}")

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer."""
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        found = _integer(value)
        if found is None:
            raise self.fault(name, "an integer")
        return found

    def real(self, name: str) -> float:
        """A float."""
        return float(self._value_of(name, Number, "a number").value)

    def flag(self, name: str, default: bool = False) -> bool:
        """A boolean; a name without a value is true."""
        value = self.values.get(name)
        if value is None:
            return default
        if isinstance(value, Unit):
            return True
        if isinstance(value, Number) and value.value in (0, 1):
            return bool(value.value)
        if not isinstance(value, bool):
            raise self.fault(name, "true or false")
        return value

    def true_flags(self, *names: str) -> dict[str, bool]:
        """Those of these booleans that are true; HLO omits the others."""
        return {name: True for name in names if self.flag(name)}

    def ints(self, name: str, default: Ints | None = None) -> Ints:
        """A list of integers, in any spelling."""
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        found = _ints(value)
        if found is None:
            raise self.fault(name, "a list of integers")
        return found

    def nonempty(self, *names: str) -> dict[str, Ints]:
        """Those of these lists of integers that have elements; HLO omits the others."""
        return {name: found for name in names if (found := self.ints(name, ()))}

    def flags(self, name: str, count: int) -> tuple[bool, ...]:
        """A list of booleans; false where it is missing."""
        return tuple(map(bool, self.ints(name))) if name in self.values else (False,) * count

    def pairs(self, name: str) -> tuple[tuple[int, int], ...]:
        """Pairs of integers, from a matrix with two columns; none where it is missing."""
        value = self.values.get(name)
        if value is None:
            return ()
        flat = _ints(value)
        if flat is None or len(flat) % 2:
            raise self.fault(name, "pairs of integers")
        return tuple((flat[i], flat[i + 1]) for i in range(0, len(flat), 2))

    def rows(self, name: str) -> tuple[Ints, ...]:
        """The rows of a matrix of integers."""
        value = self.values.get(name)
        if isinstance(value, Literal) and not value.elided:
            flat, sizes = _ints(value), value.type.dims() if isinstance(value.type, TensorType) and value.type.is_static else ()
            if flat is not None and len(sizes) == 2:
                count, width = sizes[0], sizes[1]
                if count > MAX_INTS:
                    raise TypeFault(f"a matrix of {count} rows is too long")
                return tuple(flat[i * width:(i + 1) * width] for i in range(count))
        raise self.fault(name, "a matrix of integers")

    def word(self, name: str, default: str = "") -> str:
        """A word of an enumeration."""
        value = self.values.get(name)
        if value is None and default:
            return default
        if isinstance(value, Word):
            return value.word
        if isinstance(value, str) and value:
            return value
        raise self.fault(name, "a word of an enumeration")

    def words(self, name: str) -> tuple[str, ...]:
        """A list of words; none where it is missing."""
        return tuple(part.word if isinstance(part, Word) else str(part) for part in self._parts(name, "a list of words"))

    def text(self, name: str, default: str | None = None) -> str:
        """A string."""
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if isinstance(value, Text):
            return value.text
        if not isinstance(value, str):
            raise self.fault(name, "a string")
        return value

    def symbol(self, name: str) -> str:
        """The name of a function."""
        return self._value_of(name, Symbol, "the name of a function").name

    def symbols(self, name: str) -> tuple[str, ...]:
        """The names of functions; none where it is missing."""
        parts = self._parts(name, "a list of names of functions")
        found = tuple(part.name for part in parts if isinstance(part, Symbol))
        if len(found) != len(parts):
            raise self.fault(name, "a list of names of functions")
        return found

    def record(self, name: str) -> Fields:
        """The fields of an attribute of the dialect."""
        return Fields(self.owner, self._value_of(name, Record, "an attribute with fields").fields)

    def records(self, name: str) -> tuple[Fields, ...]:
        """A list of attributes of the dialect; none where it is missing."""
        return tuple(Fields(self.owner, part.fields) for part in self._parts(name, "a list") if isinstance(part, Record))

    def literal(self, name: str) -> Literal:
        """A dense value."""
        return self._value_of(name, Literal, "a dense value")

    def _parts(self, name: str, wanted: str) -> tuple[Attribute, ...]:
        return self._value_of(name, tuple, wanted) if name in self.values else ()

    def _value_of(self, name: str, kind: type[T], wanted: str) -> T:
        value = self.values.get(name)
        if not isinstance(value, kind):
            raise self.fault(name, wanted)
        return value


def _integer(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return value.value if isinstance(value, Number) and isinstance(value.value, int) else None


def _ints(value: Attribute | None) -> Ints | None:
    """The integers of a value, None where it is no list of them."""
    if isinstance(value, Array):
        return tuple(map(int, value.values)) if not value.dtype.is_float else None
    if isinstance(value, tuple):
        found = [int(part) if isinstance(part, bool) else _integer(part) for part in value]
        return None if None in found else tuple(number for number in found if number is not None)
    if isinstance(value, Literal) and not value.elided:
        count = getattr(value.type, "elements", 0)
        if count > MAX_INTS:
            raise TypeFault(f"a list of {count} numbers is too long")
        require(8 * count, "a list of numbers")
        array = np.asarray(value.value())
        return tuple(map(int, array.reshape(-1).tolist())) if array.dtype.kind in "iub" else None
    return None
