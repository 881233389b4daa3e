"""One operation that is being built, and the table from operation names to the functions that build them."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from irscope.formats.faults import Fault
from irscope.formats.stablehlo.building.direct import Attrs, directly_inferred, full_names
from irscope.formats.stablehlo.building.fields import Fields
from irscope.formats.stablehlo.building.scope import Inner, Scope, result_type
from irscope.formats.stablehlo.operations import Operation
from irscope.graph import NO_ATTRS, Graph, Node, Op, TensorType, TupleType, Type
from irscope.ops.faults import TypeFault


class Unsupported(TypeFault):
    """A form of an operation that has no equivalent in HLO."""


class UnknownCallee(TypeFault):
    """A call of a function that the module does not define, or that calls its caller."""


class Program(Protocol):
    """What an operation needs of its module."""

    def callee(self, name: str) -> Graph:
        """The graph of a function. Raises UnknownCallee."""

    def adopt(self, graph: Graph) -> Graph:
        """A graph that no text writes becomes one of the module."""

    def verify(self, node: Node) -> None:
        """Check operands, attributes and type of a node. Raises TypeFault."""

    def keep(self, node: Node, raw: Mapping[str, str]) -> None:
        """Keep attributes of a node as text."""

    def mesh(self, name: str) -> Mapping[str, int]:
        """The axes of a mesh and their sizes. Raises TypeFault."""

    def tell(self, fault: Fault, message: str, operation: Operation, help: str = "") -> None:
        """Report a fault of an operation."""


class Work:
    """One operation: its operands as nodes, its attributes, the graphs of its regions, and the outer values that those read."""

    __slots__ = ("bodies", "captured", "fields", "operands", "operation", "program", "scope")

    def __init__(self, program: Program, scope: Scope, operation: Operation, inner: Inner) -> None:
        self.program, self.scope, self.operation = program, scope, operation
        self.operands = [scope.nodes[value] for value in operation.operands]
        self.bodies, self.captured = inner.graphs, [scope.nodes[value] for value in inner.captured]
        self.fields = Fields(operation.name, operation.attributes)

    @property
    def types(self) -> list[Type]:
        """The declared types of the results."""
        return [result.type for result in self.operation.results]

    def array(self, number: int = 0) -> TensorType:
        """The type of an operand, which must be an array."""
        if number >= len(self.operands):
            raise TypeFault(f"'{self.operation.name}' op takes more than {number} operand{'s' * (number != 1)}")
        type = self.operands[number].type
        if not isinstance(type, TensorType):
            raise TypeFault(f"operand {number} of '{self.operation.name}' must be an array, but is {type}")
        return type

    def sized(self, number: int = 0) -> TensorType:
        """The type of an operand, which must be an array whose sizes are known."""
        type = self.array(number)
        if not type.is_static:
            raise Unsupported(f"'{self.operation.name}' takes sizes that are not known: operand {number} is {type}")
        return type

    def result_array(self, number: int = 0) -> TensorType:
        """The declared type of a result, which must be an array."""
        results = self.operation.results
        type = results[number].type if number < len(results) else None
        if not isinstance(type, TensorType):
            raise TypeFault(f"result {number} of '{self.operation.name}' must be an array")
        return type

    def region(self, number: int = 0) -> Graph:
        """The graph of a region. Raises TypeFault where the operation has none."""
        if number >= len(self.bodies):
            raise TypeFault(f"'{self.operation.name}' op needs a region {number}")
        return self.bodies[number]

    def count(self, *wanted: int) -> None:
        """Check the number of operands."""
        if len(self.operands) not in wanted:
            number = " or ".join(map(str, wanted))
            raise TypeFault(f"'{self.operation.name}' op expects {number} operands, but found {len(self.operands)}")

    def add(self, op: Op, operands: Sequence[Node], attrs: Mapping[str, Any] = NO_ATTRS, bodies: Sequence[Graph] = (),
            type: Type | None = None) -> Node:
        """Append and check the node that stands for the operation."""
        node = self.scope.add(op, operands, type or result_type(self.operation), attrs, bodies)
        self.program.verify(node)
        return node

    def step(self, op: Op, operands: Sequence[Node], type: Type | None = None, attrs: Mapping[str, Any] = NO_ATTRS,
             bodies: Sequence[Graph] = ()) -> Node:
        """Append a node before or after the one that stands for the operation. Without ``type`` it is inferred."""
        if type is None:
            assert op.infer is not None
            type = op.infer(Node(op, "", operands[0].type, tuple(operands), attrs, tuple(bodies)))
        return self.scope.step(op, operands, type, attrs, bodies)

    def give(self, *nodes: Node) -> None:
        """Set the nodes of the results. Raises TypeFault where the text declares another number of results."""
        self.count_results(len(nodes))
        for result, node in zip(self.operation.results, nodes, strict=True):
            self.scope.nodes[result] = node

    def give_parts(self, whole: Node) -> None:
        """Set the results to the elements of a tuple, or a single result to the node itself. Raises TypeFault as :meth:`give` does."""
        results = self.operation.results
        if len(results) == 1:
            self.scope.nodes[results[0]] = whole
        else:
            self.count_results(len(whole.type.elements) if isinstance(whole.type, TupleType) else 1)
            self.give(*self.scope.parts(whole, [result.name for result in results]))

    def count_results(self, number: int) -> None:
        """Raise TypeFault where the text declares another number of results."""
        if number != len(self.operation.results):
            raise TypeFault(f"'{self.operation.name}' op has {number} result{'s' * (number != 1)}, but "
                            f"{len(self.operation.results)} are declared")

    def emit(self, op: Op, attrs: Mapping[str, Any] = NO_ATTRS, operands: Sequence[Node] | None = None,
             bodies: Sequence[Graph] = ()) -> Node:
        """Build the operation as one node over these operands (default: its own), and set its results."""
        node = self.add(op, self.operands if operands is None else operands, attrs, bodies)
        self.give_parts(node)
        return node


Build = Callable[[Work], object]
BUILDERS: dict[str, Build] = {}
"""The function that builds each operation."""


def declare(names: str, build: Build) -> None:
    """Register a function for operations of these names (see :func:`full_names`)."""
    BUILDERS.update(dict.fromkeys(full_names(names), build))


def builds(names: str) -> Callable[[Build], Build]:
    """The decorator form of :func:`declare`."""
    def register(build: Build) -> Build:
        declare(names, build)
        return build
    return register


def primitive(names: str, op: Op, attrs: Attrs | None = None, count: int | None = None, direct: str | None = None) -> None:
    """Declare operations that become one node of an operator; ``attrs`` makes its attributes from theirs.

    ``count`` is the number of operands, if it is to be checked before the attributes. With ``direct``, names of attributes between
    blanks, lines that have no others become the node as they are read, where the operator's own inference accepts their types.
    """
    def build(work: Work) -> None:
        if count is not None:
            work.count(count)
        work.emit(op, attrs(work.fields) if attrs is not None else NO_ATTRS)
    declare(names, build)
    if direct is not None:
        directly_inferred(names, direct, op, attrs)
