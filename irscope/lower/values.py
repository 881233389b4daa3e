"""The parts of a node's value: tensors, and tuples of them as flat lists."""
from __future__ import annotations

from irscope.graph import TOKEN, Graph, Node, TensorType, TupleType, Type
from irscope.ops import hlo
from irscope.ops.attributes import Constant, GetTupleElement

Path = tuple[int, ...]


def tensor_of(node: Node) -> TensorType:
    """The type of a node that must be a tensor."""
    assert isinstance(node.type, TensorType), f"%{node.name} is {node.type}"
    return node.type


def is_scalar_constant(node: Node) -> bool:
    """Whether a node is a constant that a kernel contains as an immediate."""
    return node.op is hlo.constant and isinstance(node.type, TensorType) and node.type.elements == 1


def scalar_value(node: Node) -> object:
    """The value of a constant of one element."""
    return Constant.of(node).literal.value().reshape(())[()]


def leaf_paths(type: Type) -> list[tuple[Path, TensorType]]:
    """The tensors in a type in order, each with its path through the tuples; tokens have no value and are omitted."""
    found: list[tuple[Path, TensorType]] = []
    stack: list[tuple[Path, Type]] = [((), type)]
    while stack:
        path, top = stack.pop()
        if isinstance(top, TupleType):
            stack.extend((path + (i,), top.elements[i]) for i in reversed(range(len(top.elements))))
        elif isinstance(top, TensorType):
            found.append((path, top))
    return found


def leaves(node: Node) -> list[Node]:
    """The nodes that hold the tensors of a value, from within its tuples, in order; tokens are omitted."""
    found: list[Node] = []
    stack = [node]
    while stack:
        top = stack.pop()
        if top.op is hlo.tuple:
            stack.extend(reversed(top.operands))
        elif top.type != TOKEN:
            found.append(top)
    return found


def source_of(node: Node) -> tuple[Node, Path]:
    """The value that a chain of ``get-tuple-element`` reads from, and the path to the part; any other node is its own source."""
    path: Path = ()
    while node.op is hlo.get_tuple_element:
        path = (GetTupleElement.of(node).index, *path)
        node = node.operands[0]
    return node, path


class TupleParts:
    """The ``get-tuple-element`` nodes of a graph, by the tuple that they read and the path through it."""

    def __init__(self, graph: Graph) -> None:
        self._parts: dict[Node, dict[Path, list[Node]]] = {}
        for node in graph.nodes:
            if node.op is hlo.get_tuple_element and not isinstance(node.type, TupleType):
                source, path = source_of(node)
                self._parts.setdefault(source, {}).setdefault(path, []).append(node)

    def at(self, node: Node, path: Path) -> list[Node]:
        """The nodes that are this part of a value (none when nothing reads it)."""
        return self._parts.get(node, {}).get(path, []) if path else [node]


def buffer_name(node: Node) -> str:
    """The name of a value as a buffer of a kernel: letters, digits and underscores."""
    text = "".join(c if c.isalnum() and c.isascii() else "_" for c in node.name)
    return text if text and not text[0].isdigit() else "_" + text


def is_invariant(node: Node, path: Path) -> bool:
    """Whether a loop passes a part of its state on unchanged."""
    leaf = dict(zip((p for p, _ in leaf_paths(node.type)), leaves(node.bodies[1].result())))[path]
    return state_path(leaf, node.bodies[1]) == path


def state_path(leaf: Node, body: Graph) -> Path | None:
    """The path to a node that is a part of the body's parameter, or None."""
    source, path = source_of(leaf)
    return path if body.params and source is body.params[0] else None
