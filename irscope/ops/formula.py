"""Operator syntax for values during code generation: ``(x + 1) * y`` instead of nested calls."""
from __future__ import annotations

from dataclasses import dataclass

from irscope.graph.node import Emitter, Value


@dataclass(slots=True, eq=False)
class Term:
    """A value of the emitter ``k`` with operators. Python numbers become constants of the value's own element type."""

    k: Emitter
    value: Value

    def __add__(self, other: Term | float) -> Term:
        return self.binary("add", other)

    def __radd__(self, other: float) -> Term:
        return self.lift(other).binary("add", self)

    def __sub__(self, other: Term | float) -> Term:
        return self.binary("sub", other)

    def __rsub__(self, other: float) -> Term:
        return self.lift(other).binary("sub", self)

    def __mul__(self, other: Term | float) -> Term:
        return self.binary("mul", other)

    def __rmul__(self, other: float) -> Term:
        return self.lift(other).binary("mul", self)

    def __truediv__(self, other: Term | float) -> Term:
        return self.binary("div", other)

    def __rtruediv__(self, other: float) -> Term:
        return self.lift(other).binary("div", self)

    def __neg__(self) -> Term:
        return self.unary("neg")

    def __and__(self, other: Term | int) -> Term:
        return self.binary("and", other)

    def __or__(self, other: Term | int) -> Term:
        return self.binary("or", other)

    def __xor__(self, other: Term | int) -> Term:
        return self.binary("xor", other)

    def __lshift__(self, other: Term | int) -> Term:
        return self.binary("shl", other)

    def __rshift__(self, other: Term | int) -> Term:
        """The logical shift."""
        return self.binary("shr_logical", other)

    def __lt__(self, other: Term | float) -> Term:
        return self.compare("LT", other)

    def __le__(self, other: Term | float) -> Term:
        return self.compare("LE", other)

    def __gt__(self, other: Term | float) -> Term:
        return self.compare("GT", other)

    def __ge__(self, other: Term | float) -> Term:
        return self.compare("GE", other)

    def equals(self, other: Term | float) -> Term:
        """``EQ``; ``==`` keeps Python's meaning."""
        return self.compare("EQ", other)

    def unary(self, word: str) -> Term:
        """A scalar operation of :data:`irscope.ops.vocabulary.UNARY`."""
        return Term(self.k, self.k.unary(word, self.value))

    def binary(self, word: str, other: Term | float) -> Term:
        """A scalar operation of :data:`irscope.ops.vocabulary.BINARY`."""
        return Term(self.k, self.k.binary(word, self.value, self.lift(other).value))

    def compare(self, direction: str, other: Term | float) -> Term:
        """A comparison; the result is a pred."""
        return Term(self.k, self.k.compare(direction, self.value, self.lift(other).value))

    def lift(self, other: Term | float) -> Term:
        """``other`` itself, or the constant of this value's element type."""
        return other if isinstance(other, Term) else Term(self.k, self.k.const(other, self.value.dtype))

    def where(self, yes: Term, no: Term | float) -> Term:
        """Select between two values by this pred."""
        return Term(self.k, self.k.select(self.value, yes.value, yes.lift(no).value))
