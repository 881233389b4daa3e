"""Which nodes of a rewritten graph came from which nodes of the graph before, both ways."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from irscope.graph.node import Node


@dataclass(slots=True, eq=False)
class Trace:
    """Origins are stored in the nodes (``Node.origin``); the other direction is recorded when a rewriter finishes.

    A node that is missing from ``became`` was removed.
    """

    became: dict[Node, Node] = field(default_factory=dict)

    def result(self, node: Node) -> Node | None:
        """The node that replaced a node of the graph before; None where it was removed."""
        return self.became.get(node)


def to_text(nodes: Iterable[Node]) -> list[Node]:
    """The nodes of the text that these stand for, the first origin of each, without repeats."""
    return list(dict.fromkeys(node.origin[0] for node in nodes if node.origin))
