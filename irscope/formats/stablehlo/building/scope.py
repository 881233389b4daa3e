"""A computation under construction: the nodes of the values that are visible in a function or in a region."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from irscope.formats.stablehlo.operations import Block, Defined, Operation, Region
from irscope.graph import NO_ATTRS, Graph, Node, Op, TupleType, Type
from irscope.ops import hlo
from irscope.source.budget import tick


class Inner(NamedTuple):
    """The graphs of the regions of an operation, and the outer values that become operands."""

    graphs: tuple[Graph, ...] = ()
    captured: tuple[Defined, ...] = ()


class Scope:
    """The graph of one function or region.

    ``nodes`` has the node of each value, ``names`` the names of all nodes. ``operation`` is the one that is being built: its nodes get
    its offset, and the name of its first result.
    """

    __slots__ = ("_numbers", "graph", "names", "nodes", "operation")

    def __init__(self, name: str, loc: int) -> None:
        self.graph = Graph(name, loc=loc)
        self.nodes: dict[Defined, Node] = {}
        self.operation: Operation | None = None
        self.names: set[str] = set()
        self._numbers: dict[str, int] = {}

    def name(self, wanted: str) -> str:
        """A name that no node of the graph has."""
        name = wanted
        if name not in self.names:
            self.names.add(name)
            return name
        while name in self.names:
            number = self._numbers[wanted] = self._numbers.get(wanted, 0) + 1
            name = f"{wanted}.{number}"
        self.names.add(name)
        return name

    def add(self, op: Op, operands: Iterable[Node], type: Type, attrs: Mapping[str, Any] = NO_ATTRS, bodies: Sequence[Graph] = (),
            name: str = "") -> Node:
        """Append a node for the operation that is being built."""
        operation = self.operation
        if not name:
            name = op.name if operation is None or not operation.results else operation.results[0].name.partition("#")[0]
        loc = operation.begin if operation is not None else self.graph.loc
        return self.graph.add(Node(op, self.name(name), type, tuple(operands), attrs, tuple(bodies), loc))

    def step(self, op: Op, operands: Iterable[Node], type: Type, attrs: Mapping[str, Any] = NO_ATTRS, bodies: Sequence[Graph] = ()) -> Node:
        """Append a node that the text does not write."""
        operation = self.operation
        first = operation.results[0].name.partition("#")[0] + "." if operation is not None and operation.results else ""
        node = self.add(op, operands, type, attrs, bodies, first + op.name)
        node.synthetic = True
        return node

    def param(self, type: Type, name: str, loc: int) -> Node:
        """Append a parameter."""
        params = self.graph.params
        node = Node(hlo.parameter, self.name(name), type, (), {"number": len(params)}, (), loc, synthetic=True)
        params.append(self.graph.add(node))
        return node

    def tuple(self, parts: Sequence[Node]) -> Node:
        """The parts as one value."""
        return self.step(hlo.tuple, parts, TupleType(tuple(part.type for part in parts)))

    def together(self, parts: Sequence[Node]) -> Node:
        """One part by itself, several as a tuple."""
        return parts[0] if len(parts) == 1 else self.tuple(parts)

    def part(self, whole: Node, index: int, name: str = "") -> Node:
        """An element of a tuple."""
        assert isinstance(whole.type, TupleType)
        node = self.add(hlo.get_tuple_element, (whole,), whole.type.elements[index], {"index": index}, name=name or f"{whole.name}.{index}")
        node.synthetic = True
        return node

    def parts(self, whole: Node, names: Sequence[str]) -> list[Node]:
        """The elements of a tuple, under these names."""
        return [self.part(whole, index, name) for index, name in enumerate(names)]

    def copy_constant(self, node: Node) -> Node:
        """A constant of an enclosing graph, as jaxlib sinks it into the region that reads it."""
        made = Node(node.op, self.name(node.name), node.type, (), node.attrs, (), node.loc, synthetic=True)
        return self.graph.add(made)


def captured(regions: Sequence[Region], known: dict[Region, list[Defined]]) -> list[Defined]:
    """The values from outside that regions read, in the order in which MLIR finds them: of inner operations before their own.

    ``known`` has those of the regions that are built already, whose nodes have their operands in their own graph.
    """
    inside: set[Defined] = set()
    found: dict[Defined, None] = {}
    todo: list[tuple[bool, Operation | Node | Region | Block]] = [(False, region) for region in reversed(regions)]
    while todo:
        done, item = todo.pop()
        tick()
        if isinstance(item, Node):
            found.update(dict.fromkeys(item.operands))
            inside.add(item)
        elif isinstance(item, Region):
            if item in known:
                found.update(dict.fromkeys(known[item]))
            else:
                todo += [(False, block) for block in reversed(item.blocks)]
        elif isinstance(item, Block):
            inside.update(item.arguments)
            todo += [(False, operation) for operation in reversed(item.operations)]
        elif done or not item.regions:
            found.update(dict.fromkeys(item.operands))
            inside.update(item.results)
        else:
            todo.append((True, item))
            todo += [(False, inner) for inner in reversed(item.regions)]
    outside = [value for value in found if value not in inside]
    known.update(dict.fromkeys(regions, outside))
    return outside


def types_of(values: Iterable[Defined]) -> list[Type]:
    """The types of values."""
    return [value.type for value in values]


def result_type(operation: Operation) -> Type:
    """The type of a single result, else the tuple of the types of the results."""
    results = operation.results
    return results[0].type if len(results) == 1 else TupleType(tuple(r.type for r in results))
