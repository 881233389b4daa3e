"""Findings on a drawing: which box each is about, and the words in that box."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable

from irscope.graph import Graph, Node
from irscope.graph.walk import callees_first_of
from irscope.render.units import bytes_
from irscope.render.view import Box, BoxLink
from irscope.source import Finding

MAX_LINES = 3
"""Kinds of findings that are named in one box."""
MAX_TOLD = 6
"""Findings of one box, and edges of one line, that its tooltip shows in full."""


class Marks:
    """Findings by the node that they are about; what is about no node of the text has no place on a drawing."""

    def __init__(self, findings: Iterable[Finding] = ()) -> None:
        self._of: dict[tuple[str, str], list[Finding]] = {}
        for finding in findings:
            if finding.node:
                self._of.setdefault((finding.graph, finding.node), []).append(finding)

    def put(self, graph: Graph, box_of: Callable[[Node], Box | None], opened: Container[Graph] = (),
            is_drawn: Callable[[Node], bool] = lambda node: True) -> None:
        """Hand the findings about the nodes of a graph to the boxes that show them, or else those that take their values.

        A box answers for the bodies that are not ``opened`` in the drawing, and for all that these call. A finding that names no graph is
        about every node of that name.
        """
        if not self._of:
            return
        users = graph.users()
        shown: dict[int, Box] = {}
        for node in reversed(graph.nodes):
            box = box_of(node) or next((shown[user.index] for user in users[node.index] if user.index in shown), None)
            if box is None or not is_drawn(node):
                continue
            shown[node.index] = box
            box.findings += self._of.get((graph.name, node.name), []) + self._of.get(("", node.name), [])
            for body in callees_first_of([body for body in node.bodies if body not in opened]):
                box.findings += [finding for inner in body.nodes for finding in self._of.get((body.name, inner.name), [])]


def severity_of(box: Box) -> str:
    """The worst that was found in a box; empty where nothing was."""
    return str(max(finding.severity for finding in box.findings)) if box.findings else ""


def stands_out(box: Box) -> bool:
    """Whether a box has a thick border: it was asked for, something was found in it, or it has a highlight of the program."""
    return bool(box.tags & {"centre", "highlight"} or box.findings)


def found_lines(box: Box) -> list[str]:
    """``DTY003 cast-ping-pong``, a line each kind of finding, the worst first."""
    worst = sorted(box.findings, key=lambda finding: (-finding.severity, finding.code))
    kinds = Counter(f"{finding.code} {finding.name}".rstrip() for finding in worst)
    return _first([kind if n == 1 else f"{kind} ×{n}" for kind, n in kinds.items()], MAX_LINES)


def tooltip_of(box: Box) -> str:
    """What a box is, and what was found in it."""
    said = [f"{finding.severity}[{finding.code}]: {finding.message}" for finding in box.findings]
    return "\n".join([*([box.tooltip] if box.tooltip else []), *_first(said, MAX_TOLD, " findings")])


def stored_label(link: BoxLink) -> str:
    """``not fused, 64 KiB`` on a line whose value goes through memory; empty on others."""
    if not link.stored:
        return ""
    moved = sum(edge.bytes for edge in link.stored)
    word = "not fused" if any(edge.verdict.fused == "none" for edge in link.stored) else "stored"
    return f"{word}, {bytes_(moved)}" if moved else word


def stored_tooltip(link: BoxLink) -> str:
    """Verdict, rule, cause and fix of the edges of a line that go through memory; empty where there is none."""
    return "\n\n".join(_first([edge.describe() for edge in link.stored], MAX_TOLD, " edges"))


def _first(texts: list[str], most: int, what: str = "") -> list[str]:
    """The first texts, and how many more there are."""
    more = len(texts) - most
    return texts[:most] + ([f"and {more} more{what}"] if more > 0 else [])
