"""The tile IR: explicit loops, vectors, registers and memory scopes; what ``--emit loops`` prints and every backend reads.

A kernel is buffers and statements. Expressions are typed (element type, lanes), shared (equal trees are one object within a
kernel) and have no effects: memory is read by ``Load`` statements alone, so that order is what is written.
Indices are ``s64`` expressions counting elements of a flat buffer.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from irscope.graph import DType
from irscope.graph.dtypes import S64


@dataclass(slots=True, eq=False)
class Expr:
    """A value. ``op`` is one of

    ``const`` (value), ``var`` (value: name; a loop variable or the result of a Load or Let), ``reg`` (value: Register),
    ``lane`` (0, 1, ... per lane), ``splat``, ``convert``, ``bitcast``, ``select``, ``fma``, ``complex``,
    ``cmp.EQ`` ... ``cmp.GE``, ``reduce.add`` ... (vector to one lane), ``shuffle`` (two vectors; value: lanes to take),
    ``scale2`` (x * 2**n, n an integer of the same width), or a word of :mod:`irscope.ops.vocabulary`.
    Arithmetic on floats narrower than f32 does not exist here: the builder converts.
    """

    op: str
    args: tuple[Expr, ...]
    dtype: DType
    lanes: int = 1
    value: Any = None

    @property
    def constant(self) -> int | None:
        """The value of an integer constant, else None."""
        return self.value if self.op == "const" and self.dtype.is_integer and self.lanes == 1 else None


@dataclass(slots=True, eq=False)
class Register:
    """A mutable variable; loops carry it. The builder's ``reg`` gives handles with get and set."""

    name: str
    dtype: DType
    lanes: int


@dataclass(slots=True, eq=False)
class Buffer:
    """Flat memory. ``scope``: ``in`` (read), ``out`` (written), ``inout``, ``scratch`` (private to the kernel or chunk, uninitialised),
    ``const`` (values in ``data``). ``shape`` is for printing; ``elements`` counts.
    ``align`` is the guaranteed alignment of element 0 in bytes.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    scope: str
    elements: int
    align: int = 64
    data: Any = None


class Stmt:
    """A statement."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Load(Stmt):
    """``name = buffer[index]``, ``lanes`` consecutive elements; lanes whose ``mask`` is false read nothing and are 0."""

    var: Expr
    buffer: Buffer
    index: Expr
    mask: Expr | None = None


@dataclass(slots=True, eq=False)
class GatherLoad(Stmt):
    """``name = buffer[indices]``: one element a lane, at a vector of s64 or s32 indices."""

    var: Expr
    buffer: Buffer
    indices: Expr
    mask: Expr | None = None


@dataclass(slots=True, eq=False)
class Let(Stmt):
    """``name = value``: computed here, once."""

    var: Expr
    value: Expr


@dataclass(slots=True, eq=False)
class Store(Stmt):
    """``buffer[index] = value``; ``nontemporal`` bypasses the caches."""

    buffer: Buffer
    index: Expr
    value: Expr
    mask: Expr | None = None
    nontemporal: bool = False


@dataclass(slots=True, eq=False)
class Declare(Stmt):
    """A register begins with a value."""

    register: Register
    init: Expr


@dataclass(slots=True, eq=False)
class Assign(Stmt):
    """``register := value``."""

    register: Register
    value: Expr


@dataclass(slots=True, eq=False)
class For(Stmt):
    """``for var in low..high step step``; ``kind`` is ``for``, or ``par``: iterations are independent and may run in any order,
    on any thread. Only outermost statements of a kernel are ``par``, nested directly in each other."""

    var: Expr
    low: Expr
    high: Expr
    step: int
    kind: str
    body: list[Stmt] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class While(Stmt):
    """``head`` is run, then ``condition`` decides whether ``body`` runs and all begins again."""

    head: list[Stmt]
    condition: Expr
    body: list[Stmt]


@dataclass(slots=True, eq=False)
class If(Stmt):
    """``then`` runs where the one-lane ``condition`` is true, else ``otherwise``."""

    condition: Expr
    then: list[Stmt]
    otherwise: list[Stmt] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Prefetch(Stmt):
    """The cache line of ``buffer[index]`` is wanted soon."""

    buffer: Buffer
    index: Expr


@dataclass(slots=True, eq=False)
class Comment(Stmt):
    """A line for the reader."""

    text: str


@dataclass(slots=True, eq=False)
class Kernel:
    """Buffers (in the order of the call's pointers; scratch and const are not passed) and statements.

    ``lanes`` is the preferred vector width; ``tuned`` says that the statements are vectors already and LLVM needs no passes over it,
    otherwise the backend may run LLVM's own optimiser. ``flops``, ``bytes`` are of the work done, ``origin`` names the user's nodes.
    ``schedule`` is the data that the family was called with.
    """

    name: str
    buffers: list[Buffer] = field(default_factory=list)
    body: list[Stmt] = field(default_factory=list)
    lanes: int = 16
    tuned: bool = False
    flops: float = 0.0
    bytes: float = 0.0
    origin: tuple[str, ...] = ()
    schedule: dict[str, Any] = field(default_factory=dict)

    def params(self) -> list[Buffer]:
        """The buffers that a call passes pointers for."""
        return [b for b in self.buffers if b.scope in ("in", "out", "inout")]


INDEX = S64
