"""Shorthand for instructions on vectors of one type: conversions, integer operations and mathematics are written with it."""
from __future__ import annotations

from dataclasses import dataclass

from irscope.backends.llvm_code import Code
from irscope.backends.llvm_types import float_text, splat_text, suffix, vector


@dataclass(frozen=True, slots=True)
class Instructions:
    """Instructions on ``lanes`` values of the LLVM type ``element``. Operands and results are LLVM names."""

    code: Code
    element: str
    lanes: int

    @property
    def kind(self) -> str:
        return vector(self.element, self.lanes)

    @property
    def pkind(self) -> str:
        return vector("i1", self.lanes)

    @property
    def short(self) -> str:
        return suffix(self.element, self.lanes)

    def bin(self, word: str, x: str, y: str) -> str:
        return self.code.pure(f"{word} {self.kind} {x}, {y}", x, y)

    def sel(self, condition: str, x: str, y: str) -> str:
        return self.code.pure(f"select {self.pkind} {condition}, {self.kind} {x}, {self.kind} {y}", condition, x, y)

    def either(self, x: str, y: str) -> str:
        return self.code.pure(f"or {self.pkind} {x}, {y}", x, y)

    def intrinsic(self, name: str, *args: str) -> str:
        return self.code.call(self.kind, f"@llvm.{name}.{self.short}", *((self.kind, a) for a in args))


@dataclass(frozen=True, slots=True)
class Lanes(Instructions):
    """``element`` is ``float`` or ``double``; integers have the same width."""

    has_fma: bool = True
    avx512: bool = False

    @property
    def bits(self) -> int:
        return 32 if self.element == "float" else 64

    @property
    def integer(self) -> str:
        return f"i{self.bits}"

    @property
    def ikind(self) -> str:
        return vector(self.integer, self.lanes)

    # ---- constants

    def c(self, value: float) -> str:
        return splat_text(float_text(value, self.element), self.element, self.lanes)

    def ic(self, value: int) -> str:
        wrapped = value & ((1 << self.bits) - 1)
        return splat_text(str(wrapped - (1 << self.bits) if wrapped >> (self.bits - 1) else wrapped), self.integer, self.lanes)

    # ---- floats

    def add(self, x: str, y: str) -> str:
        return self.bin("fadd", x, y)

    def sub(self, x: str, y: str) -> str:
        return self.bin("fsub", x, y)

    def mul(self, x: str, y: str) -> str:
        return self.bin("fmul", x, y)

    def div(self, x: str, y: str) -> str:
        return self.bin("fdiv", x, y)

    def neg(self, x: str) -> str:
        return self.code.pure(f"fneg {self.kind} {x}", x)

    def fma(self, x: str, y: str, z: str) -> str:
        """``x * y + z``; with two roundings on a target without the instruction."""
        if not self.has_fma:
            return self.add(self.mul(x, y), z)
        return self.intrinsic("fma", x, y, z)

    def residual(self, x: str, y: str, product: str) -> str:
        """``x * y - product``, the rounding error of the product; by Dekker's splitting where the target has no fma."""
        if self.has_fma:
            return self.intrinsic("fma", x, y, self.neg(product))
        (a, b), (c, d) = self._halves(x), self._halves(y)
        out = self.sub(self.mul(a, c), product)
        return self.add(self.mul(b, d), self.add(self.mul(b, c), self.add(self.mul(a, d), out)))

    def _halves(self, x: str) -> tuple[str, str]:
        """A float as a sum of two with half as many bits."""
        spread = self.mul(x, self.c(4097.0 if self.bits == 32 else 134217729.0))
        high = self.sub(spread, self.sub(spread, x))
        return high, self.sub(x, high)

    def abs(self, x: str) -> str:
        return self.intrinsic("fabs", x)

    def sqrt(self, x: str) -> str:
        return self.intrinsic("sqrt", x)

    def copysign(self, magnitude: str, sign: str) -> str:
        return self.intrinsic("copysign", magnitude, sign)

    def poly(self, x: str, *coefficients: float) -> str:
        """A polynomial by Horner's scheme, the highest coefficient first."""
        out = self.c(coefficients[0])
        for value in coefficients[1:]:
            out = self.fma(out, x, self.c(value))
        return out

    def smaller(self, x: str, y: str) -> str:
        """The smaller one; ``y`` where either is NaN. One instruction on x86."""
        return self.sel(self.lt(x, y), x, y)

    def larger(self, x: str, y: str) -> str:
        """The larger one; ``y`` where either is NaN."""
        return self.sel(self.gt(x, y), x, y)

    # ---- comparisons and choice

    def fcmp(self, word: str, x: str, y: str) -> str:
        return self.bin(f"fcmp {word}", x, y)

    def lt(self, x: str, y: str) -> str:
        return self.fcmp("olt", x, y)

    def gt(self, x: str, y: str) -> str:
        return self.fcmp("ogt", x, y)

    def eq(self, x: str, y: str) -> str:
        return self.fcmp("oeq", x, y)

    def isnan(self, x: str) -> str:
        return self.fcmp("uno", x, x)

    def icmp(self, word: str, x: str, y: str) -> str:
        return self.int(f"icmp {word}", x, y)

    def isel(self, condition: str, x: str, y: str) -> str:
        return self.code.pure(f"select {self.pkind} {condition}, {self.ikind} {x}, {self.ikind} {y}", condition, x, y)

    def both(self, x: str, y: str) -> str:
        return self.code.pure(f"and {self.pkind} {x}, {y}", x, y)

    def differ(self, x: str, y: str) -> str:
        return self.code.pure(f"xor {self.pkind} {x}, {y}", x, y)

    def any(self, x: str) -> str:
        """Whether any lane holds, in one lane."""
        return x if self.lanes == 1 else self.code.call("i1", f"@llvm.vector.reduce.or.v{self.lanes}i1", (self.pkind, x))

    # ---- integers of the same width

    def int(self, word: str, x: str, y: str) -> str:
        return self.code.pure(f"{word} {self.ikind} {x}, {y}", x, y)

    def bits_of(self, x: str) -> str:
        return self.code.pure(f"bitcast {self.kind} {x} to {self.ikind}", x)

    def float_of(self, x: str) -> str:
        return self.code.pure(f"bitcast {self.ikind} {x} to {self.kind}", x)

    def to_int(self, x: str) -> str:
        """Convert a float that already is an integer in range."""
        return self.code.pure(f"fptosi {self.kind} {x} to {self.ikind}", x)

    def from_int(self, x: str) -> str:
        return self.code.pure(f"sitofp {self.ikind} {x} to {self.kind}", x)
