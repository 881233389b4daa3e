"""What the page marks in each graph: highlights of the program and findings, by the node that shows them."""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from irscope.analysis.highlights import Highlights
from irscope.analysis.survey import Survey
from irscope.graph import Graph, Node
from irscope.render.badges import callers_of, names, nearest, sentence
from irscope.render.folding import Fold
from irscope.source import Finding


class PageMarks:
    """The marks of a module. A node in a body is marked in the body, and at the first caller of the body, of that caller's graph, ..."""

    def __init__(self, survey: Survey, found: Highlights, findings: Sequence[Finding]) -> None:
        self.survey = survey
        self.heading = [[sentence(one), f"{one.graph.name}/{one.nodes[-1].name}"] for one in found.singles]
        self.heading += [[sentence(leak), f"{leak.largest[0].name}/{leak.largest[1].name}"] for leak in found.leaks]
        self._badges: dict[Graph, list[tuple[Node, str]]] = {}
        self._leaks: dict[Graph, Counter[tuple[Node, str]]] = {}
        self._findings: dict[Graph, list[tuple[Node, int]]] = {}
        for one in found.singles:
            text = f"{one.label} {names(one)}" if len(one.nodes) == 1 else f"not fused with %{one.nodes[0].name}"
            for graph, node in callers_of(survey.calls, one.graph, one.nodes[-1]):
                self._badges.setdefault(graph, []).append((node, text))
        for leak in found.leaks:
            for member in leak.members:
                for graph, node in callers_of(survey.calls, *member):
                    self._leaks.setdefault(graph, Counter())[node, leak.label] += 1
        self._mark(findings)

    def of(self, graph: Graph, folds: Sequence[Fold]) -> dict[str, object]:
        """The columns of a graph; each row begins with the index of the drawn node that shows what is marked. Those of ``found`` end in
        the number of a finding."""
        leaks = self._leaks.get(graph, Counter()).items()

        def shown(node: Node) -> int | None:
            return nearest(self.survey, graph, node, lambda node: node.index if folds[node.index] is Fold.BOX else None)

        leaked = [[index, word, n] for (node, word), n in leaks if (index := shown(node)) is not None]
        found = [[index, number] for node, number in self._findings.get(graph, ()) if (index := shown(node)) is not None]
        badges = [[index, text] for node, text in self._badges.get(graph, ()) if (index := shown(node)) is not None]
        return {"badges": badges, "leaks": leaked, "found": found}

    def _mark(self, findings: Sequence[Finding]) -> None:
        """Mark findings; one that names no graph is about the node of that name in the entry."""
        entry = self.survey.module.entry
        wanted = {finding.graph or entry for finding in findings if finding.node}
        graphs = [graph for graph in self.survey.calls.order if graph.name in wanted]
        nodes = {(graph.name, node.name): (graph, node) for graph in graphs for node in graph.nodes}
        for number, finding in enumerate(findings):
            place = nodes.get((finding.graph or entry, finding.node))
            for graph, node in callers_of(self.survey.calls, *place) if place is not None else ():
                self._findings.setdefault(graph, []).append((node, number))
