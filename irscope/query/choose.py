"""Which module, which graph and which nodes of a text a user means."""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from irscope.analysis.neighbourhood import around, between, find_graph, find_node, stops
from irscope.analysis.survey import Survey
from irscope.graph import Graph, Module, Node, Reading
from irscope.ops import hlo
from irscope.query.language import parse
from irscope.source import UserError, did_you_mean

STOPS_NAMED = 3
"""Of the nodes at which a neighbourhood stops, so many are named."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The user's request: at most one of ``around``, ``between`` and ``where``; names as the user wrote them.

    A neighbourhood goes ``through`` tuples and values with very many users where these are named (``tuples``, ``fan-out``).
    """

    around: str | None = None
    radius: int = 2
    between: tuple[str, str] | None = None
    where: str | None = None
    graph: str | None = None
    module: str | None = None
    through: tuple[str, ...] = ()

    @property
    def picks(self) -> bool:
        """Whether single nodes were requested."""
        return self.around is not None or self.between is not None or self.where is not None


@dataclass(slots=True)
class Choice:
    """What to show of one module: a graph, and of that the picked nodes (None: all). ``what`` says it in words."""

    survey: Survey
    graph: Graph
    picked: set[Node] | None = None
    centre: Node | None = None
    what: str = ""


def choose_modules(reading: Reading, wanted: Wanted) -> list[Module]:
    """The modules of a text that were requested by name, or that contain the requested graph; otherwise all."""
    modules = reading.modules
    if wanted.module is not None:
        named = [m for m in modules if m.name == wanted.module]
        if not named:
            names = [m.name for m in modules]
            raise UserError(f"{reading.source.name} holds no module {wanted.module}",
                            did_you_mean(wanted.module, names) or "it holds " + ", ".join(names))
        return named
    if wanted.graph is not None:
        return [m for m in modules if wanted.graph in m.graphs][:1] or modules[:1]
    return modules[:1] if wanted.picks else modules


def choose(module: Module, wanted: Wanted, several_graphs: bool) -> Choice:
    """The requested graph and nodes of a module. Without ``several_graphs`` a query is restricted to the graph with most hits."""
    survey = Survey(module)
    graph = _graph(survey, wanted)
    if wanted.around is not None:
        name = f"{graph.name}/{wanted.around}" if wanted.graph is not None and "/" not in wanted.around else wanted.around
        place, node = find_node(survey, name)
        picked = around(survey, place, node, wanted.radius, wanted.through)
        return Choice(survey, place, picked, node, f"within {wanted.radius} of %{node.name}{_stopped(survey, place, node, wanted)}")
    if wanted.between is not None:
        return _between(survey, *wanted.between)
    if wanted.where is not None:
        found = parse(wanted.where).select(survey)
        if not found:
            raise UserError(f"no node matches {wanted.where!r}", "--format json lists every node with what is known of it")
        if wanted.graph is None:
            graph = Counter(place for place, _ in found).most_common(1)[0][0]
        picked = {node for place, node in found if several_graphs or place is graph}
        return Choice(survey, graph, picked, None, f"where {wanted.where}")
    return Choice(survey, graph)


def _stopped(survey: Survey, graph: Graph, centre: Node, wanted: Wanted) -> str:
    """Where a neighbourhood stops, and how to go on."""
    found = stops(survey, graph, centre, wanted.radius, wanted.through)
    if not found:
        return ""
    names = ", ".join(f"%{node.name}" for node in found[:STOPS_NAMED]) + (", ..." if len(found) > STOPS_NAMED else "")
    kinds = dict.fromkeys("tuples" if node.op is hlo.tuple and "tuples" not in wanted.through else "fan-out" for node in found)
    return f", not through {names} ({' '.join(f'--through {kind}' for kind in kinds)})"


def _graph(survey: Survey, wanted: Wanted) -> Graph:
    if wanted.graph is not None:
        return find_graph(survey, wanted.graph)
    if survey.entry is not None:
        return survey.entry
    if survey.module.graphs:
        return list(survey.module.graphs.values())[-1]
    # Nothing of it could be read; the findings, which are shown with it, say why.
    return Graph(survey.module.name)


def _between(survey: Survey, a: str, b: str) -> Choice:
    first_graph, first = find_node(survey, a)
    second_graph, second = find_node(survey, b)
    if first_graph is not second_graph:
        raise UserError(f"%{first.name} stands in {first_graph.name}, %{second.name} in {second_graph.name}",
                        "paths are followed inside one computation")
    nodes = between(survey, first_graph, first, second)
    if not nodes:
        raise UserError(f"there is no path between %{first.name} and %{second.name}")
    return Choice(survey, first_graph, nodes, None, f"between %{first.name} and %{second.name}")
