"""A graph as text: the lines of the dump itself, and irscope's own text where there are none."""
from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.survey import Survey
from irscope.graph import Graph, Node, dump, dump_node


def text_lines(survey: Survey, graph: Graph, picked: set[Node] | None, explicit: bool = False) -> Iterator[str]:
    """The text of the whole module; of one graph, when it was asked for; or of the picked nodes."""
    source = survey.module.source.text
    if picked is not None:
        for place in survey.module.graphs.values():
            for node in place.nodes:
                if node in picked:
                    yield _line(source, node)
        return
    if not explicit:
        yield from (source if source else dump(survey.module)).splitlines()
        return
    if graph.loc < 0:
        yield from dump(graph).splitlines()
        return
    yield source[_line_start(source, graph.loc):_line_end(source, graph.loc)]
    for node in graph.nodes:
        if not node.synthetic:
            yield _line(source, node)
    yield "}"


def _line(source: str, node: Node) -> str:
    if node.loc < 0:
        return "  " + dump_node(node)
    return source[_line_start(source, node.loc):_line_end(source, node.loc)]


def _line_start(source: str, offset: int) -> int:
    return source.rfind("\n", 0, offset) + 1


def _line_end(source: str, offset: int) -> int:
    end = source.find("\n", offset)
    return len(source) if end < 0 else end
