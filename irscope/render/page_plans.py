"""What the page knows of a fusion policy: the kernels of each graph's nodes, and the edges that go through memory."""
from __future__ import annotations

from typing import Any

from irscope.analysis.survey import Survey
from irscope.fusion import change_words
from irscope.graph import Graph, Node
from irscope.render.kernel_plan import KernelPlan, StoredEdge
from irscope.render.words import WordTable


def plan_data(survey: Survey, plan: KernelPlan) -> dict[str, Any]:
    """The columns for ``page/edges.js``. Of a graph, ``of`` has the kernels of each node by their number in ``kernels``.

    A row of ``edges`` is (graph, producer, consumer, the names in the verdict if they are others, stored for others only, group, bytes,
    microseconds, and the numbers of texts: message, rule, cause, fix, releases, operators, type).
    """
    texts = WordTable()
    home = {node: number for number, graph in enumerate(survey.module.graphs.values()) for node in graph.nodes}
    graphs = {graph.name: columns for graph in survey.module.graphs.values() if (columns := _kernels(plan, graph)) is not None}
    edges = [_row(edge, home, texts) for edge in plan.edges]
    return {"name": plan.name, "why": plan.why, "remarks": list(plan.remarks), "in": list(survey.module.graphs), "graphs": graphs,
            "edges": edges, "texts": texts.words}


def _kernels(plan: KernelPlan, graph: Graph) -> dict[str, object] | None:
    kernels = WordTable()
    of = {str(node.index): [kernels.number(name) for name in mine] for node in graph.nodes if (mine := plan.kernels.get(node))}
    return {"kernels": kernels.words, "of": of} if of else None


def _row(edge: StoredEdge, home: dict[Node, int], texts: WordTable) -> list[object]:
    """A row of ``edges``. The ends are indices of nodes (-1: not in the text); the names are those in the verdict, if they differ."""
    verdict, producer, consumer = edge.verdict, edge.producer, edge.consumer
    graph = home.get(consumer, -1) if consumer is not None else -1
    ends: list[object] = [-1, -1, verdict.names]
    if producer is not None and consumer is not None and home.get(producer) == graph:
        ends = [producer.index, consumer.index, 0 if (producer.name, consumer.name) == verdict.names else verdict.names]
    source, target = (f"{op} at {line}" if line else op for op, line in zip(edge.ops, edge.sources, strict=True))
    about = f"{source} -> {target}" if all(edge.ops) else ""
    words = (verdict.reason or "", verdict.rule, verdict.cause, edge.fix,
             change_words(verdict.releases) if verdict.releases else "", about, edge.carries)
    return [graph, *ends, int(verdict.fused == "some"), edge.group, round(edge.bytes), edge.us, *map(texts.number, words)]
