"""What ``--why-not-fused`` reports of an edge beside the verdict: its value, its cost, and the source lines of its ends."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from irscope.analysis.calls import Calls
from irscope.analysis.cost import is_unsized
from irscope.analysis.scopes import split_scope
from irscope.analysis.summary import describe_type, source_line
from irscope.analysis.values import in_library, written
from irscope.fusion.plan import EdgeVerdict
from irscope.graph import Node, bytes_of
from irscope.lint.context import Context
from irscope.lint.kernels import Kernel
from irscope.lint.proven import FixAnswer
from irscope.ops import hlo
from irscope.source import Place

ANSWERED = 20
"""Kinds of refused edges for which fixes are tried, the costliest first: as many as a report shows."""
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Edge:
    """One edge. ``carries`` is the type of the producer's value, ``ops`` are the operators at both ends (empty: not in the text).

    ``bytes`` go through memory because of this edge in one run, ``us`` is the estimated time that fusing it saves at most: the consumer's
    read; and the producer's write and one launch, if no other edge needs the value stored (no launch between two loop nests of one
    kernel). ``sources`` are the lines of the user's program, otherwise the scopes, of both ends; ``place`` is the consumer in the text;
    ``kernel`` computes both ends, if the edge was requested and is fused. ``answer`` says what would have it fused. ``origins`` name the
    nodes of the text that ends come from which the text does not have. ``scopes`` are those of both ends where ``sources`` are lines.
    """

    verdict: EdgeVerdict
    ops: tuple[str, str] = ("", "")
    carries: str = ""
    bytes: float = 0.0
    us: float = 0.0
    sources: tuple[str, str] = ("", "")
    place: Place | None = None
    kernel: Kernel | None = None
    answer: FixAnswer | None = None
    origins: tuple[str, str] = ("", "")
    scopes: tuple[str, str] = ("", "")

    @property
    def is_apart(self) -> bool:
        """Whether the value goes through memory."""
        return self.verdict.fused != "all"

    @property
    def is_told(self) -> bool:
        """Whether a report of what is not fused names it: it is apart, or releases of the compiler decide differently."""
        return self.is_apart or bool(self.verdict.releases)

    @property
    def likeness(self) -> tuple[object, ...]:
        """A key that equal layers of a model share: rule and message, operators, type, and the lines or scopes without numbers."""
        verdict = self.verdict
        named = tuple("" if op else name for op, name in zip(self.ops, verdict.names, strict=True))
        scopes = tuple(_NUMBER.sub("0", source) if ":" not in source else source for source in self.sources)
        return verdict.fused, verdict.rule, verdict.reason, verdict.releases, self.ops, self.carries, scopes, named


def edges_of(context: Context, verdicts: Iterable[EdgeVerdict], kernels: Mapping[EdgeVerdict, Kernel] | None = None) -> list[Edge]:
    """The verdicts on edges of a module, in their order, with types, costs and source lines."""
    verdicts = list(verdicts)
    stored = Counter((v.graph, v.producer) for v in verdicts if v.fused != "all")
    times = Calls(context.module).times
    planned = context.costs.planned
    ends: dict[Node, str] = {}

    def source(node: Node) -> str:
        if node not in ends:
            ends[node] = _source(context, node)
        return ends[node]

    edges = []
    for verdict in verdicts:
        node, reader = (context.view.in_text(end, verdict.graph) for end in (verdict.producer, verdict.consumer))
        ops = _operator(context, node) if node else "", _operator(context, reader) if reader else ""
        roots = tuple(_origin(context, end) if own is None else None for own, end in ((node, verdict.producer), (reader, verdict.consumer)))
        origins = (roots[0].name if roots[0] else "", roots[1].name if roots[1] else "")
        kernel = kernels.get(verdict) if kernels else None
        carries = describe_type(node.type) if node else ""
        if verdict.fused == "all" or node is None:
            ends_known = (node or roots[0], reader or roots[1]) if verdict.fused != "all" else (None, None)
            lines = tuple(source(one) if one is not None else "" for one in ends_known)
            edges.append(Edge(verdict, ops, carries, sources=(lines[0], lines[1]), kernel=kernel, origins=origins))
            continue
        graph = context.view.graph_of[node]
        alone = stored[verdict.graph, verdict.producer] == 1 and node is not graph.root
        known = not is_unsized(node.type)
        size, runs = float(bytes_of(node.type)) * known, times.get(graph, 1.0)
        read = size if verdict.fused == "none" else 0.0
        written = size if alone else 0.0
        starts = known and alone and verdict.fused == "none"
        if starts and planned is not None:
            starts = not planned.in_one_call(verdict.producer, verdict.consumer)
        launch = context.costs.machine.launch(context.settings.policy) if starts else 0.0
        us = runs * (context.costs.machine.move_us(read, written) + launch)
        other = reader or roots[1]
        sources = source(node), source(other) if other is not None else ""
        place = context.module.source.place(reader.loc) if reader and reader.loc >= 0 else None
        edges.append(Edge(verdict, ops, carries, runs * (read + written), round(us, 3), sources, place, kernel, origins=origins,
                          scopes=(_scope(context, node, sources[0]), _scope(context, other, sources[1]))))
    return edges


def with_answers(context: Context, edges: list[Edge], of_pair: bool = False) -> list[Edge]:
    """The edges with what would have them fused: of each of the :data:`ANSWERED` costliest kinds the first, for which alone it was planned.

    ``of_pair``: one edge was requested, so that a plan of the whole program confirms its fix.
    """
    engine = context.costs.engine
    if engine is None:
        return edges
    found: dict[int, FixAnswer] = {}
    for group in folded(edges)[:ANSWERED]:
        if group[0].is_apart and not group[0].verdict.recorded:
            found[id(group[0])] = engine.confirm(group[0].verdict) if of_pair else engine.answer(group[0].verdict)
    return [replace(edge, answer=found[id(edge)]) if id(edge) in found else edge for edge in edges]


def folded(edges: Iterable[Edge]) -> list[list[Edge]]:
    """The edges that are not fused, or not by all releases, grouped by likeness, costliest first, then as in the text."""
    alike: dict[tuple[object, ...], list[Edge]] = {}
    for edge in edges:
        if edge.is_told:
            alike.setdefault(edge.likeness, []).append(edge)
    return sorted(alike.values(), key=lambda group: -sum(edge.us for edge in group))


def _origin(context: Context, node: Node) -> Node | None:
    """The node of the text that a node comes from which the text does not have."""
    root = written(node)
    return root if root is not node and root in context.view.graph_of else None


def _operator(context: Context, node: Node) -> str:
    """The operator; of a kernel that the text holds, what its result is in the user's program: ``fusion (rsqrt)``."""
    if node.op is not hlo.fusion or not node.bodies:
        return node.op.name
    path = context.module.scope(node) or (context.module.scope(node.bodies[0].root) if node.bodies[0].root is not None else "")
    names = split_scope(path.partition(";")[0])
    return f"fusion ({names[-1]})" if names else "fusion"


def _scope(context: Context, node: Node | None, source: str) -> str:
    """The scope of a node whose source is a line; empty otherwise."""
    return "/".join(context.view.operator_scope(node)) if node is not None and ":" in source else ""


def _source(context: Context, node: Node) -> str:
    """``model.py:41`` of the user's program, or the scope that the node stands in; empty where the text tells neither."""
    line = source_line(context.module, node)
    return line if line and not in_library(line) else "/".join(context.view.operator_scope(node)) or line
