"""The part of an array that a tile of a result needs: along each dimension how much, and from where (symbolic_tile_analysis.cc).

A place is symbolic, the same for all tiles: a dimension is that of the result, or all of it, or a reshape of such dimensions. With the
sizes of tiles it becomes concrete: the number of elements, and whether they start at zero or at an offset that depends on the block.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from irscope.fusion.xla.instructions import Instruction
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Reduce, Slice, Transpose

Dims = tuple[int, ...]
Array = Any
"""A numpy array; numpy is imported only where it is needed."""


@dataclass(frozen=True, slots=True)
class Root:
    """The extent of the tile along a dimension of the result."""

    number: int


@dataclass(frozen=True, slots=True)
class Whole:
    """All of a dimension."""

    size: int


@dataclass(frozen=True, slots=True)
class Cut:
    """A part of a sliced dimension."""

    of: Dimension
    start: int
    stride: int


@dataclass(frozen=True, slots=True)
class Part:
    """One of the dimensions ``wanted`` of a reshape of other dimensions of sizes ``dims``."""

    of: tuple[Dimension, ...]
    dims: Dims
    wanted: Dims
    number: int


Dimension = Root | Whole | Cut | Part
Place = tuple[Dimension, ...]


def below(instruction: Instruction, number: int, place: Place) -> Place | None:
    """The place of an operand that an instruction needs to compute a place of its result; None if that is not known."""
    operand, op = instruction.operands[number], instruction.op
    if not operand.dims:
        return ()
    if op is hlo.broadcast:
        return tuple(place[d] for d in Broadcast.of(instruction).dimensions)
    if op is hlo.reduce:
        gone, rest = set(Reduce.of(instruction).dimensions), iter(place)
        return tuple(Whole(size) if d in gone else next(rest) for d, size in enumerate(operand.dims))
    if op is hlo.transpose:
        found = dict(zip(Transpose.of(instruction).dimensions, place, strict=True))
        return tuple(found[d] for d in range(len(operand.dims)))
    if op is hlo.slice:
        return tuple(dimension if (start, stop, stride) == (0, size, 1) else _cut(dimension, start, stride) for dimension, size,
                     (start, stop, stride) in zip(place, operand.dims, Slice.of(instruction).slice, strict=True))
    if op in (hlo.bitcast, hlo.reshape):
        return _reshaped(instruction.dims, operand.dims, place)
    return place if len(operand.dims) == len(place) else None


def _cut(dimension: Dimension, start: int, stride: int) -> Cut:
    """A part of a dimension; a part of a part becomes a part of the whole, so that chains of slices do not nest."""
    if isinstance(dimension, Cut):
        return Cut(dimension.of, start + stride * dimension.start, stride * dimension.stride)
    return Cut(dimension, start, stride)


def _reshaped(dims: Dims, wanted: Dims, place: Place) -> Place:
    """A place in one shape as a place in another shape of the same elements; sizes of 1 change nothing."""
    kept = [(part, dim) for part, dim in zip(place, dims, strict=True) if dim != 1]
    sizes = [n for n in wanted if n != 1]
    made: list[Dimension] = []
    i = j = 0
    while i < len(kept) and j < len(sizes):
        a, b, m, n = i, j, kept[i][1], sizes[j]
        i, j = i + 1, j + 1
        while m != n and (i < len(kept) if m < n else j < len(sizes)):
            if m < n:
                m, i = m * kept[i][1], i + 1
            else:
                n, j = n * sizes[j], j + 1
        made += _group(tuple(part for part, _ in kept[a:i]), tuple(dim for _, dim in kept[a:i]), tuple(sizes[b:j]))
    rest = iter(made)
    return tuple(next(rest, Whole(n)) if n != 1 else Whole(1) for n in wanted)


def _group(parts: tuple[Dimension, ...], dims: Dims, wanted: Dims) -> list[Dimension]:
    """A group of dimensions reshaped to others of the same product; undoes an earlier reshape if possible."""
    if dims == wanted:
        return list(parts)
    first = parts[0]
    if isinstance(first, Part) and first.dims == wanted and first.wanted == dims \
            and parts == tuple(Part(first.of, wanted, dims, i) for i in range(len(dims))):
        return list(first.of)
    if all(isinstance(part, Whole) for part in parts):
        return [Whole(n) for n in wanted]
    return [Part(parts, dims, wanted, i) for i in range(len(wanted))]


@dataclass(frozen=True, slots=True)
class Along:
    """One dimension for each tile: the size, the result dimensions that its start depends on (bits), and whether it has a simple shape.

    ``cuts`` are the starts and strides of slices on the way.
    """

    size: Array
    begins: Array
    valid: Array
    cuts: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Concrete:
    """A place for each tile. ``padded`` rounds each size up to a power of two; ``counts`` where no other place is the same.

    ``padded`` is a float, because sizes of 64 bits may need more when they are rounded up.
    """

    sizes: list[Array]
    elements: Array
    padded: Array
    valid: Array
    counts: Array


class Places:
    """Places of the instructions of a kernel, for many tiles of its result at once (``tiles``: one a row)."""

    def __init__(self, tiles: Array, dims: Dims) -> None:
        self.tiles, self.dims = tiles, dims
        self._groups: dict[object, list[Along]] = {}

    def different(self, places: frozenset[Place]) -> list[Concrete]:
        """Places of one instruction; those that are the same for a tile count once."""
        made: list[Concrete] = []
        before: list[list[Along]] = []
        for place in places:
            along = [self._along(dimension) for dimension in place]
            counts = np.ones(len(self.tiles), dtype=bool)
            for other in before:
                counts &= ~_same(along, other, len(self.tiles))
            before.append(along)
            elements, padded, valid = np.ones(len(self.tiles), dtype=np.int64), np.ones(len(self.tiles)), counts | True
            for one in along:
                elements = elements * one.size
                padded = np.ldexp(padded, np.frexp((one.size - 1).astype(np.float64))[1])
                valid = valid & one.valid
            made.append(Concrete([one.size for one in along], elements, padded, valid, counts))
        return made

    def _along(self, dimension: Dimension) -> Along:
        if isinstance(dimension, Root):
            size = self.tiles[:, dimension.number]
            return Along(size, np.where(size >= self.dims[dimension.number], 0, 1 << dimension.number), size > 0)
        if isinstance(dimension, Whole):
            size = np.full(len(self.tiles), dimension.size, dtype=np.int64)
            return Along(size, size * 0, size >= 0)
        if isinstance(dimension, Cut):
            inner = self._along(dimension.of)
            return Along(inner.size, inner.begins, inner.valid, (*inner.cuts, (dimension.start, dimension.stride)))
        key = (dimension.of, dimension.dims, dimension.wanted)
        if key not in self._groups:
            self._groups[key] = _regrouped([self._along(part) for part in dimension.of], dimension.dims, dimension.wanted)
        return self._groups[key][dimension.number]


def _same(one: list[Along], other: list[Along], count: int) -> Array:
    """For which tiles two places are the same."""
    same = np.full(count, all(a.cuts == b.cuts for a, b in zip(one, other, strict=True)))
    for a, b in zip(one, other, strict=True):
        same &= (a.size == b.size) & (a.begins == b.begins)
    return same


def _regrouped(parts: list[Along], dims: Dims, wanted: Dims) -> list[Along]:
    """Sizes of merged dimensions, as sizes of other dimensions; not valid where the needed elements are not contiguous."""
    size, begins, valid, cuts = parts[0].size * 0 + 1, parts[0].begins * 0, parts[0].valid, parts[0].cuts * 0
    whole = valid | True
    for part, dim in zip(reversed(parts), reversed(dims), strict=True):
        valid = valid & part.valid & (whole | (part.size == 1))
        size, begins, cuts = size * part.size, begins | part.begins, cuts + part.cuts
        whole = whole & (part.size == dim)
    made = []
    for dim in reversed(wanted):
        part_size = np.minimum(size, dim)
        valid = valid & (size % part_size == 0) & ((part_size == dim) | (size == part_size))
        size = size // part_size
        made.append((part_size, np.where(part_size == dim, 0, begins) if not cuts else begins))
    valid = valid & (size == 1)
    return [Along(part_size, where, valid, cuts) for part_size, where in reversed(made)]
