"""Attention: the scores of a block of queries stay in the caches between the two products.

The keys are walked in blocks, so that code and scratch memory have the same size for any number of keys. Between two blocks, the maximum,
the sum of exponentials and the unscaled result of each query are kept (the streaming softmax); few keys are one block, without them.
:class:`irscope.lower.templates.attention_nest.AttentionNest` has the loops.
"""
from __future__ import annotations

from math import ceil, prod

from irscope.fusion import Group
from irscope.fusion.attention import Weighing, softmax_of
from irscope.fusion.drafts import dims_of
from irscope.graph import Node
from irscope.lower.build import KernelBuilder
from irscope.lower.schedule import ProductSize, VectorMachine, choose_tile
from irscope.lower.storage import LayoutConstraint
from irscope.lower.templates import Built, Problem, Template
from irscope.lower.templates.attention_nest import AttentionNest, AttentionWork, ProductSide
from irscope.lower.templates.masking import mask_of
from irscope.lower.tile import Schedule
from irscope.ops.attributes import Dot
from irscope.ops.contraction import DotDims

MOST_KEYS = 1024
"""The most keys of a block. With no more keys than that, there is one block."""
FEWEST_KEYS = 256
"""Blocks of fewer keys spend much of their time on rescaling. Where a mask excludes whole blocks, they have no more than this."""
MOST_VECTORS = 8
"""The most vectors of a panel of keys. A single query has room in registers for more, but packing them takes much code."""
FEWEST_QUERIES = 64
"""With fewer queries, it takes longer to see that a block of keys may be skipped."""
MOST_QUERIES = 512
"""The most queries that walk the blocks of keys together: each block is packed once for them, and their results stay in scratch memory."""


class AttentionTemplate(Template[AttentionWork]):
    """The attention template: see the module."""

    def layout_constraints(self, group: Group) -> dict[Node, LayoutConstraint]:
        """The results of each query are contiguous."""
        if group.kind != "attention" or group.anchor is None:
            return {}
        axis, rank = Weighing.of(group.anchor, group.parts[1].outputs[0]).axis, len(dims_of(group.anchor))
        order = LayoutConstraint.dense((*(d for d in range(rank) if d != axis), axis))
        return dict.fromkeys(group.outputs, order) if axis != rank - 1 else {}

    def match(self, problem: Problem) -> AttentionWork | None:
        """Groups that the policy fused, with results contiguous along the values; not under ``exact`` precision."""
        group = problem.group
        if group.kind != "attention" or problem.precision == "exact":
            return None
        first, rows, last = group.parts
        softmax = softmax_of(rows)
        if softmax is None or first.anchor is None or last.anchor is None:
            return None
        q, k = first.anchor.operands
        weighing = Weighing.of(last.anchor, rows.outputs[0])
        v, axis = weighing.values, weighing.axis
        if any(n not in problem.ins for n in (q, k, v)) or any(dims_of(o) != dims_of(last.anchor) for o in last.outputs):
            return None
        results = dims_of(last.anchor)
        if any(problem.outs[o].strides[axis] != 1 for o in last.outputs) or not prod(results) or results[axis] == 1:
            return None
        shape, count = dims_of(first.anchor), len(Dot.of(first.anchor).lhs_batch_dims)
        return AttentionWork(ProductSide(first.anchor, DotDims.of(first.anchor), problem.ins[q], problem.ins[k]),
                    ProductSide(last.anchor, weighing.dims, None, problem.ins[v]), softmax, axis,
                    shape[:count], shape[count:-1], shape[-1], mask_of(softmax.scores, group) if shape[-2] >= FEWEST_QUERIES else None)

    def schedule(self, problem: Problem, match: AttentionWork) -> Schedule:
        machine, lanes = problem.machine, problem.lanes
        keys = _even(match.keys, _most_keys(match, machine), lanes)
        block = _block(match.rows[-1], keys, machine)
        score = choose_tile(ProductSize(block, keys, _depth(match)), machine, lanes)
        value = choose_tile(ProductSize(block, match.width, keys), machine, lanes)
        return {"block": block, "keys": keys, **_walked(match, block, machine, problem.threads),
                "score_rows": score[0], "score_vectors": min(score[1], MOST_VECTORS), "value_rows": value[0], "value_vectors": value[1]}

    def build(self, problem: Problem, match: AttentionWork, schedule: Schedule) -> Built:
        k = KernelBuilder(problem.name, lanes=problem.lanes, precision=problem.precision)
        nest = AttentionNest(k, problem, match, schedule)
        nest.write()
        flops = 2.0 * prod(match.batches) * prod(match.rows) * match.keys * (_depth(match) + match.width)
        return Built([nest.epilogue.call.stage(k.finish(flops=flops, schedule=schedule))])


def _depth(work: AttentionWork) -> int:
    return prod(dims_of(work.scores.dot.operands[0])[d] for d in work.scores.dims.lhs_contracting)


def _most_keys(work: AttentionWork, machine: VectorMachine) -> int:
    """The most keys of a block: with their values, they take half of the second cache."""
    if work.mask is not None:
        return FEWEST_KEYS
    return max(FEWEST_KEYS, min(MOST_KEYS, machine.l2 // (8 * (_depth(work) + work.width))))


def _even(size: int, most: int, unit: int) -> int:
    """The size of blocks, if ``size`` is divided into as few as possible of ``most`` at most: a multiple of ``unit``, or all of it."""
    blocks = ceil(size / most)
    return size if blocks == 1 else ceil(ceil(size / blocks) / unit) * unit


def _block(queries: int, keys: int, machine: VectorMachine) -> int:
    """The number of queries whose scores fit in the first cache, a divisor of all queries where there is one."""
    most = max(8, min(64, machine.l1 // (4 * keys)))
    fair = [n for n in range(8, most + 1, 2) if queries % n == 0]
    return min(queries, fair[-1] if fair else most // 8 * 8)


def _walked(work: AttentionWork, block: int, machine: VectorMachine, threads: int) -> Schedule:
    """The queries that walk the blocks of keys together: ``queries`` along the last axis of queries, and all of the ``axes - 1`` axes
    before it. Their results take half of the second cache at most; few of them are divided among the threads."""
    *before, last = work.rows
    most = max(block, min(MOST_QUERIES, machine.l2 // (8 * work.width)))
    axes = 1
    while axes <= len(before) and prod(before[-axes:]) * last <= most:
        axes += 1
    independent = prod(work.batches) * prod(work.rows[:-axes])
    while independent * ceil(last / most) < 2 * threads and most > 2 * block and axes == 1:
        most //= 2
    return {"axes": axes, "queries": _even(last, max(block, most), block)}


TEMPLATE = AttentionTemplate()
