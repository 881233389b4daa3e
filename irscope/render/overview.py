"""The drawing of a graph that is too large to show node by node: its sections, opened while boxes are left."""
from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable

from irscope.analysis.classes import drawn_class
from irscope.analysis.outline import Section
from irscope.analysis.summary import estimate
from irscope.analysis.survey import Survey
from irscope.graph import Graph, Node, bytes_of
from irscope.render.folding import Fold, folding, text_of
from irscope.render.labels import headline, inside_text, shape_text
from irscope.render.marks import Marks
from irscope.render.units import bytes_, flops, plural, short
from irscope.render.view import Box, BoxFrame, BoxOptions, Drawing, Link, bundle, stub_crowds

MAX_OVERVIEW = 40
"""Boxes of an overview: it is to be taken in at a glance."""
MIN_OVERVIEW = 8
"""An overview of fewer boxes opens what costs little, too."""
NEGLIGIBLE = 0.05
"""A section with less of the cost stays closed: it would draw the eye from the rest."""
WEIGHT_OF_NODES = 0.1
"""What a section's share of the nodes counts beside its share of the cost."""
MAX_NAME = 34


def overview(survey: Survey, graph: Graph, options: BoxOptions) -> Drawing:
    """The sections of ``graph``, the costliest open first."""
    return _Overview(survey, graph, options).view


class _Overview:
    def __init__(self, survey: Survey, graph: Graph, options: BoxOptions) -> None:
        self.survey, self.graph, self.options = survey, graph, options
        self.view = Drawing(f"{survey.module.name} / {graph.name}")
        self.folds = folding(graph, fold_parameters=True)
        self.box_of: list[Box | None] = [None] * len(graph.nodes)
        self.copies_of: list[dict[Section, int]] = [{}] * len(graph.nodes)
        self.times = survey.calls.times.get(graph, 1.0)
        self._n = 0
        self._opened: list[Section] = []
        self._open(survey.outline_of(graph))
        Marks(options.findings).put(graph, lambda node: self.box_of[node.index])
        self._link()
        stub_crowds(self.view)
        bundle(self.view)
        for box in self.view.boxes:
            if len(box.inputs) > 4:
                box.inputs[3:] = [f"+{len(box.inputs) - 3} more"]
        closed = sum(1 for box in self.view.boxes if box.node is None)
        if closed:
            what = f"{plural(len(graph.nodes), 'node')}; {plural(closed, 'section')} closed"
            self.view.notes.append(f"{what}: more with --max-nodes, --around")

    def _open(self, root: Section) -> None:
        """Best first: the section that costs most and holds most is opened next, while its children find room."""
        whole_cost = estimate(root.flops, root.bytes) or 1.0
        whole_nodes = root.n_nodes or 1
        heap: list[tuple[float, int, Section, BoxFrame | None, int]] = []
        closed: dict[Section, tuple[BoxFrame | None, Box]] = {}

        def add(section: Section, cluster: BoxFrame | None, depth: int) -> None:
            weight = estimate(section.flops, section.bytes) / whole_cost + WEIGHT_OF_NODES * section.n_nodes / whole_nodes
            self._n += 1
            heapq.heappush(heap, (-weight, self._n, section, cluster, depth))
            closed[section] = cluster, self._section_box(section, cluster)

        boxes = self._unfold(root, None, 0, add)
        while heap:
            weight, _, section, cluster, depth = heapq.heappop(heap)
            if -weight < NEGLIGIBLE and boxes >= MIN_OVERVIEW and not self.options.generous:
                break
            if self.options.depth is not None and depth > self.options.depth:
                continue
            inside = self._inside(section)
            if boxes + len(inside) - 1 > self.options.max_boxes or not inside:
                continue
            frame = BoxFrame(_title(section), cluster, "section", _title(section))
            self.view.clusters.append(frame)
            del closed[section]
            boxes += self._unfold(section, frame, depth, add) - 1
            if section.times > 1:
                self._opened.append(section)
        for section, (_, box) in closed.items():
            self.view.boxes.append(box)
            for node in section.all_nodes():
                if self.folds[node.index] is Fold.BOX:
                    self.box_of[node.index] = box
        self._map_copies()

    def _unfold(self, section: Section, frame: BoxFrame | None, depth: int, add: Callable[[Section, BoxFrame | None, int], None]) -> int:
        """Place what stands in an open section; returns how many boxes that makes."""
        n = 0
        for child in self._inside(section):
            n += 1
            if isinstance(child, Section):
                only = self._only_node(child)
                if only is not None:
                    box = self._node_box(only, frame)
                    box.lines.append(short(child.title, MAX_NAME))
                    self.box_of[only.index] = box
                    self.view.boxes.append(box)
                    continue
                add(child, frame, depth + 1)
            else:
                box = self._node_box(child, frame)
                self.box_of[child.index] = box
                self.view.boxes.append(box)
        return n

    def _inside(self, section: Section) -> list[Section | Node]:
        """Sections and drawn nodes directly below a section."""
        return [*section.children, *(node for node in section.nodes if self.folds[node.index] is Fold.BOX)]

    def _only_node(self, section: Section) -> Node | None:
        """The node of a section that holds a single drawn one: a frame around it would say nothing."""
        if section.times > 1 or section.n_nodes > 12:
            return None
        drawn = [node for node in section.all_nodes() if self.folds[node.index] is Fold.BOX]
        return drawn[0] if len(drawn) == 1 else None

    def _section_box(self, section: Section, cluster: BoxFrame | None) -> Box:
        steps = [f"{name} {n}" for name, n in section.ops.most_common() if name not in _DULL][:3]
        main = max(section.ops, key=lambda op: _WEIGHT.get(op, 0), default="")
        box = Box(section.title, "section", cluster=cluster, times=section.times, key=section.title)
        box.lines = [f"{plural(section.n_nodes, 'node')}, {flops(section.flops, section.is_open)}",
                     f"{bytes_(section.bytes, section.is_open)} traffic", ", ".join(steps)]
        box.cost = estimate(section.flops, section.bytes)
        box.tooltip = ", ".join(f"{name} {n}" for name, n in section.ops.most_common(12))
        if _WEIGHT.get(main):
            box.tags.add("heavy")
        return box

    def _node_box(self, node: Node, cluster: BoxFrame | None) -> Box:
        survey, graph = self.survey, self.graph
        box = Box(headline(node), drawn_class(node), cluster=cluster, node=node, graph=graph, key=f"{graph.name}/{node.name}")
        box.lines = [t for t in (inside_text(node), shape_text(node), short(f"%{node.name}", MAX_NAME)) if t]
        texts = dict.fromkeys(text_of(o) for o in node.operands if self.folds[o.index] is Fold.TEXT)
        box.inputs = [text for text in texts if text]
        box.cost = estimate(survey.costs.flops(node, graph), survey.costs.traffic(node, graph)) * self.times
        box.tooltip = "\n".join(t for t in (str(node)[:300], survey.module.scope(node)) if t)
        return box

    def _map_copies(self) -> None:
        """Draw the nodes of the other copies of open sections as those of the first, and remember of each node in which copies it is."""
        kinds = self.survey.kinds(self.graph)
        for section in reversed(self._opened):  # what is in a copy first
            first: dict[int, list[Node]] = defaultdict(list)
            for node in sorted(_first_copy(section), key=lambda n: n.index):
                first[kinds[node.index]].append(node)
                self.copies_of[node.index] = {section: 0, **self.copies_of[node.index]}
            for number, copy in enumerate(section.copies[1:], 1):
                taken: Counter[int] = Counter()
                for node in sorted(copy.all_nodes(), key=lambda n: n.index):
                    kind = kinds[node.index]
                    same = first[kind]
                    if taken[kind] < len(same) and self.box_of[node.index] is None:
                        drawn = same[taken[kind]].index
                        self.box_of[node.index] = self.box_of[drawn]
                        self.copies_of[node.index] = {**self.copies_of[drawn], section: number}
                    taken[kind] += 1

    def _link(self) -> None:
        links: dict[tuple[Box, Box], Link] = {}
        between_copies: dict[tuple[Box, Box], None] = {}
        for node in self.graph.nodes:
            box = self.box_of[node.index]
            if box is None:
                continue
            for operand in node.operands:
                for source in self._sources(operand):
                    from_ = self.box_of[source.index]
                    if from_ is None:
                        continue
                    if self._is_next_copy(source, node):
                        between_copies[from_, box] = None
                    elif self._in_later_copy(source, node):
                        continue
                    elif from_ is not box:
                        known = links.get((from_, box))
                        if known is None:
                            links[from_, box] = Link(from_, box, 1, bytes_of(source.type))
                        else:
                            known.n += 1
                            known.bytes += bytes_of(source.type)
        self.view.links = list(links.values())
        # A line from the last step of a layer to the first would run across all of it, and say less than words do.
        for from_, box in between_copies:
            if (from_, box) not in links:
                name = f"%{from_.node.name}" if from_.node is not None else from_.title
                box.inputs.insert(0, f"{name} of the copy before")

    def _is_next_copy(self, source: Node, target: Node) -> bool:
        """Whether a value goes from one copy of a repeated section to another."""
        here, there = self.copies_of[source.index], self.copies_of[target.index]
        return any(there.get(section, number) != number for section, number in here.items())

    def _in_later_copy(self, source: Node, target: Node) -> bool:
        """Whether both ends lie in the same copy, and it is not the first: what the first copy shows is not told again."""
        here, there = self.copies_of[source.index], self.copies_of[target.index]
        return any(number > 0 and there.get(section) == number for section, number in here.items())

    def _sources(self, node: Node) -> list[Node]:
        found: list[Node] = []
        stack = [node]
        while stack:
            top = stack.pop()
            fold = self.folds[top.index]
            if fold is Fold.BOX:
                found.append(top)
            elif fold is Fold.VIA:
                stack.extend(reversed(top.operands))
        return found


_WEIGHT = {"dot": 3, "convolution": 3, "fusion": 1, "while": 2, "call": 1, "custom-call": 2}
_DULL = frozenset({"parameter", "constant", "get-tuple-element", "tuple", "bitcast"})


def _title(section: Section) -> str:
    times = f" x{section.times}" if section.times > 1 else ""
    return section.title + times + (f"  {section.note}" if section.note not in ("", "repeats") else "")


def _first_copy(section: Section) -> list[Node]:
    nodes = list(section.nodes)
    for child in section.children:
        nodes += child.all_nodes()
    return nodes
