"""The lowering of each primitive with loops: pointwise values become expressions, reductions become buffers."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from math import prod

from irscope.analysis.values import body_operator
from irscope.fusion.inductor import operators
from irscope.fusion.inductor.calls import lower_call
from irscope.fusion.inductor.forms import Form, coordinates, loaded, number, replaced, span, unflattened, variable, weighted
from irscope.fusion.inductor.indexing import gathered, scattered
from irscope.fusion.inductor.joining import joined
from irscope.fusion.inductor.program import Unit, is_number, seen_through
from irscope.fusion.inductor.state import State, whole
from irscope.fusion.inductor.strides import shape_of, viewed
from irscope.fusion.inductor.values import Expression, Step, Storage, Tensor
from irscope.fusion.views import row_major
from irscope.graph import Node, Op, TensorType, TupleType
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Constant, GetTupleElement, Iota, Pad, Reduce, Reverse, Slice, Transpose, Windowed
from irscope.ops.attrs import Window


def parameter(state: State, node: Node) -> Tensor:
    """An input, with the strides of its type."""
    return state.given(node, state.program.strides[node.index])


def constant(state: State, node: Node) -> Tensor:
    """A constant: one number is inlined into its users; an array is in memory."""
    if prod(shape_of(node)) > 1:
        return state.given(node)
    return state.computed(node, Expression({}, {(node, ()): None}), whole_number(node))


def whole_number(node: Node) -> Form | None:
    """The value of a single integer, if the text has it."""
    literal = Constant.of(node).known
    if literal is None or not isinstance(node.type, TensorType) or not node.type.dtype.is_integer or prod(shape_of(node)) != 1:
        return None
    return number(int(literal.value().reshape(-1)[0]))


def elementwise(state: State, node: Node) -> Tensor:
    """Element i of the result from elements i of the operands."""
    first = state.program.means.get(node)
    if first is not None and (mean := mean_of_moments(state, node, first)) is not None:
        return mean
    where = coordinates(shape_of(node))
    expression = Expression({}, {}, {node: None})
    dropped = state.program.release.drops_identities and is_identity(node)
    for operand in node.operands:
        if dropped and is_number(operand):
            continue
        tensor = state.tensors[operand]
        expression.take(tensor.read(where if tensor.shape else ()))
    if not expression.loads and all(not at for _, at in expression.steps):
        expression.steps = {(node, ()): None}  # constant operands make a constant
    elif not dropped and not _is_free(state, node):
        expression.steps[node, where] = None
    return state.computed(node, expression, _value(state, node, where))


def _is_free(state: State, node: Node) -> bool:
    """Whether the node is the absolute value of what is only squared: PyTorch's norms do not compute it."""
    squared = (u.op is hlo.multiply and u.operands[0] is u.operands[1] for u in state.program.users[node.index])
    return node.op is hlo.abs and all(squared)


NEUTRAL = {hlo.add: 0, hlo.subtract: 0, hlo.multiply: 1, hlo.divide: 1}
"""The numbers with which these operators compute nothing."""


def is_identity(node: Node) -> bool:
    """Whether a node computes nothing, because one operand is a number of the text: ``x * 1``, ``x / 1``, ``x + 0``, ``x - 0``."""
    if node.op not in NEUTRAL or all(is_number(operand) for operand in node.operands):
        return False
    places = (0, 1) if node.op in (hlo.add, hlo.multiply) else (1,)
    return any(_number(node.operands[place]) == NEUTRAL[node.op] for place in places)


def _number(node: Node) -> complex | None:
    """The value of a number of the text."""
    literal = Constant.of(seen_through(node)).known if is_number(node) else None
    return literal.value().reshape(-1)[0].item() if literal is not None else None


def _value(state: State, node: Node, where: tuple[Form, ...]) -> Form | None:
    """The known value of integers that follow from the loops alone (``IndexPropagation``): a gather by them is no gather."""
    if not isinstance(node.type, TensorType) or node.type.dtype.kind not in ("int", "uint"):
        return None
    known = [state.tensors[o] for o in node.operands]
    given = [None if t.value is None else replaced(t.value, where if t.shape else ()) for t in known]
    op = node.op
    if op is hlo.select:
        kept = given[2]
        return kept if kept is not None and span(kept)[0] >= 0 and node.operands[0].op is hlo.compare else None
    if any(form is None for form in given):
        return None
    forms = [form for form in given if form is not None]
    if op is hlo.convert:
        return forms[0]
    if op in (hlo.add, hlo.subtract):
        return weighted(forms, (1, 1 if op is hlo.add else -1))
    if op is hlo.multiply and len(forms) == 2 and any(not form.terms for form in forms):
        fixed, other = (forms[0], forms[1]) if not forms[0].terms else (forms[1], forms[0])
        return weighted((other,), (fixed.constant,))
    return None


def copying_view(state: State, node: Node) -> Tensor:
    """A view that copies. If no strides describe a reshape, copies its operand and views the copy."""
    tensor = state.tensors[node.operands[0]]
    given = node.operands[0]
    if node.op is not hlo.reshape or viewed(shape_of(given), state.program.strides[given.index], shape_of(node)) is not None:
        seen = view(node, tensor)
        expression = seen.read(coordinates(seen.shape))
        expression.members[node] = None
        return state.computed(node, expression, seen.value)
    expression = tensor.read(coordinates(tensor.shape))
    expression.members[node] = None
    storage = Storage(node, tensor.shape, tensor.storage.itemsize, expression=expression)
    return view(node, Tensor(storage, coordinates(tensor.shape), tensor.shape, tensor.value))


def iota(state: State, node: Node) -> Tensor:
    """A value that follows from the loop variables."""
    where = coordinates(shape_of(node))
    value = where[Iota.of(node).iota_dimension]
    return state.computed(node, Expression({}, {(node, where): None}, {node: None}, {value: None}), value)


def reduction(state: State, node: Node) -> Tensor:
    """A reduction; a small one is unrolled (``Reduction.create`` of ir.py). One with several results becomes one for each."""
    if isinstance(node.type, TupleType):
        state.parts[node] = [_reduced(state, node) if wanted else state.computed(node, Expression()) for wanted in _wanted(state, node)]
        return state.parts[node][-1]
    return _reduced(state, node)


def _wanted(state: State, node: Node) -> list[bool]:
    assert isinstance(node.type, TupleType)
    read = {GetTupleElement.of(user).index for user in state.program.users[node.index] if user.op is hlo.get_tuple_element}
    return [i in read for i in range(len(node.type.elements))]


def _reduced(state: State, node: Node) -> Tensor:
    tensor = state.tensors[node.operands[0]]
    dimensions = Reduce.of(node).dimensions
    kept = [d for d in range(len(tensor.shape)) if d not in dimensions]
    shape, reduced = tuple(tensor.shape[d] for d in kept), tuple(tensor.shape[d] for d in dimensions)
    at: list[Form] = [number(0)] * len(tensor.shape)
    for i, d in enumerate((*kept, *dimensions)):
        at[d] = variable(i, tensor.shape[d])
    length = prod(reduced)
    if length == 1 or (length < state.limits.unrolled and prod(shape) != 1):
        return _unrolled(state, node, tensor, shape, reduced, at)
    first = state.program.second.get(node)
    made = state.tensors[first].storage.buffer if first is not None else None
    if made is not None and in_one_pass(state, shape, reduced):
        # Welford's algorithm: the second moment comes from the same pass and reads as the first.
        expression = Expression(dict(made.expression.loads), dict(made.expression.steps), {**made.expression.members, node: None})
    else:
        expression = tensor.read(at)
        expression.members[node] = None
        expression.steps[node, ()] = None
    return whole(state.stored(node, shape, expression, reduced))


def in_one_pass(state: State, shape: tuple[int, ...], reduced: tuple[int, ...]) -> bool:
    """Whether a variance uses Welford's algorithm (``use_two_step_variance`` of lowering.py)."""
    return prod(reduced) > state.limits.two_steps or prod(shape) == 1


def mean_of_moments(state: State, node: Node, first: Node) -> Tensor | None:
    """If Welford's algorithm computes the mean, the division of the sum is no separate operation."""
    made = state.tensors[first].storage.buffer
    if made is None or not made.reduced or not in_one_pass(state, made.shape, made.reduced):
        return None
    made.members[node] = None
    shape = shape_of(node)
    return state.tensors[first].viewed(unflattened(weighted(coordinates(shape), row_major(shape)), made.shape), shape)


def _unrolled(state: State, node: Node, tensor: Tensor, shape: tuple[int, ...], reduced: tuple[int, ...], at: Sequence[Form]) -> Tensor:
    expression = Expression({}, {}, {node: None})
    where = coordinates(shape)
    for n, point in enumerate(_points(reduced)):
        expression.take(tensor.read([replaced(f, (*where, *(number(p) for p in point))) for f in at]))
        if n:
            expression.steps[f"combine{n}", where] = None
    return state.computed(node, expression, shape=shape)


def _points(sizes: Sequence[int]) -> Iterable[tuple[int, ...]]:
    """All positions in an array of these sizes; of an empty array none, however large its other sizes."""
    return product(*map(range, sizes)) if 0 not in sizes else ()


def window(state: State, node: Node) -> Tensor:
    """Pooling: the unrolled window. Prefix sums and large windows are library calls."""
    taps = Windowed.of(node).window or Window.make(())
    tensor = state.tensors[node.operands[0]]
    running = any(size > 1 and size == length and low + high == size - 1
                  for size, length, low, high in zip(taps.size, tensor.shape, taps.pad_low, taps.pad_high))
    where = coordinates(shape_of(node))
    summed = tensor.storage.expression
    along = next((i for i, size in enumerate(taps.size) if size > 1), 0)
    if running and body_operator(node) is hlo.add and not taps.pad_high[along] and summed is not None and not summed.loads \
            and all(not at for _, at in summed.steps):
        # A prefix sum of one number is a multiple of the position (``pointless_cumsum_replacement`` of fx_passes/joint_graph.py).
        one = tensor.value.constant if tensor.value is not None else None
        value = weighted((where[along],), (one,), one) if one is not None else None
        return state.computed(node, Expression({}, {(node, where): None}, {node: None}, {where[along]: None}), value)
    if len(node.operands) != 2 or prod(taps.size) > state.limits.window or running or any(d != 1 for d in taps.lhs_dilate):
        lower_call(state, state.program.home[node])
        return state.tensors[node]
    if tensor.storage.expression is not None and tensor.storage.expression.moving() > 1:
        state.realized(tensor)
    expression = Expression({}, {}, {node: None})
    padded = any(taps.pad_low) or any(taps.pad_high)
    for n, point in enumerate(_points(taps.size)):
        here = [weighted((w,), (stride,), p * dilation - low) for w, stride, p, dilation, low in
                zip(where, taps.stride, point, taps.rhs_dilate, taps.pad_low)]
        expression.take(tensor.read(here))
        expression.steps[f"combine{n}", where] = None
        if padded:
            expression.steps[f"mask{n}", where] = None
            expression.counts.update((form, None) for form, low, high in zip(here, taps.pad_low, taps.pad_high) if low or high)
    return state.computed(node, expression)


def adaptive(state: State, unit: Unit) -> None:
    """Pooling to a given size: a mean if it is one, else an unrolled window, or a library call."""
    node = unit.nodes[-1]
    shape = shape_of(node)
    inside = set(unit.nodes)
    source = next(o for n in unit.nodes for o in n.operands if o not in inside and o.op is not hlo.constant)
    while source.op in (hlo.reshape, hlo.slice) and source.origin and source.origin[0] is node.origin[0]:
        source = source.operands[0]
    tensor = state.tensors[source]
    rank = len(tensor.shape)
    pooled = [d for d in range(rank) if (d >= rank - 2 and tensor.shape[d] != shape[d]) or (shape[d] == 1 and tensor.shape[d] > 1)]
    sizes = tuple(-(-tensor.shape[d] // shape[d]) for d in pooled)
    members = dict.fromkeys(unit.nodes)
    where = coordinates(shape)
    even = operators.is_of(node, operators.PLANE_MEANS) and all(tensor.shape[d] % shape[d] == 0 for d in pooled)
    mean = all(shape[d] == 1 for d in pooled) and prod(sizes) >= state.limits.unrolled
    if mean or (even and prod(sizes) > state.limits.window):
        at = list(where)
        for i, (d, size) in enumerate(zip(pooled, sizes, strict=True)):
            at[d] = weighted((where[d], variable(rank + i, size)), (size, 1))
        expression = tensor.read(at)
        expression.members.update(members)
        made = whole(state.stored(node, shape, expression, sizes))
        state.tensors[node] = state.computed(node, Expression({}, {(node, where): None}, {node: None}))
        storage = state.tensors[node].storage.expression
        assert storage is not None
        storage.take(made.read(where))
        return
    if prod(sizes) > state.limits.window:
        lower_call(state, unit)
        return
    expression = Expression({}, {(node, where): None}, members)
    for point in _points(sizes):
        here = list(where)
        for d, p in zip(pooled, point):
            here[d] = weighted((where[d],), (tensor.shape[d] // shape[d],), p)
        expression.take(tensor.read(here))
        expression.steps[f"combine{point}", where] = None
    state.tensors[node] = state.computed(node, expression)


def upsampled(state: State, unit: Unit) -> None:
    """Interpolation: a weighted sum of elements at computed positions; one expression."""
    node = unit.nodes[-1]
    shape = shape_of(node)
    inside = set(unit.nodes)
    source = next(o for n in unit.nodes for o in n.operands if o not in inside and o.op not in (hlo.constant, hlo.iota))
    tensor = state.tensors[source]
    where = coordinates(shape)
    steps: dict[Step, None] = {(n, where): None for n in unit.nodes if n.op not in (hlo.reshape, hlo.broadcast, hlo.transpose)}
    expression = Expression({}, steps, dict.fromkeys(unit.nodes), dict.fromkeys(where[2:]))
    for k in range(operators.elements_read(node)):
        expression.take(tensor.read([*where[:2], *(loaded(("place", node.index, k, d), tensor.shape[d]) for d in range(2, len(shape)))]))
    state.tensors[node] = state.computed(node, expression)


def pad(state: State, node: Node) -> Tensor:
    """The operand inside its bounds, else the padding value: a conditional."""
    tensor = state.tensors[node.operands[0]]
    where = coordinates(shape_of(node))
    padding = Pad.of(node).padding
    expression = tensor.read([weighted((form,), (1,), -low) for form, (low, _, _) in zip(where, padding)])
    expression.members[node] = None
    for i, (low, high, _) in enumerate(padding):
        if low or high:
            expression.steps[f"mask{i}", where] = None
            expression.counts[where[i]] = None
    return state.computed(node, expression)


def update(state: State, node: Node) -> Tensor:
    """Replaces the elements of a slice: reads both sources, under a condition."""
    where = coordinates(shape_of(node))
    partial = [where[i] for i, (a, b) in enumerate(zip(shape_of(node), shape_of(node.operands[1]))) if a != b]
    expression = Expression({}, {(node, where): None}, {node: None}, dict.fromkeys(partial))
    for operand in node.operands[:2]:
        tensor = state.tensors[operand]
        expression.take(tensor.read(tuple(where[i] if size != 1 else number(0) for i, size in enumerate(tensor.shape))))
    return state.computed(node, expression)


def cut(state: State, node: Node) -> Tensor:
    """A slice with a computed start."""
    tensor = state.tensors[node.operands[0]]
    where = coordinates(shape_of(node))
    expression = Expression({}, {(node, where): None}, {node: None})
    at = []
    for i, (form, size) in enumerate(zip(where, tensor.shape)):
        start = node.operands[1 + i] if len(node.operands) > 2 or len(where) == 1 else node.operands[1]  # old texts: one vector
        at.append(weighted((form, loaded(("start", start.index, i), size)), (1, 1)) if size > 1 else form)
        expression.take(state.tensors[start].read((number(i),) if state.tensors[start].shape else ()))
    expression.take(tensor.read(at))
    return state.computed(node, expression)


def view(node: Node, tensor: Tensor) -> Tensor:
    """The operand of a view node under the view's coordinates."""
    shape = shape_of(node)
    where = coordinates(shape)
    op = node.op
    old: Sequence[Form]
    if op is hlo.reshape:
        old = unflattened(weighted(where, row_major(shape)), tensor.shape)
    elif op is hlo.transpose:
        back = {d: i for i, d in enumerate(Transpose.of(node).dimensions)}
        old = [where[back[d]] for d in range(len(tensor.shape))]
    elif op is hlo.broadcast:
        old = [where[d] if tensor.shape[i] != 1 else number(0) for i, d in enumerate(Broadcast.of(node).dimensions)]
    elif op is hlo.slice:
        old = [weighted((form,), (step,), start) for form, (start, _, step) in zip(where, Slice.of(node).slice)]
    else:
        turned = set(Reverse.of(node).dimensions)
        old = [weighted((form,), (-1,), size - 1) if i in turned else form for i, (form, size) in enumerate(zip(where, tensor.shape))]
    return tensor.viewed(old, shape)


RULES: dict[Op, Callable[[State, Node], Tensor]] = {
    hlo.parameter: parameter, hlo.constant: constant, hlo.iota: iota, hlo.reduce: reduction, hlo.reduce_window: window, hlo.pad: pad,
    hlo.dynamic_update_slice: update, hlo.dynamic_slice: cut, hlo.gather: gathered, hlo.scatter: scattered, hlo.concatenate: joined,
}
"""The lowering of primitives that are neither elementwise nor views."""
