"""Small computations that reductions, windows, sorts and scatters call on scalars: recognising them, running them on arrays."""
from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from irscope.graph import DType, Graph, Kind, Node, Op, TensorType, TupleType, Type, dtype_of
from irscope.graph.node import Emitter, RegisterHandle, Run, Value
from irscope.graph.walk import callees_first_of
from irscope.lazy import Array, np
from irscope.ops import hlo, numerics
from irscope.ops.elementwise import add, and_, maximum, minimum, multiply, or_, xor
from irscope.source.budget import require_nodes

COMBINERS = {add: "add", multiply: "mul", maximum: "max", minimum: "min", and_: "and", or_: "or", xor: "xor"}
"""Operators that combine two values in any order, and the scalar operation of :mod:`irscope.ops.vocabulary` for each."""


def combiner(graph: Graph) -> Op | None:
    """The operator, when a computation of two scalars is just one commutative and associative operation on them.

        add(x: f32[], y: f32[]) -> add(x, y)        add
    """
    root = graph.root
    if root is None or root.op not in COMBINERS or len(graph.params) != 2:
        return None
    if {id(o) for o in root.operands} != {id(p) for p in graph.params}:
        return None
    types = [root.type, *(p.type for p in graph.params)]
    dtypes = {t.dtype if isinstance(t, TensorType) and not t.shape else None for t in types}
    return root.op if len(dtypes) == 1 and None not in dtypes else None


def parameter_dtypes(graph: Graph) -> list[DType]:
    """The element types of a body's parameters, which are scalars: they may be of another float precision than its arguments."""
    return [leaf.dtype for param in graph.params for leaf in param.type.leaves() if isinstance(leaf, TensorType)]


def accumulate(k: Emitter, body: Graph, registers: Sequence[RegisterHandle], elements: Sequence[Value], op: Op | None) -> None:
    """Combine the elements into the registers: by ``op`` or, where it is None, by ``body``. The registers keep their element types."""
    if op is not None:
        have = registers[0].get()
        registers[0].set(k.binary(COMBINERS[op], have, k.convert(elements[0], have.dtype)))
        return
    values = [register.get() for register in registers]
    given = [k.convert(value, dtype) for value, dtype in zip([*values, *elements], parameter_dtypes(body), strict=True)]
    for register, before, value in zip(registers, values, k.inline(body, given), strict=True):
        register.set(k.convert(value, before.dtype))


def identity(op: Op, dtype: np.dtype[Any]) -> Array:
    """The identity of a combiner."""
    if op in (add, or_, xor):
        return np.zeros((), dtype)
    if op is multiply:
        return np.ones((), dtype)
    known = dtype_of(dtype)
    if op is and_:
        return np.asarray(-1 if known.kind == "int" else known.highest).astype(dtype)
    return np.asarray(known.lowest if op is maximum else known.highest).astype(dtype)


def combine(op: Op) -> Callable[[Array, Array], Array]:
    """The numpy function of a combiner; the operands are already widened."""
    table: dict[Op, Callable[[Array, Array], Array]] = {
        add: np.add, multiply: np.multiply, maximum: numerics.maximum, minimum: numerics.minimum,
        and_: np.bitwise_and, or_: np.bitwise_or, xor: np.bitwise_xor}
    return table[op]


def is_elementwise(graph: Graph) -> bool:
    """Whether a scalar computation can be run on whole arrays at once: it has only elementwise operators and tuples."""
    return all(node.op.kind in (Kind.ELEMENTWISE, Kind.LEAF, Kind.TUPLE) or node.op in (hlo.call, hlo.fusion)
               for callee in callees_first_of([graph]) for node in callee.nodes)


MOST_LEVELS = 50
"""The most levels of reductions in the bodies of reductions: each is evaluated by recursion."""
CALLS = ("call", "fusion", "map")
"""Operators that give the value of their body and add no level."""


def require_shallow(graph: Graph) -> None:
    """Raise BudgetExceeded where operators with bodies nest too deeply in a scalar computation; calls and maps may."""
    levels: dict[Graph, int] = {}
    for callee in callees_first_of([graph]):
        called = [(node, body) for node in callee.nodes for body in node.bodies]
        levels[callee] = max((levels.get(body, 0) + (node.op.name not in CALLS) for node, body in called), default=0)
    require_nodes(levels[graph], f"the computation {graph.name}", MOST_LEVELS, "levels of nested computations")


def over_arrays(run: Run, graph: Graph) -> Callable[[Sequence[Array]], Any]:
    """A scalar computation as a function of equally shaped arrays, in the types of its parameters; tuples are returned as tuples."""
    require_shallow(graph)
    dtypes = parameter_dtypes(graph)

    def given(arguments: Sequence[Array]) -> list[Array]:
        return [numerics.rounded(a, dtype) for a, dtype in zip(arguments, dtypes, strict=True)]
    if is_elementwise(graph):
        def whole(arguments: Sequence[Array]) -> Any:
            shape = numerics.common_shape(*arguments)
            return _spread(run(graph, given(arguments)), shape, graph.result().type)
        return whole

    def one_by_one(arguments: Sequence[Array]) -> object:
        shape = numerics.common_shape(*arguments)
        columns = [np.broadcast_to(a, shape).reshape(-1) for a in given(arguments)]
        rows = [run(graph, [np.asarray(c[i]) for c in columns]) for i in range(len(columns[0]))]
        return _gathered(rows, shape, graph.result().type)
    return one_by_one


def mapped(run: Run, graph: Graph, arguments: Sequence[Array]) -> Generator[tuple[Graph, Sequence[Any]], Any, Any]:
    """The value of :func:`over_arrays`, by a request to run the body where whole arrays do: maps may nest in thousands."""
    if not is_elementwise(graph):
        return over_arrays(run, graph)(arguments)
    given = [numerics.rounded(a, dtype) for a, dtype in zip(arguments, parameter_dtypes(graph), strict=True)]
    return _spread((yield graph, given), numerics.common_shape(*arguments), graph.result().type)


def _spread(value: Any, shape: tuple[int, ...], t: Type) -> object:
    """Broadcast a result that does not depend on every argument to full size."""
    if isinstance(t, TupleType):
        return tuple(_spread(v, shape, e) for v, e in zip(value, t.elements, strict=True))
    return np.broadcast_to(value, shape)


def _gathered(rows: list[Any], shape: tuple[int, ...], t: Type) -> object:
    if isinstance(t, TupleType):
        return tuple(_gathered([r[i] for r in rows], shape, e) for i, e in enumerate(t.elements))
    assert isinstance(t, TensorType)
    return np.array(rows, t.dtype.numpy()).reshape(shape)


def scalar_results(node: Node, values: object) -> list[Any]:
    """The results of a body as a list, whether it returns one or a tuple."""
    return list(values) if isinstance(values, (tuple, list)) else [values]
