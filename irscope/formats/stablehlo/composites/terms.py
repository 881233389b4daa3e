"""Expressions over nodes, so that an expansion reads like its formula; and the declaration of an operator by one."""
from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass

from irscope.graph import DTYPES, Builder, DType, Graph, Kind, Node, Op, TensorType, Type
from irscope.graph.dtypes import F32, F64
from irscope.graph.node import Reference, Run
from irscope.lazy import Array
from irscope.ops.faults import TypeFault
from irscope.ops.infer import agree, arity, arrays, kind_of
from irscope.ops.registry import declare, get
from irscope.ops.tensors import Tensors


class Term:
    """A tensor with operators. A Python number becomes a tensor of that value with the type of the other operand."""

    __slots__ = ("node", "t")

    def __init__(self, t: Tensors, node: Node) -> None:
        self.t, self.node = t, node

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.t.dtype(self.node)

    def like(self, value: float) -> Term:
        """A tensor of one value with the type of this one."""
        return Term(self.t, self.t.like(self.node, value))

    def lift(self, other: Term | float) -> Term:
        """``other`` itself, or a tensor of that value with the type of this one."""
        return other if isinstance(other, Term) else self.like(other)

    def binary(self, name: str, other: Term | float) -> Term:
        """An operator of two operands, by its HLO name."""
        return Term(self.t, self.t.emit(name, (self.node, self.lift(other).node)))

    def unary(self, name: str) -> Term:
        """An operator of one operand, by its HLO name."""
        return Term(self.t, self.t.emit(name, (self.node,)))

    def compare(self, direction: str, other: Term | float) -> Term:
        """A comparison; the result is a predicate."""
        return Term(self.t, self.t.emit("compare", (self.node, self.lift(other).node), {"direction": direction}))

    def where(self, yes: Term, no: Term | float) -> Term:
        """``yes`` where this predicate holds, else ``no``."""
        return Term(self.t, self.t.emit("select", (self.node, yes.node, yes.lift(no).node)))

    def convert(self, dtype: DType) -> Term:
        """The same values as another element type."""
        return Term(self.t, self.t.convert(self.node, dtype))

    def __add__(self, other: Term | float) -> Term:
        return self.binary("add", other)

    def __radd__(self, other: float) -> Term:
        return self.like(other) + self

    def __sub__(self, other: Term | float) -> Term:
        return self.binary("subtract", other)

    def __rsub__(self, other: float) -> Term:
        return self.like(other) - self

    def __mul__(self, other: Term | float) -> Term:
        return self.binary("multiply", other)

    def __rmul__(self, other: float) -> Term:
        return self.like(other) * self

    def __truediv__(self, other: Term | float) -> Term:
        return self.binary("divide", other)

    def __rtruediv__(self, other: float) -> Term:
        return self.like(other) / self

    def __neg__(self) -> Term:
        return self.unary("negate")

    def __abs__(self) -> Term:
        return self.unary("abs")

    def __or__(self, other: Term) -> Term:
        return self.binary("or", other)

    def __and__(self, other: Term) -> Term:
        return self.binary("and", other)


def polynomial(x: Term, coefficients: Sequence[float]) -> Term:
    """By Horner's rule; the constant term comes last."""
    total = x.like(coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


FLOAT, FLOAT_OR_COMPLEX = ("float",), ("float", "complex")
"""The kinds of element types that operators of CHLO take (stablehlo/dialect/ChloOps.td)."""
Expand = Callable[[Builder, Node, Sequence[Node], Mapping[str, str]], Node | None]


def by_expansion(expand: Expand) -> Reference:
    """The reference of an operator that has none but its expansion."""
    def steps(run: Run, node: Node, *operands: Array) -> Generator[tuple[Graph, Sequence[Array]], Array, Array]:
        graph = Graph(node.op.name)
        builder = Builder(graph)
        params = [builder.param(get("parameter"), operand.type, operand.name) for operand in node.operands]
        graph.root = expand(builder, node, params, {})
        return (yield graph, operands)
    return steps


@dataclass(frozen=True, slots=True)
class Formula:
    """``compute`` of so many operands, whose elements are of these kinds.

    ``widen``: narrower types than f32 are computed in f32; ``has_bits``: it reads the elements as integers.
    """

    compute: Callable[..., Term]
    operands: int = 1
    kinds: Sequence[str] = FLOAT
    widen: bool = True
    has_bits: bool = False


def declare_formula(name: str, doc: str, formula: Formula, weight: int = 12) -> Op:
    """An elementwise operator that expands to a formula."""
    def infer(node: Node) -> Type:
        arity(node, formula.operands)
        result = agree(node, arrays(node))
        kind_of(node, result, formula.kinds)
        if formula.has_bits and f"s{result.dtype.bits}" not in DTYPES:
            fault = f"{node.op.name} reads elements as integers, and there are none of {result.dtype.bits} bits"
            raise TypeFault(fault, "convert to f32 first")
        return result

    def expand(builder: Builder, node: Node, operands: Sequence[Node], raw: Mapping[str, str]) -> Node:
        t = Tensors(builder)
        terms = [Term(t, operand) for operand in operands]
        narrow = formula.widen and terms[0].dtype.is_float and terms[0].dtype not in (F32, F64)
        if not narrow:
            return formula.compute(*terms).node
        return formula.compute(*[term.convert(F32) for term in terms]).convert(terms[0].dtype).node
    return declare(Op(name, "stablehlo", doc, Kind.ELEMENTWISE, infer=infer, expand=expand, weight=weight,
                      reference=by_expansion(expand), cost=lambda node: weight * _elements(node)))


def _elements(node: Node) -> float:
    return float(node.type.elements) if isinstance(node.type, TensorType) else 0.0
