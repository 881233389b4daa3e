"""Rules of single calls: names of composites, scheduling names, origins of values."""
from __future__ import annotations

import re
from collections.abc import Iterator

from irscope.analysis.verify.faults import GraphFault
from irscope.analysis.verify.texts import Texts, fields, inside, split
from irscope.graph import Graph, Module, Node, TupleType, Type
from irscope.ops.attributes import Call
from irscope.ops.infer import plain


def check(module: Module) -> Iterator[tuple[Graph, GraphFault]]:
    """Composite calls without a name, origins and scheduling names that do not fit."""
    texts = Texts(module)
    for graph in module.graphs.values():
        for node in graph.nodes:
            if Call.of(node).is_composite:
                yield from ((graph, f) for f in _composite(node, fields(module.raw(node).get("frontend_attributes", ""))))
    for graph, node, text in texts.having("metadata"):
        if "scheduling_name=" in text:
            name = _scheduling_name(text)
            if name and name != node.name and ".remat" not in node.name and ".clone" not in node.name:
                yield graph, GraphFault(node, f"%{node.name} was scheduled under the name {name}",
                                   "instructions keep their names after scheduling")
    for attribute in ("origin", "original_value"):
        for graph, node, text in texts.having(attribute):
            if not _same_structure(node.type, inside(text)):
                yield graph, GraphFault(node, f"the origin {text} of %{node.name} has another tuple structure than its type "
                                              f"{plain(node.type)}")


def _composite(node: Node, given: dict[str, str]) -> Iterator[GraphFault]:
    if not given.get("composite.name"):
        yield GraphFault(node, f"the composite call %{node.name} must have frontend attributes with a composite.name",
                    'frontend_attributes={composite.name="namespace.operator"}')
    elif given.get("composite.attributes") == "":
        yield GraphFault(node, f"the composite.attributes of %{node.name} are empty", "write {} for none")
    elif not given.get("composite.version", "0").isdecimal():
        yield GraphFault(node, f"the composite.version of %{node.name} must be a non-negative integer, but is {given['composite.version']}")


def _scheduling_name(metadata: str) -> str:
    """The quoted scheduling name in the metadata of a node; empty if there is none."""
    found = re.search(r'scheduling_name="([^"]*)"', metadata)
    return found[1] if found is not None else ""


def _same_structure(t: Type, text: str) -> bool:
    """Whether ``({"a"}, {"b"})`` nests as the type does. Leaves are ``{...}``; other forms do not define a structure."""
    stack = [(t, text.strip())]
    while stack:
        part, tree = stack.pop()
        if tree.startswith("("):
            pieces = split(inside(tree))
            if not isinstance(part, TupleType) or len(pieces) != len(part.elements):
                return False
            stack.extend(zip(part.elements, pieces, strict=True))
    return True
