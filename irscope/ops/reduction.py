"""reduce: all elements along some dimensions combined by a body, with one or several operands."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from irscope.graph import Kind, Node, Op, TensorType, TupleType, Type
from irscope.graph.node import Emitter, Read, Run, Value
from irscope.lazy import Array, np
from irscope.ops.attributes import Reduce
from irscope.ops.bodies import accumulate, combine, combiner, identity, over_arrays, parameter_dtypes, scalar_results
from irscope.ops.costs import body_flops
from irscope.ops.elementwise import add, and_, maximum, minimum, multiply, or_, xor
from irscope.ops.faults import TypeFault
from irscope.ops.infer import arrays, attr, body, dimension, distinct, plain, reducer, scalar
from irscope.ops.movement import operand_dims
from irscope.ops.nests import SUM_BLOCK, fold_type, loops
from irscope.ops.numerics import convert, flushed, widen
from irscope.ops.registry import declare
from irscope.ops.shapes import same_sizes

MAX_STEPS = 4096
"""The reference combines this many elements sequentially, and longer rows in pairs: the order is left open."""


def _infer(node: Node) -> Type:
    types = arrays(node)
    n = len(types) // 2
    if not n or len(types) % 2:
        raise TypeFault(f"reduce takes as many init values as operands, but has {len(types)} operands in all")
    inits = [scalar(node, n + i, "init value") for i in range(n)]
    first = types[0]
    for t in types[1:n]:
        if not same_sizes(t.shape, first.shape):
            raise TypeFault(f"operands of reduce disagree on shape: {plain(first)} and {plain(t)}")
    dimensions = attr(node, Reduce.dimensions)
    distinct(node, dimensions, "dimensions")
    for d in dimensions:
        dimension(node, d, first.rank, "dimension")
    graph = body(node, 0, "to_apply")
    reducer(node, graph, inits, [t.dtype for t in types[:n]])
    shape = tuple(d for i, d in enumerate(first.shape) if i not in dimensions)
    result = graph.result().type
    if isinstance(result, TupleType):
        return TupleType(tuple(TensorType(t.dtype, shape) for t in result.elements if isinstance(t, TensorType)))
    assert isinstance(result, TensorType)
    return TensorType(result.dtype, shape)


def _reference(run: Run, node: Node, *operands: Array) -> object:
    n = len(operands) // 2
    axes, inits = tuple(Reduce.of(node).dimensions), operands[n:]
    op = combiner(node.bodies[0]) if n == 1 else None
    types = [t for t in node.type.leaves() if isinstance(t, TensorType)]
    with np.errstate(all="ignore"):
        if op is not None:
            x, init = flushed(widen(operands[0])), flushed(widen(inits[0]))
            return convert(flushed(combine(op)(init, _combined(op, x, axes))), types[0].dtype)
        totals = fold(run, node, [np.asarray(x) for x in operands[:n]], inits, axes)
    values = [convert(v, t.dtype) for v, t in zip(totals, types, strict=True)]
    return tuple(values) if isinstance(node.type, TupleType) else values[0]


def _combined(op: Op, x: Any, axes: tuple[int, ...]) -> Any:
    """All elements along ``axes`` combined, by numpy's own reductions; the identity where there are none."""
    function = {add: np.add, multiply: np.multiply, maximum: np.maximum, minimum: np.minimum,
                and_: np.bitwise_and, or_: np.bitwise_or, xor: np.bitwise_xor}[op]
    if x.dtype.kind == "b":
        function = {add: np.logical_or, maximum: np.logical_or, multiply: np.logical_and, minimum: np.logical_and}.get(
            op, function)
    if not prod(x.shape[a] for a in axes):
        return np.full([d for i, d in enumerate(x.shape) if i not in axes], identity(op, x.dtype))
    kept_type = {"dtype": x.dtype} if x.dtype.kind in "iuf" and op in (add, multiply) else {}
    if op is add and x.dtype == np.float32 and prod(x.shape[a] for a in axes) > SUM_BLOCK:
        kept_type = {"dtype": np.float64}  # as compiled code accumulates long sums; numpy adds in pairs along contiguous axes only
    return function.reduce(x, axis=axes, **kept_type)


def fold(run: Run, node: Node, inputs: list[Array], inits: Sequence[Array], axes: tuple[int, ...]) -> list[Array]:
    """The general reduction: the body on whole slices, first the init values, then the elements in order."""
    function = over_arrays(run, node.bodies[0])
    kept = [i for i in range(inputs[0].ndim) if i not in axes]
    order = [*sorted(axes), *kept]
    rest = [inputs[0].shape[i] for i in kept]
    rows = [x.transpose(order).reshape(prod(x.shape[a] for a in axes), *rest) for x in inputs]
    begun = [np.broadcast_to(np.asarray(i), rest) for i in inits]
    if len(rows[0]) > MAX_STEPS:
        while len(rows[0]) > 1:
            even, odd = [r[:len(r) // 2 * 2:2] for r in rows], [r[1::2] for r in rows]
            left = [r[len(r) // 2 * 2:] for r in rows]
            joined = scalar_results(node, function([*even, *odd]))
            rows = [np.concatenate([j, one]) for j, one in zip(joined, left, strict=True)]
    for step in range(len(rows[0])):
        begun = scalar_results(node, function([*begun, *(r[step] for r in rows)]))
    return begun


def _element(k: Emitter, node: Node, index: Sequence[Value], read: Read) -> Value | list[Value]:
    n = len(node.operands) // 2
    dims, reduced = operand_dims(node), Reduce.of(node).dimensions
    op = combiner(node.bodies[0]) if n == 1 else None
    inits = [read(n + i, ()) for i in range(n)]
    # Sums of narrow floats are accumulated in f32 and rounded once, as XLA's CPU backend does; long sums of any float in f64.
    # An init value may be of a narrower type than the accumulator, which is of the type of the result.
    # A body of several operators runs on the types of its parameters.
    types = [t for t in node.type.leaves() if isinstance(t, TensorType)]
    dtypes = parameter_dtypes(node.bodies[0])[:n] if op is None else [fold_type(t.dtype, op, prod(dims[d] for d in reduced)) for t in types]
    totals = [k.reg(dtype, k.convert(init, dtype)) for dtype, init in zip(dtypes, inits, strict=True)]
    with loops(k, [dims[d] for d in sorted(reduced)]) as steps:
        along, across = iter(steps), iter(index)
        place = [next(along) if d in reduced else next(across) for d in range(len(dims))]
        accumulate(k, node.bodies[0], totals, [read(i, place) for i in range(n)], op)
    results = [k.convert(total.get(), t.dtype) for total, t in zip(totals, types, strict=True)]
    return results if isinstance(node.type, TupleType) else results[0]


def _cost(node: Node) -> float:
    """One run of the body for each element reduced away."""
    before = prod(operand_dims(node))
    after = next((t.elements for t in node.type.leaves() if isinstance(t, TensorType)), 0)
    return float(before - after) * body_flops(node.bodies[0])


reduce_ = declare(Op(
    "reduce", doc="The elements along ``dimensions`` and the init value, combined by ``to_apply`` in an order that is left open. "
    "With n operands and n init values the body takes n accumulators and n elements, and gives a tuple.",
    kind=Kind.REDUCTION, infer=_infer, reference=_reference, element=_element, cost=_cost))
