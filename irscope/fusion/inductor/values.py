"""Values during lowering: an expression that is recomputed wherever it is read, or a buffer in memory."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from irscope.fusion.inductor.forms import Form, coordinates, is_indirect, replaced, steps, weighted
from irscope.fusion.inductor.loops import picked_order
from irscope.fusion.inductor.strides import ordered_strides
from irscope.fusion.views import row_major
from irscope.graph import Node

Load = tuple["Buffer", tuple[Form, ...]]
"""A read of one element: the buffer and the coordinates."""
Step = tuple[Node | str, tuple[Form, ...]]
"""An operation at an iteration: equal ones are computed once."""


@dataclass(slots=True, eq=False)
class Expression:
    """The computation of one element: reads, operations, and the primitives that it stands for (``members``).

    ``counts`` are values of the loop variables (iota, the conditions of padding): like reads they prevent loops from being merged.
    """

    loads: dict[Load, None] = field(default_factory=dict)
    steps: dict[Step, None] = field(default_factory=dict)
    members: dict[Node, None] = field(default_factory=dict)
    counts: dict[Form, None] = field(default_factory=dict)

    def take(self, other: Expression) -> None:
        """Add the computation of another expression."""
        self.loads.update(other.loads)
        self.steps.update(other.steps)
        self.members.update(other.members)
        self.counts.update(other.counts)

    def at(self, values: Sequence[Form]) -> Expression:
        """The expression with other coordinates for its variables."""
        return Expression(
            {(buffer, tuple(replaced(f, values) for f in where)): None for buffer, where in self.loads},
            {(node, tuple(replaced(f, values) for f in where)): None for node, where in self.steps},
            dict(self.members),
            {replaced(f, values): None for f in self.counts},
        )

    def operations(self) -> int:
        """The number of operations as Inductor counts them: each read and each operation once."""
        return len(self.loads) + len(self.steps)

    def moving(self) -> int:
        """How many of the reads depend on the loops."""
        return sum(any(f.terms for f in where) for _, where in self.loads)


@dataclass(slots=True, eq=False)
class Buffer:
    """A value in memory, and its computation: a node of the scheduler.

    ``kind`` is ``input``, ``extern`` (a library call), ``nop`` (memory that others write), ``pointwise``, ``reduction`` or ``scatter``.
    ``expression`` computes an element over ``shape`` and ``reduced``; ``reads`` are what an extern or nop reads as a whole. ``strides`` are
    None while the layout is open. ``into`` is the buffer that contains this one, and the offset in it. ``shape`` are the sizes of
    the value, ``number`` the position among all operations. A scatter runs over ``iterated`` and writes to ``where``, by ``mode``.
    ``part`` marks one of several results of a call.
    """

    name: str
    kind: str
    node: Node
    shape: tuple[int, ...]
    itemsize: int
    number: int = -1
    expression: Expression = field(default_factory=Expression)
    reduced: tuple[int, ...] = ()
    reads: tuple[Buffer, ...] = ()
    strides: tuple[int, ...] | None = None
    into: tuple[Buffer, int] | None = None
    where: tuple[Form, ...] | None = None
    mode: str = ""
    members: dict[Node, None] = field(default_factory=dict)
    iterated: tuple[int, ...] | None = None
    part: bool = False

    def flat(self, where: Sequence[Form]) -> Form:
        """The index in memory of an element."""
        return weighted(where, self.strides if self.strides is not None else row_major(self.shape))

    def freeze(self) -> None:
        """Freeze the layout: the strides of ``get_fill_order`` over the reads, innermost first (ir.py), else row-major."""
        if self.strides is not None:
            return
        self.strides = row_major(self.shape)
        sizes = self.shape
        rows = [steps(buffer.flat(where), range(len(sizes)), len(sizes) + len(self.reduced)) for buffer, where in self.expression.loads]
        if rows and len(sizes) > 1:
            self.strides = ordered_strides(sizes, picked_order(rows, sizes))


@dataclass(slots=True, eq=False)
class Storage:
    """The storage of a value: a buffer, or only an expression."""

    node: Node
    shape: tuple[int, ...]
    itemsize: int
    expression: Expression | None = None
    buffer: Buffer | None = None


class Tensor(NamedTuple):
    """A value as an operator sees it: a storage, and the coordinates in it for each element. ``value`` is the element itself if it is
    a number that the loops determine (iota)."""

    storage: Storage
    where: tuple[Form, ...]
    shape: tuple[int, ...]
    value: Form | None = None

    def read(self, at: Sequence[Form]) -> Expression:
        """The expression that reads the element at these coordinates."""
        straight = tuple(at) == coordinates(self.shape)
        where = self.where if straight else tuple(replaced(f, at) for f in self.where)
        if self.storage.buffer is not None:
            return Expression({(self.storage.buffer, where): None})
        expression = self.storage.expression
        assert expression is not None
        if where == coordinates(self.storage.shape):
            return Expression(dict(expression.loads), dict(expression.steps), dict(expression.members), dict(expression.counts))
        return expression.at(where)

    def viewed(self, old: Sequence[Form], shape: tuple[int, ...]) -> Tensor:
        """The same memory under other coordinates: ``old`` maps the new coordinates to those of this tensor."""
        value = replaced(self.value, old) if self.value is not None else None
        return Tensor(self.storage, tuple(replaced(f, old) for f in self.where), shape, value)

    def whole(self) -> bool:
        """Whether this is the whole storage, unchanged."""
        return self.shape == self.storage.shape and self.where == coordinates(self.shape)


def strides_of(tensor: Tensor) -> tuple[int, ...] | None:
    """The strides of a tensor whose storage is a buffer; None if no strides describe it."""
    buffer = tensor.storage.buffer
    assert buffer is not None
    flat = buffer.flat(tensor.where)
    if is_indirect(flat):
        return None
    rank = len(tensor.shape)
    rows = steps(flat, list(range(rank)), rank) if rank else []
    for i, size in enumerate(tensor.shape):
        if size == 1:
            rows[i] = 1
    straight = weighted(coordinates(tensor.shape), [s if size != 1 else 0 for s, size in zip(rows, tensor.shape)], flat.constant)
    return tuple(rows) if straight == flat else None
