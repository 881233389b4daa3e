"""Tables keyed by operator, over several dialects."""
from __future__ import annotations

from typing import Generic, TypeVar

from irscope.graph import Op
from irscope.ops.sets import OpSet

T = TypeVar("T")


class OpTable(Generic[T]):
    """One value for each operator of a set: ``OpTable((relay("exp"), a), (relay("tanh erf"), b)).get(node.op)``. Later rows win.

    As a set does, it names operators without importing their declarations.
    """

    __slots__ = ("_values", "rows")

    def __init__(self, *rows: tuple[OpSet, T]) -> None:
        self.rows = rows
        self._values = {key: value for ops, value in rows for key in ops}

    def get(self, op: Op) -> T | None:
        """The value of an operator; None where it has none."""
        return self._values.get((op.dialect, op.name))

    def __contains__(self, op: Op) -> bool:
        return (op.dialect, op.name) in self._values
