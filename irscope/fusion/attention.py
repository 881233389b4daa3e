"""Attention in one kernel: two contractions with a softmax between them, whose scores have no other users.

    s = dot(q, k)          [batch, query, key]          these three kernels become one of kind ``attention``:
    p = softmax(s * c)     along the keys               some queries at a time, their scores in the caches
    o = dot(p, v)          [batch, query, value]

jax writes the last one as dot(v, p), with the results [batch, value, query].
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from irscope.analysis.recognise.softmax import softmax
from irscope.analysis.values import number
from irscope.fusion.drafts import dims_of
from irscope.fusion.plan import Group
from irscope.fusion.views import VIEWS, Chain, Strides, row_major, seen_through, stored
from irscope.graph import Graph, Node
from irscope.graph.dtypes import F32
from irscope.graph.types import TensorType
from irscope.ops import hlo
from irscope.ops.attributes import Dot, Reduce
from irscope.ops.contraction import DotDims

MIN_KEYS = 16
"""With fewer keys a row of scores does not fill a vector, and three kernels are no slower."""


@dataclass(frozen=True, slots=True)
class RowSoftmax:
    """``scores`` is the operand of the maximum, ``weights`` the result of the division.

    ``empty``, if present, says for each row whether its weights are zeros instead (every key is masked); it is constant along a row.
    """

    scores: Node
    weights: Node
    empty: Node | None = None


@dataclass(frozen=True, slots=True)
class Weighing:
    """The product of the weights and the values: ``dims`` has the weights on the left; ``axis`` of the result is the values' own."""

    values: Node
    dims: DotDims
    axis: int

    @staticmethod
    def of(dot: Node, weights: Node) -> Weighing:
        """The product of a dot whose one operand is the weights."""
        dims, rank = DotDims.of(dot), len(dims_of(dot))
        if dot.operands[0] is weights:
            return Weighing(dot.operands[1], dims, rank - 1)
        return Weighing(dot.operands[0], dims.swapped(), len(dims.lhs_batch))


def fuse_attention(graph: Graph, groups: Sequence[Group]) -> list[Group]:
    """The groups, with the three groups of each attention merged into one, in the place of the last of the three."""
    made = {output: group for group in groups for output in group.outputs}
    readers: dict[Node, list[Group]] = {}
    for group in groups:
        for node in group.inputs:
            readers.setdefault(stored(node), []).append(group)
    results = _results(graph)
    gone: set[int] = set()
    instead: dict[int, Group] = {}
    for last in groups:
        found = _parts(last, made)
        if found is None:
            continue
        first, rows, _ = found
        steps = ((first.outputs[0], rows), (rows.outputs[0], last))
        if all(readers.get(value) == [reader] and value not in results for value, reader in steps):
            gone.update((id(first), id(rows)))
            instead[id(last)] = _one(*found)
    return [instead.get(id(group), group) for group in groups if id(group) not in gone]


def softmax_of(rows: Group) -> RowSoftmax | None:
    """The softmax along the last dimension, if a group of kind ``rows`` computes nothing else but pointwise work before it."""
    if rows.kind != "rows" or len(rows.outputs) != 1:
        return None
    written = weights = rows.outputs[0]
    empty: Node | None = None
    if weights.op is hlo.select and number(weights.operands[1]) == 0.0 and dims_of(weights.operands[0]) == dims_of(weights):
        empty, _, weights = weights.operands
    found, shape = softmax(weights), dims_of(weights)
    if found is None or found.difference is None or not shape or (empty is not None and not _same_along_rows(empty)):
        return None
    scores, shift = found.difference.operands[0], _row_value(found.difference.operands[1], shape)
    if shift is not None and shift.op is hlo.maximum:
        shift = next((stored(o) for o, other in zip(shift.operands, shift.operands[::-1]) if number(other) == -inf), None)
    if shift is None or shift is not found.largest or _row_value(weights.operands[1], shape) is not found.total:
        return None
    rows_of = ((found.total, found.exponential, 0.0), (found.largest, scores, -inf))
    along_rows = all(reduce.operands[0] is of and Reduce.of(reduce).dimensions == (len(shape) - 1,) and number(reduce.operands[1]) == start
                     for reduce, of, start in rows_of)
    plain = weights.operands[0] is found.exponential and found.exponential.operands[0] is found.difference and dims_of(scores) == shape
    return RowSoftmax(scores, written, empty) if along_rows and plain else None


def _parts(last: Group, made: dict[Node, Group]) -> tuple[Group, Group, Group] | None:
    """The product of the scores, the softmax, and ``last``, the product that reads the weights; None if the pattern does not match."""
    anchor = last.anchor
    if last.kind != "contraction" or anchor is None or anchor.op is not hlo.dot:
        return None
    rows = next((made[n] for n in anchor.operands if n in made and softmax_of(made[n]) is not None), None)
    if rows is None:
        return None
    products = [made[n] for n in rows.inputs if n in made and made[n].kind == "contraction" and dims_of(n) == dims_of(rows.outputs[0])]
    scores = products[0] if products else None
    if scores is None or scores.anchor is None or scores.anchor.op is not hlo.dot or len(scores.outputs) != 1:
        return None
    first, second = Dot.of(scores.anchor), Weighing.of(anchor, rows.outputs[0])
    shape, batches = dims_of(scores.anchor), len(first.lhs_batch_dims)
    rank = len(shape)
    queries = rank - batches - 1
    one_key = len(dims_of(scores.anchor.operands[1])) - batches - len(first.rhs_contracting_dims) == 1
    same = second.dims.lhs_batch == tuple(range(batches)) and second.dims.lhs_contracting == (rank - 1,)
    if not one_key or not same or queries < 1 or len(second.dims.rhs_free) != 1 or dims_of(rows.outputs[0]) != shape:
        return None
    if dims_of(anchor)[second.axis] == 1:
        return None
    if shape[-1] < MIN_KEYS or any(dims_of(output) != dims_of(anchor) for output in last.outputs):
        return None
    floats = all(isinstance(n.type, TensorType) and n.type.dtype is F32
                 for n in (*scores.anchor.operands, scores.anchor, rows.outputs[0], *anchor.operands, anchor))
    return (scores, rows, last) if floats else None


def _one(first: Group, rows: Group, last: Group) -> Group:
    """Merge the three groups into one."""
    between = {first.outputs[0], rows.outputs[0]}
    nodes = sorted({*first.nodes, *rows.nodes, *last.nodes}, key=lambda node: node.index)
    inputs = [n for n in dict.fromkeys([*first.inputs, *rows.inputs, *last.inputs]) if n not in between]
    return Group("attention", nodes, last.outputs, sorted(inputs, key=lambda n: n.index), last.anchor, last.space, last.rows, last.chains,
                 parts=(first, rows, last))


def _shown(node: Node) -> tuple[Node, Strides | None]:
    """The source of a chain of views, and the strides under which the chain reads it."""
    chain: Chain | None = None
    steps: list[Node] = []
    while node.op in VIEWS:
        steps.append(node)
        node = node.operands[0]
    for step in steps:
        chain = Chain(step, chain)
    return node, seen_through(chain, Strides.plain(dims_of(node)))


def _row_value(node: Node, shape: tuple[int, ...]) -> Node | None:
    """The source that a node broadcasts along the last dimension: one value a row, in order; None if the node is no such broadcast."""
    node, walked = _shown(node)
    if walked is None or walked.shape != shape or walked.offset:
        return None
    expected = (*row_major(shape[:-1]), 0)
    return node if all(a == b or n == 1 for a, b, n in zip(walked.strides, expected, shape)) else None


def _same_along_rows(node: Node) -> bool:
    """Whether a view broadcasts its source along the last dimension."""
    shape = dims_of(node)
    walked = _shown(node)[1]
    return walked is not None and walked.shape == shape and walked.strides[-1] == 0


def _results(graph: Graph) -> set[Node]:
    """The values that leave the graph."""
    root = graph.result()
    return {stored(n) for n in (root.operands if root.op is hlo.tuple else (root,))}
