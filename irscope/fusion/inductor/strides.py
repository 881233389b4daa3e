"""The strides of each value when PyTorch runs the program: they decide where a reshape needs a copy.

Inductor traces the program with these strides before it lowers anything, so that ``x.transpose(1, 2).reshape(...)`` is a view
and a copy to it. Inputs have the strides of their types, or row-major ones.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from irscope.fusion.inductor import operators
from irscope.fusion.inductor.training import saved_inputs
from irscope.fusion.views import VIEWS, contiguous_runs, row_major
from irscope.graph import DynamicDim, Graph, Kind, Node, TensorType
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Slice, Transpose
from irscope.source import UserError

KEEPS_ORDER = hlo.named("pad select-and-scatter dynamic-update-slice scatter reduce-window")
"""Operators whose results keep the memory order of the first operand if that is a permutation of row-major."""
GRADIENTS = hlo.named("dot multiply convert")
"""The last primitives of the gradients of attention."""
TURNED = {4: (3, 1, 2, 0), 3: (1, 2, 0)}
"""The dimensions of what attention saves, by their number, from the innermost outwards."""
CHANNELS_LAST = (1, 3, 2, 0)
"""The dimensions of an image (N, C, H, W) from the innermost outwards, in the layout of oneDNN's convolutions."""
MAX_RANK = 64
"""The most dimensions of a tensor that PyTorch's reductions and loops allow (``dim_bitset_size`` of ATen)."""
STEPS = 64
"""The expansion of attention has fewer primitives than this between its two products."""


def shape_of(node: Node) -> tuple[int, ...]:
    """The sizes of a value, bounded ones at their bound; () for anything but an array.

    Raises UserError for an unbounded size, and for more dimensions than PyTorch has.
    """
    type = node.type
    if not isinstance(type, TensorType):
        return ()
    if len(type.shape) > MAX_RANK:
        raise UserError(f"%{node.name} has {len(type.shape)} dimensions: PyTorch's tensors have at most {MAX_RANK}")
    if any(isinstance(d, DynamicDim) and d.bound is None for d in type.shape):
        raise UserError(f"%{node.name} is {type}: Inductor's loops need every size", "bind it: --shape NAME=8,3,224,224")
    return tuple(d if isinstance(d, int) else d.bound or 0 for d in type.shape)


def traced_strides(graph: Graph, queries: Mapping[Node, Node] = MappingProxyType({})) -> list[tuple[int, ...]]:
    """The strides of each node's result, by index. ``queries`` maps results of attention that the program writes out to the queries."""
    found: list[tuple[int, ...]] = []
    saved = _saved_layouts(graph)
    for node in graph.nodes:
        query = queries.get(node) or _queries(node)
        given = [found[o.index] for o in node.operands]
        if node in saved:
            found.append(saved[node])
        elif node.op in GRADIENTS and operators.is_of(node, operators.ATTENTION_GRADIENTS) and len(shape_of(node)) == 4:
            found.append(ordered_strides(shape_of(node), TURNED[4]))  # its meta function makes them so
        elif query is not None:
            found.append(_like([shape_of(query)], [found[query.index]], shape_of(node)))
        else:
            found.append(row_major(shape_of(node)) if node.op in VIEWS and asks_for_copy(node) else seen_strides(node, given))
    return found


def _saved_layouts(graph: Graph) -> dict[Node, tuple[int, ...]]:
    """The strides of values that a forward graph saved, where its layouts are known and the text of the backward graph has none.

    Beside convolutions images are channels-last. The operands and the result of attention are (batch, length, heads, size) in memory, the
    logarithms of its sums (batch, length, heads).
    """
    saved = {node for node in saved_inputs(graph) if _said_strides(node) is None}
    found: dict[Node, tuple[int, ...]] = {}
    if saved and any(operators.is_of(node, operators.CONVOLUTION_GRADIENTS) for node in graph.nodes):
        found.update((node, ordered_strides(shape_of(node), CHANNELS_LAST)) for node in saved if len(shape_of(node)) == 4)
    for node in graph.nodes if saved else ():
        for read in node.operands if operators.is_of(node, operators.ATTENTION_GRADIENTS) else ():
            order = TURNED.get(len(shape_of(read)))
            if read in saved and order is not None:
                found[read] = ordered_strides(shape_of(read), order)
    return found


def _said_strides(node: Node) -> tuple[int, ...] | None:
    """The strides that the text gives for an input."""
    said = getattr(node.origin[0].type, "strides", None) if node.origin else None
    return tuple(said) if said is not None and len(said) == len(shape_of(node)) else None


def asks_for_copy(node: Node) -> bool:
    """Whether ``contiguous()`` or ``clone()`` followed a view in the program."""
    return bool(node.origin) and node.origin[0].op in operators.COPIES


def seen_strides(node: Node, given: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The strides of a node's result; of a view, those before a copy that the program asks for. ``given``: the strides of its operands."""
    op, shape = node.op, shape_of(node)
    if op is hlo.reverse:
        return given[0]
    if op is hlo.parameter:
        return _said_strides(node) or row_major(shape)
    origin = node.origin[0] if node.origin else node
    said = getattr(origin.type, "strides", None)
    if operators.elements_read(origin) and shape_of(origin) == shape and said is not None and len(said) == len(shape):
        return tuple(said)  # in the layout of the image that it reads
    if op is hlo.transpose:
        return tuple(given[0][d] for d in Transpose.of(node).dimensions)
    if op is hlo.broadcast:
        back = {d: i for i, d in enumerate(Broadcast.of(node).dimensions)}
        sizes = shape_of(node.operands[0])
        return tuple(given[0][back[d]] if d in back and sizes[back[d]] == size else 0 for d, size in enumerate(shape))
    if op is hlo.slice:
        return tuple(stride * step for stride, (_, _, step) in zip(given[0], Slice.of(node).slice))
    if op is hlo.reshape:
        return viewed(shape_of(node.operands[0]), given[0], shape) or row_major(shape)
    if op in (hlo.convolution, hlo.concatenate):
        images = [like_channels_last(shape_of(o), s) for o, s in zip(node.operands, given)]
        last = (any(images) if op is hlo.convolution else all(images)) and len(shape) == 4
        return ordered_strides(shape, CHANNELS_LAST) if last else row_major(shape)
    if op in KEEPS_ORDER and given and len(given[0]) == len(shape):
        return _like([shape_of(node.operands[0])], [given[0]], shape)
    if origin.op in operators.LAYER_NORMS:
        return row_major(shape)  # its decomposition begins with contiguous(input)
    kept = [(shape_of(o), s) for o, s in zip(node.operands, given) if len(s) == len(shape) and s]
    if kept and node.op.kind is Kind.ELEMENTWISE:
        return _like([sizes for sizes, _ in kept], [s for _, s in kept], shape)
    return row_major(shape)


def _queries(node: Node) -> Node | None:
    """The queries of attention, if the node is its result: the result has their memory order (``empty_like`` in its meta function)."""
    origin = node.origin[0] if node.origin else node
    if origin.op not in operators.ATTENTION or node.op is not hlo.dot or len(shape_of(node)) != 4:
        return None
    stack, seen = [*node.operands], {node}
    while stack and len(seen) < STEPS:
        found = stack.pop()
        if found in seen or not found.origin or found.origin[0] is not origin:
            continue
        seen.add(found)
        if found.op is hlo.dot:
            return found.operands[0]
        stack.extend(found.operands)
    return None


def channels_last(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether an image (N, C, H, W) is in channels-last layout without gaps, and not row-major as well."""
    if len(shape) != 4 or len(strides) != 4:
        return False
    return is_laid_out(shape, strides, ordered_strides(shape, CHANNELS_LAST)) and not row_major_already(shape, strides)


def like_channels_last(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether PyTorch treats an image (N, C, H, W) as channels-last (``are_strides_like_channels_last``)."""
    if len(shape) != 4 or len(strides) != 4 or 0 in shape or strides[1] == 0:
        return False
    least = 0
    for d in CHANNELS_LAST:
        if strides[d] < least or (d == 0 and least == strides[1]):
            return False
        least = strides[d] * max(shape[d], 1)
    return True


def ordered_strides(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Strides without gaps; ``order`` lists the dimensions from the innermost to the outermost."""
    strides = [0] * len(shape)
    step = 1
    for d in order:
        strides[d] = step
        step *= max(shape[d], 1)
    return tuple(strides)


def _like(shapes: Sequence[tuple[int, ...]], strides: Sequence[tuple[int, ...]], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an elementwise result: row-major if all operands are, else the order of their dimensions in memory.

    The order is that of TensorIterator: it compares dimensions by the stride of the first operand that distinguishes them.
    """
    if all(row_major_already(sizes, row) for sizes, row in zip(shapes, strides)):
        return row_major(shape)
    order = list(reversed(range(len(shape))))
    for i in range(1, len(order)):
        at = i
        for before in range(i - 1, -1, -1):
            compared = _compared(order[before], order[at], strides, shape)
            if compared > 0:
                order[before], order[at] = order[at], order[before]
                at = before
            elif compared < 0:
                break
    return ordered_strides(shape, order)


def _compared(a: int, b: int, strides: Sequence[tuple[int, ...]], shape: tuple[int, ...]) -> int:
    """1 if dimension a belongs further out than b, -1 if further in, 0 if no operand distinguishes them."""
    for row in strides:
        if row[a] == 0 or row[b] == 0 or row[a] == row[b]:
            if row[a] == row[b] and row[a] != 0 and shape[a] > shape[b]:
                return 1
            continue
        return -1 if row[a] < row[b] else 1
    return 0


def row_major_already(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether a value is row-major without gaps."""
    return is_laid_out(shape, strides, row_major(shape))


def is_laid_out(shape: Sequence[int], strides: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether a value has the strides ``wanted``, dimensions of size one ignored."""
    return all(a == b for a, b, size in zip(strides, wanted, shape) if size != 1)


def viewed(shape: Sequence[int], strides: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...] | None:
    """The strides of the same memory under another shape, or None if it needs a copy first (``computeStride`` of ATen)."""
    if 0 in shape:
        return row_major(wanted)
    blocks = contiguous_runs(shape, strides)
    out = [0] * len(wanted)
    at = len(blocks) - 1
    left, step = blocks[at] if blocks else (1, 1)
    for d in reversed(range(len(wanted))):
        size = wanted[d]
        if size == 1:
            out[d] = step
            continue
        if left == 1:
            at -= 1
            if at < 0:
                return None
            left, step = blocks[at]
        if left % size:
            return None
        out[d] = step
        step *= size
        left //= size
    return tuple(out)
