"""What stands out in a program, in words: the heading of a drawing, the badges of its boxes, the keys of the json."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from irscope.analysis.calls import Calls
from irscope.analysis.highlights import Highlight, Highlights, Leak
from irscope.analysis.survey import Survey
from irscope.graph import Graph, Node, bytes_of
from irscope.render.units import bytes_, count, flops, percent, plural
from irscope.render.view import Box, Drawing

ARROW = " -> "
T = TypeVar("T")


def heading(found: Highlights) -> list[str]:
    """A line for each kind of highlight: kernels, copies, leaks, edges."""
    lines: list[Sequence[Highlight | Leak]] = [found.kernels, found.copies, found.leaks, found.edges]
    return [" \u00b7 ".join(map(sentence, line)) for line in lines if line]


def sentence(one: Highlight | Leak) -> str:
    """``largest copy %copy.12, 2 MiB``."""
    if isinstance(one, Leak):
        largest = one.largest[1]
        size = bytes_(bytes_of(largest.type))
        return f"dtype leak {one.label}: {plural(len(one.members), 'value')}, the largest %{largest.name}, {size}"
    figures = [flops(one.flops)] if one.flops else []
    figures += [bytes_(one.bytes), *([percent(one.share)] if one.share else [])]
    if one.times != 1:
        figures.append(f"{count(one.times)} runs")
    return f"{one.label} {names(one)}, {', '.join(figures)}"


def names(one: Highlight) -> str:
    """``%a``, of an edge ``%a -> %b``."""
    return ARROW.join(f"%{node.name}" for node in one.nodes)


def callers_of(calls: Calls, graph: Graph, node: Node) -> Iterator[tuple[Graph, Node]]:
    """A graph and a node in it, then the first caller of that graph in its own graph, and so on; no graph twice."""
    seen: set[Graph] = set()
    while graph not in seen:
        seen.add(graph)
        yield graph, node
        callers = calls.callers.get(graph)
        if not callers:
            return
        graph, node = callers[0]


def nearest(survey: Survey, graph: Graph, node: Node, shown: Callable[[Node], T | None]) -> T | None:
    """What ``shown`` returns for a node, or else for the nearest of its direct and indirect users that is shown; None where none is."""
    ring, seen = [node], {node}
    while ring:
        found = next((found for each in ring if (found := shown(each)) is not None), None)
        if found is not None:
            return found
        users = dict.fromkeys(user for each in ring for user in survey.users(graph)[each.index])
        ring = [user for user in users if user not in seen]
        seen.update(ring)
    return None


class Badges:
    """Puts highlights on the boxes that show them, as lines: ``largest copy %copy.12``, ``3 f64, 12 bf16 -> f32``."""

    def __init__(self, survey: Survey, found: Highlights) -> None:
        self.survey, self.found = survey, found
        self._shown: Mapping[Graph, Callable[[Node], Box | None]] = {}

    def put(self, shown: Mapping[Graph, Callable[[Node], Box | None]]) -> None:
        """Mark the boxes of a drawing. ``shown`` has, for each graph that is drawn, a function from a node to its box."""
        self._shown = shown
        for one in [*self.found.kernels, *self.found.copies]:
            box = self._box(one.graph, one.nodes[0])
            if box is not None:
                box.badges.append(f"{one.label} {names(one)}")
                box.tags.add("highlight")
        leaks: dict[Box, Counter[str]] = {}
        for leak in self.found.leaks:
            for graph, node in leak.members:
                box = self._box(graph, node)
                if box is not None:
                    leaks.setdefault(box, Counter())[leak.label] += 1
        for box, counted in leaks.items():
            box.badges.append(", ".join(f"{count(n)} {label}" for label, n in counted.most_common()))

    def join(self, view: Drawing) -> None:
        """Mark the links of the unfused edges; where both ends are in one box, or no link joins them, the box of the consumer."""
        links = {(link.source, link.target): link for link in view.links}
        for one in self.found.edges:
            source, target = (self._box(one.graph, node) for node in one.nodes)
            if target is None:
                continue
            link = links.get((source, target)) if source is not None else None
            if link is not None:
                link.label = f"not fused: {bytes_(one.bytes)}"
            target.badges.append(f"not fused with %{one.nodes[0].name}" if source is not target else f"not fused: {names(one)}")
            target.tags.add("highlight")

    def _box(self, graph: Graph, node: Node) -> Box | None:
        """The box that shows a node: its own, that of what calls it, or that of a user; None where none does."""
        shown = next(((at, caller) for at, caller in callers_of(self.survey.calls, graph, node) if at in self._shown), None)
        if shown is None:
            return None
        return nearest(self.survey, *shown, self._shown[shown[0]])


def as_json(found: Highlights) -> dict[str, object]:
    """The highlights as they are in the json."""
    def single(one: Highlight) -> dict[str, object]:
        figures = {"bytes": one.bytes, "flops": one.flops, "times": one.times, "share": one.share}
        return {"label": one.label, "graph": one.graph.name, "nodes": [node.name for node in one.nodes], **figures}

    leaks = [{"label": leak.label, "bytes": leak.bytes, "nodes": [f"{graph.name}/{node.name}" for graph, node in leak.members]}
             for leak in found.leaks]
    return {"kernels": list(map(single, found.kernels)), "copies": list(map(single, found.copies)), "leaks": leaks,
            "edges": list(map(single, found.edges))}
