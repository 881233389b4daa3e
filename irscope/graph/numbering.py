"""Value numbering: nodes, and graphs, that are equal get one number.

The caller chooses what counts as equal: common-subexpression elimination compares values, the search for repeated layers compares steps
whatever they read, a diff compares the results of two texts.

    a = f32[2] negate(x)                    1
    b = f32[2] negate(x)                    1
    c = f32[2] add(a, x)                    2
    d = f32[2] add(b, x)                    2
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from irscope.graph.contents import contents
from irscope.graph.node import Effect, Graph, Node, Op
from irscope.graph.types import FunctionType, TensorType, TupleType, Type
from irscope.graph.walk import callees_first_of, live

LONGEST_TEXT = 200
"""A literal with more text than this is compared by identity: equal weights are rare, and reading them is not free."""
FEW = 16
"""A literal without text is compared by its elements when it has no more than these."""


def by_text(literal: Any) -> Hashable:
    """A literal by its type and text, by its elements where it comes from no text; long ones by identity."""
    if literal.text is None:
        array = literal._value
        few = getattr(array, "size", FEW + 1) <= FEW
        return (str(literal.type), str(array.dtype), array.tobytes()) if few else id(literal)
    type = getattr(literal, "type", None)  # TorchScript's tensors in a text do not say theirs
    return (str(type), literal.text) if len(literal.text) <= LONGEST_TEXT else id(literal)


def as_written(literal: object) -> Hashable:
    """A literal by its text, elided or not."""
    return str(literal)


def by_value(literal: Any) -> Hashable:
    """A literal by the bits of its arrays, however they are written; elided ones are all alike; those of which a text shows rounded
    digits alone go by it."""
    if not hasattr(literal, "value"):
        return by_text(literal)
    if literal.elided:
        return "elided"
    value = literal.value()
    parts = value if isinstance(value, tuple) else (value,)
    return tuple(contents(part) for part in parts if hasattr(part, "tobytes"))


def plain(type: Type) -> str:
    """A type without its layout."""
    if isinstance(type, TensorType):
        return f"{type.dtype.name}[{','.join(map(str, type.shape))}]"
    if isinstance(type, TupleType):
        return f"({','.join(map(plain, type.elements))})"
    if isinstance(type, FunctionType):
        return f"fn({','.join(map(plain, type.params))})->{plain(type.result)}"
    return str(type)


@dataclass(frozen=True, slots=True)
class Equality:
    """What counts when nodes are compared, beside the operator and its bodies.

    ``ignored`` attributes do not count. ``type`` returns what counts of a type; only types of ``typed`` operators count (None: all).
    ``literal`` returns what counts of a constant; with ``elided``, constants with elided values may be equal. ``steps``: operands
    count by their types alone. ``across``: graphs of several modules are compared: the order of independent nodes and dead nodes do not
    count, and a call of an enclosing function compares like any other.
    """

    ignored: frozenset[str] = frozenset(("control_predecessors",))
    type: Callable[[Type], Hashable] = lambda type: type
    typed: Callable[[Op], bool] | None = None
    literal: Callable[[Any], Hashable] = by_text
    elided: bool = False
    steps: bool = False
    across: bool = False


VALUES = Equality()
"""Equal values, in one module: what may be computed once."""
STEPS = Equality(frozenset(("number", "control_predecessors", "channel_id")), plain, literal=as_written, elided=True, steps=True)
"""Equal work on whatever values of the same types: the steps of repeated layers."""


class Numbering:
    """Numbers of nodes and graphs, shared by all graphs that are compared. Each graph is numbered once.

    ``nodes[graph][i]`` is the number of a node, ``graphs[graph]`` that of a graph. ``beside(node)`` is what else must be equal.
    """

    def __init__(self, equality: Equality = VALUES, graphs: Iterable[Graph] = (), beside: Callable[[Node], Hashable] | None = None) -> None:
        """Number ``graphs``, which are in order, callees first."""
        self.equality = equality
        self.beside = beside
        self.nodes: dict[Graph, list[int]] = {}
        self.graphs: dict[Graph, int] = {}
        self._numbers: dict[Hashable, int] = {}
        self._ops: dict[Op, int] = {}
        # Types and attributes are shared: their keys are computed once per object, which the table keeps alive.
        self._types: dict[int, tuple[Type, int]] = {}
        self._attrs: dict[int, tuple[Mapping[str, object], int]] = {}
        self._unknown: set[int] = set()  # attributes with a value that the text elides, which many nodes share
        for graph in graphs:
            self._add(graph)

    def graph(self, graph: Graph) -> int:
        """The number that equal graphs share."""
        if graph not in self.graphs:
            for inner in callees_first_of([graph], self.graphs):
                self._add(inner)
        return self.graphs[graph]

    def attrs(self, attrs: Mapping[str, object]) -> int:
        """The number of a node's attributes."""
        found = self._attrs.get(id(attrs))
        if found is None:
            key = self._attrs_key(attrs)
            found = self._attrs[id(attrs)] = attrs, self._number(key) if key else -1
            if not self.equality.elided and any(getattr(value, "elided", False) for value in attrs.values()):
                self._unknown.add(found[1])
        return found[1]

    def shape_of(self, node: Node) -> Hashable:
        """What a node does, without its operands and its name."""
        return self._key(node, (), tuple([self.graph(body) for body in node.bodies]))

    def values(self, graph: Graph, alone: Callable[[Node], bool], bodies: Mapping[Graph, Graph] | None = None) -> list[int]:
        """The number of each node, by index, where nodes that are ``alone`` equal themselves only. ``bodies`` stand for those that are
        called."""
        found: list[int] = []
        for node in graph.nodes:
            if alone(node):
                found.append(self._number(node))
            else:
                called = tuple([self.graph(bodies.get(b, b) if bodies else b) for b in node.bodies])
                found.append(self._number(self._key(node, tuple([found[o.index] for o in node.operands]), called)))
        return found

    def _add(self, graph: Graph) -> None:
        place = {param.index: number for number, param in enumerate(graph.params)}
        equality, table = self.equality, self._numbers
        numbers: list[int] = []
        types = [self._type(node.type) for node in graph.nodes]
        read = types if equality.steps else numbers
        for node, type in zip(graph.nodes, types, strict=True):
            if node.index in place:
                key: Hashable = "parameter", type, -1 if equality.steps else place[node.index]
            else:
                # In one module, a function that calls itself, directly or not, equals no other.
                called = tuple([self.graphs.get(b, -1 if equality.across else b) for b in node.bodies]) if node.bodies else ()
                key = self._key(node, tuple([read[o.index] for o in node.operands]), called)
            numbers.append(table.setdefault(key, len(table)))
        self.nodes[graph] = numbers
        self.graphs[graph] = self._number(self._across(graph) if equality.across else self._in_order(graph))

    def _in_order(self, graph: Graph) -> Hashable:
        edges = tuple([tuple([o.index for o in node.operands]) for node in graph.nodes]) if self.equality.steps else ()
        return tuple(self.nodes[graph]), edges, graph.root.index if graph.root is not None else -1

    def _across(self, graph: Graph) -> Hashable:
        numbers, alive = self.nodes[graph], live(graph)
        effects = tuple(numbers[n.index] for n in graph.nodes if n.op.effect in (Effect.WRITES, Effect.CONTROL))
        values = Counter(number for number, lives in zip(numbers, alive, strict=True) if lives)
        attrs = tuple(sorted((k, str(v)) for k, v in graph.notes.get("attrs", {}).items() if k not in self.equality.ignored))
        params = tuple(self._type(p.type) for p in graph.params)
        root = numbers[graph.root.index] if graph.root is not None else -1
        return "graph", params, root, effects, frozenset(values.items()), attrs

    def _key(self, node: Node, operands: tuple[int, ...], bodies: tuple[Hashable, ...]) -> Hashable:
        op = self._ops.get(node.op)
        if op is None:
            op = self._ops[node.op] = self._number((node.op.dialect, node.op.name))
        attrs = self.attrs(node.attrs) if node.attrs else -1
        if attrs in self._unknown:
            return node
        typed = self.equality.typed
        key = op, self._type(node.type) if typed is None or typed(node.op) else -1, attrs, operands, bodies
        more = None if self.beside is None else self.beside(node)
        return key if more is None else (*key, more)

    def _attrs_key(self, attrs: Mapping[str, Any]) -> Hashable:
        # The place where a text keeps the value of a constant (``meta``) counts only if the value is not known.
        literal = attrs.get("literal")
        ignored = self.equality.ignored | {"meta"} if literal is not None and not literal.elided else self.equality.ignored
        # Replica groups have a text too, so that only ``elided`` identifies a literal. The repr tells 1, 1.0 and True apart.
        return tuple([(name, self.equality.literal(value) if hasattr(value, "elided") else repr(value))
                      for name, value in sorted(attrs.items()) if name not in ignored])

    def _type(self, type: Type) -> int:
        found = self._types.get(id(type))
        if found is None:
            found = self._types[id(type)] = type, self._number(self.equality.type(type))
        return found[1]

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))
