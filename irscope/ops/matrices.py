"""Building blocks of matrix code: reading a symmetric matrix from one triangle, sums of products, conjugates."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from irscope.graph import DType, Node, Op, TensorType, Type
from irscope.graph.dtypes import C64, F32, F64
from irscope.graph.node import ArrayView, Emitter, Index, NestMeaning, Reference, Value
from irscope.ops import infer
from irscope.ops.faults import TypeFault
from irscope.ops.nests import loops
from irscope.ops.registry import declare
from irscope.ops.shapes import fits, size

Shape = tuple[int, ...]
Matrix = Callable[[Index, Index], Value]
"""An element by row and column."""


def part_of(dtype: DType) -> DType:
    """The element type of absolute values."""
    return dtype if not dtype.is_complex else F32 if dtype is C64 else F64


def conjugate(k: Emitter, x: Value) -> Value:
    """The complex conjugate; a real number is its own."""
    return k.complex(k.unary("real", x), k.unary("neg", k.unary("imag", x))) if x.dtype.is_complex else x


def real(k: Emitter, x: Value) -> Value:
    """The real part."""
    return k.unary("real", x) if x.dtype.is_complex else x


def square_size(k: Emitter, x: Value) -> Value:
    """``|x|**2``, of the type of the parts."""
    if not x.dtype.is_complex:
        return k.binary("mul", x, x)
    re, im = k.unary("real", x), k.unary("imag", x)
    return k.fma(re, re, k.binary("mul", im, im))


def times(k: Emitter, x: Value, y: Value) -> Value:
    """``x * y``, where one may be real and the other complex."""
    if x.dtype is y.dtype:
        return k.binary("mul", x, y)
    if not x.dtype.is_complex:
        x, y = y, x
    return k.complex(k.binary("mul", k.unary("real", x), y), k.binary("mul", k.unary("imag", x), y))


def load_square(k: Emitter, view: ArrayView, batch: Sequence[Value], dtype: DType, lower: bool) -> Matrix:
    """Elements (i, j) with i >= j of a Hermitian matrix of which one triangle is given."""
    def load(i: Index, j: Index) -> Value:
        if lower:
            return k.convert(view.load([*batch, i, j]), dtype)
        return conjugate(k, k.convert(view.load([*batch, j, i]), dtype))
    return load


def sub_product(k: Emitter, dtype: DType, start: Value, count: Index, x: Callable[[Value], Value], y: Callable[[Value], Value]) -> Value:
    """``start - sum(x(j) * y(j) for j in range(count))``."""
    total = k.reg(dtype, start)
    with k.loop(0, count) as j:
        total.set(k.binary("sub", total.get(), k.binary("mul", x(j), y(j))))
    return total.get()


def sum_of(k: Emitter, dtype: DType, low: Index, high: Index, term: Callable[[Value], Value]) -> Value:
    """``sum(term(j) for j in range(low, high))``."""
    total = k.reg(dtype, k.const(0, dtype))
    with k.loop(low, high) as j:
        total.set(k.binary("add", total.get(), term(j)))
    return total.get()


def taxicab(k: Emitter, x: Value) -> Value:
    """``|re| + |im|``, which LAPACK compares pivots by."""
    if not x.dtype.is_complex:
        return k.unary("abs", x)
    return k.binary("add", k.unary("abs", k.unary("real", x)), k.unary("abs", k.unary("imag", x)))


@dataclass(frozen=True, slots=True)
class StackedMatrix:
    """One matrix of a stack."""

    view: ArrayView
    batch: tuple[Value, ...]

    def load(self, i: Index, j: Index) -> Value:
        """An element."""
        return self.view.load([*self.batch, i, j])

    def store(self, i: Index, j: Index, value: Value) -> None:
        """Write an element."""
        self.view.store([*self.batch, i, j], value)


    def transpose(self) -> StackedMatrix:
        """A transposed view of this matrix, which must be square."""
        return TransposedMatrix(self.view, self.batch)

    def copy(self, k: Emitter, source: StackedMatrix) -> None:
        """Copy all elements of ``source`` into this matrix."""
        with loops(k, self.view.shape[-2:]) as [i, j]:
            self.store(i, j, source.load(i, j))


@dataclass(frozen=True, slots=True)
class TransposedMatrix(StackedMatrix):
    """A transposed view of a square matrix: element (i, j) is (j, i) of ``view``."""

    def load(self, i: Index, j: Index) -> Value:
        return self.view.load([*self.batch, j, i])

    def store(self, i: Index, j: Index, value: Value) -> None:
        self.view.store([*self.batch, j, i], value)


def bound(view: ArrayView, batch: Sequence[Value]) -> StackedMatrix:
    """The matrix of a stack at a place."""
    return StackedMatrix(view, tuple(batch))


@dataclass(frozen=True, slots=True)
class Stack:
    """The type of a stack of matrices, which the types of a factorization's results follow from."""

    whole: TensorType
    lead: Shape
    rows: int
    columns: int

    @property
    def least(self) -> int:
        return min(self.rows, self.columns)

    def each(self, dtype: DType, *dims: int) -> TensorType:
        """An array of these dimensions for each matrix."""
        return TensorType(dtype, (*self.lead, *dims))

    def like(self, *dims: int) -> TensorType:
        """The same of the matrices' element type."""
        return self.each(self.whole.dtype, *dims)


def stack_of(node: Node, operand: int = 0, square: bool = False) -> Stack:
    """The matrices that an operand is a stack of. Raises TypeFault where it is none: machine code reads and writes by these sizes."""
    t = infer.array(node, operand)
    infer.kind_of(node, t, ("float", "complex"))
    if t.rank < 2 or not t.is_static:
        raise TypeFault(f"{node.op.name} takes matrices of known sizes, got {infer.plain(t)}")
    *lead, rows, columns = t.dims()
    if square and rows != columns:
        raise TypeFault(f"{node.op.name} takes square matrices, got {infer.plain(t)}")
    return Stack(TensorType(t.dtype, t.shape), tuple(lead), rows, columns)


def has_type(node: Node, operand: int, wanted: TensorType) -> None:
    """Raise TypeFault where an operand is of another type."""
    t = infer.array(node, operand)
    if not fits(t, wanted):
        raise TypeFault(f"operand {operand} of {node.op.name} must be {wanted}, got {infer.plain(t)}")


def cost_of_factorization(share: float) -> Callable[[Node], float]:
    """The cost ``share * m * n * min(m, n)``, as a function of the node."""
    def cost(node: Node) -> float:
        t = infer.array(node, 0)
        smaller = min((size(d) or 1 for d in t.shape[-2:]), default=1)
        return share * t.elements * smaller * (4 if t.dtype.is_complex else 1)
    return cost


def library(name: str, share: float, infer: Callable[[Node], Type], reference: Reference, nest: NestMeaning, doc: str) -> Op:
    """Declare a factorization that libraries provide by custom calls. ``share`` is the factor of :func:`cost_of_factorization`."""
    return declare(Op(name, "library", doc, infer=infer, reference=reference, nest=nest, cost=cost_of_factorization(share)))
