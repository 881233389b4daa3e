"""What stands out in a program, in words: the heading of a drawing, the badges of its boxes, the keys of the json."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container

from irscope.analysis.highlights import Highlight, Highlights, Leak
from irscope.graph import Graph, Node, bytes_of
from irscope.render.marks import shown_in
from irscope.render.units import bytes_, count, flops, percent, plural
from irscope.render.view import Box, Drawing

ARROW = " -> "


def heading(found: Highlights) -> list[str]:
    """A line for each kind of highlight: kernels, copies, leaks, edges."""
    lines = [found.kernels, found.copies, found.leaks, found.edges]
    return [" \u00b7 ".join(map(sentence, line)) for line in lines if line]


def sentence(one: Highlight | Leak) -> str:
    """``largest copy %copy.12, 2 MiB``."""
    if isinstance(one, Leak):
        size = bytes_(bytes_of(one.largest.type))
        return f"dtype leak {one.label}: {plural(len(one.members), 'value')}, the largest %{one.largest.name}, {size}"
    figures = [flops(one.flops)] if one.flops else []
    figures += [bytes_(one.bytes), *([percent(one.share)] if one.share else [])]
    times = f" x{count(one.times)}" if one.times != 1 else ""
    return f"{one.label} {names(one)}, {', '.join(figures)}{times}"


def names(one: Highlight) -> str:
    """``%a``, of an edge ``%a -> %b``."""
    return ARROW.join(f"%{node.name}" for node in one.nodes)


class Badges:
    """Puts highlights on the boxes that show them, as lines: ``largest copy %copy.12``, ``3 f64, 12 bf16 -> f32``."""

    def __init__(self, found: Highlights) -> None:
        self.found = found
        self._of: dict[tuple[Graph, Node], list[str]] = {}
        for one in [*found.kernels, *found.copies]:
            self._of.setdefault((one.graph, one.nodes[0]), []).append(f"{one.label} {names(one)}")
        self._leaks = {place: leak.label for leak in found.leaks for place in leak.members}
        self._ends = {(one.graph, node) for one in found.edges for node in one.nodes}
        self._boxes: dict[tuple[Graph, Node], Box] = {}

    def put(self, graph: Graph, box_of: Callable[[Node], Box | None], opened: Container[Graph] = (),
            is_drawn: Callable[[Node], bool] = lambda node: True) -> None:
        """Mark the boxes of a graph; a box stands for the bodies of its nodes that are not ``opened``."""
        leaks: dict[Box, Counter[str]] = {}
        for box, inside, node in shown_in(graph, box_of, opened, is_drawn):
            place = inside, node
            if place in self._of:
                box.badges += self._of[place]
                box.tags.add("highlight")
            if place in self._leaks:
                leaks.setdefault(box, Counter())[self._leaks[place]] += 1
            if place in self._ends:
                self._boxes[place] = box
        for box, counted in leaks.items():
            box.badges.append(", ".join(f"{count(n)} {label}" for label, n in counted.most_common()))

    def join(self, view: Drawing) -> None:
        """Mark the links of the unfused edges; where both ends are in one box, or no link joins them, the box of the consumer."""
        links = {(link.source, link.target): link for link in view.links}
        for one in self.found.edges:
            source, target = (self._boxes.get((one.graph, node)) for node in one.nodes)
            if target is None:
                continue
            link = links.get((source, target)) if source is not None else None
            if link is not None:
                link.label = f"not fused: {bytes_(one.bytes)}"
            target.badges.append(f"not fused with %{one.nodes[0].name}" if source is not target else f"not fused: {names(one)}")
            target.tags.add("highlight")


def as_json(found: Highlights) -> dict[str, object]:
    """The highlights as they are in the json."""
    def single(one: Highlight) -> dict[str, object]:
        figures = {"bytes": one.bytes, "flops": one.flops, "times": one.times, "share": one.share}
        return {"label": one.label, "graph": one.graph.name, "nodes": [node.name for node in one.nodes], **figures}

    leaks = [{"label": leak.label, "bytes": leak.bytes, "nodes": [f"{graph.name}/{node.name}" for graph, node in leak.members]}
             for leak in found.leaks]
    return {"kernels": list(map(single, found.kernels)), "copies": list(map(single, found.copies)), "leaks": leaks,
            "edges": list(map(single, found.edges))}
