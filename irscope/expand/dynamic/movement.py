"""Rules for operators that move elements of arrays with a padded end."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.expand.dynamic.padded_arrays import PaddedArray, Tree, static_array
from irscope.expand.dynamic.work import GraphExpansion, Rule
from irscope.graph import Node, Op
from irscope.graph.dtypes import S32
from irscope.ops import hlo
from irscope.ops.attributes import Concatenate, DynamicSlice, Gather, Pad, Reverse, Slice
from irscope.ops.indexing import Indexed


def _slice(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    """The valid elements between start and limit; a slice of one element is always valid."""
    x = operands[0]
    sizes: dict[int, Node] = {}
    for d, size in x.sizes.items():
        start, limit, stride = Slice.of(node).slice[d]
        length = -(-(limit - start) // stride)
        if (start, limit, stride) == (0, x.shape[d], 1):
            sizes[d] = size
        elif length > 1:
            inside = w.maximum(w.sub(w.minimum(size, w.number(limit)), w.number(start)), w.number(0))
            sizes[d] = inside if stride == 1 else w.div(w.add(inside, w.number(stride - 1)), w.number(stride))
    return PaddedArray(w.copy(node, [x.node]), sizes)


def _pad(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    """Invalid elements become padding, so that padding begins after the last valid element."""
    x, value = operands
    padding = Pad.of(node).padding
    filled = w.masked(x, [d for d in x.sizes if padding[d] != (0, 0, 0)], value.node)
    sizes: dict[int, Node] = {}
    for d, size in x.sizes.items():
        low, high, interior = padding[d]
        if interior:
            gaps = w.maximum(w.sub(size, w.number(1)), w.number(0))
            size = w.add(size, w.mul(gaps, w.number(interior)))
        sizes[d] = size if low + high == 0 else w.maximum(w.add(size, w.number(low + high)), w.number(0))
    return PaddedArray(w.copy(node, [filled, value.node]), sizes)


def _concatenate(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    """Writes each operand where the one before ends; the next operand overwrites its invalid elements."""
    along = Concatenate.of(node).axis
    sizes = {d: size for o in reversed(operands) for d, size in o.sizes.items() if d != along}
    if not any(along in o.sizes for o in operands):
        return PaddedArray(w.copy(node, [o.node for o in operands]), sizes)
    t = static_array(node)
    whole, at = w.full(t.dims(), 0, t.dtype), w.number(0)
    for operand in operands:
        whole = w.update_slice(whole, operand.node, [at if d == along else w.number(0) for d in range(t.rank)])
        at = w.add(at, w.size(operand, along))
    return PaddedArray(whole, {**sizes, along: at})


def _reverse(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    """Along a dynamic dimension, position i takes the element at size - 1 - i."""
    x = operands[0]
    made = w.reverse(x.node, [d for d in Reverse.of(node).dimensions if d not in x.sizes])
    for d in Reverse.of(node).dimensions:
        if d in x.sizes:
            last = w.sub(x.sizes[d], w.number(1))
            made = w.take(made, w.sub(w.broadcast_to(last, (x.shape[d],)), w.iota((x.shape[d],), 0, S32)), d)
    return PaddedArray(made, dict(x.sizes))


def _dynamic_slice(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    """A slice of a whole dimension keeps its dynamic size; a partial slice has its declared length, valid or not."""
    x = operands[0]
    lengths = DynamicSlice.of(node).dynamic_slice_sizes
    sizes = {d: size for d, size in x.sizes.items() if lengths[d] == x.shape[d]}
    return PaddedArray(w.copy(node, [o.node for o in operands]), sizes)


def _dynamic_update_slice(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    """An update of a whole dimension also sets its size. Of a shorter update, only the valid elements are written."""
    x, update, *starts = operands
    sizes = dict(x.sizes)
    partial: list[int] = []
    for d, size in update.sizes.items():
        if update.shape[d] == x.shape[d]:
            sizes[d] = size
        else:
            partial.append(d)
    new = update.node
    if partial:
        starts_ = _as_scalars(w, x.type.rank, starts)
        old = w.dynamic_slice(x.node, starts_, update.shape)
        mask: Node | None = None
        for d in partial:
            one = w.mask(update.shape, d, update.sizes[d])
            mask = one if mask is None else w.emit("and", (mask, one))
        assert mask is not None
        new = w.emit("select", (mask, new, old))
    return PaddedArray(w.copy(node, [x.node, new, *(o.node for o in starts)]), sizes)


def _as_scalars(w: GraphExpansion, rank: int, starts: Sequence[PaddedArray]) -> list[Node]:
    """Start indices as one scalar per dimension; old texts have one vector."""
    if len(starts) != 1 or not starts[0].type.rank:
        return [s.node for s in starts]
    return [w.reshape(w.slice(starts[0].node, [d], [d + 1]), ()) for d in range(rank)]


def _gather(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    """A window over a whole dynamic dimension keeps its size. The dimensions over index vectors have the sizes of the indices."""
    x, indices = operands
    how, lengths = Indexed.of(node, x.type, indices.type), Gather.of(node).slice_sizes
    if how.vector in indices.sizes:
        raise w.refusal(node, "the number of indices in an index vector is dynamic")
    sizes = {place: x.sizes[d] for place, d in zip(how.window, how.kept) if d in x.sizes and lengths[d] == x.shape[d]}
    over = [d for d in range(indices.type.rank) if d != how.vector]
    sizes |= {place: indices.sizes[d] for place, d in zip(how.outer(static_array(node).rank), over) if d in indices.sizes}
    return PaddedArray(w.copy(node, [x.node, indices.node]), sizes)


def _scatter(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    """Invalid index vectors point out of bounds, so their updates are not written."""
    n = (len(operands) - 1) // 2
    arrays, indices, updates = operands[:n], operands[n], operands[n + 1:]
    how = Indexed.of(node, arrays[0].type, indices.type)
    if how.vector in indices.sizes:
        raise w.refusal(node, "the number of indices in an index vector is dynamic")
    for d, place in zip(how.kept, how.window):
        if any(place in u.sizes for u in updates) and not any(d in x.sizes for x in arrays):
            raise w.refusal(node, f"dimension {place} of its updates is dynamic, but dimension {d} that it is written to is not")
    over = [d for d in range(indices.type.rank) if d != how.vector]
    counts = dict(indices.sizes)
    for d, place in zip(over, how.outer(updates[0].type.rank)):
        size = next((u.sizes[place] for u in updates if place in u.sizes), None)
        if size is not None:
            counts.setdefault(d, size)
    wide = indices.node
    if counts and indices.type.dtype.bits < 32:
        wide = w.convert(wide, S32)
    dtype = w.dtype(wide)
    nowhere = (1 << (dtype.bits - (dtype.kind == "int"))) - 1
    nodes = [*(x.node for x in arrays), w.masked(PaddedArray(wide, counts), counts, w.array(nowhere, dtype)), *(u.node for u in updates)]
    return w.parts(w.copy(node, nodes), [dict(x.sizes) for x in arrays])


RULES: dict[Op, Rule] = {
    hlo.slice: _slice, hlo.pad: _pad, hlo.concatenate: _concatenate, hlo.reverse: _reverse, hlo.dynamic_slice: _dynamic_slice,
    hlo.dynamic_update_slice: _dynamic_update_slice, hlo.gather: _gather, hlo.scatter: _scatter,
}
