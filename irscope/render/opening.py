"""Which sections of an outline are open at first: the costliest, and those around the nodes that a reader looks for."""
from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from irscope.analysis.cost import estimate
from irscope.analysis.highlights import Highlights, drawn_node
from irscope.analysis.outline import Section
from irscope.analysis.survey import Survey
from irscope.graph import Graph, Node
from irscope.render.folding import Fold
from irscope.render.view import BoxOptions

MIN_OVERVIEW = 8
"""An overview of fewer boxes opens what costs little, too."""
NEGLIGIBLE = 0.05
"""A section with less of the cost stays closed: it would draw the eye from the rest."""
WEIGHT_OF_NODES = 0.1
"""What a section's share of the nodes counts beside its share of the cost."""
WEIGHT_OF_UPDATE = 0.2
"""An optimiser repeats one formula for every parameter, so that its sections say less than others of the same cost."""
FEW_NODES = 12
"""A section of no more nodes, one of them drawn, is drawn as that node."""


@dataclass(frozen=True, slots=True)
class Folded:
    """An outline and what a drawing makes of each node, by index."""

    root: Section
    folds: Sequence[Fold]

    def is_drawn(self, node: Node) -> bool:
        """Whether a node has a box of its own where its section is open."""
        return self.folds[node.index] is Fold.BOX

    def inside(self, section: Section) -> list[Section | Node]:
        """Sections and drawn nodes directly below a section; a section that holds one drawn node is that node."""
        below: list[Section | Node] = [only if (only := self.only_node(child)) is not None else child for child in section.children]
        return [*below, *filter(self.is_drawn, section.nodes)]

    def only_node(self, section: Section) -> Node | None:
        """The node of a section that holds a single drawn one: a frame around it would say nothing."""
        if section.times > 1 or section.n_nodes > FEW_NODES:
            return None
        drawn = list(filter(self.is_drawn, section.all_nodes()))
        return drawn[0] if len(drawn) == 1 else None


def open_sections(outline: Folded, options: BoxOptions, focus: Sequence[Node] = ()) -> set[Section]:
    """The sections to open, the root among them, while no more than ``options.max_boxes`` are to be drawn.

    Sections around the nodes of ``focus`` are opened first, in their order, then those of the largest share of the cost.
    """
    root = outline.root
    whole_cost, whole_nodes = estimate(root.flops, root.bytes) or 1.0, root.n_nodes or 1
    wanted = _around(root, focus)
    update = {below for section in root.walk() if section.kind == "update" for below in section.walk()}
    heap: list[tuple[float, int, Section, int]] = []
    opened = {root}
    number = 0

    def weight(section: Section) -> float:
        share = estimate(section.flops, section.bytes) / whole_cost + WEIGHT_OF_NODES * section.n_nodes / whole_nodes
        return share * (WEIGHT_OF_UPDATE if section in update else 1.0) + wanted.get(section, 0)

    items = outline.inside(root)
    boxes = len(items)
    below = [(section, 0) for section in items if isinstance(section, Section)]
    while True:
        for section, depth in below:
            number += 1
            heapq.heappush(heap, (-weight(section), number, section, depth))
        if not heap:
            return opened
        negated, _, section, depth = heapq.heappop(heap)
        below = []
        if -negated < NEGLIGIBLE and boxes >= MIN_OVERVIEW and not options.generous:
            return opened
        items = outline.inside(section)
        if not items or boxes + len(items) - 1 > options.max_boxes or (options.depth is not None and depth > options.depth):
            continue
        boxes += len(items) - 1
        opened.add(section)
        below = [(child, depth + 1) for child in items if isinstance(child, Section)]


def focus_of(survey: Survey, graph: Graph, found: Highlights) -> list[Node]:
    """The nodes of ``graph`` around which sections are opened first: the costliest kernel, the largest copy, the ends of the costliest
    unfused edge, or what calls them."""
    first = [*found.kernels[:1], *found.copies[:1], *found.edges[:1]]
    drawn = (drawn_node(survey, one.graph, node, graph) for one in first for node in one.nodes)
    return [node for node in drawn if node is not None]


def _around(root: Section, focus: Sequence[Node]) -> dict[Section, int]:
    """The sections around some nodes, by the rank of the first; around a node of a folded copy, those that are drawn for it."""
    rank = {node: len(focus) - i for i, node in reversed(list(enumerate(focus)))}
    found: dict[Section, int] = {}
    stack = [(root, False)] if focus else []
    while stack:
        section, done = stack.pop()
        if done:
            found[section] = max((rank.get(node, 0) for node in _own(section)), default=0)
            found[section] = max(found[section], *(found[child] for child in section.children), 0)
        else:
            stack.append((section, True))
            stack += [(child, False) for child in section.children]
    return found


def _own(section: Section) -> Iterator[Node]:
    """The nodes directly in a section, and all of its further copies."""
    yield from section.nodes
    for copy in section.copies[1:]:
        yield from copy.all_nodes()
