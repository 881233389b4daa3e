"""The lifetime of each value in memory, and the bytes that are live at once.

The schedule is the order of the text: the compiler's own in a scheduled module, an estimate elsewhere. Values that only rename others
(tuple, get, bitcast, the result of a loop) have no buffer of their own. An elementwise operation may overwrite an operand whose last use it
is. Parameters and results belong to the caller and live through the whole run.
"""
from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from irscope.analysis.calls import BodyUse, Calls, body_use, is_fusion
from irscope.analysis.classes import is_view
from irscope.analysis.cost import ModuleCosts, is_free, is_unsized
from irscope.graph import Graph, Kind, Node
from irscope.ops import hlo, sets
from irscope.ops.attributes import GetTupleElement

_ALIASES = hlo.named("bitcast opt-barrier add-dependency domain copy-done all-reduce-done all-gather-done collective-permute-done "
                     "async-update async-done send-done recv-done after-all while")
_IN_PLACE = sets.hlo("dynamic-update-slice scatter") | sets.relay("scatter")
_CALLS = sets.hlo("call conditional") | sets.relay("call")
"""Operators that move nothing themselves, and whose result is a buffer that a body of theirs has written."""
_GATHERS = sets.hlo("tuple") | sets.torchscript("prim::ListConstruct prim::TupleConstruct")
"""Operators that hold the buffers of their operands."""

Holds = int | tuple["Holds", ...]
"""The buffer of a value (its node's index), or those of the elements of a tuple."""


@dataclass(slots=True)
class Lifetimes:
    """The lifetimes of the buffers of one graph. ``last[i]`` is the index of the last use of node i's buffer; -1: it has none of its own.

    ``live[t]`` are the bytes of temporaries while node t runs, including those of bodies that it calls; ``peak`` is their maximum,
    at node ``peak_at`` (-1: no temporaries). ``unsized`` is the first node whose buffer has no known size; it counts as 0 bytes.
    """

    last: list[int]
    size: list[int]
    live: list[int]
    peak: int = 0
    peak_at: int = -1
    results: set[int] = field(default_factory=set)
    unsized: Node | None = None


class MemoryUse:
    """Lifetimes of every graph that the entry reaches, and the memory of one run of the module."""

    def __init__(self, calls: Calls, costs: ModuleCosts) -> None:
        self._costs = costs
        self.graphs: dict[Graph, Lifetimes] = {}
        for graph in calls.order:
            if calls.runs_alone(graph):
                self.graphs[graph] = self._lifetimes(graph)

    def unsized(self) -> tuple[Graph, Node] | None:
        """A value that needs memory, and whose size is not known: all figures are then too low."""
        return next(((graph, life.unsized) for graph, life in self.graphs.items() if life.unsized is not None), None)

    def live_at(self, graph: Graph, place: int) -> list[Node]:
        """The nodes whose buffers live while node number ``place`` runs, largest first."""
        life = self.graphs[graph]
        found = [n for n in graph.nodes[:place + 1] if life.last[n.index] >= place and life.size[n.index]]
        return sorted(found, key=lambda n: -life.size[n.index])

    def uses(self, graph: Graph, buffers: Set[int]) -> dict[int, list[int]]:
        """For each of some buffers, the nodes that read it, also by another name; ascending indices."""
        holds: list[Holds] = [()] * len(graph.nodes)
        found: dict[int, list[int]] = {buffer: [] for buffer in buffers}
        for i, node in enumerate(graph.nodes):
            holds[i] = self._holds(node, i, holds)
            if _reads(node):
                for buffer in {buffer for operand in node.operands for buffer in _flat(holds[operand.index])} & buffers:
                    found[buffer].append(i)
        return found

    def _lifetimes(self, graph: Graph) -> Lifetimes:
        nodes = graph.nodes
        n = len(nodes)
        size = [0] * n
        last = [-1] * n
        unsized: Node | None = None
        holds: list[Holds] = [()] * n
        for i, node in enumerate(nodes):
            holds[i] = held = self._holds(node, i, holds)
            if held == i and (node.op in _CALLS or not is_free(node)):
                size[i] = self._costs.size(node.type)
                if unsized is None and self._costs.is_open_size(node.type) and is_unsized(node.type):
                    unsized = node
            last[i] = i
            if _reads(node):
                for operand in node.operands:
                    for buffer in _flat(holds[operand.index]):
                        last[buffer] = i
        results = set(_flat(holds[graph.root.index])) if graph.root is not None else set()
        for buffer in results:
            last[buffer] = n
        live, peak, peak_at = self._walk(graph, size, last, holds)
        return Lifetimes(last, size, live, peak, peak_at, results, unsized)

    def _holds(self, node: Node, i: int, holds: list[Holds]) -> Holds:
        operands = node.operands
        if node.op in _GATHERS:
            return tuple(holds[o.index] for o in operands)
        if node.op is hlo.get_tuple_element and operands:
            inner, index = holds[operands[0].index], GetTupleElement.index.given(node)
            return inner[index] if isinstance(inner, tuple) and index is not None and 0 <= index < len(inner) else inner
        if operands and (node.op in _ALIASES or is_view(node)):
            return holds[operands[0].index]
        return i

    def _walk(self, graph: Graph, size: list[int], last: list[int], holds: list[Holds]) -> tuple[list[int], int, int]:
        dying: list[int] = [0] * len(size)
        live: list[int] = []
        now = peak = 0
        peak_at = -1
        for i, node in enumerate(graph.nodes):
            own = size[i]
            now += own
            extra = self._body_peak(node)
            here = now + max(0, extra - own)
            if own and (node.op.kind is Kind.ELEMENTWISE or node.op in _IN_PLACE or is_fusion(node)):
                here -= self._written_over(node, i, own, size, last, holds)
            live.append(here)
            if here > peak:
                peak, peak_at = here, i
            if last[i] < len(size):
                dying[last[i]] += own
            now -= dying[i]
        return live, peak, peak_at

    def _written_over(self, node: Node, i: int, own: int, size: list[int], last: list[int], holds: list[Holds]) -> int:
        """The bytes that a result needs no memory for, because it may overwrite an operand at its last use; 0 if there is none."""
        buffers = [holds[operand.index] for operand in node.operands]
        return own if any(isinstance(buffer, int) and last[buffer] == i and size[buffer] == own for buffer in buffers) else 0

    def _body_peak(self, node: Node) -> int:
        if not node.bodies or body_use(node) is BodyUse.ELEMENT or is_fusion(node):
            return 0
        return max((self.graphs[b].peak for b in node.bodies if b in self.graphs), default=0)


def _reads(node: Node) -> bool:
    """Whether a node reads the memory of its operands, or renames a value that is read later."""
    return node.op.kind is not Kind.TUPLE and (node.op.work != "free" or node.op in _ALIASES)


def _flat(holds: Holds) -> list[int]:
    """The buffers in a value, with tuples flattened, each tuple once: nested ones may contain the same one often."""
    if isinstance(holds, int):
        return [holds]
    found: list[int] = []
    stack, seen = [holds], set()
    while stack:
        top = stack.pop()
        for part in top:
            if isinstance(part, int):
                found.append(part)
            elif id(part) not in seen:
                seen.add(id(part))
                stack.append(part)
    return found
