"""The verifier on expressions and statements that no builder makes, and the interpreter on the steps of programs."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from irscope.graph import DType
from irscope.graph.dtypes import BF16, C64, C128, F32, F64, PRED, S8, S32, S64, U8, U16
from irscope.lower.build import KernelBuilder
from irscope.lower.interpret import Misstep, interpret_kernel, interpret_program
from irscope.lower.program import Copy, Launch, Loop, Program, Slot, Step, Switch
from irscope.lower.tile import Assign, Buffer, Expr, GatherLoad, If, Let, Load, Prefetch, Register, Stmt, Store, While
from irscope.lower.verify import verify_kernel, verify_program


def e(op: str, dtype: DType, *args: Expr, lanes: int = 1, value: Any = None) -> Expr:
    return Expr(op, args, dtype, lanes, value)


def c(dtype: DType, lanes: int = 1) -> Expr:
    return e("const", dtype, lanes=lanes, value=0 if lanes == 1 else (0,) * lanes)


ONE_S64 = e("const", S64, value=1)


def typing(x: Expr) -> str:
    """What is wrong with an expression; empty where it is well typed."""
    k = KernelBuilder("k")
    k.kernel.body.append(Let(Expr("var", (), x.dtype, x.lanes, "v"), x))
    problems = verify_kernel(k.kernel)
    return "; ".join(problems).partition(": ")[2] if problems else ""


LANES, TYPES, NOTHING, ORDER = "lanes differ", "types differ", "nothing computes in this type", "two values of one type compare to pred"
SPREADS, ONE, SHUFFLE = "one lane of the same type spreads", "a vector becomes one lane of its type", "it takes lanes of two equal vectors"
CHOOSES, PARTS, FLOATS, SCALES = "a pred chooses between equal types", "of complex values only", "two floats make it", "a float and an integer"


@pytest.mark.parametrize(("x", "want"), [
    (c(F32), ""), (c(F32, 4), ""), (e("const", F32, lanes=4, value=(0, 0)), "as many values as lanes are needed"),
    (e("const", F32, c(F32), value=0), "a leaf has no operands"), (e("lane", S64, lanes=4), ""), (e("add", F32), "operands are missing"),
    (e("add", F32, c(F32), c(F32)), ""), (e("add", F32, c(F32), c(F32, 4)), LANES), (e("add", F32, c(F32), c(F64)), TYPES),
    (e("add", F64, c(F32), c(F32)), TYPES), (e("add", BF16, c(BF16), c(BF16)), NOTHING), (e("add", C64, c(C64), c(C64)), NOTHING),
    (e("and", PRED, c(PRED), c(PRED)), ""), (e("add", U8, c(U8), c(U8)), ""), (e("fma", F32, c(F32), c(F32), c(F32)), ""),
    (e("floordiv", S64, c(S64), ONE_S64), ""), (e("floormod", S64, c(S64), ONE_S64), ""), (e("twist", F32, c(F32)), "unknown operation"),
    (e("is_finite", F32, c(F32)), "unknown operation"), (e("splat", F32, c(F32), lanes=4), ""), (e("splat", F64, c(F32), lanes=4), SPREADS),
    (e("splat", F32, c(F32, 2), lanes=4), SPREADS), (e("reduce.add", F32, c(F32, 4)), ""), (e("reduce.sub", F32, c(F32, 4)), ONE),
    (e("reduce.add", F64, c(F32, 4)), ONE), (e("reduce.add", F32, c(F32, 4), lanes=2), ONE),
    (e("shuffle", F32, c(F32, 2), c(F32, 2), lanes=2, value=(0, 3)), ""), (e("shuffle", F32, c(F32, 2), c(F32, 2), lanes=2, value=(0, 4)), SHUFFLE),
    (e("shuffle", F32, c(F32, 2), c(F32, 2), lanes=2, value=(-1, 0)), SHUFFLE), (e("shuffle", F32, c(F32, 2), c(F32, 2), lanes=2, value=(0,)), SHUFFLE),
    (e("shuffle", F32, c(F32, 2), lanes=2, value=(0, 1)), SHUFFLE), (e("shuffle", F32, c(F32, 2), c(F32, 4), lanes=2, value=(0, 1)), SHUFFLE),
    (e("shuffle", F32, c(F32, 2), c(F64, 2), lanes=2, value=(0, 1)), SHUFFLE), (e("shuffle", F64, c(F32, 2), c(F32, 2), lanes=2, value=(0, 1)), SHUFFLE),
    (e("select", F32, c(PRED), c(F32), c(F32)), ""), (e("select", F32, c(PRED), c(F32, 4), c(F32, 4), lanes=4), ""),
    (e("select", F32, c(PRED, 2), c(F32, 4), c(F32, 4), lanes=4), LANES), (e("select", F32, c(S32), c(F32), c(F32)), CHOOSES),
    (e("select", F32, c(PRED), c(F64), c(F32)), CHOOSES), (e("select", F64, c(PRED), c(F32), c(F32)), CHOOSES),
    (e("cmp.LT", PRED, c(F32), c(F32)), ""), (e("cmp.XX", PRED, c(F32), c(F32)), ORDER), (e("cmp.LT", F32, c(F32), c(F32)), ORDER),
    (e("cmp.LT", PRED, c(F32), c(F64)), ORDER), (e("cmp.LT", PRED, c(BF16), c(BF16)), ORDER), (e("convert", S32, c(F32)), ""),
    (e("convert", F32, c(C64)), "the builder takes that apart"), (e("convert", C64, c(F32)), "the builder takes that apart"),
    (e("convert", PRED, c(F32)), "the builder takes that apart"), (e("bitcast", S32, c(F32)), ""), (e("bitcast", S64, c(F32)), "sizes differ"),
    (e("complex", C64, c(F32), c(F32)), ""), (e("complex", C128, c(F64), c(F64)), ""), (e("complex", C64, c(F32), c(F64)), FLOATS),
    (e("complex", C64, c(S32), c(S32)), FLOATS), (e("complex", F32, c(F32), c(F32)), FLOATS), (e("real", F32, c(C64)), ""), (e("imag", F32, c(C64)), ""),
    (e("real", F32, c(F32)), PARTS), (e("imag", F32, c(F32)), PARTS), (e("scale2", F32, c(F32), c(S32)), ""), (e("scale2", F64, c(F64), c(S64)), ""),
    (e("scale2", F32, c(F32), c(S64)), SCALES), (e("scale2", F32, c(F32), c(F32)), SCALES), (e("scale2", S32, c(S32), c(S32)), SCALES),
], ids=lambda x: x.op if isinstance(x, Expr) else "")
def test_types_of_expressions(x: Expr, want: str) -> None:
    assert typing(x) == want


def test_messages_show_the_types() -> None:
    k = KernelBuilder("k")
    k.kernel.body.append(Let(Expr("var", (), F32, 1, "v"), e("add", F32, c(F32), c(F64, 4))))
    assert verify_kernel(k.kernel) == ["add(f32x1, f64x4) gives f32x1: lanes differ"]
    assert verify_kernel(replaced(Let(Expr("var", (), F32, 0, "v"), e("const", F32, lanes=0, value=0)))) == ["const has 0 lanes"]


def replaced(*statements: Stmt) -> Any:
    """A kernel of x: f32[8] in, y: f32[8] out and these statements."""
    k = KernelBuilder("k")
    k.buffer("x", F32, (8,), "in")
    k.buffer("y", F32, (8,), "out")
    k.kernel.body.extend(statements)
    return k.kernel


def var(dtype: DType, lanes: int = 1, name: str = "v") -> Expr:
    return Expr("var", (), dtype, lanes, name)


X, Y, OTHER = Buffer("x", F32, (8,), "in", 8), Buffer("y", F32, (8,), "out", 8), Buffer("other", F32, (8,), "in", 8)
AT, ONE_F = c(S64), c(F32)
R = Register("r", F32, 1)


@pytest.mark.parametrize(("statements", "want"), [
    ([Let(var(F32), c(F64))], "v of f32x1 names f64x1"), ([Let(var(F32, 4), c(F32))], "v of f32x4 names f32x1"),
    ([Load(var(F32), OTHER, AT)], "other is not a buffer of the kernel"), ([Store(OTHER, AT, ONE_F)], "other is not a buffer of the kernel"),
    ([While([], c(F32), [])], "while on f32x1"), ([While([], c(PRED, 2), [])], "while on predx2"), ([If(c(S32), [])], "if on s32x1"),
    ([If(c(PRED, 4), [])], "if on predx4"), ([Prefetch(X, c(S32))], "the index of prefetch is s32x1"), ([Prefetch(X, c(S64, 2))], "the index of prefetch is s64x2"),
    ([Assign(R, ONE_F)], "register r is set before it is declared"),
    ([Let(var(F32), e("reg", F32, value=R))], "register r is read before it is declared"),
])
def test_statements_that_are_wrong(statements: list[Stmt], want: str) -> None:
    assert want in verify_kernel(replaced(*statements))


def test_masks_and_gathers() -> None:
    def problems(make: Callable[[Buffer, Buffer], list[Stmt]]) -> list[str]:
        k = KernelBuilder("k")
        x, y = k.buffer("x", F32, (8,), "in"), k.buffer("y", F32, (8,), "out")
        k.kernel.body.extend(make(x, y))
        return verify_kernel(k.kernel)
    assert problems(lambda x, y: [Load(var(F32, 4), x, AT, c(PRED, 4)), Store(y, AT, c(F32, 4), c(PRED, 4))]) == []
    assert problems(lambda x, y: [Load(var(F32, 4), x, AT, c(PRED))]) == ["a mask of predx1 for 4 lanes of x"]
    assert problems(lambda x, y: [Store(y, AT, c(F32, 4), c(S32, 4))]) == ["a mask of s32x4 for 4 lanes of y"]
    assert problems(lambda x, y: [GatherLoad(var(F32, 4), x, c(S64, 4), None), GatherLoad(var(F32, 4, "w"), x, c(S32, 4), None)]) == []
    assert problems(lambda x, y: [GatherLoad(var(F32, 4), x, c(S32, 2), None)]) == ["v is gathered by s32x2"]
    assert problems(lambda x, y: [GatherLoad(var(F32, 4), x, c(U8, 4), None)]) == ["v is gathered by u8x4"]
    far = e("const", S64, lanes=2, value=(0, 8))
    assert problems(lambda x, y: [GatherLoad(var(F32, 2), x, far, None)]) == ["gather of x[0..8] is not shown to lie within 8 elements"]
    first = e("const", PRED, lanes=2, value=(True, False))
    assert problems(lambda x, y: [GatherLoad(var(F32, 2), x, far, first)]) == []
    second = e("const", PRED, lanes=2, value=(False, True))
    assert problems(lambda x, y: [GatherLoad(var(F32, 2), x, far, second)]) == ["gather of x[8] is not shown to lie within 8 elements"]
    none = e("const", PRED, lanes=2, value=(False, False))
    assert problems(lambda x, y: [GatherLoad(var(F32, 2), x, far, none), Load(var(F32, 2, "w"), x, c(S64), none)]) == []


def test_buffers() -> None:
    k = KernelBuilder("k")
    k.kernel.buffers += [Buffer("x", F32, (8,), "in", 8), Buffer("x", F32, (8,), "in", 8), Buffer("z", F32, (8,), "far", 8), Buffer("t", F32, (8,), "const", 8)]
    assert verify_kernel(k.kernel) == ["two buffers are called x", "buffer z has no scope far", "constant buffer t has no data"]


def test_a_register_takes_its_own_type() -> None:
    k = KernelBuilder("k")
    register = k.reg(F32, 0.0)
    k.kernel.body.append(Assign(register.register, c(F64)))  # type: ignore[union-attr]
    assert verify_kernel(k.kernel) == ["register r0 of f32x1 takes f64x1"]


# ---- the interpreter

def adder(name: str, value: float) -> Any:
    """A kernel that adds to the first element, in place."""
    k = KernelBuilder(name)
    y = k.buffer("y", F32, (1,), "inout")
    k.store(y, 0, k.binary("add", k.load(y, 0), k.const(value, F32)))
    return k.finish()


def below(limit: float) -> Any:
    """flag = y < limit"""
    k = KernelBuilder("below")
    y, flag = k.buffer("y", F32, (1,), "in"), k.buffer("flag", PRED, (1,), "out")
    k.store(flag, 0, k.compare("LT", k.load(y, 0), limit))
    return k.finish()


@pytest.mark.parametrize(("limit", "want"), [(0.0, 1.0), (5.0, 5.0), (5.5, 7.0)])
def test_a_loop_runs_while_its_flag_holds(limit: float, want: float) -> None:
    x, out, flag = Slot("x", F32, 1, "input", 0), Slot("out", F32, 1, "output", 0), Slot("flag", PRED, 1, "temp", 0)
    flag.offset = 0
    condition: list[Step] = [Launch(below(limit), [(out, 0), (flag, 0)])]
    program = Program("p", [x], [out], temps=[flag], arena_bytes=64)
    program.steps = [Copy(x, out, 4), Loop(condition, flag, [Launch(adder("two", 2), [(out, 0)])])]
    assert verify_program(program) == []
    assert interpret_program(program, [np.array([1], np.float32)])[0].tolist() == [want]


@pytest.mark.parametrize(("selector", "value", "want"), [
    (PRED, 1, 1.0), (PRED, 0, 4.0), (S32, 0, 1.0), (S32, 1, 2.0), (S32, 2, 4.0), (S32, 3, 4.0), (S32, -1, 4.0), (U8, 1, 2.0)])
def test_the_branch_of_a_switch(selector: DType, value: int, want: float) -> None:
    """A truth value chooses the first or the last branch; a number out of range the last."""
    n, out = Slot("n", selector, 1, "input", 0), Slot("out", F32, 1, "output", 0)
    program = Program("p", [n], [out])
    program.steps = [Switch(n, [[Launch(adder(f"add{v}", v), [(out, 0)])] for v in (1.0, 2.0, 4.0)])]
    assert interpret_program(program, [np.array([value], selector.numpy())])[0].tolist() == [want]


def test_copies_have_places() -> None:
    x, out = Slot("x", F32, 4, "input", 0), Slot("out", F32, 4, "output", 0)
    program = Program("p", [x], [out])
    program.steps = [Copy(x, out, 8, 4, 8)]
    data = np.array([1, 2, 3, 4], np.float32)
    assert interpret_program(program, [data])[0].tolist() == [0, 0, 2, 3]


def test_tables_are_read_and_not_written() -> None:
    table = np.array([[5, 6], [7, 8]], np.float32)
    k = KernelBuilder("k")
    t, y = Buffer("t", F32, (2, 2), "const", 4, data=table), k.buffer("y", F32, (2,), "out")
    k.kernel.buffers.append(t)
    k.store(y, 0, k.load(t, 2, 2))
    out = np.zeros(2, np.float32)
    interpret_kernel(k.kernel, [out])
    assert out.tolist() == [7, 8]
    k.kernel.body.append(Store(t, c(S64), ONE_F))
    with pytest.raises(Misstep, match="k: t is only read"):
        interpret_kernel(k.kernel, [out])


@pytest.mark.parametrize(("statement", "message"), [
    (Assign(R, ONE_F), "r is set before it is declared"), (Let(var(F32), e("reg", F32, value=R)), "r is read before it is declared"),
    (Let(var(F32), var(F32, name="ghost")), "ghost"),
])
def test_what_is_not_declared_stops_the_interpreter(statement: Stmt, message: str) -> None:
    with pytest.raises(Misstep, match=message):
        interpret_kernel(replaced(statement), [np.zeros(8, np.float32)] * 2)


def test_masked_lanes_are_not_touched() -> None:
    k = KernelBuilder("k")
    x, y = k.buffer("x", F32, (3,), "in"), k.buffer("y", F32, (3,), "out")
    mask = k.vector([True, False, True, False], PRED)
    k.store(y, 0, k.binary("add", k.load(x, 0, 4, mask), k.splat(k.const(1, F32), 4)), mask)
    out = np.full(3, 9, np.float32)
    interpret_kernel(k.finish(), [np.array([1, 2, 3], np.float32), out])
    assert out.tolist() == [2, 9, 4]
    k = KernelBuilder("k")
    x, y = k.buffer("x", F32, (3,), "in"), k.buffer("y", F32, (4,), "out")
    k.store(y, 0, k.gather(x, k.vector([2, 9, 0, -1]), mask=k.vector([True, False, True, False], PRED)))
    out = np.full(4, 9, np.float32)
    interpret_kernel(k.finish(), [np.array([1, 2, 3], np.float32), out])
    assert out.tolist() == [3, 0, 1, 0], "a lane that reads nothing is 0"


def test_wrong_arrays() -> None:
    for array in (np.zeros(7, np.float32), np.zeros((2, 4), np.float32), np.zeros(8, np.float64)):
        with pytest.raises(ValueError, match=r"x is float(32|64)\[.*\], not f32\[8\]"):
            interpret_kernel(replaced(), [array, np.zeros(8, np.float32)])
    interpret_kernel(replaced(), [np.zeros(9, np.float32), np.zeros(8, np.float32)])
    with pytest.raises(ValueError, match="kernel k takes 2 buffers, not 3"):
        interpret_kernel(replaced(), [np.zeros(8, np.float32)] * 3)


def test_steps_of_programs_are_checked_at_their_bounds() -> None:
    x, out = Slot("x", F32, 2, "input", 0), Slot("out", F32, 1, "output", 0)
    small = Slot("t", F32, 16, "temp", 0)
    program = Program("p", [x], [out], temps=[small], arena_bytes=64)
    small.offset = 0

    def said(step: Step) -> list[str]:
        program.steps = [Copy(x, out, 4), step]
        return verify_program(program)
    assert said(Copy(x, out, 4, 4, 0)) == [] and said(Copy(x, out, 4, 0, 0)) == []
    assert said(Copy(x, out, 4, 5, 0)) == ["a copy of 4 bytes leaves x"] and said(Copy(x, out, 4, -1, 0)) == ["a copy of 4 bytes leaves x"]
    assert said(Copy(x, out, 4, 0, 1)) == ["a copy of 4 bytes leaves out"]
    assert said(Launch(adder("a", 1), [(out, -1)])) == ["a: y needs 1 elements, out has 2 from -1"]
    assert said(Launch(adder("a", 1), [(out, 1)])) == ["a: y needs 1 elements, out has 0 from 1"]
    assert said(Launch(adder("a", 1), [(x, 1)])) == ["a: writes the input x"]
    small.offset = -4
    assert said(Copy(x, out, 4)) == ["temporary t is outside of the arena"]
    small.offset = 1
    assert said(Copy(x, out, 4)) == ["temporary t is outside of the arena"]
    small.offset = 0
    assert said(Copy(x, out, 4)) == []
    for dtype, problem in ((F32, True), (S8, False), (U16, False), (PRED, False)):
        selector = Slot("s", dtype, 1, "input", 1)
        program.inputs = [x, selector]
        assert said(Switch(selector, [[]])) == ([f"a switch on s, which is {dtype}"] if problem else [])
