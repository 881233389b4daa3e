"""The drawing of a graph that is too large to show node by node: its sections, opened while boxes are left."""
from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from irscope.analysis.calls import body_role, is_fusion
from irscope.analysis.classes import drawn_class
from irscope.analysis.cost import estimate
from irscope.analysis.highlights import Highlights
from irscope.analysis.outline import Section
from irscope.analysis.survey import Survey
from irscope.graph import Graph, Node, bytes_of
from irscope.render.badges import Badges
from irscope.render.classify import Classifier
from irscope.render.copies import first_copy, further_copies
from irscope.render.folding import Fold, folding, text_of, without_tuples
from irscope.render.kernel_plan import StoredEdge
from irscope.render.labels import MAX_NAME, inside_text, name_text, shape_text, work_title
from irscope.render.marks import Marks
from irscope.render.opening import Folded, focus_of, open_sections
from irscope.render.room import screens_of
from irscope.render.units import bytes_, flops, plural, short
from irscope.render.view import MIN_BOXES, Box, BoxFrame, BoxLink, BoxOptions, Drawing, bundle, count_inputs, stub_crowds

MAX_OVERVIEW = 40
"""Boxes of an overview: it is to be taken in at a glance."""
FEWEST = 14
"""An overview is not made smaller than this, however long its chains."""
SPARSE = 12
"""With fewer boxes there may be room for one more open section."""
LARGE = 20_000
"""For a graph of more nodes, that is not tried: a drawing of a hundred thousand nodes takes a quarter of a second."""
MAX_INPUTS = 3
"""Lines of a box for what is written into it."""


def overview(survey: Survey, graph: Graph, options: BoxOptions) -> Drawing:
    """The sections of ``graph``, the costliest open first; fewer where the boxes would not fit a screen."""
    outline = _folded(survey, graph)

    def drawn(n: int) -> Drawing:
        return _composed(survey, graph, outline, replace(options, max_boxes=n))

    n = options.max_boxes
    view = drawn(n)
    too_many = 0
    while not options.generous and len(view.boxes) > FEWEST and n > FEWEST and (screens := screens_of(view)) > 1:
        too_many, n = n, max(FEWEST, min(int(len(view.boxes) / screens), n * 3 // 4))
        view = drawn(n)
    if too_many and len(view.boxes) < SPARSE and len(graph.nodes) < LARGE:
        more = drawn((n + too_many) // 2)
        view = more if screens_of(more) <= 1 else view
    return view


def _folded(survey: Survey, graph: Graph) -> Folded:
    return Folded(survey.outline_of(graph), without_tuples(graph, folding(graph, fold_parameters=True)))


def _composed(survey: Survey, graph: Graph, outline: Folded, options: BoxOptions) -> Drawing:
    """The overview of a graph, and beside it that of the loop body with the costliest kernel, where there is room for it."""
    caller, body = _hot_loop(graph, options.highlights)
    whole = _Overview(survey, graph, outline, options, opened=())
    shown = {graph: whole.box}
    outer = whole.box(caller) if caller is not None else None
    if caller is not None and body is not None and outer is not None and outer.node is caller:
        room = options.max_boxes - len(whole.view.boxes)
        part = _Overview(survey, body, _folded(survey, body), replace(options, max_boxes=max(MIN_BOXES, room)), opened=())
        if len(part.view.boxes) <= max(options.max_boxes // 2, room):
            whole = _Overview(survey, graph, outline, options, opened=(body,))
            shown = {graph: whole.box, body: part.box}
            role = body_role(caller, caller.bodies.index(body))
            title = f"{role} of {name_text(caller.name)} x{survey.calls.times[body]:,.0f}"
            _join(whole.view, whole.box(caller), part.view, title)
    badges = Badges(survey, options.highlights)
    badges.put(shown)
    badges.join(whole.view)
    return whole.view


def _join(view: Drawing, caller: Box | None, part: Drawing, title: str) -> None:
    """Draw the boxes of a body in a frame, from which one line leads to what runs it."""
    frame = BoxFrame(title, caller.cluster if caller is not None else None, "control")
    for cluster in part.clusters:
        cluster.parent = cluster.parent or frame
    for box in part.boxes:
        box.cluster = box.cluster or frame
    view.clusters += [frame, *part.clusters]
    view.boxes += part.boxes
    view.links += part.links
    targets = {link.target for link in part.links}
    first = next((box for box in part.boxes if box not in targets), None)
    if caller is not None and first is not None:
        view.links.append(BoxLink(caller, first, label="runs"))


def _hot_loop(graph: Graph, found: Highlights) -> tuple[Node | None, Graph | None]:
    """The loop of a graph that has the costliest kernel directly in its body, and that body; None for both where there is no such loop."""
    body = found.kernels[0].graph if found.kernels else graph
    caller = next((node for node in graph.nodes if body in node.bodies and not is_fusion(node)), None) if body is not graph else None
    return caller, body if caller is not None else None


class _Overview:
    """The sections of one graph; the bodies ``opened`` are drawn elsewhere."""

    def __init__(self, survey: Survey, graph: Graph, outline: Folded, options: BoxOptions, opened: Container[Graph]) -> None:
        self.survey, self.graph, self.options = survey, graph, options
        self.view = Drawing(f"{survey.module.name} / {graph.name}")
        self.outline, self.folds = outline, outline.folds
        self.opened = open_sections(outline, options, focus_of(survey, graph, options.highlights))
        self.box_of: list[Box | None] = [None] * len(graph.nodes)
        self.copies_of: list[dict[Section, int]] = [{}] * len(graph.nodes)
        self._shared: dict[tuple[Section, int, int], tuple[dict[Section, int], dict[Section, int]]] = {}
        self.times = survey.calls.times.get(graph, 1.0)
        self._place(self.outline.root)
        self._map_copies()
        Marks(options.findings).put(graph, self.box, opened)
        Classifier(survey, options).put(graph, self.box)
        self._link()
        bundle(self.view)
        stub_crowds(self.view)
        count_inputs(self.view, MAX_INPUTS)
        closed = sum(1 for box in self.view.boxes if box.node is None)
        if closed:
            what = f"{plural(len(graph.nodes), 'node')}; {plural(closed, 'section')} closed"
            self.view.notes.append(f"{what}: more with --max-nodes, --around")

    def box(self, node: Node) -> Box | None:
        """The box that shows a node; None if none does."""
        return self.box_of[node.index]

    def _place(self, root: Section) -> None:
        """Place the boxes of the open sections, the outer ones first."""
        stack: list[tuple[Section, BoxFrame | None]] = [(root, None)]
        while stack:
            section, frame = stack.pop()
            below: list[tuple[Section, BoxFrame | None]] = []
            for child in section.children:
                only = self.outline.only_node(child)
                if only is not None:
                    self._place_node(only, frame).lines.append(short(child.title, MAX_NAME))
                elif child in self.opened:
                    inner = BoxFrame(_title(child), frame, "section")
                    self.view.clusters.append(inner)
                    below.append((child, inner))
                else:
                    self._place_section(child, frame)
            stack += reversed(below)
            for node in filter(self.outline.is_drawn, section.nodes):
                self._place_node(node, frame)

    def _place_section(self, section: Section, frame: BoxFrame | None) -> None:
        nodes = [node for node in section.all_nodes() if self.outline.is_drawn(node)]
        if not nodes:
            return
        box = Box(section.title, "section", cluster=frame, times=section.times, key=section.title)
        box.lines = [f"{plural(section.n_nodes, 'node')}, {flops(section.flops, section.is_open)}, "
                     f"{bytes_(section.bytes, section.is_open)}"]
        if self.options.plan:
            box.lines.append(plural(self.options.plan.count(section.all_nodes()), "kernel"))
        repeated = [f"{child.title} \u00d7{child.times}" for child in section.children if child.times > 1]
        if repeated:
            box.lines.append(short(", ".join(repeated), MAX_NAME))
        box.cost = estimate(section.flops, section.bytes)
        box.tooltip = ", ".join(f"{name} {n}" for name, n in section.ops.most_common(12))
        for node in nodes:
            self.box_of[node.index] = box
        self.view.boxes.append(box)

    def _place_node(self, node: Node, frame: BoxFrame | None) -> Box:
        survey, graph = self.survey, self.graph
        box = Box(work_title(node, survey.naming), drawn_class(node), cluster=frame, node=node, key=f"{graph.name}/{node.name}")
        box.lines = [shape_text(node), name_text(node.name)]
        texts = dict.fromkeys(text_of(o) for o in node.operands if self.folds[o.index] is Fold.TEXT)
        box.inputs = [text for text in texts if text]
        costs = survey.reaching(graph).costs
        box.cost = estimate(costs.flops(node, graph), costs.traffic(node, graph)) * self.times
        box.tooltip = "\n".join(t for t in (str(node)[:300], inside_text(node), survey.module.scope(node)) if t)
        self.box_of[node.index] = box
        self.view.boxes.append(box)
        return box

    def _map_copies(self) -> None:
        """Map the nodes of further copies of open sections to the boxes of the first, and record in which copies each node is."""
        kinds = self.survey.kinds(self.graph)
        repeated = [section for section in self.outline.root.walk() if section in self.opened and section.times > 1]
        for section in reversed(repeated):  # inner sections first
            for node in first_copy(section):
                self.copies_of[node.index] = self._in_copy(section, 0, self.copies_of[node.index])
            for number, node, drawn in further_copies(section, kinds):
                if drawn is not None and self.box_of[node.index] is None:
                    self.box_of[node.index] = self.box_of[drawn.index]
                    self.copies_of[node.index] = self._in_copy(section, number, self.copies_of[drawn.index])

    def _in_copy(self, section: Section, number: int, others: dict[Section, int]) -> dict[Section, int]:
        """The copies ``others`` and this one; the same object for all nodes of one copy."""
        key = section, number, id(others)
        known = self._shared.get(key)
        if known is None:
            known = self._shared[key] = others, {**others, section: number}
        return known[1]

    def _link(self) -> None:
        links: dict[tuple[Box, Box], BoxLink] = {}
        between_copies: dict[tuple[Box, Box], None] = {}
        stored_on: dict[BoxLink, dict[int, StoredEdge]] = {}
        for node in self.graph.nodes:
            box = self.box_of[node.index]
            if box is None:
                continue
            for operand in node.operands:
                for source, stored in self._sources(operand, node):
                    from_ = self.box_of[source.index]
                    if from_ is None:
                        continue
                    here, there = self.copies_of[source.index], self.copies_of[node.index]
                    if here is not there and _is_next_copy(here, there):
                        between_copies[from_, box] = None
                    elif here and _in_later_copy(here, there):
                        continue
                    elif from_ is not box:
                        link = links.setdefault((from_, box), BoxLink(from_, box, 0, 0))
                        link.n += 1
                        link.bytes += bytes_of(source.type)
                        if stored is not None:
                            stored_on.setdefault(link, {})[id(stored)] = stored
        for link, edges in stored_on.items():
            link.stored = list(edges.values())
        self.view.links = list(links.values())
        # A line from the last step of a layer to the first would run across all of it, and say less than words do.
        for from_, box in between_copies:
            if (from_, box) not in links:
                name = f"%{from_.node.name}" if from_.node is not None else from_.title
                box.inputs.insert(0, f"{name} of the copy before")

    def _sources(self, node: Node, reader: Node) -> list[tuple[Node, StoredEdge | None]]:
        """The drawn nodes that a value comes from, each with the edge on the way that goes through memory."""
        plan = self.options.plan
        found: list[tuple[Node, StoredEdge | None]] = []
        stack = [(node, plan.stored(node, reader))]
        seen: set[tuple[int, int]] = set()  # nested tuples may hold one tuple many times
        while stack:
            top, stored = stack.pop()
            if (top.index, id(stored)) in seen:
                continue
            seen.add((top.index, id(stored)))
            fold = self.folds[top.index]
            if fold is Fold.BOX:
                found.append((top, stored))
            elif fold is Fold.VIA:
                stack.extend((operand, stored or plan.stored(operand, top)) for operand in reversed(top.operands))
        return found


def _is_next_copy(source: dict[Section, int], target: dict[Section, int]) -> bool:
    """Whether a value goes from one copy of a repeated section to another."""
    return any(target.get(section, number) != number for section, number in source.items())


def _in_later_copy(source: dict[Section, int], target: dict[Section, int]) -> bool:
    """Whether both ends lie in the same copy, and it is not the first: what the first copy shows is not repeated."""
    return any(number > 0 and target.get(section) == number for section, number in source.items())


def _title(section: Section) -> str:
    times = f" x{section.times}" if section.times > 1 else ""
    return section.title + times + (f"  {section.note}" if section.note not in ("", "repeats") else "")
