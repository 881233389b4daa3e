"""The tile IR: explicit loops, vectors, registers and memory scopes; what ``--emit loops`` prints and every backend reads.

A kernel is buffers and statements. Expressions are typed (element type, lanes), shared (equal trees are one object within a
kernel) and have no effects: only ``Load`` statements read memory, so memory accesses keep the order of the text.
Indices are ``s64`` expressions counting elements of a flat buffer.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from irscope.graph import DType
from irscope.graph.node import Value
from irscope.lazy import Array

if TYPE_CHECKING:
    from irscope.fusion.views import Strides  # a program from the cache needs no fusion


def _infix(name: str, reflected: bool = False) -> Callable[[Expr, Numeric], Expr]:
    """A Python operator on expressions, which calls ``binary`` of their builder. ``reflected``: the expression is the second operand."""
    def method(x: Expr, y: Numeric) -> Expr:
        return x._builder().binary(name, y, x) if reflected else x._builder().binary(name, x, y)
    return method


@dataclass(slots=True, eq=False)
class Expr:
    """A value. ``op`` is one of

    ``const`` (value; a tuple of values, one a lane, when ``lanes`` > 1), ``var`` (value: name; a loop variable or the result of a
    Load or Let), ``reg`` (value: Register), ``lane`` (0, 1, ... per lane), ``splat``, ``convert``, ``bitcast``, ``select``, ``fma``,
    ``complex``, ``real``, ``imag``, ``cmp.EQ`` ... ``cmp.GE``, ``reduce.add`` ... (vector to one lane), ``shuffle`` (two vectors;
    value: lanes to take), ``scale2`` (x * 2**n, n an integer of the same width), ``floordiv`` and ``floormod`` (s64 by a positive
    constant, rounding down), or a scalar operation of :mod:`irscope.ops.vocabulary`.

    A backend has little left to do: the builder lowers arithmetic on floats narrower than f32, on integers narrower than a byte and on
    complex values, so they have only ``convert``, ``bitcast``, ``select``, loads and stores here, and pred has only
    ``and or xor not`` and comparisons.

    ``range`` bounds an s64 value (both ends included) where that is known. ``home`` is the builder that created it, which Python's
    operators (``+ - * / // % & | ~``) call. ``number`` counts the expressions of a kernel in order of creation: operands have smaller ones.
    """

    op: str
    args: tuple[Expr, ...]
    dtype: DType
    lanes: int = 1
    value: Any = None
    range: tuple[int, int] | None = None
    number: int = 0
    home: Home | None = field(default=None, repr=False)

    @property
    def constant(self) -> int | None:
        """The value of an integer constant, else None."""
        return self.value if self.op == "const" and self.dtype.is_integer and self.lanes == 1 else None

    @property
    def uniform(self) -> Any:
        """The value of a one-lane constant, or of a splat of one; None for other expressions."""
        plain = self.args[0] if self.op == "splat" else self
        return plain.value if plain.op == "const" and plain.lanes == 1 else None

    def _builder(self) -> Home:
        if self.home is None:
            raise ValueError("arithmetic on an expression that no builder made")
        return self.home

    def __neg__(self) -> Expr:
        return self._builder().unary("neg", self)

    def __invert__(self) -> Expr:
        return self._builder().unary("not", self)

    __add__, __radd__ = _infix("add"), _infix("add", reflected=True)
    __sub__, __rsub__ = _infix("sub"), _infix("sub", reflected=True)
    __mul__, __rmul__ = _infix("mul"), _infix("mul", reflected=True)
    __truediv__, __floordiv__, __mod__ = _infix("div"), _infix("floordiv"), _infix("floormod")
    __and__, __or__ = _infix("and"), _infix("or")


Numeric = Value | complex
"""What an operation takes: an expression of the same builder, or a Python number, which becomes a constant of the other operand's type."""
Schedule = dict[str, Any]
"""The choices of a template, by name, as data for JSON: numbers, flags, and lists of them."""


class Home(Protocol):
    """The interface that an expression needs of its builder."""

    def unary(self, name: str, x: Expr) -> Expr: ...
    def binary(self, name: str, x: Numeric, y: Numeric) -> Expr: ...


@dataclass(slots=True, eq=False)
class Register:
    """A mutable variable; loops carry it. The builder's ``reg`` returns handles with get and set."""

    name: str
    dtype: DType
    lanes: int


@dataclass(slots=True, eq=False)
class Buffer:
    """Flat memory. ``scope``: ``in`` (read), ``out`` (written), ``inout``, ``scratch`` (private to the kernel or chunk, uninitialised),
    ``const`` (values in ``data``). ``shape`` is for printing; ``elements`` is the size. ``layout`` covers the elements that hold the value
    (None: all), ``room`` is how many elements around it, for each dimension before and after, are read as zeros. A kernel writes every
    element of an ``out`` buffer's layout.
    ``align`` is the guaranteed alignment of element 0 in bytes. Two buffers of one call never overlap, but a call may pass the same
    memory for several ``in`` buffers; memory that is updated in place is one ``inout`` buffer.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    scope: str
    elements: int
    align: int = 64
    data: Array | None = None
    layout: Strides | None = None
    room: tuple[tuple[int, int], ...] = ()


class Stmt:
    """A statement. Each kind declares its operands and blocks by the names of its fields, for traversal (:mod:`irscope.lower.traversal`).

    ``operand_fields`` hold the expressions that it evaluates itself, in order, or None; ``block_fields`` the statements inside it.
    ``result_field`` holds the variable or register that it sets, for a statement that does nothing else: it is dead if nothing reads that.
    ``dead_when_empty``: a statement whose blocks are all empty is dead, too.
    """

    __slots__ = ()
    operand_fields: ClassVar[tuple[str, ...]] = ()
    block_fields: ClassVar[tuple[str, ...]] = ()
    result_field: ClassVar[str] = ""
    dead_when_empty: ClassVar[bool] = False

    def operands(self) -> list[Expr]:
        """The expressions that the statement itself evaluates, in order."""
        return [x for name in self.operand_fields if (x := getattr(self, name)) is not None]

    def blocks(self) -> Sequence[list[Stmt]]:
        """The blocks of statements inside the statement, in text order."""
        return [getattr(self, name) for name in self.block_fields] if self.block_fields else ()

    @property
    def result(self) -> Expr | Register | None:
        """The variable or register that the statement sets, where that is all it does."""
        found: Expr | Register | None = getattr(self, self.result_field) if self.result_field else None
        return found

    @property
    def trips(self) -> int | None:
        """How often the blocks run, at most, each time that the statement runs; None where that depends on data."""
        return 1

    def replace_operands(self, replace: Callable[[Expr], Expr]) -> None:
        """Replace each operand by another expression."""
        for name in self.operand_fields:
            x = getattr(self, name)
            if x is not None:
                setattr(self, name, replace(x))


class BufferAccess(Stmt):
    """A statement about an element of memory."""

    __slots__ = ()
    buffer: Buffer


@dataclass(slots=True, eq=False)
class Load(BufferAccess):
    """``name = buffer[index]``, ``lanes`` consecutive elements; lanes whose ``mask`` is false read nothing and are 0."""

    operand_fields = ("index", "mask")
    result_field = "var"

    var: Expr
    buffer: Buffer
    index: Expr
    mask: Expr | None = None


@dataclass(slots=True, eq=False)
class GatherLoad(BufferAccess):
    """``name = buffer[indices]``: one element a lane, at a vector of s64 or s32 indices."""

    operand_fields = ("indices", "mask")
    result_field = "var"

    var: Expr
    buffer: Buffer
    indices: Expr
    mask: Expr | None = None


@dataclass(slots=True, eq=False)
class Let(Stmt):
    """``name = value``: computed here, once."""

    operand_fields = ("value",)
    result_field = "var"

    var: Expr
    value: Expr


@dataclass(slots=True, eq=False)
class Store(BufferAccess):
    """``buffer[index] = value``; ``nontemporal`` bypasses the caches."""

    operand_fields = ("index", "value", "mask")

    buffer: Buffer
    index: Expr
    value: Expr
    mask: Expr | None = None
    nontemporal: bool = False


@dataclass(slots=True, eq=False)
class Declare(Stmt):
    """Declares a register with its initial value."""

    operand_fields = ("init",)
    result_field = "register"

    register: Register
    init: Expr


@dataclass(slots=True, eq=False)
class Assign(Stmt):
    """``register := value``."""

    operand_fields = ("value",)
    result_field = "register"

    register: Register
    value: Expr


@dataclass(slots=True, eq=False)
class For(Stmt):
    """``for var in low..high step step``; ``kind`` is ``for``, or ``par``: iterations are independent and may run in any order,
    on any thread. Only outermost statements of a kernel are ``par``, nested directly in each other."""

    operand_fields = ("low", "high")
    block_fields = ("body",)
    dead_when_empty = True

    var: Expr
    low: Expr
    high: Expr
    step: int
    kind: str
    body: list[Stmt] = field(default_factory=list)

    @property
    def trips(self) -> int | None:
        """The number of iterations; None where the bounds are not constant."""
        low, high = self.low.constant, self.high.constant
        return None if low is None or high is None else max(0, -(-(high - low) // self.step))


@dataclass(slots=True, eq=False)
class While(Stmt):
    """Runs ``head``; while ``condition`` holds, runs ``body`` and ``head`` again."""

    operand_fields = ("condition",)
    block_fields = ("head", "body")

    head: list[Stmt]
    condition: Expr
    body: list[Stmt]

    @property
    def trips(self) -> int | None:
        """None: the condition depends on data."""
        return None


@dataclass(slots=True, eq=False)
class If(Stmt):
    """``then`` runs where the one-lane ``condition`` is true, else ``otherwise``."""

    operand_fields = ("condition",)
    block_fields = ("then", "otherwise")
    dead_when_empty = True

    condition: Expr
    then: list[Stmt]
    otherwise: list[Stmt] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Prefetch(BufferAccess):
    """Prefetches the cache line of ``buffer[index]``."""

    operand_fields = ("index",)

    buffer: Buffer
    index: Expr


@dataclass(slots=True, eq=False)
class Comment(Stmt):
    """A comment line."""

    text: str


@dataclass(slots=True, eq=False)
class Kernel:
    """Buffers (in the order of the call's pointers; scratch and const are not passed) and statements.

    ``lanes`` is the preferred vector width. ``flops`` and ``bytes`` measure the work done (``counts_flops``: ``flops`` are known, and not
    estimated as a share of a group's). ``origin`` names the user's nodes. ``schedule`` is the data that the template was called with.
    ``precision``: ``exact`` rounds every operation as written, ``default`` lets multiplications and additions contract and takes the
    rational forms of tanh and erf (docs/accuracy.md), ``fast`` also allows division by multiplication with the reciprocal.
    """

    name: str
    buffers: list[Buffer] = field(default_factory=list)
    body: list[Stmt] = field(default_factory=list)
    lanes: int = 16
    flops: float = 0.0
    bytes: float = 0.0
    origin: tuple[str, ...] = ()
    schedule: Schedule = field(default_factory=dict)
    precision: str = "default"
    counts_flops: bool = True

    def params(self) -> list[Buffer]:
        """The buffers that a call passes pointers for."""
        return [b for b in self.buffers if b.scope in ("in", "out", "inout")]

