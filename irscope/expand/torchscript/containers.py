"""Lists and dicts that a branch or a loop may change: their contents before and after."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.expand.torchscript.program import TorchProgram
from irscope.expand.torchscript.structure import parts_in
from irscope.ops.faults import TypeFault

Container = list[object] | dict[object, object]
Place = int | str
"""A container by its number, an attribute of an object by its path."""


class Contents:
    """The lists and dicts that are reachable from some values, and the attributes of objects, with their present contents."""

    def __init__(self, program: TorchProgram, values: Sequence[object]) -> None:
        self.program = program
        self.attributes = dict(program.attributes)
        self.assigned = set(program.assigned)
        self.held: list[tuple[Container, Container]] = []
        known: set[int] = set()
        stack = [*values, *program.attributes.values()]
        while stack:
            top = stack.pop()
            if isinstance(top, list | dict | tuple):  # any of them may contain the same one many times, and nest
                if id(top) in known:
                    continue
                known.add(id(top))
            if isinstance(top, list | dict):
                self.held.append((top, top.copy()))
            stack.extend(parts_in(top) or ())

    def changed(self) -> dict[Place, Any]:
        """The contents of the containers changed since then, and the attributes that were set, by their index here.

        Raises TypeFault for an attribute without a value before.
        """
        out: dict[Place, Any] = {i: now.copy() for i, (now, before) in enumerate(self.held) if not _same(now, before)}
        new = self.program.assigned - self.assigned - set(self.attributes)
        if new:
            raise TypeFault(f"the attribute {min(new)!r} is set for the first time where data decides whether it is")
        for path, before in self.attributes.items():
            if not _identical(self.program.attributes[path], before):
                out[path] = self.program.attributes[path]
        return out

    def before(self, place: Place) -> Any:
        """The former contents of a place."""
        return self.attributes[place] if isinstance(place, str) else self.held[place][1]

    def put(self, place: Place, value: Any) -> None:
        """Set the contents of a place."""
        if isinstance(place, str):
            self.program.attributes[place] = value
        else:
            _put(self.held[place][0], value)

    def restore(self) -> None:
        """Restore all contents. Drops attributes read since then, which may belong to a body that is complete."""
        for container, before in self.held:
            _put(container, before)
        self.program.attributes.clear()
        self.program.attributes.update(self.attributes)
        self.program.assigned.clear()
        self.program.assigned.update(self.assigned)


def _put(container: Container, contents: Container) -> None:
    if isinstance(container, list):
        container[:] = contents
    else:
        assert isinstance(contents, dict)
        container.clear()
        container.update(contents)


def _same(a: Container, b: Container) -> bool:
    """Whether two containers have identical objects."""
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(_identical(a[k], b[k]) for k in a)
    return len(a) == len(b) and all(_identical(x, y) for x, y in zip(a, b, strict=True))


def _identical(a: object, b: object) -> bool:
    return a is b or (type(a) is type(b) and isinstance(a, int | float | str) and a == b)
