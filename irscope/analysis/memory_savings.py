"""What would lower the peak of live memory: recomputation, a later place in the schedule, donated parameters.

Each proposal is applied to the lifetimes of the schedule, and the peak is computed again; one that does not lower it is not made.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from irscope.analysis.calls import is_fusion
from irscope.analysis.cost import is_free
from irscope.analysis.memory import Lifetimes
from irscope.analysis.survey import Survey
from irscope.graph import Effect, Graph, Kind, Node, TensorType, Type
from irscope.ops import hlo
from irscope.ops.module_attributes import HloModule

TRIED = 200
"""The largest number of values at the peak that are tried, largest values first: each costs a pass over the schedule."""
LEAST = 0.01
"""The smallest saving that is reported, as a share of the peak."""


@dataclass(frozen=True, slots=True)
class MemorySaving:
    """A change of the entry that lowers its peak to ``peak`` bytes.

    ``kind`` is ``recompute`` (drop ``nodes[0]`` after its last use before the peak, compute it again for ``user``), ``later`` (compute it
    first where ``user`` needs it) or ``donate`` (``nodes`` are parameters whose memory results may take). ``flops`` are those that are
    computed again.
    """

    kind: str
    nodes: tuple[Node, ...]
    peak: int
    user: Node | None = None
    flops: float = 0.0


def memory_savings(survey: Survey, graph: Graph) -> list[MemorySaving]:
    """The changes that lower the peak of a graph by 1 % or more, the lowest peak first; empty where sizes are unknown."""
    life = survey.memory.graphs[graph]
    if life.peak_at < 0 or life.unsized is not None:
        return []
    found = [*_shorter_lives(survey, graph, life), *_donations(survey, graph, life)]
    return sorted((saving for saving in found if saving.peak <= life.peak * (1 - LEAST)), key=lambda saving: (saving.peak, saving.flops))


def _shorter_lives(survey: Survey, graph: Graph, life: Lifetimes) -> Iterator[MemorySaving]:
    """Values that live at the peak between two uses, or before the first, and could be computed after it."""
    at = life.peak_at
    alive = [node for node in survey.memory.live_at(graph, at)[:TRIED] if node.index < at and _can_move(node)]
    heights = _Heights(life.live)
    uses = survey.memory.uses(graph, {node.index for node in alive} | {operand.index for node in alive for operand in node.operands})
    for node in alive:
        before = [i for i in uses[node.index] if i < at]
        after = [i for i in uses[node.index] if i > at]
        if at in uses[node.index] or not after or life.last[node.index] >= len(graph.nodes):
            continue
        if not all(_is_there(operand, after[0], life) for operand in node.operands):
            continue
        first = max(before) + 1 if before else node.index
        peak = heights.without(life.size[node.index], first, after[0])
        flops = survey.costs.flops(node, graph) if before else 0.0
        yield MemorySaving("recompute" if before else "later", (node,), peak, graph.nodes[after[0]], flops)


def _can_move(node: Node) -> bool:
    return node.op.effect is Effect.PURE and node.op.kind is not Kind.LEAF and (not node.bodies or is_fusion(node))


def _is_there(operand: Node, place: int, life: Lifetimes) -> bool:
    """Whether an operand is still in memory at a place of the schedule; parameters and constants always are."""
    if operand.op.kind is Kind.LEAF:
        return True
    return not is_free(operand) and life.last[operand.index] >= place


def _donations(survey: Survey, graph: Graph, life: Lifetimes) -> Iterator[MemorySaving]:
    """Parameters that nothing reads or returns any more when a result of their type is written, as one proposal."""
    module = HloModule.of(survey.module)
    if not survey.module.dialect.primitive or module.input_output_alias or module.buffer_donor or graph.root is None:
        return
    uses = survey.memory.uses(graph, {param.index for param in graph.params})
    free: dict[Type, list[Node]] = defaultdict(list)
    inputs = [param for param in graph.params if param.index not in life.results]
    for param in sorted(inputs, key=lambda node: max(uses[node.index], default=-1), reverse=True):
        free[_without_layout(param.type)].append(param)
    donated, saved = [], []
    results = graph.root.operands if graph.root.op is hlo.tuple else (graph.root,)
    for result in sorted(dict.fromkeys(results), key=lambda node: node.index):
        candidates = free[_without_layout(result.type)]
        size = life.size[result.index]
        if size and candidates and max(uses[candidates[-1].index], default=-1) <= result.index - (not _in_place(result, candidates[-1])):
            donated.append(candidates.pop())
            saved.append((size, result.index, len(graph.nodes)))
    if donated:
        yield MemorySaving("donate", tuple(donated), _peak_without(life, saved))


def _in_place(result: Node, param: Node) -> bool:
    """Whether a result may overwrite a parameter that it reads: element by element."""
    return result.op.kind is Kind.ELEMENTWISE and param in result.operands


def _without_layout(type: Type) -> Type:
    return TensorType(type.dtype, type.shape) if isinstance(type, TensorType) else type


def _peak_without(life: Lifetimes, buffers: Sequence[tuple[int, int, int]]) -> int:
    """The peak where buffers of (bytes, first node, node after the last) are not in memory."""
    change = [0] * (len(life.live) + 1)
    for size, first, end in buffers:
        change[first] -= size
        change[end] += size
    peak = now = 0
    for bytes_live, step in zip(life.live, change):
        now += step
        peak = max(peak, bytes_live + now)
    return peak


class _Heights:
    """The peaks of a schedule without a single buffer: quick, because nothing changes before and after it."""

    def __init__(self, live: Sequence[int]) -> None:
        self.live = live
        self.before = [0, *accumulate(live, max)]
        self.behind = [0, *accumulate(reversed(live), max)][::-1]

    def without(self, size: int, first: int, end: int) -> int:
        """The peak where a buffer of ``size`` bytes is not in memory from ``first`` to before ``end``."""
        return max(self.before[first], max(self.live[first:end], default=size) - size, self.behind[end])
