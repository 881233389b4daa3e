"""Pulls a slice or gather up through the operators that compute its operand, so that they compute only what it keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from math import prod

from irscope.analysis.values import COPIES, dims
from irscope.graph import Graph, Kind, Node, TensorType
from irscope.lint.edits import Edit, Make, Site
from irscope.lint.view import ModuleView
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Concatenate, Dot, DynamicSlice, Gather, Pad, Reduce, Reverse, Slice, Transpose

KEEPERS = (hlo.slice, hlo.dynamic_slice, hlo.gather)
"""Operators that keep a part of their operand."""
WHOLE = -1
"""The dimension that stands for all of a value."""
MOST = 256
"""The most operators through which a slice is pulled."""


@dataclass(frozen=True, slots=True)
class Part:
    """What ``keeper`` keeps of its first operand along the dimension ``along``: ``kept`` of ``size`` elements.

    ``start`` and ``stride`` are known of a slice; a gather or dynamic slice finds its place at run time.
    """

    keeper: Node
    along: int
    size: int
    kept: int
    start: int | None = None
    stride: int = 1

    def cut(self, site: Site, value: Node, along: int) -> Node:
        """This part of a node of the copy that has the same size along ``along``."""
        assert isinstance(value.type, TensorType)
        shape = value.type.dims()
        if self.start is not None:
            stop = self.start + (self.kept - 1) * self.stride + 1
            if (self.start, stop) == (0, shape[along]):
                return value
            cuts = tuple((self.start, stop, self.stride) if d == along else (0, n, 1) for d, n in enumerate(shape))
            return site.op(hlo.slice, value, type=self.narrow(value.type, along), attrs={"slice": cuts})
        if self.keeper.op is hlo.dynamic_slice:
            start = site.new(self.keeper.operands[1 + self.along])
            assert isinstance(start.type, TensorType)
            starts = [start if d == along else site.number(0, start.type) for d in range(len(shape))]
            sizes = tuple(self.kept if d == along else n for d, n in enumerate(shape))
            return site.op(hlo.dynamic_slice, value, *starts, type=self.narrow(value.type, along), attrs={"dynamic_slice_sizes": sizes})
        indices = site.new(self.keeper.operands[1])
        assert isinstance(indices.type, TensorType)
        flat = site.op(hlo.reshape, indices, type=TensorType(indices.type.dtype, (self.kept,)))
        attrs = {
            "offset_dims": tuple(d for d in range(len(shape)) if d != along), "collapsed_slice_dims": (along,), "start_index_map": (along,),
            "index_vector_dim": 1, "slice_sizes": tuple(1 if d == along else n for d, n in enumerate(shape)),
        }
        return site.op(hlo.gather, value, flat, type=self.narrow(value.type, along), attrs=attrs)

    def narrow(self, type: TensorType, along: int) -> TensorType:
        """The type of this part of a value."""
        return TensorType(type.dtype, tuple(self.kept if d == along else n for d, n in enumerate(type.shape)))


@dataclass(frozen=True, slots=True)
class Pulled:
    """A part, and the operators of which it keeps no more than that, each with the dimension along which it is kept, the last first."""

    part: Part
    along: dict[Node, int]

    @property
    def products(self) -> list[Node]:
        """The products that compute more than is kept."""
        return [node for node in self.along if node.op is hlo.dot]

    @property
    def pads(self) -> list[Node]:
        """The pads whose padding is not kept."""
        return [node for node, along in self.along.items() if _pads(node, along)]

    @property
    def edit(self) -> Edit:
        """The operators on the part alone."""
        changes: dict[Node, Make] = {node: partial(self._narrowed, node) for node in self.along}
        changes[self.part.keeper] = self._restored
        return Edit(changes)

    def _narrowed(self, node: Node, site: Site) -> Node:
        along, part = self.along[node], self.part
        assert isinstance(node.type, TensorType)
        attrs = dict(node.attrs)
        if node.op is hlo.slice:
            attrs["slice"] = tuple((0, part.kept, 1) if d == along else cut for d, cut in enumerate(Slice.of(node).slice))
        if node.op is hlo.pad:
            low = Pad.of(node).padding[along][0]
            part = replace(part, start=(part.start or 0) - low) if low else part
            attrs["padding"] = tuple((0, 0, 0) if d == along else width for d, width in enumerate(Pad.of(node).padding))
        operands = []
        for operand, theirs in zip(node.operands, _sources(node, along), strict=True):
            made = site.new(operand)
            operands.append(made if theirs is None or operand in self.along else part.cut(site, made, theirs))
        return site.copy(node, *operands, type=part.narrow(node.type, along), attrs=attrs)

    def _restored(self, site: Site) -> Node:
        """The keeper's result from the narrow operand."""
        keeper, part = self.part.keeper, self.part
        made = site.new(keeper.operands[0])
        assert isinstance(made.type, TensorType)
        if keeper.op is hlo.gather:
            offsets = Gather.of(keeper).offset_dims
            place = next((d for d in range(len(dims(keeper))) if d not in offsets), part.along)
            order = [d for d in range(made.type.rank) if d != part.along]
            order.insert(min(place, len(order)), part.along)
            if order != sorted(order):
                made = site.op(hlo.transpose, made, attrs={"dimensions": tuple(order)})
            return site.op(hlo.reshape, made, type=keeper.type) if dims(keeper) != dims(made) else made
        if keeper.op is hlo.slice:
            cuts = tuple((0, part.kept, 1) if d == part.along else cut for d, cut in enumerate(Slice.of(keeper).slice))
            return site.copy(keeper, made, attrs={"slice": cuts})
        zero = site.number(0, keeper.operands[1].type) if isinstance(keeper.operands[1].type, TensorType) else made
        starts = [zero if d == part.along else site.new(o) for d, o in enumerate(keeper.operands[1:])]
        return site.copy(keeper, made, *starts)


def pulled(view: ModuleView, keeper: Node, graph: Graph) -> Pulled | None:
    """How far what a node keeps can be pulled up; None where nothing is computed that it does not keep.

    Of several dimensions of which it keeps a part, the one along which most products compute too much.
    """
    if view.only_user(keeper.operands[0], graph) is None or keeper.operands[0].op.kind is Kind.LEAF:
        return None
    found = [Pulled(part, _along(view, graph, part)) for part in _parts(keeper)]
    return max((one for one in found if one.products), key=lambda one: (len(one.products), -one.part.kept / one.part.size), default=None)


def _parts(keeper: Node) -> list[Part]:
    shape = dims(keeper.operands[0])
    if not shape or (not dims(keeper) and keeper.op is not hlo.gather):
        return []
    if keeper.op is hlo.slice:
        cuts = enumerate(Slice.of(keeper).slice)
        return [Part(keeper, d, shape[d], n, start, stride) for d, (start, limit, stride) in cuts
                if 0 < (n := -(-(limit - start) // stride)) < shape[d]]
    if keeper.op is hlo.dynamic_slice:
        sizes = DynamicSlice.of(keeper).dynamic_slice_sizes
        return [Part(keeper, d, shape[d], n) for d, n in enumerate(sizes) if 0 < n < shape[d] and len(keeper.operands) == 1 + len(shape)]
    attrs = Gather.of(keeper)
    if len(attrs.start_index_map) != 1 or attrs.start_index_map != attrs.collapsed_slice_dims or attrs.operand_batching_dims:
        return []
    (along,) = attrs.start_index_map
    batch = [d for d in range(len(dims(keeper))) if d not in attrs.offset_dims]
    whole = all(n == shape[d] for d, n in enumerate(attrs.slice_sizes) if d != along)
    kept = prod(dims(keeper)[d] for d in batch)
    together = batch == list(range(batch[0], batch[0] + len(batch))) if batch else True
    indices = prod(dims(keeper.operands[1]))
    return [Part(keeper, along, shape[along], kept)] if whole and together and indices == kept < shape[along] else []


def _along(view: ModuleView, graph: Graph, part: Part) -> dict[Node, int]:
    """The operators that compute more than the part, with the dimension: all their users do, or are the keeper."""
    found: dict[Node, int] = {}
    wanted: dict[Node, set[int]] = {part.keeper.operands[0]: {part.along}}
    todo = [-part.keeper.operands[0].index]
    while todo and len(found) < MOST:
        node = graph.nodes[-heappop(todo)]
        along = max(wanted[node])
        others = node is graph.root or any(user not in found and user is not part.keeper for user in view.users(node, graph))
        if others or wanted[node] != {along} or not _takes(node, along, part):
            continue
        found[node] = along
        for operand, theirs in zip(node.operands, _sources(node, along), strict=True):
            whole = theirs is None or _pads(node, along)
            if not whole and operand not in wanted:
                heappush(todo, -operand.index)
            wanted.setdefault(operand, set()).add(WHOLE if theirs is None or whole else theirs)
    return found


def _pads(node: Node, along: int) -> bool:
    """Whether a node pads this dimension: its operand has other places."""
    return node.op is hlo.pad and any(Pad.of(node).padding[along])


def _takes(node: Node, along: int, part: Part) -> bool:
    """Whether an operator can work on a part alone."""
    if node.op not in SOURCES and not _is_elementwise(node):
        return False
    if not dims(node) or not all(dims(o) or getattr(o.type, "shape", None) == () for o in node.operands):
        return False
    if _pads(node, along):
        low, _, inner = Pad.of(node).padding[along]
        end = low + dims(node.operands[0])[along]
        return part.start is not None and part.stride == 1 and not inner and 0 <= low <= part.start and part.start + part.kept <= end
    return len(_sources(node, along)) == len(node.operands)


Sources = tuple[int | None, ...]
"""For each operand the dimension that becomes a dimension of the result; None where it has none, and is used whole."""


def _sources(node: Node, along: int) -> Sources:
    find = SOURCES.get(node.op)
    return find(node, along) if find is not None else tuple(along if dims(operand) else None for operand in node.operands)


def _is_elementwise(node: Node) -> bool:
    return (node.op.kind is Kind.ELEMENTWISE or node.op in COPIES) and all(dims(o) in ((), dims(node)) for o in node.operands)


def _of_broadcast(node: Node, along: int) -> Sources:
    kept = Broadcast.of(node).dimensions
    return (kept.index(along) if along in kept and dims(node.operands[0])[kept.index(along)] == dims(node)[along] else None,)


def _of_reshape(node: Node, along: int) -> Sources:
    """The dimension with as many elements before it, and of the same size; none where the reshape splits or joins it."""
    before, size, source = prod(dims(node)[:along]), dims(node)[along], dims(node.operands[0])
    same = [d for d, n in enumerate(source) if n == size and prod(source[:d]) == before]
    return (same[0],) if len(same) == 1 else ()


def _of_dot(node: Node, along: int) -> Sources:
    attrs = Dot.of(node)
    sides = []
    batch = len(attrs.lhs_batch_dims)
    if along < batch:
        return attrs.lhs_batch_dims[along], attrs.rhs_batch_dims[along]
    for side in (0, 1):
        used = (*attrs.batch_dims[side], *attrs.contracting_dims[side])
        sides.append([d for d in range(len(dims(node.operands[side]))) if d not in used])
    place = along - batch
    return (sides[0][place], None) if place < len(sides[0]) else (None, sides[1][place - len(sides[0])])


def _of_reduce(node: Node, along: int) -> Sources:
    if len(node.operands) != 2:
        return ()
    summed = Reduce.of(node).dimensions
    return [d for d in range(len(dims(node.operands[0]))) if d not in summed][along], None


def _of_concatenate(node: Node, along: int) -> Sources:
    return (along,) * len(node.operands) if Concatenate.of(node).axis != along else ()


def _of_slice(node: Node, along: int) -> Sources:
    return (along,) if Slice.of(node).slice[along] == (0, dims(node.operands[0])[along], 1) else ()


def _of_reverse(node: Node, along: int) -> Sources:
    return (along,) if along not in Reverse.of(node).dimensions else ()


SOURCES: dict[object, Callable[[Node, int], Sources]] = {
    hlo.broadcast: _of_broadcast,
    hlo.reshape: _of_reshape,
    hlo.transpose: lambda node, along: (Transpose.of(node).dimensions[along],),
    hlo.dot: _of_dot,
    hlo.reduce: _of_reduce,
    hlo.concatenate: _of_concatenate,
    hlo.slice: _of_slice,
    hlo.reverse: _of_reverse,
    hlo.pad: lambda node, along: (along, None),
    hlo.iota: lambda node, along: (),
}
"""How the operators that are not elementwise map a dimension of the result to those of their operands; an empty tuple: they do not."""
