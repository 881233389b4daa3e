"""The builder: what folds, what is remembered, what moves, what is refused."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irscope.graph import DTYPES, Builder, Graph, tensor
from irscope.graph.dtypes import BF16, C64, F16, F32, S32, S64
from irscope.lower.build import KernelBuilder
from irscope.lower.inline import NoScalarMeaning
from irscope.lower.interpret import interpret_kernel
from irscope.lower.printer import print_kernel
from irscope.lower.templates.transforms import combination
from irscope.lower.tile import Expr, For, If, Let, Load
from irscope.lower.traversal import walk
from irscope.ops import get


def variables(k: KernelBuilder) -> tuple[Expr, Expr, Expr]:
    """i in 0..10, j in 0..63, and an n that nothing is known of."""
    return k.variable("i", S64, known=(0, 10)), k.variable("j", S64, known=(0, 63)), k.variable("n", S64)


def test_sums_are_canonical() -> None:
    k = KernelBuilder("k")
    i, j, n = variables(k)
    assert (i + 1) * 64 + 3 - 64 is i * 64 + 3
    assert j + i is i + j
    assert (i + j) - j is i
    assert 3 * i - i * 2 is i
    assert (i - i).value == 0
    assert n * 0 + 5 is k.index(5)
    assert 7 - (7 - n) is n


def test_division_uses_what_is_known() -> None:
    k = KernelBuilder("k")
    i, j, n = variables(k)
    flat = i * 64 + j
    assert flat // 64 is i and flat % 64 is j
    assert (flat // 16) // 4 is i
    assert (flat * 2) // 128 is i
    assert (i * 128 + j) // 64 is i * 2
    assert i // 11 is k.index(0) and i % 11 is i
    assert flat // 32 * 32 + flat % 32 is flat
    assert (n // 4).op == "floordiv" and (n % 4).op == "floormod"
    assert (n // 4) // 2 is n // 8
    assert n // 1 is n and n % 1 is k.index(0)
    assert n % 12 % 4 is n % 4 and n % 12 % 12 is n % 12 and n % 10 % 4 is not n % 4
    assert (k.index(-7) // 2).value == -4 and (k.index(-7) % 2).value == 1
    with pytest.raises(ValueError, match="positive constant"):
        i // 0


def test_comparisons_and_clamps_use_ranges() -> None:
    k = KernelBuilder("k")
    i, j, n = variables(k)
    assert k.compare("LT", i, 11).value is True
    assert k.compare("GE", i, 11).value is False
    assert k.compare("LT", i, 5).op == "cmp.LT"
    assert k.binary("min", i, 10) is i and k.binary("max", i, 0) is i
    clamped = k.binary("min", k.binary("max", n, 0), 7)
    assert clamped.range == (0, 7) and k.compare("LE", clamped, 7).value is True
    assert k.select(k.pred(True), i, j) is i
    assert k.binary("and", k.pred(True), k.compare("LT", i, 5)) is k.compare("LT", i, 5)
    assert k.unary("not", k.unary("not", k.compare("LT", i, 5))) is k.compare("LT", i, 5)


def test_values_that_may_wrap_are_not_divided_apart() -> None:
    k = KernelBuilder("k")
    n = k.variable("n", S64)
    assert ((n * 4) // 4).op == "floordiv"


terms = st.recursive(st.integers(-40, 40) | st.sampled_from(["i", "j"]),
                     lambda e: st.tuples(st.sampled_from(["+", "-", "*", "//", "%", "min", "max"]), e, e), max_leaves=8)


def evaluate(tree: Any, values: dict[str, int], k: KernelBuilder | None, known: dict[str, Expr]) -> Any:
    """The value of a drawn tree, as an int or, given a builder, as an expression. Divisors are made positive constants."""
    if isinstance(tree, int):
        return tree if k is None else k.index(tree)
    if isinstance(tree, str):
        return values[tree] if k is None else known[tree]
    sign, left, right = tree
    x = evaluate(left, values, k, known)
    if sign in ("//", "%"):
        divisor = abs(right) + 1 if isinstance(right, int) else 7
        return x // divisor if sign == "//" else x % divisor
    y = evaluate(right, values, k, known)
    if sign in ("min", "max"):
        return (min if sign == "min" else max)(x, y) if k is None else k.binary(sign, x, y)
    return x + y if sign == "+" else x - y if sign == "-" else x * y


@settings(max_examples=200, deadline=None)
@given(terms, st.integers(0, 10), st.integers(0, 63))
def test_folding_never_changes_a_value(tree: Any, i: int, j: int) -> None:
    import numpy as np
    k = KernelBuilder("k")
    x, y = k.buffer("x", S64, (2,), "in"), k.buffer("y", S64, (1,), "out")
    known = {"i": k.variable("i", S64, known=(0, 10)), "j": k.variable("j", S64, known=(0, 63))}
    expression = evaluate(tree, {}, k, known)
    wanted = evaluate(tree, {"i": i, "j": j}, None, {})
    for at, name in enumerate(("i", "j")):
        k.emit(Load(known[name], x, k.index(at)))
    k.store(y, 0, expression)
    out = np.zeros(1, np.int64)
    interpret_kernel(k.kernel, [np.array([i, j]), out])
    assert out[0] == (wanted + (1 << 63)) % (1 << 64) - (1 << 63)
    if expression.range is not None:
        assert expression.range[0] <= wanted <= expression.range[1]


def test_loops_of_one_trip_and_of_none() -> None:
    k = KernelBuilder("k")
    y = k.buffer("y", F32, (8,), "out")
    with k.loop(3, 4) as i:
        assert i.value == 3
        k.store(y, i, 1.0)
    with k.loop(4, 4) as i:
        k.store(y, i, 2.0)
    with k.when(k.pred(False)):
        k.store(y, 0, 3.0)
    with k.otherwise():
        k.store(y, 1, 4.0)
    assert print_kernel(k.finish()).splitlines()[1:] == ["  store y[3] = 1", "  store y[1] = 4"]


def test_loads_are_remembered_until_something_is_stored() -> None:
    k = KernelBuilder("k")
    x, y = k.buffer("x", F32, (8,), "in"), k.buffer("y", F32, (8,), "inout")
    assert k.load(x, 1) is k.load(x, 1)
    before = k.load(y, 1)
    assert k.load(y, 1) is before
    k.store(y, 2, before)
    assert k.load(y, 1) is not before
    with k.loop(0, 4) as i:
        inside = k.load(y, 1)
        assert inside is not before
        k.store(y, i, inside)
        assert k.load(x, 1, here=True) is not k.load(x, 1)


def test_invariant_loads_leave_loops_but_not_conditions() -> None:
    k = KernelBuilder("k")
    x, n, y = k.buffer("x", F32, (8,), "in"), k.buffer("n", S64, (1,), "in"), k.buffer("y", F32, (8, 8), "out")
    with k.par(0, 8) as i:
        with k.loop(0, 8) as j:
            k.store(y, i * 8 + j, k.load(x, i))
        with k.loop(0, k.load(n, 0)) as j:
            k.store(y, i * 8 + j, k.load(x, 7))
    text = print_kernel(k.finish())
    assert text.splitlines()[1:] == [
        "  s1 = load n[0]",
        "  par i0 in 0..8:",
        "    s0 = load x[i0]",
        "    for i1 in 0..8:",
        "      store y[i0*8 + i1] = s0",
        "    for i2 in 0..s1:",
        "      s2 = load x[7]",
        "      store y[i0*8 + i2] = s2",
    ]


def test_what_nobody_uses_is_dropped_and_snapshots_are_read_in_place() -> None:
    k = KernelBuilder("k")
    x, y = k.buffer("x", F32, (8,), "in"), k.buffer("y", F32, (1,), "out")
    unused, total = k.reg(F32, 1.0), k.reg(F32, 0.0)
    with k.loop(0, 8) as i:
        unused.set(k.binary("add", unused.get(), k.load(x, 0)))
        total.set(k.fma(k.load(x, i), 2.0, total.get()))
        with k.when(k.compare("LT", i, 4)):
            k.let(k.load(x, i))
    k.store(y, 0, total.get())
    kernel = k.finish()
    assert not any(isinstance(s, If | Let) for s in walk(kernel.body))
    assert print_kernel(kernel).splitlines()[1:] == [
        "  reg r1 = 0", "  for i0 in 0..8:", "    s2 = load x[i0]", "    r1 := fma(s2, 2, r1)", "  store y[0] = r1"]


def test_narrow_types_are_computed_wide_and_rounded_once() -> None:
    k = KernelBuilder("k")
    h, b = k.variable("h", F16), k.variable("b", BF16)
    product = k.binary("mul", h, h)
    assert (product.dtype, product.op, product.args[0].op, product.args[0].dtype) == (F16, "convert", "mul", F32)
    assert k.fma(b, b, b).args[0].op == "fma"
    assert k.convert(h, BF16).args[0].dtype is F32
    small = k.binary("add", k.variable("n", DTYPES["s4"]), 1)
    assert small.op == "convert" and small.args[0].dtype is DTYPES["s8"]
    assert k.const(1e9, F16).value == float("inf") and k.const(0.1, F32).value != 0.1


def test_complex_values_are_pairs() -> None:
    k = KernelBuilder("k")
    re, im = k.variable("re", F32), k.variable("im", F32)
    z = k.complex(re, im)
    assert k.real(z) is re and k.imag(k.unary("neg", z)).op == "neg"
    w = k.variable("w", C64)
    assert k.complex(k.real(w), k.imag(w)) is w
    assert k.real(re) is re and k.unary("imag", re).value == 0.0


@pytest.mark.parametrize(("wrong", "message"), [
    (lambda k, x: k.binary("add", x, k.const(1, S32)), "operands of f32 and s32"),
    (lambda k, x: k.unary("popcnt", x), "popcnt of f32"),
    (lambda k, x: k.binary("shl", x, x), "shl of f32"),
    (lambda k, x: k.unary("frobnicate", x), "no unary frobnicate"),
    (lambda k, x: k.compare("LESS", x, x), "no comparison LESS"),
    (lambda k, x: k.select(x, x, x), "select by f32"),
    (lambda k, x: k.bitcast(x, F16), "bitcast of f32 to f16"),
    (lambda k, x: k.compare("LT", k.complex(x, x), k.complex(x, x)), "comparison LT of c64"),
    (lambda k, x: k.store(k.buffer("in", F32, (1,), "in"), 0, x), "only read"),
    (lambda k, x: k.store(k.buffer("out", S32, (1,), "out"), 0, x), "store of f32 to out"),
    (lambda k, x: k.reg(S32, x), "begins with f32"),
    (lambda k, x: k.reg(F32, x).set(k.const(1, S32)), "set to s32"),
    (lambda k, x: k.loop(0, 4, 0).__enter__(), "step 0"),
    (lambda k, x: k.otherwise().__enter__(), "follows when"),
    (lambda k, x: k.splat(k.splat(x, 4), 8), "does not spread"),
])
def test_what_does_not_fit_is_refused(wrong: Any, message: str) -> None:
    k = KernelBuilder("k")
    with pytest.raises((TypeError, ValueError), match=message):
        wrong(k, k.variable("x", F32))


def test_a_kernel_is_not_finished_inside_a_loop() -> None:
    k = KernelBuilder("k")
    with pytest.raises(ValueError, match="inside a loop"), k.loop(0, 3):
        k.finish()


# ---- bodies

def reducer(*ops: str) -> Graph:
    """(a, b) -> ops applied one after the other, each to the last value and b."""
    b = Builder(Graph("body"))
    x, y = (b.param(get("parameter"), tensor("f32"), name) for name in "xy")
    for op in ops:
        x = b.add(get(op), (x, y))
    b.graph.root = x
    return b.graph


def test_bodies_are_inlined() -> None:
    k = KernelBuilder("k")
    a, b = k.variable("a", F32), k.variable("b", F32)
    result, = k.inline(reducer("add", "multiply"), [a, b])
    assert result is k.binary("mul", k.binary("add", a, b), b)
    with pytest.raises(ValueError, match="takes 2 values, not 1"):
        k.inline(reducer("add"), [a])


def test_what_is_no_scalar_operator_is_named() -> None:
    b = Builder(Graph("body"))
    b.graph.root = b.add(get("negate"), (b.param(get("parameter"), tensor("f32", 4), "x"),))
    k = KernelBuilder("k")
    with pytest.raises(NoScalarMeaning, match="is not a single value"):
        k.inline(b.graph, [k.variable("a", F32)])


def test_par_is_only_par_outside_of_everything_else() -> None:
    k = KernelBuilder("k")
    y = k.buffer("y", F32, (64,), "out")
    with k.par(0, 2) as a, k.par(0, 4) as b, k.loop(0, 2) as c, k.par(0, 4) as d:
        k.store(y, a * 32 + b * 8 + c * 4 + d, k.const(1, F32))
    kinds = [s.kind for s in walk(k.finish().body) if isinstance(s, For)]
    assert kinds == ["par", "par", "for", "for"]


def test_numbers_of_python_are_indices_and_real_numbers_have_no_imaginary_part() -> None:
    k = KernelBuilder("k")
    assert k.binary("add", 2, 3) is k.index(5) and k.compare("LT", 2, 3).value is True
    for dtype, zero in ((F32, 0.0), (S32, 0)):
        x = k.variable("x", dtype)
        assert k.real(x) is x and k.imag(x) is k.const(zero, dtype)


def test_a_gather_on_one_lane_is_a_load() -> None:
    k = KernelBuilder("k")
    x, y = k.buffer("x", F32, (4,), "in"), k.buffer("y", F32, (4,), "out")
    i = k.variable("i", S64, known=(0, 3))
    assert k.gather(x, i) is k.load(x, i)
    k.store(y, 0, k.gather(x, k.index(2), k.pred(False)))
    found = np.ones(4, np.float32)
    k = KernelBuilder("k")
    x, y = k.buffer("x", F32, (4,), "in"), k.buffer("y", F32, (4,), "out")
    for at, inside in enumerate((True, False)):
        k.store(y, at, k.gather(x, k.index(2), k.pred(inside)))
    interpret_kernel(k.finish(), [np.array([1, 2, 3, 4], np.float32), found])
    assert found.tolist() == [3, 0, 1, 1]


def test_what_a_register_places_is_loaded_where_the_register_has_that_value() -> None:
    """Loads of inputs move out of loops, but not past the register that says where they read."""
    k = KernelBuilder("k")
    x, y = k.buffer("x", F32, (8,), "in"), k.buffer("y", F32, (3,), "out")
    at = k.reg(S64, 0)
    with k.loop(0, 3) as i:
        at.set(at.get() + 2)
        k.store(y, i, k.load(x, at.now))
    found = np.zeros(3, np.float32)
    interpret_kernel(k.finish(), [np.arange(8, dtype=np.float32), found])
    assert found.tolist() == [2, 4, 6]


def test_combinations_of_values() -> None:
    """Weights of 1 and -1 multiply nothing, those of 0 read nothing."""
    k = KernelBuilder("k")
    a, b, c = (k.variable(name, F32) for name in "abc")
    assert combination(k, (0, 1, 0), (a, b, c)) is b
    assert combination(k, (-1, 1, 0), (a, b, c)) is k.binary("sub", b, a)
    assert combination(k, (0, -1, 0), (a, b, c)) is k.unary("neg", b)
    assert combination(k, (0, 3, 0), (a, b, c)) is k.binary("mul", b, k.const(3, F32))
    assert combination(k, (2, -1, 1), (a, b, c)) is k.binary("sub", k.fma(a, k.const(2, F32), c), b)


@pytest.mark.parametrize(("name", "want"), [("add", 10), ("sub", 4), ("mul", 21), ("and", 3), ("or", 7), ("xor", 4), ("min", 3), ("max", 7)])
def test_integers_that_are_known_are_computed_at_once(name: str, want: int) -> None:
    k = KernelBuilder("k")
    for dtype in (S32, S64):
        made = k.binary(name, k.const(7, dtype), k.const(3, dtype))
        assert (made.op, made.value, made.dtype) == ("const", want, dtype)
        x = k.variable("x", dtype)
        assert k.binary(name, x, k.const(3, dtype)).op != "const"


def test_a_range_that_leaves_the_type_is_not_known() -> None:
    """The sum may wrap around then; up to the last number of the type it does not."""
    k = KernelBuilder("k")
    low, high = -(1 << 31), (1 << 31) - 1
    x, y = k.variable("x", S32, known=(low + 3, 7)), k.variable("y", S32, known=(-7, high - 3))
    assert k.binary("sub", x, 3).range == (low, 4) and k.binary("sub", x, 4).range is None
    assert k.binary("add", y, 3).range == (-4, high) and k.binary("add", y, 4).range is None
