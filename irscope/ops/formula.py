"""Operator syntax for values during code generation: ``(x + 1) * y`` instead of nested calls."""
from __future__ import annotations

from dataclasses import dataclass

from irscope.graph.node import Emitter, Value


@dataclass(slots=True, eq=False)
class FormulaTerm:
    """A value of the emitter ``k`` with operators. Python numbers become constants of the value's own element type."""

    k: Emitter
    value: Value

    def __add__(self, other: FormulaTerm | float) -> FormulaTerm:
        return self.binary("add", other)

    def __radd__(self, other: float) -> FormulaTerm:
        return self.lift(other).binary("add", self)

    def __sub__(self, other: FormulaTerm | float) -> FormulaTerm:
        return self.binary("sub", other)

    def __rsub__(self, other: float) -> FormulaTerm:
        return self.lift(other).binary("sub", self)

    def __mul__(self, other: FormulaTerm | float) -> FormulaTerm:
        return self.binary("mul", other)

    def __rmul__(self, other: float) -> FormulaTerm:
        return self.lift(other).binary("mul", self)

    def __truediv__(self, other: FormulaTerm | float) -> FormulaTerm:
        return self.binary("div", other)

    def __rtruediv__(self, other: float) -> FormulaTerm:
        return self.lift(other).binary("div", self)

    def __neg__(self) -> FormulaTerm:
        return self.unary("neg")

    def __and__(self, other: FormulaTerm | int) -> FormulaTerm:
        return self.binary("and", other)

    def __or__(self, other: FormulaTerm | int) -> FormulaTerm:
        return self.binary("or", other)

    def __xor__(self, other: FormulaTerm | int) -> FormulaTerm:
        return self.binary("xor", other)

    def __lshift__(self, other: FormulaTerm | int) -> FormulaTerm:
        return self.binary("shl", other)

    def __rshift__(self, other: FormulaTerm | int) -> FormulaTerm:
        """The logical shift."""
        return self.binary("shr_logical", other)

    def __lt__(self, other: FormulaTerm | float) -> FormulaTerm:
        return self.compare("LT", other)

    def __le__(self, other: FormulaTerm | float) -> FormulaTerm:
        return self.compare("LE", other)

    def __gt__(self, other: FormulaTerm | float) -> FormulaTerm:
        return self.compare("GT", other)

    def __ge__(self, other: FormulaTerm | float) -> FormulaTerm:
        return self.compare("GE", other)

    def equals(self, other: FormulaTerm | float) -> FormulaTerm:
        """``EQ``; ``==`` keeps Python's meaning."""
        return self.compare("EQ", other)

    def unary(self, word: str) -> FormulaTerm:
        """A scalar operation of :data:`irscope.ops.vocabulary.UNARY`."""
        return FormulaTerm(self.k, self.k.unary(word, self.value))

    def binary(self, word: str, other: FormulaTerm | float) -> FormulaTerm:
        """A scalar operation of :data:`irscope.ops.vocabulary.BINARY`."""
        return FormulaTerm(self.k, self.k.binary(word, self.value, self.lift(other).value))

    def compare(self, direction: str, other: FormulaTerm | float) -> FormulaTerm:
        """A comparison; the result is a pred."""
        return FormulaTerm(self.k, self.k.compare(direction, self.value, self.lift(other).value))

    def lift(self, other: FormulaTerm | float) -> FormulaTerm:
        """``other`` itself, or the constant of this value's element type."""
        return other if isinstance(other, FormulaTerm) else FormulaTerm(self.k, self.k.const(other, self.value.dtype))

    def where(self, yes: FormulaTerm, no: FormulaTerm | float) -> FormulaTerm:
        """Select between two values by this pred."""
        return FormulaTerm(self.k, self.k.select(self.value, yes.value, yes.lift(no).value))
