"""Draws a graph node by node: small graphs, and the neighbourhood of a node."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from irscope.analysis.calls import BodyUse, body_role, body_use, is_fusion
from irscope.analysis.classes import drawn_class
from irscope.analysis.cost import estimate
from irscope.analysis.summary import describe_type, source_line
from irscope.analysis.survey import Survey
from irscope.graph import Graph, Node, TupleType, bytes_of
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement, Parameter
from irscope.render.badges import Badges
from irscope.render.classify import Classifier
from irscope.render.folding import MANY_PARAMETERS, Fold, folding, text_of
from irscope.render.kernel_plan import StoredEdge
from irscope.render.labels import box_lines, headline, name_text
from irscope.render.marks import Marks
from irscope.render.units import bytes_, flops, plural
from irscope.render.view import MIN_BOXES, Box, BoxFrame, BoxLink, BoxOptions, Drawing, count_inputs, stub_crowds

MAX_INPUTS = 5
MAX_RESULTS = 4
"""If one node is more results than this, their numbers are not listed."""
MAX_LEVELS = 32
"""Bodies are not opened deeper than this: so many frames around one box are not readable, and graphs may nest thousands deep."""


@dataclass(slots=True, eq=False)
class _Place:
    """One drawn instance of a graph: the entry, or a body under its caller."""

    graph: Graph
    folds: list[Fold]
    cluster: BoxFrame | None
    parent: _Place | None = None
    caller: Node | None = None
    picked: set[Node] | None = None
    boxes: dict[int, Box] = field(default_factory=dict)
    bodies: dict[int, _Place] = field(default_factory=dict)
    kernels: dict[str, BoxFrame] = field(default_factory=dict)

    def graphs(self) -> Iterator[Graph]:
        """The graph and those around it."""
        place: _Place | None = self
        while place is not None:
            yield place.graph
            place = place.parent

    def box_of(self, node: Node) -> Box | None:
        """The box of a node; None if it has no box."""
        return self.boxes.get(node.index)

    def is_drawn(self, node: Node) -> bool:
        """Whether the drawing shows a node: in a box, or as text in those of its users."""
        return self.picked is None or node in self.picked or self.folds[node.index] is Fold.TEXT


def detail_view(survey: Survey, graph: Graph, options: BoxOptions) -> Drawing:
    """Every node of ``graph`` (or those picked), with constants folded away and as many bodies opened as fit."""
    return _Detail(survey, graph, options).view


def fits(graph: Graph, max_boxes: int) -> bool:
    """Whether a graph can be drawn node by node in at most ``max_boxes`` boxes."""
    return folding(graph, len(graph.params) > MANY_PARAMETERS).count(Fold.BOX) <= max_boxes


class _Detail:
    def __init__(self, survey: Survey, graph: Graph, options: BoxOptions) -> None:
        self.survey, self.options = survey, options
        self.view = Drawing(f"{survey.module.name} / {graph.name}" if graph is survey.entry else graph.name)
        picked = set(options.picked) if options.picked is not None else None
        whole = folding(graph, False).count(Fold.BOX) if picked is None else len(picked)
        many = len(graph.params) > MANY_PARAMETERS and whole > 24 and picked is None
        top = _Place(graph, folding(graph, many), None, picked=picked)
        for node in picked or ():
            if node.op is not hlo.constant and (node is options.centre or node.op is not hlo.tuple):
                top.folds[node.index] = Fold.BOX
        self._places = [top]
        self._fill(top)
        self._open_bodies(top)
        if picked is None and len(self.view.boxes) < MIN_BOXES:
            self._open_code(top)
        links: dict[tuple[Box, Box], BoxLink] = {}
        inside: dict[tuple[_Place, Node], list[_Place]] = {}
        for place in self._places:
            if place.parent is not None and place.caller is not None:
                inside.setdefault((place.parent, place.caller), []).append(place)
        for place in self._places:
            self._link(place, links, inside)
        self.view.links = list(links.values())
        self._mark_results(top)
        self._unframe()
        marks, badges = Marks(options.findings), Badges(survey, options.highlights)
        places = {place.graph: place.box_of for place in self._places}
        classifier = Classifier(survey, options)
        for place in self._places:
            marks.put(place.graph, place.box_of, places, place.is_drawn)
            classifier.put(place.graph, place.box_of)
        badges.put(places)
        stub_crowds(self.view)
        badges.join(self.view)
        count_inputs(self.view, MAX_INPUTS)
        if picked is not None:
            left = sum(1 for node in graph.nodes if node not in picked and not node.synthetic)
            self.view.notes.append(f"{plural(left, 'node')} of {graph.name} not shown; dashed boxes have operands among them")

    def _unframe(self) -> None:
        """Remove the frames of kernels that would hold one box or none."""
        inside = Counter(box.cluster for box in self.view.boxes)
        framed = {cluster: place for place in self._places for cluster in place.kernels.values()}
        alone = {cluster for cluster in framed if inside[cluster] < 2 and not any(frame.parent is cluster for frame in self.view.clusters)}
        self.view.clusters = [cluster for cluster in self.view.clusters if cluster not in alone]
        for box in self.view.boxes:
            if box.cluster in alone:
                box.cluster = box.cluster.parent if box.cluster is not None else None

    def _fill(self, place: _Place) -> None:
        survey, graph = self.survey, place.graph
        cost = survey.costs.graphs.get(graph)
        for node in graph.nodes:
            if place.folds[node.index] is not Fold.BOX or (place.picked is not None and node not in place.picked):
                continue
            if place.parent is not None and node.op is hlo.parameter and _is_inlined(place.caller):
                continue
            box = Box(headline(node), drawn_class(node), cluster=place.cluster, node=node, key=f"{graph.name}/{node.name}")
            box.lines = box_lines(node)
            if cost is not None:
                work, moved = survey.costs.flops(node, graph), survey.costs.traffic(node, graph)
                box.cost = estimate(work, moved) * survey.calls.times.get(graph, 1.0)
                is_open = survey.costs.is_open(node, graph)
                box.tooltip = f"{flops(work, is_open)}, {bytes_(moved, is_open)}"
            source = source_line(survey.module, node)
            scope = survey.module.scope(node)
            box.tooltip = "\n".join(t for t in (f"%{node.name} = {describe_type(node.type)}", scope, source, box.tooltip) if t)
            self._frame(place, box, self.options.plan.kernels.get(node, ()))
            if node is self.options.centre:
                box.tags.add("centre")
            place.boxes[node.index] = box
            self.view.boxes.append(box)

    def _frame(self, place: _Place, box: Box, kernels: Sequence[str]) -> None:
        """Put a box into the frame of the kernel that computes it; where several do, a line of the box says so instead."""
        if len(kernels) > 1:
            box.lines.append(f"in {len(kernels)} kernels")
        elif kernels:
            cluster = place.kernels.get(kernels[0])
            if cluster is None:
                cluster = place.kernels[kernels[0]] = BoxFrame(f"kernel of {name_text(kernels[0])}", place.cluster, "fusion")
                self.view.clusters.append(cluster)
            box.cluster = cluster

    def _open_bodies(self, top: _Place) -> None:
        """Open bodies while boxes are left, the costliest caller first. Fusions are opened only if all those of ``top`` fit."""
        survey = self.survey
        fused = [n.bodies[0] for n in top.graph.nodes if n.index in top.boxes and is_fusion(n) and n.bodies]
        inside = sum(folding(body, True).count(Fold.BOX) for body in fused)
        fusions = len(self.view.boxes) + inside <= self.options.max_boxes
        todo = [(top, 0)]
        while todo:
            place, depth = todo.pop(0)
            if depth >= (MAX_LEVELS if self.options.depth is None else min(self.options.depth, MAX_LEVELS)):
                continue
            callers = [n for n in place.graph.nodes if n.index in place.boxes and n.bodies and body_use(n) is not BodyUse.ELEMENT
                       and (fusions or not is_fusion(n))]
            callers.sort(key=lambda n: -survey.costs.traffic(n, place.graph) if place.graph in survey.costs.graphs else 0.0)
            for caller in callers:
                for body in caller.bodies:
                    if caller.index not in place.boxes:
                        break  # the frame of its first body replaced it
                    if body in place.graphs():
                        continue  # a recursive call
                    folds = folding(body, False)
                    if len(self.view.boxes) + folds.count(Fold.BOX) > self.options.max_boxes:
                        continue
                    todo.append((self._open(place, caller, body, folds), depth + 1))

    def _open_code(self, top: _Place) -> None:
        """Open the scalar code of the largest operator: in a program of few steps, it is what matters."""
        callers = [node for node in top.graph.nodes if node.index in top.boxes and node.bodies and body_use(node) is BodyUse.ELEMENT]
        caller = max(callers, key=lambda node: len(node.bodies[0].nodes), default=None)
        if caller is not None and fits(caller.bodies[0], self.options.max_boxes - len(self.view.boxes)):
            self._open(top, caller, caller.bodies[0], folding(caller.bodies[0], False))

    def _open(self, place: _Place, caller: Node, body: Graph, folds: list[Fold]) -> _Place:
        outer = place.boxes[caller.index]
        trips = self.survey.calls.trips.get(caller)
        if _is_inlined(caller):
            title = f"{outer.title}  {name_text(caller.name)}"
        else:
            title = body.name + (f" x{trips}" if trips is not None and body is caller.bodies[-1] else "")
        cluster = BoxFrame(title, place.cluster, caller.op.work)
        self.view.clusters.append(cluster)
        inner = _Place(body, folds, cluster, place, caller)
        self._places.append(inner)
        self._fill(inner)
        root = body.root
        if _is_inlined(caller) and root is not None and inner.boxes:
            # The frame replaces the box of the caller: users of the caller now take the value of the root.
            place.bodies[caller.index] = inner
            self.view.boxes.remove(outer)
            del place.boxes[caller.index]
        return inner

    def _link(self, place: _Place, links: dict[tuple[Box, Box], BoxLink], inside: Mapping[tuple[_Place, Node], Sequence[_Place]]) -> None:
        for node in place.graph.nodes:
            box = place.boxes.get(node.index)
            if box is None:
                continue
            for operand in node.operands:
                for source, bottom, stored in self._sources(place, operand, node):
                    if isinstance(source, Box):
                        self._add(links, source, box, bottom, stored)
                    elif source:
                        box.inputs.append(source)
                    elif place.picked is not None:
                        box.tags.add("open")
            for inner in inside.get((place, node), ()) if not _is_inlined(node) else ():
                for param in inner.graph.params:
                    if param.index in inner.boxes:
                        link = BoxLink(box, inner.boxes[param.index], label=body_role(node, node.bodies.index(inner.graph)))
                        links.setdefault((box, link.target), link)

    def _add(self, links: dict[tuple[Box, Box], BoxLink], source: Box, target: Box, value: Node, stored: StoredEdge | None) -> None:
        if source is target:
            return
        size = bytes_of(value.type)
        link = links.setdefault((source, target), BoxLink(source, target, 0, 0))
        link.n += 1
        link.bytes += size
        if stored is not None and stored not in link.stored:
            link.stored.append(stored)

    def _sources(self, place: _Place, node: Node, reader: Node | None = None) -> Iterator[tuple[Box | str, Node, StoredEdge | None]]:
        """Where a value that ``reader`` takes comes from: boxes, or texts (empty where it is outside of the drawing), each with the node at
        the end of the way and the edge on the way that goes through memory."""
        plan = self.options.plan
        first = plan.stored(node, reader) if reader is not None else None
        stack: list[tuple[_Place, Node, tuple[int, ...], StoredEdge | None]] = [(place, node, (), first)]
        opened: set[tuple[int, int]] = set()  # nested tuples may hold one tuple many times
        while stack:
            at, value, path, stored = stack.pop()
            box = at.boxes.get(value.index)
            inner = at.bodies.get(value.index)
            if box is not None:
                yield box, value, stored
            elif inner is not None and inner.graph.root is not None:
                stack.append((inner, inner.graph.root, path, stored))
            elif value.op is hlo.parameter and at.parent is not None and _is_inlined(at.caller):
                number = Parameter.number.given(value) or 0
                if at.caller is not None and 0 <= number < len(at.caller.operands):
                    given = at.caller.operands[number]
                    stack.append((at.parent, given, path, stored or plan.stored(given, at.caller)))
            elif at.folds[value.index] is Fold.TEXT:
                if text := text_of(value):
                    yield text, value, None
            elif value.op is hlo.get_tuple_element and value.operands:
                stack.append((at, value.operands[0], (GetTupleElement.index.given(value) or 0, *path),
                              stored or plan.stored(value.operands[0], value)))
            elif value.op is hlo.tuple and at.folds[value.index] is Fold.VIA:
                if path and 0 <= path[0] < len(value.operands):
                    stack.append((at, value.operands[path[0]], path[1:], stored))
                elif (id(at), value.index) not in opened:
                    opened.add((id(at), value.index))
                    stack.extend((at, o, (), stored) for o in reversed(value.operands))
            elif at.folds[value.index] is Fold.VIA and value.operands:
                stack.append((at, value.operands[0], path, stored or plan.stored(value.operands[0], value)))
            else:
                yield "", value, None

    def _mark_results(self, top: _Place) -> None:
        root = top.graph.root
        if root is None or top.picked is not None:
            return
        results = root.operands if isinstance(root.type, TupleType) and root.op is hlo.tuple else (root,)
        numbers: dict[Box, list[int]] = {}
        for number, result in enumerate(results):
            for source, _, _ in self._sources(top, result):
                if isinstance(source, Box):
                    numbers.setdefault(source, []).append(number)
        for box, mine in numbers.items():
            box.tags.add("result")
            several = f"{len(mine)} results" if len(mine) > MAX_RESULTS else f"result {', '.join(map(str, mine))}"
            box.lines.append("result" if len(results) == 1 else several)


def _is_inlined(caller: Node | None) -> bool:
    """Whether a body is drawn inlined in its caller's place: a fusion or a call, but not a loop or branch."""
    return caller is not None and (is_fusion(caller) or body_use(caller) is BodyUse.ONCE)


