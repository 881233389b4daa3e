"""What a node does: the operator, as an object that all its nodes share."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irscope.graph.node import Node
    from irscope.graph.types import Type


PRIMITIVE = "hlo"
"""The dialect of the primitives."""


class Effect(Enum):
    """What a node does beside giving its result. Dead-code removal, sharing and scheduling read this alone."""

    PURE = "pure"
    READS = "reads"        # depends on state: must not move over a write
    WRITES = "writes"      # changes state: must stay, in order
    CONTROL = "control"    # raises, sends, receives: must stay, in order


class Kind(IntEnum):
    """How an operator takes part in fusion, from free to never (after TVM's OpPatternKind, with windows and movement apart)."""

    ELEMENTWISE = 0    # result element i needs operand elements i
    BROADCAST = 1      # result element i needs one operand element, in order (broadcast)
    INJECTIVE = 2      # result element i needs one operand element, anywhere (transpose, slice, gather, pad)
    REDUCTION = 3      # several operand elements make one
    CONTRACTION = 4    # dot, convolution: an epilogue may follow
    TUPLE = 5          # tuple, get: no work
    LEAF = 6           # parameter, constant
    OPAQUE = 7         # stands alone


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One declaration of an operator: everything irscope knows of it.

    ``dialect`` is ``hlo`` (the primitives, and what expands to them), ``torchscript`` or ``relay``.
    ``infer(node)`` gives the result type from operands, attributes and bodies (``node.type`` is the declared type, which ops
    whose result cannot be inferred keep) and raises :class:`irscope.ops.TypeFault`.
    ``reference(run, node, *arrays)`` computes it with numpy; ``run(graph, arrays)`` evaluates a body.
    ``scalar``, ``element`` and ``nest`` are its meaning for code generation, see :mod:`irscope.ops.meaning`: at least one for a
    primitive, none where ``expand`` is given. Where both ``element`` and ``nest`` are given, ``whole(node)`` says for which nodes
    the nest is the one to take (a running sum written as a window over everything).
    ``expand(builder, node, operands, raw)`` appends what the node stands for and gives the node that has its value, or None where
    this node stays as it is; ``raw`` holds the attributes that the format kept as text (``module.raw(node)``).
    ``cost(node)`` gives FLOPs (default: none for movement, one an element otherwise).
    """

    name: str
    dialect: str = PRIMITIVE
    doc: str = ""
    kind: Kind = Kind.OPAQUE
    effect: Effect = Effect.PURE
    infer: Callable[[Node], Type] | None = None
    reference: Callable[..., Any] | None = None
    scalar: Callable[..., Any] | None = None
    element: Callable[..., Any] | None = None
    nest: Callable[..., Any] | None = None
    whole: Callable[[Node], bool] | None = None
    expand: Callable[..., Any] | None = None
    cost: Callable[[Node], float] | None = None
    known: bool = True
    traits: frozenset[str] = field(default_factory=frozenset)

    @property
    def is_primitive(self) -> bool:
        """Whether it is one of the primitives, of which all other operators are made."""
        return self.dialect == PRIMITIVE

    def __repr__(self) -> str:
        return self.name


def unknown_op(name: str, dialect: str) -> Op:
    """An operator that irscope has no declaration for: opaque, kept and shown. Make one a name a module, and share it."""
    return Op(name, dialect, known=False, effect=Effect.CONTROL)
