"""What a fusion policy makes of a module: the kernels of its nodes, and the edges that go through memory."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from irscope.fusion import EdgeVerdict
from irscope.graph import Node
from irscope.render.units import bytes_


@dataclass(frozen=True, slots=True)
class StoredEdge:
    """An edge whose value goes through memory, with the verdict on it.

    ``producer`` and ``consumer`` are nodes of the text, in one graph: the ends, or the fusions and calls in which these are (None: the text
    has none). ``ops`` are the operators at both ends, ``sources`` their lines of the user's program, ``carries`` is the type of the
    value. Fusing saves at most ``bytes`` of traffic and ``us`` microseconds of a run. Edges of one ``group`` are alike, as those of equal
    layers. ``fix`` is the change that would have the edge fused, or why there is none, in a sentence; empty where none was tried.
    """

    verdict: EdgeVerdict
    producer: Node | None = None
    consumer: Node | None = None
    ops: tuple[str, str] = ("", "")
    sources: tuple[str, str] = ("", "")
    carries: str = ""
    bytes: float = 0.0
    us: float = 0.0
    group: int = 0
    fix: str = ""

    def describe(self) -> str:
        """Verdict, rule, root cause and fix in a few lines."""
        verdict = self.verdict
        producer, consumer = verdict.names
        lines = [f"%{producer} -> %{consumer}: " + ("not fused" if verdict.fused == "none" else "fused, and stored for others too")]
        if self.bytes:
            lines[0] += f", {bytes_(self.bytes)} through memory"
        lines += [f"says: {verdict.reason}"] if verdict.reason else []
        lines += [f"because: {verdict.cause}" + (f" [{verdict.rule}]" if verdict.rule else "")] if verdict.cause else []
        lines += [self.fix] if self.fix else []
        return "\n".join(lines)


@dataclass(slots=True)
class KernelPlan:
    """The kernels of the policy ``name``, with its release: for each node those that compute it, and the edges that go through memory,
    in groups of equal ones, the costliest first.

    ``why`` is what in the text chose the policy; ``remarks`` say how far it can be trusted.
    """

    name: str = ""
    kernels: Mapping[Node, Sequence[str]] = field(default_factory=dict)
    edges: Sequence[StoredEdge] = ()
    why: str = ""
    remarks: Sequence[str] = ()
    _by_ends: dict[tuple[Node | None, Node | None], StoredEdge] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._by_ends = {(edge.producer, edge.consumer): edge for edge in reversed(self.edges)}  # the first edge between two nodes wins

    def __bool__(self) -> bool:
        return bool(self.name)

    def stored(self, producer: Node, consumer: Node) -> StoredEdge | None:
        """The edge between two nodes of the text, if its value goes through memory."""
        return self._by_ends.get((producer, consumer))

    def count(self, nodes: Iterable[Node]) -> int:
        """How many kernels compute some nodes. A node that several kernels recompute, such as a constant, does not count."""
        return len({mine[0] for node in nodes if len(mine := self.kernels.get(node, ())) == 1})
