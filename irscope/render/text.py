"""A graph as text: the lines of the dump itself, and irscope's own text where there are none."""
from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.survey import Survey
from irscope.graph import Graph, Node, dump, dump_node


def text_lines(survey: Survey, graph: Graph, picked: set[Node] | None, explicit: bool = False) -> Iterator[str]:
    """The text of the whole module; of one graph, when it was asked for; or of the picked nodes."""
    source = survey.module.source.text
    if picked is not None:
        yield from (_line(source, node) for place in survey.module.graphs.values() for node in place.nodes if node in picked)
        return
    if not explicit:
        yield from (source if source else dump(survey.module)).splitlines()
        return
    if graph.loc < 0:
        yield from dump(graph).splitlines()
        return
    yield _line_at(source, graph.loc)
    yield from (_line(source, node) for node in graph.nodes if not node.synthetic)
    yield "}"


def _line(source: str, node: Node) -> str:
    return _line_at(source, node.loc) if node.loc >= 0 else "  " + dump_node(node)


def _line_at(source: str, offset: int) -> str:
    end = source.find("\n", offset)
    return source[source.rfind("\n", 0, offset) + 1:end if end >= 0 else len(source)]
