"""The rewritable graph: instructions that know their users, and a rewriter that records where each one came from.

A :class:`Graph` never changes. A :class:`Rewriter` holds its instructions while passes change them, and ``finish`` returns the new graph
with the :class:`Trace` between both. XLA's passes, the fusion policies and lint's trial edits work on it.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any, Generic, Self, TypeVar

from irscope.graph.node import NO_ATTRS, Graph, Node, Op
from irscope.graph.types import TensorType, Type
from irscope.graph.users import Users
from irscope.graph.walk import LASTING, post_order


class RewrittenNode:
    """One instruction of a graph that is being rewritten.

    ``users`` is an ordered set in XLA's order. ``dims`` and ``dtype`` are those of an array, empty for any other type. ``label`` is its
    name in the text, or empty; ``origin`` are the nodes of the first graph that it stands for. ``replacement`` is what replaced it, and
    ``erased`` says that it is no longer part of the computation. ``bodies`` are graphs that it applies unchanged; ``calls`` are
    computations that belong to it and are rewritten with it.
    """

    __slots__ = ("attrs", "bodies", "calls", "dims", "dtype", "erased", "is_array", "label", "op", "operands", "origin", "replacement",
                 "type", "users")

    def __init__(self, op: Op, type: Type, operands: Iterable[Self] = (), attrs: Mapping[str, object] = NO_ATTRS,
                 bodies: tuple[Graph, ...] = (), origin: tuple[Node, ...] = ()) -> None:
        self.op = op
        self.operands: list[Self] = list(operands)
        self.users: Users[Self] = Users()
        self.attrs = attrs
        self.bodies = bodies
        self.calls: tuple[Rewriter[Any], ...] = ()
        self.label = ""
        self.origin = origin
        self.replacement: Self | None = None
        self.erased = False
        self.set_type(type)
        for operand in self.operands:
            operand.users.add(self)

    def set_type(self, type: Type) -> None:
        """Set the type, and ``dims`` and ``dtype`` with it."""
        self.type = type
        self.is_array = isinstance(type, TensorType)
        self.dims: tuple[int, ...] = ()
        self.dtype = ""
        if isinstance(type, TensorType):
            self.dims = tuple(d if isinstance(d, int) else d.bound or 1 for d in type.shape)
            self.dtype = type.dtype.name

    @property
    def name(self) -> str:
        """Its name in the text, or the name of its operator."""
        return self.label or self.op.name

    @property
    def rank(self) -> int:
        """The number of dimensions of an array."""
        return len(self.dims)

    def take_label(self, other: Self) -> None:
        """Take over the label of another instruction."""
        self.label, other.label = other.label, ""

    def operand(self, op: Op, number: int = 0) -> Self | None:
        """An operand, where its operator is this one."""
        if number >= len(self.operands) or self.operands[number].op is not op:
            return None
        return self.operands[number]

    def set_operand(self, number: int, new: Self) -> None:
        """Read ``new`` as operand ``number``."""
        old = self.operands[number]
        self.operands[number] = new
        if old not in self.operands:
            old.users.discard(self)
        new.users.add(self)

    def replace_operand(self, old: Self, new: Self) -> None:
        """Read ``new`` wherever ``old`` is read."""
        operands = self.operands
        for number, operand in enumerate(operands):
            if operand is old:
                operands[number] = new
        old.users.discard(self)
        new.users.add(self)

    def replace_uses(self, new: Self) -> None:
        """Let every user read ``new`` instead."""
        for user in list(self.users):
            user.replace_operand(self, new)

    def detach(self: Self) -> None:
        """Stop reading operands."""
        for operand in self.operands:
            operand.users.discard(self)

    def final(self) -> Self:
        """The instruction that it is after all replacements."""
        instruction = self
        while instruction.replacement is not None:
            instruction = instruction.replacement
        return instruction

    def __repr__(self) -> str:
        return f"%{self.name} = {self.type} {self.op}({', '.join('%' + o.name for o in self.operands)})"


_operands = attrgetter("operands")
I = TypeVar("I", bound=RewrittenNode)  # noqa: E741


class Rewriter(Generic[I]):
    """The instructions of one computation, its parameters by number and its root.

    ``worklist`` holds what changed since a pass last emptied it. ``of_node`` maps each node of the first graph to its instruction.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.instructions: dict[I, None] = {}
        self.params: list[I] = []
        self.root: I
        self.loc = -1
        self.worklist: dict[I, None] = {}
        self.of_node: dict[Node, I] = {}

    def computations(self) -> list[Self]:
        """This computation and all the ``calls`` of its instructions, callees first."""
        found: list[Any] = [self]
        for computation in found:
            found += [call for instruction in computation.instructions for call in instruction.calls]
        return found[::-1]

    def add(self, instruction: I) -> I:
        """Add a new instruction, and put it on the worklist."""
        self.instructions[instruction] = None
        self.worklist[instruction] = None
        return instruction

    def replace(self, old: I, new: I) -> bool:
        """Let every user of ``old`` read ``new``, and erase what becomes dead. ``new`` takes over the name where it has none."""
        for user in list(old.users):
            user.replace_operand(old, new)
            self.worklist[user] = None
        old.users.clear()
        if self.root is old:
            self.root = new
        old.replacement = new
        if not new.label:
            new.take_label(old)
            if new.origin[:1] != old.origin[:1]:
                new.origin = tuple(dict.fromkeys((*old.origin, *new.origin)))
        self.worklist[new] = None
        if not self.is_parameter(old):
            self.erase(old)
            for operand in dict.fromkeys(old.operands):
                self.erase_dead(operand)
        return True

    def erase(self, instruction: I) -> None:
        """Remove an instruction that has no users, and put its operands on the worklist."""
        instruction.erased = True
        self.instructions.pop(instruction, None)
        self.worklist.pop(instruction, None)
        for operand in instruction.operands:
            operand.users.discard(instruction)
            self.worklist[operand] = None

    def erase_dead(self, instruction: I) -> None:
        """Erase an instruction without users, then any operands left without users; parameters and effects stay."""
        stack = [instruction]
        while stack:
            dead = stack.pop()
            if dead.erased or dead.users or dead is self.root or self.is_parameter(dead) or self.has_effect(dead):
                continue
            self.erase(dead)
            stack += dict.fromkeys(dead.operands)

    def erase_all_dead(self) -> bool:
        """Dead-code elimination; returns whether anything was erased."""
        before = len(self.instructions)
        for instruction in list(self.instructions):
            self.erase_dead(instruction)
        return len(self.instructions) != before

    def is_parameter(self, instruction: I) -> bool:
        """Whether it is a parameter, which is never erased."""
        return instruction in self.params

    def has_effect(self, instruction: I) -> bool:
        """Whether it must stay although it has no users."""
        return instruction.op.effect in LASTING

    def post_order(self) -> list[I]:
        """Operands before users, depth first from each instruction without users, in order of insertion."""
        return post_order((i for i in self.instructions if not i.users.order), _operands)
