"""Names of values: which are visible where, with MLIR's rules for regions, redefinition and use before definition."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from irscope.formats.faults import Faults, Refused, Span
from irscope.formats.stablehlo.faults import DOMINANCE, DUPLICATE_NAME, UNDEFINED_VALUE, VALUE_TYPE
from irscope.formats.stablehlo.operations import Defined, Value
from irscope.formats.stablehlo.types import spelled
from irscope.graph import UNKNOWN, Node, Type
from irscope.source import Note


@dataclass(slots=True, eq=False)
class Scope:
    """The values of one function, or of another operation whose regions see nothing from outside.

    ``values`` are those visible now, in the order of their definition; ``outside`` has, for each open region, the number of those that were
    visible before it; ``awaited`` are values that are used and not yet defined: name to value, offset of the use, and offset of its
    operation; ``places`` is where values are defined that are no nodes. In a scope that ``makes_nodes``, lines of common forms are nodes.
    """

    faults: Faults
    makes_nodes: bool = False
    values: dict[str, Defined] = field(default_factory=dict)
    outside: list[int] = field(default_factory=list)
    awaited: dict[str, tuple[Value, int, int]] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)

    def enter(self) -> None:
        """A region begins."""
        self.outside.append(len(self.values))

    def leave(self) -> None:
        """A region ends, and the names in it."""
        count = self.outside.pop()
        if not count:
            self.values.clear()
        while len(self.values) > count:
            self.values.popitem()

    def forget(self, values: Iterable[Defined]) -> None:
        """Undo the definition of the last operation's results."""
        for value in values:
            base = value.name.partition("#")[0]
            for name in {value.name, base} & self.values.keys():
                del self.values[name]

    def define(self, name: str, at: int) -> None:
        """Refuse a name that is visible already."""
        if name in self.values:
            notes = tuple(Note("it is defined first here", place) for place in self._place(name))
            raise Refused(DUPLICATE_NAME, f"redefinition of SSA value '%{name}'", at, len(name) + 1,
                          "names are unique in a function; a region may use those of another one that does not contain it", notes)
        self.places[name] = at

    def _place(self, name: str) -> tuple[int, ...]:
        """The offset at which a visible name is defined, if it is known."""
        value = self.values.get(name)
        if isinstance(value, Node):
            return (value.loc,)
        return (self.places[name],) if name in self.places else ()

    def bind(self, name: str, types: tuple[Type, ...]) -> list[Value]:
        """Make the values of a name, one for each of its results."""
        single = len(types) == 1
        values = [Value(name if single else f"{name}#{i}", type) for i, type in enumerate(types)]
        for i, value in enumerate(values):
            if self.awaited:
                value = values[i] = self._late(value, i)
            self.values[value.name] = value
        if not single:
            self.values[name] = values[0] if values else Value(name, UNKNOWN)
        return values

    def _late(self, value: Value, index: int) -> Value:
        """A value that is defined after its use: MLIR reads on, and objects that the definition does not dominate the use."""
        for name in (value.name, f"{value.name}#0") if index or "#" not in value.name else (value.name, value.name[:-2]):
            found = self.awaited.pop(name, None)
            if found is not None:
                used, at, owner = found
                self.faults.add(DOMINANCE, f"%{name} is used before it is defined: operand does not dominate this use", Span(owner, 1),
                                "operations stand in the order in which they run")
                if used.type != value.type:
                    self._disagree(name, used.type, value.type, at)
                    used.type = value.type
                used.name = value.name
                value = used
        return value

    def use(self, name: str, type: Type, at: int, owner: int) -> Defined:
        """The value of a name, which must have a type; ``owner`` is the offset of the operation that uses it."""
        value = self.values.get(name)
        if value is None:
            value = self._unusual(name, type, at, owner)
        if value.type is not type and value.type != type and UNKNOWN not in (value.type, type):
            self._disagree(name, type, value.type, at)
        return value

    def known(self, name: str, at: int) -> Defined:
        """The value of a name that must be defined already."""
        value = self.values.get(name)
        if value is None and name.endswith("#0"):
            value = self.values.get(name[:-2])
        if value is None:
            raise Refused(UNDEFINED_VALUE, f"use of undeclared SSA value name: %{name} is not defined here", at, len(name) + 1)
        return value

    def _disagree(self, name: str, used: Type, defined: Type, at: int) -> None:
        base = name.partition("#")[0]
        notes = tuple(Note(f"%{base} is defined here", place) for place in self._place(base))
        self.faults.add(VALUE_TYPE, f"use of value '%{name}' expects different type than prior uses: '{spelled(used)}' vs "
                        f"'{spelled(defined)}'", Span(at, len(name) + 1), "", notes)

    def _unusual(self, name: str, type: Type, at: int, owner: int) -> Defined:
        base, _, number = name.partition("#")
        if number and base in self.values:
            first = self.values[base]
            if int(number[:9]) == 0 or first.type is UNKNOWN:
                return first
            count = sum(f"{base}#{i}" in self.values for i in range(min(int(number[:9]), 100_000))) or 1
            self.faults.add(UNDEFINED_VALUE, f"reference to invalid result number: %{base} has {count} result{'s' * (count != 1)}",
                            Span(at, len(name) + 1))
            return Value(name, UNKNOWN)
        found = self.awaited.get(name)
        if found is None:
            found = self.awaited[name] = Value(name, type), at, owner
        return found[0]

    def close(self) -> None:
        """The function ends: what was used and never defined is a fault."""
        for name, (_, at, _owner) in self.awaited.items():
            self.faults.add(UNDEFINED_VALUE, f"use of undeclared SSA value name: %{name} is not defined here", Span(at, len(name) + 1))
