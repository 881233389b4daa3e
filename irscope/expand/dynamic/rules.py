"""How each operator handles operands with dynamic sizes: the sizes of its result, and the elements that it must not read."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.expand.dynamic import movement, reshaping
from irscope.expand.dynamic.padded_arrays import PaddedArray, Tree, bounded, static, static_array, static_value
from irscope.expand.dynamic.work import GraphExpansion, Rule
from irscope.graph import Graph, Kind, Module, Node, Op, TensorType, TupleType, same_type
from irscope.graph.dtypes import PRED, S32
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Convolution, CustomCall, DimensionSize, Dot, Fft, Reduce, Sort, Transpose, Windowed
from irscope.ops.attrs import Window


def rule_for(node: Node) -> Rule | None:
    """The rule of an operator; None for one that has no meaning with dynamic sizes."""
    return RULES.get(node.op, elementwise if node.op.kind is Kind.ELEMENTWISE else None)


def elementwise(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    """Operands of different sizes: where one has size 1 it is broadcast, else the result has the smallest size."""
    t = static_array(node)
    nodes = [o.node for o in operands]
    sizes: dict[int, Node] = {}
    for d in range(t.rank):
        given = [i for i, o in enumerate(operands) if d in o.sizes and o.type.rank == t.rank]
        different = _different(w, [operands[i].sizes[d] for i in given])
        if len(different) == 1:
            sizes[d] = different[0]
        elif different:
            ones = [w.compare("EQ", size, w.number(1)) for size in different]
            sizes[d] = w.select(_folded(w, "or", ones), _folded(w, "maximum", different), _folded(w, "minimum", different))
            for i in given:
                one = w.compare("EQ", operands[i].sizes[d], w.number(1))
                nodes[i] = w.select(w.broadcast_to(one, w.shape(nodes[i])), _repeated(w, nodes[i], d), nodes[i])
    return PaddedArray(w.copy(node, nodes, t), sizes)


def _different(w: GraphExpansion, sizes: Sequence[Node]) -> list[Node]:
    found: list[Node] = []
    for size in sizes:
        if not any(w.same(size, other) for other in found):
            found.append(size)
    return found


def _folded(w: GraphExpansion, name: str, values: Sequence[Node]) -> Node:
    made = values[0]
    for value in values[1:]:
        made = w.binary(name, made, value)
    return made


def _repeated(w: GraphExpansion, x: Node, d: int) -> Node:
    """The first element along a dimension, broadcast over it."""
    shape = w.shape(x)
    first = w.slice_dim(x, d, 0, 1) if shape[d] else x
    return w.broadcast_to(first, shape)


def _batched(kept: int) -> Rule:
    """The rule of operators over the last ``kept`` dimensions; the dimensions before them are a batch."""
    def rule(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
        sizes: dict[int, Node] = {}
        for operand in operands:
            for d, size in operand.sizes.items():
                if d >= operand.type.rank - kept:
                    raise w.refusal(node, f"dimension {d} of {node.operands[operands.index(operand)].type} is not one of its batch")
                sizes.setdefault(d, size)
        return w.parts(w.copy(node, [o.node for o in operands]), [sizes])
    return rule


def _fft(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    return _batched(len(Fft.of(node).fft_length))(w, node, operands)


# ---- shape

def _get_size(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    return PaddedArray(w.size(operands[0], DimensionSize.of(node).dimensions[0]))


def _set_size(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    x, size = operands
    d = DimensionSize.of(node).dimensions[0]
    sizes = {**x.sizes, d: size.node}
    if w.known(size.node) == x.shape[d]:
        del sizes[d]
    return PaddedArray(x.node, sizes)


def _broadcast(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    along = Broadcast.of(node).dimensions
    return PaddedArray(w.copy(node, [operands[0].node]), {along[d]: size for d, size in operands[0].sizes.items()})


def _transpose(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    order = Transpose.of(node).dimensions
    return PaddedArray(w.copy(node, [operands[0].node]), {order.index(d): size for d, size in operands[0].sizes.items()})


def _bitcast_convert(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    x = operands[0]
    t = static_array(node)
    if x.type.rank > t.rank and x.type.rank - 1 in x.sizes:
        raise w.refusal(node, "the elements that are joined have a dynamic size")
    return PaddedArray(w.copy(node, [x.node]), dict(x.sizes))


# ---- sums

def _reduce(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    """Elements beyond the size are the init value, as in XLA: an init that is not the identity counts once for each of them."""
    n = len(operands) // 2
    along = Reduce.of(node).dimensions
    nodes = [w.masked(x, along, init.node) for x, init in zip(operands[:n], operands[n:], strict=True)]
    made = w.copy(node, [*nodes, *(o.node for o in operands[n:])])
    kept = [d for d in range(operands[0].type.rank) if d not in along]
    sizes = {place: size for place, d in enumerate(kept) if (size := _first(operands[:n], d)) is not None}
    return w.parts(made, [sizes] * n)


def _first(operands: Sequence[PaddedArray], d: int) -> Node | None:
    return next((o.sizes[d] for o in operands if d in o.sizes), None)


def _reduce_window(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    """XLA counts the windows inside the operand, whatever the padding; a window over everything (a running sum) keeps the size."""
    n = len(operands) // 2
    window = Windowed.of(node).window
    assert window is not None
    data = operands[:n]
    moved = [d for d in range(data[0].type.rank) if not _is_trivial(window, d)]
    nodes = [w.masked(x, moved, init.node) for x, init in zip(data, operands[n:], strict=True)]
    sizes: dict[int, Node] = {}
    for d in range(data[0].type.rank):
        size = _first(data, d)
        if size is None:
            continue
        if window.lhs_dilate[d] != 1:
            raise w.refusal(node, f"its window has holes between the elements of dimension {d}")
        reach = (window.size[d] - 1) * window.rhs_dilate[d] + 1
        running = reach >= data[0].shape[d] and window.stride[d] == 1 and window.pad_low[d] + window.pad_high[d] == reach - 1
        if d in moved and not running:
            inside = w.div(w.sub(size, w.number(reach)), w.number(window.stride[d]))
            size = w.select(w.compare("LT", size, w.number(reach)), w.number(0), w.add(inside, w.number(1)))
        sizes[d] = size
    return w.parts(w.copy(node, [*nodes, *(o.node for o in operands[n:])]), [sizes] * n)


def _is_trivial(window: Window, d: int) -> bool:
    return (window.size[d], window.stride[d], window.pad_low[d], window.pad_high[d], window.lhs_dilate[d]) == (1, 1, 0, 0, 1)


def _select_and_scatter(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    """Beyond the size the operand is the least value, so that no window selects it, and the source is the init value."""
    x, source, init = operands
    least = w.array(x.type.dtype.lowest, x.type.dtype)
    nodes = [w.masked(x, x.sizes, least), w.masked(source, source.sizes, init.node), init.node]
    return PaddedArray(w.copy(node, nodes), dict(x.sizes))


def _dot(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    """Masks contracted dimensions with zeros beyond the size."""
    sides, a = [], Dot.of(node)
    numbers = (a.lhs_contracting_dims, a.lhs_batch_dims), (a.rhs_contracting_dims, a.rhs_batch_dims)
    for (summed, batch), x in zip(numbers, operands, strict=True):
        free = [d for d in range(x.type.rank) if d not in summed and d not in batch]
        sides.append((w.masked(x, summed, w.array(0, x.type.dtype)), batch, free))
    (left, left_batch, left_free), (right, right_batch, right_free) = sides
    x, y = operands
    sizes = [x.sizes.get(a, y.sizes.get(b)) for a, b in zip(left_batch, right_batch, strict=True)]
    sizes += [x.sizes.get(d) for d in left_free] + [y.sizes.get(d) for d in right_free]
    return PaddedArray(w.copy(node, [left, right]), {d: size for d, size in enumerate(sizes) if size is not None})


def _convolution(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    labels = Convolution.of(node).dim_labels
    x, kernel = operands
    if any(d in x.sizes for d in labels.lhs_spatial) or any(d in kernel.sizes for d in labels.rhs_spatial):
        raise w.refusal(node, "a convolution over a dynamic spatial dimension is not supported (nor is it in XLA)")
    left = w.masked(x, [labels.lhs_feature], w.array(0, x.type.dtype))
    right = w.masked(kernel, [labels.rhs_input], w.array(0, kernel.type.dtype))
    sizes = {}
    if labels.lhs_batch in x.sizes:
        if Convolution.of(node).batch_group_count != 1:
            raise w.refusal(node, "its batch is cut into groups")
        sizes[labels.out_batch] = x.sizes[labels.lhs_batch]
    if labels.rhs_output in kernel.sizes:
        sizes[labels.out_feature] = kernel.sizes[labels.rhs_output]
    return PaddedArray(w.copy(node, [left, right]), sizes)


# ---- order

def _sort(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    """Sorts invalid elements after all valid ones: each element carries a flag, which the comparison checks first."""
    along = Sort.of(node).dimensions[0]
    size = _first(operands, along)
    sizes = [dict(o.sizes) if o.sizes or size is None else {along: size} for o in operands]
    nodes = [o.node for o in operands]
    if size is None:
        return w.parts(w.copy(node, nodes), sizes)
    counts = w.mask(operands[0].shape, along, size)
    types = [w.type(n) for n in (*nodes, counts)]
    made = w.builder.add(node.op, [*nodes, counts], node.attrs, TupleType(tuple(types)), [_with_flags(w.module, node.bodies[0])], node.name)
    sorted_ = [PaddedArray(w.part(made, i), given) for i, given in enumerate(sizes)]
    return list(sorted_) if isinstance(node.type, TupleType) else sorted_[0]


def _with_flags(module: Module, body: Graph) -> Graph:
    """A comparison with two further flags: ``first is valid and (second is not, or comes after)``."""
    made = Graph(f"{body.name}_that_counts")
    w = GraphExpansion(module, made)
    values: dict[int, Node] = {}
    for param in body.params:
        values[param.index] = w.builder.param(param.op, param.type, param.name)
    flag = TensorType(PRED, ())
    first, second = (w.builder.param(body.params[0].op, flag, name) for name in ("first_counts", "second_counts"))
    for node in body.nodes:
        if node.index not in values:
            values[node.index] = w.copy(node, [values[o.index] for o in node.operands])
    behind = w.emit("or", (w.unary("not", second), values[body.result().index]))
    made.root = w.emit("and", (first, behind))
    return made


# ---- XLA's own custom calls

_SIZE = TensorType(S32, ())


def _custom_call(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    target = CustomCall.of(node).custom_call_target
    if target == "PadToStatic":
        if len(operands) != 1:
            raise w.refusal(node, f"PadToStatic takes one operand, but has {len(operands)}")
        x = operands[0]
        parts = node.type.elements if isinstance(node.type, TupleType) else ()
        dims = range(x.type.rank) if len(parts) == x.type.rank + 1 else sorted(x.sizes)
        if not same_type(static_value(node.type), TupleType((x.type, *([_SIZE] * len(dims))))):
            raise w.refusal(node, f"PadToStatic gives a tuple of its operand without dynamic sizes and of these sizes, not {node.type}")
        return [PaddedArray(x.node), *(PaddedArray(w.size(x, d)) for d in dims)]
    if target == "SliceToDynamic":
        fits = bool(operands) and same_type(static_value(node.type), static(operands[0].type))
        if not fits or not all(same_type(size.type, _SIZE) for size in operands[1:]):
            raise w.refusal(node, f"SliceToDynamic takes an array and its sizes, each an s32[], for the result {node.type}")
        x = operands[0]
        rank = x.type.rank
        given = operands[1:]
        dims = range(rank) if len(given) == rank else bounded(node.type)
        sizes = {d: size.node for d, size in zip(dims, given) if d in bounded(node.type)}
        return PaddedArray(x.node, {**x.sizes, **sizes})
    raise w.refusal(node, f"custom-call to {target!r} does not support a dynamic dimension (nor does XLA)")


RULES: dict[Op, Rule] = {
    hlo.get_dimension_size: _get_size, hlo.set_dimension_size: _set_size, hlo.broadcast: _broadcast, hlo.transpose: _transpose,
    hlo.bitcast_convert: _bitcast_convert, hlo.reduce: _reduce, hlo.reduce_window: _reduce_window,
    hlo.select_and_scatter: _select_and_scatter,
    hlo.dot: _dot, hlo.convolution: _convolution, hlo.sort: _sort, hlo.custom_call: _custom_call, hlo.cholesky: _batched(2),
    hlo.triangular_solve: _batched(2), hlo.fft: _fft, **movement.RULES, **reshaping.RULES,
}
"""The rules by operator; elementwise operators share :func:`elementwise`. The rules for data movement are in separate files."""
