"""Handles of variables of the generated code."""
from __future__ import annotations

from irscope.lower.statements import BlockScope, StatementBuilder
from irscope.lower.tile import Assign, Expr, Register


class Reg:
    """``get()`` is a snapshot: it does not change when the register is set later."""

    __slots__ = ("_builder", "_snapshot", "register")

    def __init__(self, builder: StatementBuilder, register: Register) -> None:
        self._builder = builder
        self.register = register
        self._snapshot: tuple[BlockScope, Expr] | None = None

    @property
    def now(self) -> Expr:
        """The register itself, for a statement that is emitted at once: its value where the expression is used."""
        return self._builder.make("reg", (), self.register.dtype, self.register.lanes, self.register)

    def get(self) -> Expr:
        scope = self._builder.scope_token()
        if self._snapshot is None or self._snapshot[0] is not scope:
            self._snapshot = (scope, self._builder.let(self.now))
        return self._snapshot[1]

    def set(self, value: Expr | complex) -> None:
        k, register = self._builder, self.register
        if not isinstance(value, Expr):
            value = k.const(value, register.dtype)
        if value.dtype is not register.dtype:
            raise TypeError(f"register of {register.dtype} set to {value.dtype}")
        k.emit(Assign(register, k.splat(value, register.lanes)))
        self._snapshot = None


class ComplexReg:
    """A register for each part."""

    __slots__ = ("_builder", "im", "re")

    def __init__(self, builder: StatementBuilder, re: Reg, im: Reg) -> None:
        self._builder, self.re, self.im = builder, re, im

    @property
    def now(self) -> Expr:
        """The registers of both parts as one value (see :attr:`Reg.now`)."""
        return self._builder.complex(self.re.now, self.im.now)

    def get(self) -> Expr:
        return self._builder.complex(self.re.get(), self.im.get())

    def set(self, value: Expr | complex) -> None:
        k = self._builder
        re, im = (k.real(value), k.imag(value)) if isinstance(value, Expr) else (complex(value).real, complex(value).imag)
        self.re.set(re)
        self.im.set(im)
