"""When two pieces of a graph are the same but for names: keys that are equal exactly then."""
from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from irscope.graph.node import Graph, Node

LONGEST_TEXT = 200
"""A literal with more text than this is compared by identity: equal weights are rare, and reading them is not free."""
FEW = 16
"""A literal without text is compared by its elements when it has no more than these."""


class Structure:
    """Keys of attributes, nodes and graphs, remembered: a body that a thousand nodes call is looked at once."""

    def __init__(self) -> None:
        self._attrs: dict[int, tuple[Mapping[str, Any], Hashable]] = {}
        self._graphs: dict[Graph, Hashable] = {}
        self._numbers: dict[Hashable, int] = {}

    def attrs(self, attrs: Mapping[str, Any]) -> Hashable:
        """The key of a node's attributes."""
        if not attrs:
            return ()
        found = self._attrs.get(id(attrs))
        if found is None:
            key = tuple((name, _value_key(value)) for name, value in sorted(attrs.items()) if name != "control_predecessors")
            found = self._attrs[id(attrs)] = (attrs, key)
        return found[1]

    def attrs_of(self, node: Node) -> Hashable:
        """The key of a node's attributes; a node whose value the text elides is like no other, although readers share its attributes."""
        return node if is_elided(node) else self.attrs(node.attrs)

    def shape_of(self, node: Node) -> Hashable:
        """What a node does, without its operands and its name."""
        return (node.op.dialect, node.op.name, node.type, self.attrs_of(node), tuple(self.graph(body) for body in node.bodies))

    def graph(self, graph: Graph) -> int:
        """A number that equal graphs share."""
        known = self._graphs.get(graph)
        if known is None:
            for inner in _callees_first(graph):
                if inner not in self._graphs:
                    self._graphs[inner] = self._number(inner)
            known = self._graphs[graph]
        return known  # type: ignore[return-value]

    def _number(self, graph: Graph) -> int:
        key = (
            tuple((n.op.dialect, n.op.name, n.type, self.attrs_of(n), tuple(o.index for o in n.operands),
                   # A function that calls itself, by whatever way, is like no other.
                   tuple(self._graphs.get(b, b) for b in n.bodies)) for n in graph.nodes),
            tuple(p.index for p in graph.params), graph.root.index if graph.root else -1,
        )
        return self._numbers.setdefault(key, len(self._numbers))


def is_elided(node: Node) -> bool:
    """Whether a node is a constant whose value the text leaves out."""
    return not node.operands and any(getattr(value, "elided", False) for value in node.attrs.values())


def _callees_first(graph: Graph) -> list[Graph]:
    order: list[Graph] = []
    stack, seen = [(graph, False)], set()
    while stack:
        top, done = stack.pop()
        if done:
            order.append(top)
        elif id(top) not in seen:
            seen.add(id(top))
            stack.append((top, True))
            stack.extend((body, False) for node in top.nodes for body in node.bodies)
    return order


def _value_key(value: Any) -> Hashable:
    text = getattr(value, "text", None)
    if isinstance(text, str) and hasattr(value, "elided"):  # a literal; replica groups and others have a text too
        type = getattr(value, "type", None)  # TorchScript's tensors in a text do not say theirs
        return (str(type), text) if len(text) <= LONGEST_TEXT and not value.elided else id(value)
    array: Any = getattr(value, "_value", None)
    if text is None and getattr(array, "size", FEW + 1) <= FEW:
        return (str(value.type), str(array.dtype), array.tobytes())  # a literal that no text wrote: a number that an expansion needs
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value  # type: ignore[no-any-return]
