"""Expressions of the tile IR as LLVM instructions."""
from __future__ import annotations

from collections.abc import Callable

from irscope.backends import llvm_convert, llvm_integer, llvm_math
from irscope.backends.llvm_code import Code
from irscope.backends.llvm_lanes import Lanes
from irscope.backends.llvm_types import Target, constant_text, float_text, register, scalar, splat_text, suffix, vector
from irscope.lower.tile import Expr, Register

Name = str | tuple[str, str]  # a complex value has two


class ValueEmitter:
    """Emits expressions into a function. ``names`` maps variables to names, ``registers`` registers to their values here."""

    def __init__(self, code: Code, target: Target, precision: str) -> None:
        self.code = code
        self.target = target
        self.precision = precision
        self.names: dict[Expr, Name] = {}
        self.registers: dict[Register, str] = {}
        self._known: list[dict[Expr, Name]] = [{}]
        self._moving: dict[Expr, bool] = {}
        self.flags = "" if precision == "exact" else "contract " if precision == "default" else "contract arcp nsz afn "

    # ---- entry

    def value(self, x: Expr) -> Name:
        """The name of an expression, computed in the outermost block that its operands allow."""
        found = self._find(x)
        if found is not None:
            return found
        here: dict[Expr, Name] = {}
        stack = [x]
        while stack:
            top = stack[-1]
            if top in here or self._find(top) is not None:
                stack.pop()
                continue
            waiting = [a for a in top.args if a not in here and self._find(a) is None]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            name = self._make(top, [here[a] if a in here else self._find(a) for a in top.args])
            here[top] = name
            if not self._moves(top):
                self._known[-1][top] = name
        return here[x]

    def one(self, x: Expr) -> str:
        """The name of an expression that is not complex."""
        name = self.value(x)
        assert isinstance(name, str)
        return name

    def enter(self) -> None:
        """Open a block; names of values computed in it are dropped at :meth:`leave`."""
        self._known.append({})

    def leave(self) -> None:
        self._known.pop()

    def _find(self, x: Expr) -> Name | None:
        if x.op == "const":
            return constant_text(x.value, x.dtype, x.lanes)
        if x.op == "var":
            return self.names[x]
        if x.op == "reg":
            return self.registers[x.value]
        for known in reversed(self._known):
            if x in known:
                return known[x]
        return None

    def _moves(self, x: Expr) -> bool:
        """Whether an expression reads a register, so that its value changes from place to place."""
        if x.op == "reg":
            return True
        if not x.args:
            return False
        found = self._moving.get(x)
        if found is None:
            found = self._moving[x] = any(self._moves(a) if not a.args else self._moving.get(a, False) for a in x.args)
        return found

    # ---- one expression

    def _make(self, x: Expr, args: list[Name | None]) -> Name:
        op = x.op
        if op == "complex":
            return self._text(args[0]), self._text(args[1])
        if op == "real" or op == "imag":
            pair = args[0]
            assert isinstance(pair, tuple)
            return pair[0 if op == "real" else 1]
        names = [self._text(a) for a in args]
        if op.startswith("cmp."):
            return self._compare(op[4:], x, names)
        if op.startswith("reduce."):
            return self._reduce(op[7:], x.args[0], names[0])
        rule = _RULES.get(op)
        if rule is not None:
            return rule(self, x, names)
        if x.dtype.is_integer or x.dtype.kind == "pred":
            return llvm_integer.operation(self.code, x, names)
        v = Lanes(self.code, scalar(x.dtype), x.lanes, self.target.fma, self.target.avx512)
        return llvm_math.operation(v, x, names, self.flags, self.precision)

    @staticmethod
    def _text(name: Name | None) -> str:
        assert isinstance(name, str)
        return name

    def _lane(self, x: Expr, names: list[str]) -> str:
        element = scalar(x.dtype)
        numbers = (float_text(float(i), element) if x.dtype.is_float else str(i) for i in range(x.lanes))
        return "<" + ", ".join(f"{element} {n}" for n in numbers) + ">"

    def _splat(self, x: Expr, names: list[str]) -> str:
        (name,), element, kind = names, scalar(x.dtype), register(x.dtype, x.lanes)
        if not name.startswith("%"):
            return splat_text(name, element, x.lanes)
        first = self.code.pure(f"insertelement {kind} poison, {element} {name}, i64 0", name)
        return self.code.pure(f"shufflevector {kind} {first}, {kind} poison, <{x.lanes} x i32> zeroinitializer", first)

    def _select(self, x: Expr, names: list[str]) -> str:
        kind = register(x.dtype, x.lanes)
        condition = register(x.args[0].dtype, x.args[0].lanes)
        return self.code.pure(f"select {condition} {names[0]}, {kind} {names[1]}, {kind} {names[2]}", *names)

    def _convert(self, x: Expr, names: list[str]) -> str:
        return llvm_convert.convert(self.code, self.target, names[0], x.args[0].dtype, x.dtype, x.lanes)

    def _bitcast(self, x: Expr, names: list[str]) -> str:
        before, after = register(x.args[0].dtype, x.lanes), register(x.dtype, x.lanes)
        name = names[0] if before == after else self.code.pure(f"bitcast {before} {names[0]} to {after}", names[0])
        return llvm_integer.cut(self.code, name, x.dtype, x.lanes) if x.dtype.is_integer and x.dtype.bits < 8 else name

    def _shuffle(self, x: Expr, names: list[str]) -> str:
        kind = register(x.args[0].dtype, x.args[0].lanes)
        take = ", ".join(f"i32 {i}" for i in x.value)
        if x.lanes == 1:
            source = names[x.value[0] // x.args[0].lanes]
            return self.code.pure(f"extractelement {kind} {source}, i64 {x.value[0] % x.args[0].lanes}", source)
        return self.code.pure(f"shufflevector {kind} {names[0]}, {kind} {names[1]}, <{x.lanes} x i32> <{take}>", *names)

    def _compare(self, direction: str, x: Expr, names: list[str]) -> str:
        source = x.args[0].dtype
        kind = register(source, x.lanes)
        if source.is_float:
            word = {"EQ": "oeq", "NE": "une", "LT": "olt", "LE": "ole", "GT": "ogt", "GE": "oge"}[direction]
            return self.code.pure(f"fcmp {word} {kind} {names[0]}, {names[1]}", *names)
        sign = "s" if source.kind == "int" else "u"
        word = direction.lower() if direction in ("EQ", "NE") else sign + direction.lower()
        return self.code.pure(f"icmp {word} {kind} {names[0]}, {names[1]}", *names)

    def _reduce(self, name: str, x: Expr, operand: str) -> str:
        element = scalar(x.dtype)
        kind, short = vector(element, x.lanes), suffix(element, x.lanes)
        if x.dtype.is_float and name in ("add", "mul"):
            zero = float_text(-0.0 if name == "add" else 1.0, element)
            function = f"@llvm.vector.reduce.f{name}.{short}"
            self.code.declare(element, function, ((element, ""), (kind, "")))
            return self.code.pure(f"call reassoc {element} {function}({element} {zero}, {kind} {operand})", operand)
        if x.dtype.is_float:
            return self._tree(name, x, operand)
        word = name
        if name in ("max", "min"):
            word = ("s" if x.dtype.kind == "int" else "u") + name
        return self.code.call(element, f"@llvm.vector.reduce.{word}.{short}", (kind, operand))

    def _tree(self, name: str, x: Expr, operand: str) -> str:
        """Reduce halves against halves: LLVM has no reduction as good for the exact maximum and minimum."""
        element, lanes = scalar(x.dtype), x.lanes
        if lanes & (lanes - 1):
            parts = [self.code.pure(f"extractelement {vector(element, lanes)} {operand}, i64 {i}", operand) for i in range(lanes)]
            out = parts[0]
            for part in parts[1:]:
                out = llvm_math.extreme(self.code, name, element, 1, out, part)
            return out
        while lanes > 1:
            kind, half = vector(element, lanes), lanes // 2
            low, high = (
                self.code.pure(f"shufflevector {kind} {operand}, {kind} poison, <{half} x i32> "
                               f"<{', '.join(f'i32 {i}' for i in range(begin, begin + half))}>", operand)
                for begin in (0, half)
            ) if half > 1 else (self.code.pure(f"extractelement {kind} {operand}, i64 {i}", operand) for i in (0, 1))
            operand = llvm_math.extreme(self.code, name, element, half, low, high)
            lanes = half
        return operand


_RULES: dict[str, Callable[[ValueEmitter, Expr, list[str]], str]] = {
    "lane": ValueEmitter._lane, "splat": ValueEmitter._splat, "select": ValueEmitter._select, "convert": ValueEmitter._convert,
    "bitcast": ValueEmitter._bitcast, "shuffle": ValueEmitter._shuffle,
}
