"""Helpers of type inference: they read operands and attributes, and raise errors for those that do not fit.

Every function raises :class:`TypeFault` with the types in the message; inferred types carry no layout.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from irscope.graph import TOKEN, UNKNOWN, Dim, DType, Graph, Node, TensorType, TupleType, Type
from irscope.graph.attributes import attribute
from irscope.ops.faults import TypeFault
from irscope.ops.shapes import fits, higher_precision, merge, same_dtype, same_size, same_sizes

T = TypeVar("T")
Infer = Callable[[Node], Type]


def arity(node: Node, *counts: int) -> None:
    """Check that the node has one of these numbers of operands."""
    if len(node.operands) not in counts:
        wanted = " or ".join(map(str, counts))
        raise TypeFault(f"{node.op.name} takes {wanted} operand{'' if counts == (1,) else 's'}, but has {len(node.operands)}")


def attr(node: Node, field: attribute[T]) -> T:
    """A required attribute."""
    found = field.given(node)
    if found is None:
        raise TypeFault(f"{node.op.name} needs the attribute {field.key}", f"write {field.key}=... after the operands")
    return found


def body(node: Node, number: int, what: str) -> Graph:
    """A called computation, which must exist and have a result."""
    if number >= len(node.bodies):
        raise TypeFault(f"{node.op.name} needs a computation for its {what}")
    graph = node.bodies[number]
    if graph.root is None:
        raise TypeFault(f"the computation {graph.name} of {node.op.name} has no result")
    return graph


def array(node: Node, number: int, role: str = "") -> TensorType:
    """The type of an operand, which must be an array."""
    if number >= len(node.operands):
        raise TypeFault(f"{node.op.name} needs an operand {number}{f' ({role})' if role else ''}, but has {len(node.operands)}")
    operand = node.operands[number]
    if not isinstance(operand.type, TensorType):
        raise TypeFault(f"{role or f'operand {number}'} of {node.op.name} must be an array, but %{operand.name} is {operand.type}",
                        "take the part that is meant with get-tuple-element" if isinstance(operand.type, TupleType) else "")
    return operand.type


def fits_operands(node: Node) -> bool:
    """Whether the operands, attributes, bodies and type of a node fit its operator, so that its cost can be computed."""
    if any(operand.type is UNKNOWN for operand in node.operands):
        return False
    try:
        return node.op.infer is None or fits(node.type, node.op.infer(node), any_precision=True)
    except TypeFault:
        return False


def arrays(node: Node) -> list[TensorType]:
    """The types of all operands, which must be arrays."""
    return [array(node, i) for i in range(len(node.operands))]


def plain(t: Type) -> Type:
    """The type without layouts, deeply."""
    if isinstance(t, TensorType):
        return TensorType(t.dtype, t.shape) if t.layout is not None else t
    if isinstance(t, TupleType):
        return TupleType(tuple(map(plain, t.elements)))  # the nesting of a type was limited when it was read
    return t


def declared_array(node: Node) -> TensorType:
    """The declared type, for operators that cannot infer all of it; it must be an array."""
    if not isinstance(node.type, TensorType):
        raise TypeFault(f"the result of {node.op.name} must be an array, but is declared {node.type}")
    return node.type


def kind_of(node: Node, t: TensorType, kinds: Sequence[str], what: str = "operand") -> None:
    """Check that the element type is of one of these kinds (see :class:`irscope.graph.DType`)."""
    if t.dtype.kind not in kinds:
        names = {"float": "floating point", "int": "signed integer", "uint": "unsigned integer", "complex": "complex", "pred": "pred"}
        wanted = " or ".join(names[k] for k in kinds)
        article = "an" if what[0] in "aeiou" else "a"
        raise TypeFault(f"{node.op.name} needs {article} {what} of {wanted} type, but got {plain(t)}", "convert it first")


def one_dimension(node: Node, field: attribute[tuple[int, ...]], says: str) -> int:
    """The dimension of an attribute that must name exactly one; ``says`` is the verb of the message."""
    dimensions = attr(node, field)
    if len(dimensions) != 1:
        raise TypeFault(f"{node.op.name} {says} one dimension, but has dimensions={{{','.join(map(str, dimensions))}}}")
    return dimensions[0]


def dimension(node: Node, number: int, rank: int, what: str) -> int:
    """A dimension number, which must be within a rank."""
    if not 0 <= number < rank:
        raise TypeFault(f"{what} {number} of {node.op.name} is out of range for rank {rank}")
    return number


def distinct(node: Node, numbers: Sequence[int], what: str) -> None:
    """Check that no dimension number occurs twice."""
    for i, number in enumerate(numbers):
        if number in numbers[:i]:
            raise TypeFault(f"{what} of {node.op.name} name {number} twice: {{{', '.join(map(str, numbers))}}}")


def scalar(node: Node, number: int, role: str) -> TensorType:
    """The type of an operand, which must be an array without dimensions."""
    t = array(node, number, role)
    if t.rank:
        raise TypeFault(f"{role} of {node.op.name} must be a scalar, but %{node.operands[number].name} is {plain(t)}")
    return t


def token(node: Node, number: int) -> None:
    """Check that the operand is a token."""
    if number >= len(node.operands) or node.operands[number].type != TOKEN:
        got = f"is {node.operands[number].type}" if number < len(node.operands) else "is missing"
        raise TypeFault(f"operand {number} of {node.op.name} must be a token, but {got}", "make one with after-all()")


def agree(node: Node, types: Sequence[TensorType]) -> TensorType:
    """The common type of operands that must have equal dimensions and, float precision aside, equal element types."""
    first = types[0]
    if all(t.dtype is first.dtype and t.shape == first.shape for t in types):
        return first if first.layout is None else TensorType(first.dtype, first.shape)
    dims: Sequence[Dim] = first.shape
    dtype = first.dtype
    for number, t in enumerate(types[1:], 1):
        if not same_dtype(dtype, t.dtype, any_precision=True):
            raise TypeFault(f"operands of {node.op.name} disagree on dtype: {plain(first)} and {plain(t)}",
                            f"convert one side, e.g. %{node.operands[number].name} to {dtype}")
        if not same_sizes(dims, t.shape):
            raise TypeFault(f"operands of {node.op.name} disagree on shape: {plain(first)} and {plain(t)}",
                            f"{node.op.name} never broadcasts: make the shapes equal with broadcast")
        dims = tuple(map(merge, dims, t.shape))
        dtype = higher_precision(dtype, t.dtype)
    return TensorType(dtype, tuple(dims))


def same(node: Node) -> Type:
    """Inference for operators of one operand that return a value of its type."""
    arity(node, 1)
    return plain(node.operands[0].type)


def takes(node: Node, graph: Graph, count: int) -> None:
    """Check that a called computation has this many parameters."""
    if len(graph.params) != count:
        raise TypeFault(f"the computation {graph.name} called by {node.op.name} must take {count} parameter{'s' * (count != 1)}, "
                        f"but takes {len(graph.params)}")


def passes(node: Node, graph: Graph, arguments: Sequence[Type]) -> None:
    """Check that a called computation takes arguments of these types."""
    takes(node, graph, len(arguments))
    passes_first(node, graph, arguments)


def passes_first(node: Node, graph: Graph, arguments: Sequence[Type]) -> None:
    """Check the types of arguments and parameters pair by pair, as far as there are both; their numbers may differ."""
    for number, (parameter, given) in enumerate(zip(graph.params, arguments)):
        if not fits(parameter.type, given):
            raise TypeFault(f"{node.op.name} passes {plain(given)} to parameter {number} of {graph.name}, which is {plain(parameter.type)}")


def results(graph: Graph) -> tuple[Type, ...]:
    """The result types of a computation: the elements of its tuple, or its one result."""
    t = graph.result().type
    return t.elements if isinstance(t, TupleType) else (t,)


def reducer(node: Node, graph: Graph, inits: Sequence[TensorType], dtypes: Sequence[DType]) -> None:
    """Check that ``graph`` combines accumulators like ``inits`` with elements of ``dtypes`` (float precision aside), for reductions."""
    n = len(inits)
    takes(node, graph, 2 * n)
    result = graph.result().type
    parts = results(graph)
    if len(parts) != n or (n > 1 and not isinstance(result, TupleType)):
        raise TypeFault(f"the computation {graph.name} of {node.op.name} must give {n} scalar{'s' * (n != 1)}, but gives {plain(result)}")
    for i, part in enumerate(parts):
        if not isinstance(part, TensorType) or part.rank:
            raise TypeFault(f"the computation {graph.name} of {node.op.name} must give scalars, but gives {plain(result)}")
        accumulator, element = graph.params[i].type, graph.params[n + i].type
        if not fits(part, accumulator):
            raise TypeFault(f"parameter {i} of {graph.name} is {plain(accumulator)}, but the result that it continues is {plain(part)}")
        if not fits(part, inits[i], any_precision=True):
            raise TypeFault(f"{graph.name} accumulates {plain(part)}, but the init value of {node.op.name} is {plain(inits[i])}")
        wanted = TensorType(dtypes[i], ())
        if not fits(wanted, element, any_precision=True):
            raise TypeFault(f"parameter {n + i} of {graph.name} is {plain(element)}, but {node.op.name} passes elements {wanted}")
        if not fits(part, element, any_precision=True):
            raise TypeFault(f"parameter {n + i} of {graph.name} is {plain(element)}, but its result is {plain(part)}")


def equal_dims(node: Node, a: Dim, b: Dim, what: str) -> None:
    """Check that two sizes are equal."""
    if not same_size(a, b):
        raise TypeFault(f"{node.op.name}: {what} must be equal, but are {a} and {b}")
