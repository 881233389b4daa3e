"""The result of a fusion policy: which nodes share a kernel, and for every edge a verdict with its reason."""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from irscope.fusion.views import Chain
from irscope.graph import Graph, Module, Node, Op
from irscope.ops import hlo

APPLIED = hlo.named("reduce reduce-window scatter select-and-scatter sort map all-reduce reduce-scatter")
"""Operators that apply their computations to single elements."""
UNREPORTED = hlo.named("parameter constant tuple get-tuple-element")
"""Nodes whose edges are no fusion decisions and get no verdict."""


def applied_bodies(module: Module, ops: frozenset[Op] = APPLIED) -> set[Graph]:
    """The computations that operators apply to elements: they are parts of kernels, and no policy plans them separately."""
    return {body for graph in module.graphs.values() for node in graph.nodes if node.op in ops for body in node.bodies}


def inputs_of(nodes: Collection[Node]) -> list[Node]:
    """The nodes outside a set whose values the set reads, in order."""
    inside = set(nodes)
    return list(dict.fromkeys(o for n in nodes for o in n.operands if o not in inside))


@dataclass(slots=True, eq=False)
class Group:
    """Nodes that one kernel computes.

    ``nodes`` are in definition order. A node that is cheap to recompute (a broadcast, an iota, a scalar) may belong to several
    groups; every other node belongs to one. ``outputs`` are the nodes whose values leave the kernel, ``inputs`` the nodes outside
    whose values it reads. ``anchor`` is the node that decides how the loops run:

    * ``contraction``, ``convolution``, ``window``: the anchor, and pointwise nodes that work on its result (an epilogue);
    * ``rows``: one or more reductions over the same trailing axes and pointwise nodes around them; the anchor is the last reduction;
    * ``reduction``: one reduction (or several over the same operand space) and what it reads, and pointwise nodes on its result;
    * ``map``: pointwise nodes and movement only; no anchor;
    * ``attention``: two contractions and the softmax between them; ``parts`` are the three groups that it was merged from;
    * ``whole``: a single node (sort, scatter, while, a custom call).

    ``space`` is the iteration space; of ``rows`` groups, the first ``rows`` axes of it are the rows and the others make up one row.
    ``chains`` holds for each output the views through which the loops reach it (None: iteration i is element i). ``aside`` are nodes that
    the kernel only prepares or finishes, such as a conversion that the compiler puts beside a product; another kernel does their work.
    """

    kind: str
    nodes: list[Node]
    outputs: list[Node]
    inputs: list[Node]
    anchor: Node | None = None
    space: tuple[int, ...] = ()
    rows: int = 0
    chains: dict[Node, Chain | None] = field(default_factory=dict)
    parts: tuple[Group, ...] = ()
    aside: frozenset[Node] = frozenset()

    @property
    def root(self) -> Node:
        """The last output."""
        return self.outputs[-1]

    def __repr__(self) -> str:
        return f"<{self.kind} group of {len(self.nodes)}: {', '.join('%' + o.name for o in self.outputs)}>"


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One call of a compiled program, of a compiler that may run several loop nests in one kernel.

    ``extern``: it calls a library; else a generated kernel, which runs ``nests`` loop nests one after the other. ``groups`` are what it
    computes, in order; none where it only copies what the compiler itself wants in another layout.
    """

    extern: bool
    groups: tuple[Group, ...]
    nests: int = 0


@dataclass(frozen=True, slots=True)
class EdgeVerdict:
    """The verdict on one edge of ``graph``.

    ``fused`` is ``all`` (the consumer's kernel computes the producer, and no other kernel reads it from memory), ``some`` (it does, and
    the producer is stored or recomputed for others) or ``none``. ``reason`` holds the words of the compiler whose policy it is
    (None: it says none), ``rule`` the short name of the rule that decided, ``cause`` the root cause in irscope's words with the numbers
    that the rule compared. ``recorded``: the
    compiler itself decided so in the run that the text is from; it is no prediction. ``releases``: where the releases of the compiler
    decide differently, what each makes of the edge, by name, the newest first.
    """

    graph: Graph
    producer: Node
    consumer: Node
    fused: str
    reason: str | None = None
    rule: str = ""
    cause: str = ""
    recorded: bool = False
    releases: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> tuple[str, str]:
        """The names of both ends, for messages."""
        return self.producer.name, self.consumer.name


@dataclass(slots=True, eq=False)
class Plan:
    """The groups of one graph in an executable order, and the verdicts on its edges.

    ``decisions`` are the pairs (producer, consumer) in the order in which a compiler that decides sequentially fused them; a kernel
    is named after its last instruction. ``calls`` are the kernels of a compiler whose kernels run several groups; None: each group is one.
    """

    graph: Graph
    groups: list[Group] = field(default_factory=list)
    verdicts: list[EdgeVerdict] = field(default_factory=list)
    decisions: list[tuple[str, str]] = field(default_factory=list)
    calls: list[Call] | None = None

    def kernels(self) -> int:
        """How many kernels the plan launches, those of libraries included."""
        return len(self.groups if self.calls is None else self.calls)

    def group_of(self, node: Node) -> Group | None:
        """The first group that outputs the node's value, or else the first that computes it."""
        inside: Group | None = None
        for group in self.groups:
            if node in group.outputs:
                return group
            if inside is None and node in group.nodes:
                inside = group
        return inside

    def unfused(self) -> Iterator[EdgeVerdict]:
        """The edges that go through memory."""
        return (v for v in self.verdicts if v.fused == "none")


class JudgedLater(Plan):
    """A plan that computes its verdicts on first access: most callers need only the kernels, or only the edges through memory.

    ``judge`` returns the verdicts on all edges, or only on those through memory.
    """

    __slots__ = ("_all", "_apart", "_judge")

    def __init__(self, graph: Graph, groups: list[Group], judge: Callable[[Plan, bool], Iterator[EdgeVerdict]]) -> None:
        super().__init__(graph, groups)
        self._judge = judge
        self._all: list[EdgeVerdict] | None = None
        self._apart: list[EdgeVerdict] | None = None

    @property
    def verdicts(self) -> list[EdgeVerdict]:
        if self._all is None:
            self._all = list(self._judge(self, False))
        return self._all

    @verdicts.setter
    def verdicts(self, verdicts: list[EdgeVerdict]) -> None:
        self._all, self._apart = verdicts, [v for v in verdicts if v.fused == "none"]

    def unfused(self) -> Iterator[EdgeVerdict]:
        if self._apart is None:
            self._apart = list(self._judge(self, True))
        return iter(self._apart)
