"""Movement without copies: how reshape, transpose, slice, reverse and broadcast change a value's strides.

A *chain* is the sequence of view nodes from a loop's iteration space back to a node. Applied to the strides of a value it yields the
strides over the loops; if those are row-major, loop iteration i reads element i.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from irscope.fusion.dimensions import inverse
from irscope.graph import Node, TensorType
from irscope.graph.walk import behind
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Reverse, Slice, Transpose

VIEWS = hlo.named("reshape transpose slice reverse broadcast")
"""Operators whose result is the operand under other strides (a reshape only where the strides allow it)."""


class Strides(NamedTuple):
    """Element ``i`` is at ``offset + sum(i[d] * strides[d])``. Views without elements keep their operand's offset."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @staticmethod
    def plain(shape: Sequence[int]) -> Strides:
        """Row-major without gaps."""
        return Strides(tuple(shape), row_major(shape))

    def transposed(self, order: Sequence[int]) -> Strides:
        """Result dimension i is dimension ``order[i]``."""
        return Strides(tuple(self.shape[d] for d in order), tuple(self.strides[d] for d in order), self.offset)

    def sliced(self, parts: Sequence[tuple[int, int, int]]) -> Strides:
        """HLO's slice: (start, limit, stride) for each dimension."""
        shape = tuple(max(0, -(-(limit - start) // step)) for start, limit, step in parts)
        further = sum(start * s for (start, _, _), s in zip(parts, self.strides)) if prod(shape) else 0
        return Strides(shape, tuple(s * step for (_, _, step), s in zip(parts, self.strides)), self.offset + further)

    def reversed(self, dimensions: Sequence[int]) -> Strides:
        """Reverse the order along these dimensions."""
        strides, offset = list(self.strides), self.offset
        for d in dimensions:
            offset += (self.shape[d] - 1) * strides[d] if prod(self.shape) else 0
            strides[d] = -strides[d]
        return Strides(self.shape, tuple(strides), offset)

    def broadcast(self, dimensions: Sequence[int], shape: Sequence[int]) -> Strides:
        """HLO's broadcast: dimension d becomes ``dimensions[d]`` of the result, the others repeat."""
        strides = [0] * len(shape)
        for d, s in zip(dimensions, self.strides):
            strides[d] = s
        return Strides(tuple(shape), tuple(strides), self.offset)

    def reshaped(self, shape: Sequence[int]) -> Strides | None:
        """The same elements in row-major order under another shape, or None when no strides say that."""
        made = reshape_strides(self.shape, self.strides, shape)
        return None if made is None else Strides(tuple(shape), made, self.offset)

    def through(self, node: Node) -> Strides | None:
        """The strides of a view node's result, or None if it needs a copy."""
        assert isinstance(node.type, TensorType)
        shape = node.type.dims()
        match node.op:
            case hlo.reshape:
                return self.reshaped(shape)
            case hlo.transpose:
                return self.transposed(Transpose.of(node).dimensions)
            case hlo.slice:
                return self.sliced(Slice.of(node).slice)
            case hlo.reverse:
                return self.reversed(Reverse.of(node).dimensions)
            case _:
                return self.broadcast(Broadcast.of(node).dimensions, shape)

    def is_plain(self) -> bool:
        """Whether iteration i is element i: row-major without gaps from the first element (dimensions of size 1 may have any stride)."""
        return self.offset == 0 and all(s == w or n == 1 for n, s, w in zip(self.shape, self.strides, row_major(self.shape)))


@dataclass(frozen=True, slots=True)
class Reshape:
    """A step of a chain that is no node of the graph: the elements in row-major order under another shape."""

    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A step of a chain that is no node of the graph: broadcasts a row's value to every element of the row."""

    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Permute:
    """A step of a chain that is no node of the graph: dimension i is dimension ``order[i]`` of the node."""

    order: tuple[int, ...]


Step = Reshape | Repeat | Permute


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """The steps from the loops back to a node: ``step`` is the last one, next to the node; ``outer`` the others (None: the loops).

    Chains with equal steps are equal. There may be thousands of steps, so the hash is computed once, and so is ``of_plain``: a shape, and
    the strides over the loops of a value that is row-major in it.
    """

    step: Node | Step
    outer: Chain | None = None
    of_plain: tuple[tuple[int, ...], Strides | None] | None = field(init=False, repr=False, default=None)
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.step, self.outer and self.outer._hash)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Chain):
            return NotImplemented
        a: Chain | None = self
        b: Chain | None = other
        while a is not b:
            if a is None or b is None or a._hash != b._hash or a.step != b.step:
                return False
            a, b = a.outer, b.outer
        return True

    def __iter__(self) -> Iterator[Node | Step]:
        """The steps from the node's side outwards."""
        at: Chain | None = self
        while at is not None:
            yield at.step
            at = at.outer


def seen_through(chain: Chain | None, strides: Strides) -> Strides | None:
    """The strides of a value over the loops, or None if the chain needs a copy."""
    found: Strides | None = strides
    passed: list[tuple[Chain, tuple[int, ...]]] = []
    at = chain
    while at is not None and found is not None:
        # A kernel with hundreds of transposes asks this of each of them. Pairs that undo each other end at a chain that is known.
        if found.offset == 0 and found.strides == row_major(found.shape):
            if at.of_plain is not None and at.of_plain[0] == found.shape:
                found = at.of_plain[1]
                break
            passed.append((at, found.shape))
        found = _after(at.step, found)
        at = at.outer
    for chain, shape in passed:
        object.__setattr__(chain, "of_plain", (shape, found))
    return found


def _after(step: Node | Step, strides: Strides) -> Strides | None:
    """The strides after one step of a chain, or None if it needs a copy."""
    if isinstance(step, Reshape):
        return strides.reshaped(step.shape)
    if isinstance(step, Permute):
        return strides.transposed(step.order)
    if isinstance(step, Repeat):
        return strides.broadcast(tuple(range(len(strides.shape))), step.shape)
    return strides.through(step)


def access(chain: Chain | None, node: Node) -> Strides | None:
    """How the loops walk a node's elements, numbered row-major; None if no strides describe it."""
    assert isinstance(node.type, TensorType)
    return seen_through(chain, Strides.plain(node.type.dims()))


def before(node: Node, wanted: Strides) -> Strides | None:
    """The strides that the operand of a view node needs for the result to have the strides ``wanted``; None if there are none."""
    operand = node.operands[0].type
    assert isinstance(operand, TensorType)
    match node.op:
        case hlo.reshape:
            return wanted.reshaped(operand.dims())
        case hlo.transpose:
            return wanted.transposed(inverse(Transpose.of(node).dimensions))
        case _:
            return None


def stored(node: Node) -> Node:
    """The value whose memory a chain of views refers to: the node itself if it is not a view."""
    return behind(node, VIEWS)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides without gaps."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def contiguous_runs(shape: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """(size, stride of the fastest dimension) of each run of contiguous dimensions, slowest first; dimensions of size 1 are left out."""
    runs: list[tuple[int, int]] = []
    for n, s in zip(shape, strides):
        if n == 1:
            continue
        if runs and runs[-1][1] == n * s:
            runs[-1] = (runs[-1][0] * n, s)
        else:
            runs.append((n, s))
    return runs


def reshape_strides(old: Sequence[int], strides: Sequence[int], new: Sequence[int]) -> tuple[int, ...] | None:
    """The strides under which ``new`` walks the elements of (``old``, ``strides``) in row-major order, or None if there are none."""
    if prod(old) == 0:
        return row_major(new)
    runs = contiguous_runs(old, strides)
    made = [0] * len(new)
    left, step = 1, 1
    for d in range(len(new) - 1, -1, -1):
        if new[d] == 1:
            made[d] = step
            continue
        if left == 1:
            left, step = runs.pop()
        if left % new[d]:
            return None
        made[d] = step
        step *= new[d]
        left //= new[d]
    return tuple(made)
