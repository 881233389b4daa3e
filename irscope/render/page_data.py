"""What the page knows of a module: columns of numbers over all nodes, tables of the words they mean, and the sections."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from irscope.analysis.classes import CLASSES, drawn_class
from irscope.analysis.cost import Totals
from irscope.analysis.highlights import highlights
from irscope.analysis.levels import works
from irscope.analysis.outline import Section
from irscope.analysis.regions import MAX_FLAT
from irscope.analysis.summary import describe_type, source_line
from irscope.analysis.survey import Survey
from irscope.graph import Graph, Node, Op
from irscope.render.classify import Classifier
from irscope.render.copies import first_copy, further_copies
from irscope.render.folding import Fold, folding, text_of, without_tuples
from irscope.render.labels import work_title
from irscope.render.opening import Folded, focus_of, open_sections
from irscope.render.page_findings import by_gain, finding_data
from irscope.render.page_marks import PageMarks
from irscope.render.view import BoxOptions
from irscope.render.words import WordTable
from irscope.source import Finding

FIRST_BOXES = 16
"""Boxes of the entry's sections that are open at first: the page is smaller than the screen, and opens more at a click."""
MAX_PLAIN = 200
"""A section with more nodes of its own is cut into stretches of this length, so that opening it draws at once."""


def page_data(survey: Survey, findings: Sequence[Finding] = (), changes: Mapping[Node, str] | None = None) -> dict[str, Any]:
    """The data of the page; the keys are read by ``page/model.js``. ``changes`` are the categories of nodes that changed."""
    findings = by_gain(findings)
    maker = _Maker(survey, findings, changes)
    graphs = [maker.graph(graph) for graph in _graphs(survey)]
    return {
        "version": 1, "name": survey.module.name, "file": survey.module.source.name, "format": survey.module.format,
        "classes": list(CLASSES), "titles": maker.titles.words, "types": maker.types.words, "scopes": maker.scopes.words,
        "sources": maker.sources.words, "texts": maker.texts.words, "graphs": graphs, "sizes": maker.sizes,
        "ops": [[op.name, op.work, int(op.known), int(works)] for _, op, works in maker.ops.values()],
        "findings": [finding_data(finding, survey.module.entry) for finding in findings], "highlights": maker.marks.heading,
    }


def _graphs(survey: Survey) -> list[Graph]:
    """The entry first, then the graphs that it reaches, callers before callees, then the rest."""
    reached = survey.calls.order[::-1]
    known = set(reached)
    return reached + [graph for graph in survey.module.graphs.values() if graph not in known]


class _Maker:
    def __init__(self, survey: Survey, findings: Sequence[Finding], changes: Mapping[Node, str] | None) -> None:
        self.survey = survey
        options = BoxOptions(changes=changes or {})
        modes = ["layout", *(["sharding"] if "sharding=" in survey.module.source.text else []), *(["diff"] if changes is not None else [])]
        self.classifiers = [Classifier(survey, replace(options, color_by=mode)) for mode in modes]
        self.found = highlights(survey)
        self.marks = PageMarks(survey, self.found, findings)
        self.titles, self.types, self.scopes, self.sources, self.texts = WordTable(), WordTable(), WordTable(), WordTable(), WordTable()
        self.number = {graph: i for i, graph in enumerate(_graphs(survey))}
        self.sizes: list[int] = []
        self.ops: dict[str, tuple[int, Op, bool]] = {}
        self._type_numbers: dict[int, int] = {}

    def graph(self, graph: Graph) -> dict[str, object]:
        """The columns of one graph. Operands are written as distances back, which compress well."""
        survey, nodes = self.survey, graph.nodes
        folds = folding(graph, fold_parameters=len(graph.params) > 8)
        if len(nodes) > MAX_FLAT:
            folds = without_tuples(graph, folds)
        cost = survey.costs.graphs.get(graph)
        # Both come from the metadata of a line, which is read once where both are read.
        said = [(self.scopes.number(survey.module.scope(node)), self.sources.number(source_line(survey.module, node))) for node in nodes]
        sections, section_of, same_as, opened = self._sections(graph, folds)
        return {
            "name": graph.name, "entry": graph is survey.entry, "times": survey.calls.times.get(graph, 0.0),
            "scalar": graph in survey.calls.scalar, "fused": graph in survey.calls.fused,
            "root": graph.root.index if graph.root is not None else -1,
            "names": [node.name for node in nodes],
            "title": [self.titles.number(work_title(node, survey.naming)) for node in nodes],
            "type": [self._type(node) for node in nodes],
            "op": [self._op(node) for node in nodes],
            "class": [CLASSES.index(drawn_class(node)) for node in nodes],
            "scope": [scope for scope, _ in said],
            "source": [source for _, source in said],
            "line": _distances([survey.module.source.place(node.loc).line if node.loc >= 0 else 0 for node in nodes]),
            "flops": [round(survey.costs.flops(node, graph)) for node in nodes] if cost is not None else [],
            "bytes": [round(survey.costs.traffic(node, graph)) for node in nodes] if cost is not None else [],
            "open": [node.index for node in nodes if survey.costs.is_open(node, graph)] if cost is not None else [],
            "fold": "".join(fold.value[0] for fold in folds),
            "operands": [[node.index - o.index for o in node.operands] for node in nodes],
            "inputs": {str(node.index): words for node in nodes if (words := self._inputs(node, folds))},
            "bodies": {str(node.index): [self.number[b] for b in node.bodies if b in self.number] for node in nodes if node.bodies},
            "sections": sections, "section": section_of, "same": same_as, "opened": opened, **self.marks.of(graph, folds),
            "categories": {one.color_by: categories for one in self.classifiers if (categories := _categories(one, graph))},
        }

    def _type(self, node: Node) -> int:
        known = self._type_numbers.get(id(node.type))
        if known is None:
            known = self._type_numbers[id(node.type)] = self.types.number(describe_type(node.type))
            if known == len(self.sizes):
                self.sizes.append(self.survey.costs.size(node.type))
        return known

    def _op(self, node: Node) -> int:
        name = node.op.name
        if name not in self.ops:
            self.ops[name] = len(self.ops), node.op, works(node)
        return self.ops[name][0]

    def _inputs(self, node: Node, folds: list[Fold]) -> list[int]:
        """The numbers of the texts in the box of a node: constants and parameters that are not drawn."""
        if folds[node.index] is not Fold.BOX:
            return []
        texts = (text_of(o) for o in dict.fromkeys(node.operands) if folds[o.index] is Fold.TEXT)
        return [self.texts.number(text) for text in texts if text]

    def _sections(self, graph: Graph, folds: list[Fold]) -> tuple[list[list[object]], list[int], dict[str, int], list[int]]:
        """The outline of a graph as rows, the row of each node, and for a node of a folded copy the node that is drawn for it (-1: none).

        The last list has the rows that are open at first; where it is empty, the page chooses.

        A row is (title, row of the parent, copies, nodes, FLOPs, bytes, main operators, whether a cost is unknown); a parent
        comes before its children.
        """
        survey = self.survey
        if graph not in survey.costs.graphs or graph in survey.calls.scalar:
            # What the entry does not reach has no figures.
            known = survey.costs.totals.get(graph, Totals(is_open=True))
            row: list[object] = [graph.name, -1, 1, len(graph.nodes), round(known.flops), round(known.bytes), "", int(known.is_open)]
            return [row], [0] * len(graph.nodes), {}, []
        rows: list[list[object]] = []
        section_of = [0] * len(graph.nodes)
        same_as: dict[str, int] = {}
        kinds = survey.kinds(graph)
        root = survey.outline_of(graph)
        is_large = graph is survey.entry and len(graph.nodes) > MAX_FLAT
        chosen = open_sections(Folded(root, folds), BoxOptions(FIRST_BOXES), focus_of(survey, graph, self.found)) if is_large else set()
        opened: list[int] = []
        stack: list[tuple[Section, int]] = [(root, -1)]
        while stack:
            section, parent = stack.pop()
            number = len(rows)
            if section in chosen and parent >= 0:
                opened.append(number)
            rows.append([section.title, parent, section.times, section.n_nodes, round(section.flops), round(section.bytes),
                         _steps(section.ops), int(section.is_open)])
            plain = sorted(section.nodes, key=lambda n: n.index)
            for begin in range(0, len(plain), MAX_PLAIN):
                part = plain[begin:begin + MAX_PLAIN]
                place = number
                if len(plain) > MAX_PLAIN:
                    place = len(rows)
                    ops = Counter(node.op.name for node in part)
                    flops = sum(survey.costs.flops(node, graph) for node in part)
                    moved = sum(survey.costs.traffic(node, graph) for node in part)
                    rows.append([f"%{part[0].name} .. %{part[-1].name}", number, 1, len(part), round(flops), round(moved), _steps(ops),
                                 int(section.is_open)])
                for node in part:
                    section_of[node.index] = place
            if section.times > 1:
                _map_copies(section, kinds, same_as)
            stack.extend((child, number) for child in reversed(section.children))
        for index, first in same_as.items():
            section_of[int(index)] = section_of[first] if first >= 0 else 0
        return rows, section_of, same_as, opened


def _categories(classifier: Classifier, graph: Graph) -> str:
    """The number of the category of each node as a digit; empty where no node has one."""
    of, palette = classifier.of(graph), classifier.palette
    if of is None or palette is None:
        return ""
    digit = {name: str(number) for number, name in enumerate(palette.fills)}
    digits = "".join([digit[of(node)] for node in graph.nodes])
    return digits if digits.strip(str(len(digit) - 1)) else ""


_DULL = frozenset({"parameter", "constant", "get-tuple-element", "tuple", "bitcast"})


def _map_copies(section: Section, kinds: list[int], same_as: dict[str, int]) -> None:
    """Pair the nodes of each further copy with those of the first; -1 for one without a counterpart (a constant of one copy)."""
    drawn = set(first_copy(section))
    for _, node, same in further_copies(section, kinds):
        if node not in drawn:
            same_as.setdefault(str(node.index), same.index if same is not None else -1)


def _steps(ops: Counter[str]) -> str:
    return ", ".join(f"{name} {n}" for name, n in ops.most_common() if name not in _DULL)[:80]


def _distances(numbers: list[int]) -> list[int]:
    """Each number as the distance from the one before."""
    return [n - (numbers[i - 1] if i else 0) for i, n in enumerate(numbers)]
