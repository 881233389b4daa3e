"""The category of a node under each meaning of colours, and of a box from the nodes that it shows."""
from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

from irscope.analysis.calls import is_fusion
from irscope.analysis.cost import FLOPS_PER_BYTE
from irscope.analysis.survey import Survey
from irscope.graph import Graph, Kind, Node, TensorType, Type
from irscope.render.categories import PALETTES, Palette
from irscope.render.units import bytes_
from irscope.render.view import Box, BoxOptions

FAR = 0.25
"""Below this share of the intensity at the ridge of the roofline, an operation is far below it."""
_REPLICATED = re.compile(r"last_tile_dim_replicate|last_tile_dims=\{[^}]*replicated")
Category = Callable[[Node], str]


def layout_of(type: Type) -> str:
    """The category of the layout of the first array in a type. A vector or scalar has one order only, which counts as row-major."""
    tensor = next((leaf for leaf in type.leaves() if isinstance(leaf, TensorType)), None)
    layout = tensor.layout if tensor is not None else None
    if layout is None:
        return "no layout"
    if layout.memory_space:
        return "other memory space"
    if "T(" in layout.rest:
        return "tiled"
    order = layout.minor_to_major
    if list(order) == sorted(order, reverse=True):
        return "row-major"
    return "column-major" if list(order) == sorted(order) else "permuted"


def sharding_of(text: str) -> str:
    """The category of a sharding as HLO writes it (xla/hlo/ir/hlo_sharding.h); of a tuple that of the first part."""
    first = text.strip().removeprefix("{{")
    if "devices=" in first.split("}")[0]:
        return "split and replicated" if _REPLICATED.search(first.split("}, {")[0]) else "split"
    for word, category in (("maximal", "one device"), ("manual", "manual"), ("replicated", "replicated")):
        if word in first.split("}")[0]:
            return category
    return "not stated"


def roofline_of(flops: float, bytes: float, is_open: bool = False) -> str:
    """On which side of the ridge of the roofline an operation is; the ridge is at :data:`FLOPS_PER_BYTE`."""
    if is_open:
        return "unknown"
    if not flops:
        return "no FLOPs"
    share = flops / (bytes * FLOPS_PER_BYTE) if bytes else float("inf")
    return "far below the ridge" if share < FAR else "below the ridge" if share < 1 else "above the ridge"


def liveness_of(survey: Survey, graph: Graph) -> Category:
    """The categories of the nodes of a graph at its peak."""
    life = survey.memory.graphs.get(graph)
    if life is None or life.peak_at < 0:
        return lambda node: "no buffer"
    place = life.peak_at

    def category(node: Node) -> str:
        i = node.index
        if i == place:
            return "runs at the peak"
        if node.op.kind is Kind.LEAF:
            return "of the caller" if node in graph.params else "no buffer"
        if not life.size[i]:
            return "no buffer"
        return "computed later" if i > place else "alive at the peak" if life.last[i] >= place else "freed before"
    return category


def peak_words(survey: Survey, graph: Graph) -> str:
    """``peak 48 KiB at %fusion.3``, besides the parameters; what is said where there are no temporaries."""
    life = survey.memory.graphs.get(graph)
    if life is None or life.peak_at < 0:
        return f"{graph.name} has no temporaries"
    least = "at least " if life.unsized is not None else ""
    return f"{least}{bytes_(life.peak)} live at the peak, %{graph.nodes[life.peak_at].name}, besides the parameters"


class Classifier:
    """The categories of the nodes of a module under one meaning of colours, and what boxes show of them.

    The options of the drawing have what some meanings need besides: the kernels, the changed nodes, the user's numbers.
    """

    def __init__(self, survey: Survey, options: BoxOptions) -> None:
        self.survey, self.color_by = survey, options.color_by
        self.palette: Palette | None = PALETTES.get(options.color_by)
        self.plan, self.changes, self.numbers = options.plan, options.changes, options.numbers
        self._layouts: dict[int, str] = {}
        self._groups: dict[str, tuple[int, str]] | None = None

    def of(self, graph: Graph) -> Category | None:
        """The category of each node of a graph; None where boxes are coloured by figures or names."""
        module = self.survey.module
        if self.color_by == "layout":
            return self._layout
        if self.color_by == "sharding":
            return lambda node: sharding_of(module.raw(node).get("sharding", ""))
        if self.color_by == "liveness":
            return liveness_of(self.survey, graph)
        if self.color_by == "diff":
            return lambda node: self.changes.get(node, "same")
        return None

    def put(self, graph: Graph, box_of: Callable[[Node], Box | None]) -> None:
        """Give the boxes of a graph their categories, and the sums of what they show."""
        shown = ((node, box) for node in graph.nodes if (box := box_of(node)) is not None)  # a generator: each mode reads it at most once
        if self.color_by in ("cost", "bytes", "roofline"):
            self._put_figures(graph, shown)
        elif self.color_by == "fusion":
            self._put_groups(graph, shown)
        elif self.color_by == "numbers":
            for node, box in shown:
                if node in self.numbers:
                    box.number = (box.number or 0.0) + self.numbers[node]
        category = self.of(graph)
        if category is None or self.palette is None:
            return
        found: dict[Box, Counter[str]] = defaultdict(Counter)
        for node, box in shown:
            found[box][category(node)] += 1 + self.survey.costs.size(node.type)
        for box, counted in found.items():
            box.category = shown_category(self.palette, counted)
        if self.color_by == "liveness":
            self._put_live(graph, box_of)

    def _layout(self, node: Node) -> str:
        known = self._layouts.get(id(node.type))
        if known is None:
            known = self._layouts[id(node.type)] = layout_of(node.type)
        return known

    def _put_figures(self, graph: Graph, shown: Iterable[tuple[Node, Box]]) -> None:
        costs = self.survey.costs
        reached = graph in costs.graphs  # what the entry does not reach has no figures
        sums: dict[Box, tuple[float, float, bool]] = {}
        for node, box in shown:
            flops, moved, is_open = sums.get(box, (0.0, 0.0, False))
            sums[box] = (flops + costs.flops(node, graph), moved + costs.traffic(node, graph),
                         is_open or costs.is_open(node, graph)) if reached else (0.0, 0.0, True)
        times = self.survey.calls.times.get(graph, 1.0)
        for box, (flops, moved, is_open) in sums.items():
            box.bytes, box.is_open = moved * times, is_open
            if self.color_by == "roofline":
                box.category = roofline_of(flops, moved, is_open)

    def _put_groups(self, graph: Graph, shown: Iterable[tuple[Node, Box]]) -> None:
        """Number the kernels of the plan, or the fusions of the text, in the order of the text."""
        if self._groups is None:
            names = self._kernels() if self.plan else self._fusions()
            self._groups = {key: (number, name) for number, (key, name) in enumerate(dict(names).items())}
        for node, box in shown:
            if box.node is not node:
                continue
            if self.plan:
                kernels = self.plan.kernels.get(node, ())
                key = kernels[0] if len(kernels) == 1 else ""
            else:
                key = node.bodies[0].name if is_fusion(node) and node.bodies else graph.name
            box.group = self._groups.get(key)

    def _kernels(self) -> list[tuple[str, str]]:
        nodes = (node for graph in self.survey.module.graphs.values() for node in graph.nodes)
        return [(name, name) for node in nodes for name in self.plan.kernels.get(node, ())]

    def _fusions(self) -> list[tuple[str, str]]:
        nodes = (node for graph in self.survey.calls.order[::-1] for node in graph.nodes)
        return [(node.bodies[0].name, node.name) for node in nodes if is_fusion(node) and node.bodies]

    def _put_live(self, graph: Graph, box_of: Callable[[Node], Box | None]) -> None:
        """The bytes that live at the peak, written into the boxes that show them."""
        memory = self.survey.memory
        life = memory.graphs.get(graph)
        if life is None or life.peak_at < 0:
            return
        alive: dict[Box, int] = {}
        for node in memory.live_at(graph, life.peak_at):
            box = box_of(node)
            if box is not None:
                alive[box] = alive.get(box, 0) + life.size[node.index]
        for box, size in alive.items():
            box.lines.append(f"{bytes_(size)} alive at the peak")


def shown_category(palette: Palette, counted: Mapping[str, int]) -> str:
    """The category that a box shows of those of its nodes."""
    return next((name for name in palette.first if name in counted), None) or max(counted, key=lambda name: counted[name])
