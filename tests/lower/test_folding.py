"""Vectors in the tile IR, and what folds while expressions are built."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from irscope.graph import DTYPES, DType
from irscope.graph.dtypes import BF16, C64, F16, F32, F64, PRED, S8, S32, S64, U32
from irscope.lower.build import KernelBuilder
from irscope.lower.interpret import interpret_kernel

S4, U4 = DTYPES["s4"], DTYPES["u4"]


def test_lanes_are_combined_and_permuted() -> None:
    k = KernelBuilder("k")
    x, f, p, z = (k.buffer(n, t, (4,), "in") for n, t in (("x", S32), ("f", F32), ("p", PRED), ("z", C64)))
    outs = {name: k.buffer(name, S32, (1,), "out") for name in ("add", "mul", "max", "min", "and", "or", "xor")}
    v = k.load(x, 0, 4)
    for name, buffer in outs.items():
        k.store(buffer, 0, k.reduce(name, v))
    total, both = k.buffer("total", F32, (1,), "out"), k.buffer("both", C64, (1,), "out")
    k.store(total, 0, k.reduce("add", k.load(f, 0, 4)))
    k.store(both, 0, k.reduce("add", k.load(z, 0, 4)))
    truths = k.buffer("truths", PRED, (7,), "out")
    for i, name in enumerate(("add", "max", "or", "mul", "min", "and", "xor")):
        k.store(truths, i, k.reduce(name, k.load(p, 0, 4)))
    turned, swapped = k.buffer("turned", S32, (8,), "out"), k.buffer("swapped", C64, (4,), "out")
    k.store(turned, 0, k.shuffle(v, k.splat(k.const(7, S32), 4), (3, 2, 1, 0, 4, 5, 0, 7)))
    k.store(swapped, 0, k.shuffle(k.load(z, 0, 4), k.load(z, 0, 4), [1, 0, 7, 6]))
    lanes = k.buffer("lanes", S64, (4,), "out")
    k.store(lanes, 0, k.binary("add", k.lane(4), k.vector([10, 0, 0, 5])))
    floats, firsts = k.buffer("floats", F32, (4,), "out"), k.buffer("firsts", PRED, (4,), "out")
    k.store(floats, 0, k.vector([0.1, -1.5, math.inf, 2], F32))
    k.store(firsts, 0, k.first_lanes(3, 4))
    xs, zs = [5, -3, 12, 6], [1 + 1j, 2, 3j, -1]
    found = {n: np.zeros(b.shape, b.dtype.numpy()) for n, b in ((b.name, b) for b in k.kernel.buffers if b.scope == "out")}
    interpret_kernel(k.finish(), [np.array(xs, np.int32), np.array([1, 2, 3, 4.5], np.float32), np.array([True, True, False, True]),
                                  np.array(zs, np.complex64), *found.values()])
    assert {n: int(found[n][0]) for n in outs} == {"add": 20, "mul": -1080, "max": 12, "min": -3, "and": 5 & -3 & 12 & 6, "or": 5 | -3 | 12 | 6,
                                                  "xor": 5 ^ -3 ^ 12 ^ 6}
    assert found["total"][0] == 10.5 and found["both"][0] == sum(zs) and found["truths"].tolist() == [True] * 3 + [False] * 3 + [True]
    assert found["turned"].tolist() == [6, 12, -3, 5, 7, 7, 5, 7] and found["swapped"].tolist() == [zs[1], zs[0], zs[3], zs[2]]
    assert found["lanes"].tolist() == [10, 1, 2, 8] and found["floats"].tolist() == [np.float32(0.1), -1.5, math.inf, 2]
    assert found["firsts"].tolist() == [True, True, True, False]


@pytest.mark.parametrize("dtype", [F16, BF16, S4, U4, DTYPES["f8e4m3fn"]], ids=str)
def test_narrow_lanes_are_combined_in_their_wide_type(dtype: DType) -> None:
    k = KernelBuilder("k")
    x, out = k.buffer("x", dtype, (4,), "in"), k.buffer("out", dtype, (1,), "out")
    k.store(out, 0, k.reduce("add", k.load(x, 0, 4)))
    found = np.zeros(1, dtype.numpy())
    interpret_kernel(k.finish(), [np.array([1, 2, 3, 1]).astype(dtype.numpy()), found])
    assert float(found[0]) == 7


def test_powers_of_two_are_scaled() -> None:
    for dtype, power in ((F32, S32), (F64, S64)):
        k = KernelBuilder("k")
        x, n, out = k.buffer("x", dtype, (6,), "in"), k.buffer("n", power, (6,), "in"), k.buffer("out", dtype, (6,), "out")
        with k.loop(0, 6) as i:
            k.store(out, i, k.scale2(k.load(x, i), k.load(n, i)))
        found = np.zeros(6, dtype.numpy())
        interpret_kernel(k.finish(), [np.array([1, 3, -1, 0, 1, 1], dtype.numpy()), np.array([3, -1, 0, 5, 20_000, -20_000], power.numpy()), found])
        assert found.tolist() == [8, 1.5, -1, 0, math.inf, 0]


def test_what_folds() -> None:
    k = KernelBuilder("k")
    x, v, c = k.variable("x", F32), k.variable("v", F32, 4), k.variable("c", PRED)
    s, z = k.variable("s", S32), k.variable("z", C64)
    assert k.select(k.pred(True), x, 1.0) is x and k.select(c, x, x) is x and k.select(k.splat(k.pred(False), 4), x, v) is v
    assert k.select(k.pred(True), x, v).op == "splat" and k.splat(v, 4) is v and k.convert(x, F32) is x and k.bitcast(x, F32) is x
    assert k.reduce("add", x) is x and k.lane(1) is k.const(0, S64) and k.binary("and", c, c) is c and k.binary("or", c, c) is c
    assert k.binary("and", c, k.pred(True)) is c and k.binary("and", k.pred(False), c).value is False
    assert k.binary("or", c, k.pred(False)) is c and k.binary("or", k.pred(True), c).value is True
    assert k.binary("and", c, k.splat(c, 4)).lanes == 4 and k.binary("or", k.splat(c, 4), k.pred(True)).lanes == 4
    assert k.unary("not", k.unary("not", c)) is c and k.unary("real", x) is x and k.unary("abs", k.variable("u", U32)).op == "var"
    assert k.complex(k.real(z), k.imag(z)) is z and k.real(k.complex(x, 2.0)) is x and k.imag(k.complex(2.0, x)) is x and k.real(x) is x
    for name, neutral in (("add", 0), ("sub", 0), ("or", 0), ("xor", 0), ("shl", 0), ("shr_logical", 0), ("shr_arithmetic", 0), ("mul", 1), ("div", 1)):
        assert k.binary(name, s, neutral) is s, name
        assert k.binary(name, s, neutral + 1) is not s, name
    assert k.binary("add", 0, s) is s and k.binary("mul", 1, s) is s and k.binary("sub", 0, s) is not s and k.binary("div", 1, s) is not s
    assert k.binary("add", 3, s) is k.binary("add", s, 3) and k.const(2.5, S32).value == 2 and k.const(0.1, F32).value == float(np.float32(0.1))
    assert k.const(1e300, F32).value == math.inf and k.const(-1e300, F32).value == -math.inf and k.const(1e300, F64).value == 1e300
    assert k.const(1e6, F16).value == math.inf and k.const(math.inf, BF16).value == math.inf and k.const(1 + 2 ** -9, BF16).value == 1
    assert math.isnan(k.const(math.nan, F16).value) and k.const(math.inf, DTYPES["f8e4m3fn"]).value != math.inf
    assert k.convert(k.const(300, S32), S8).value == 44 and k.convert(k.const(True, PRED), S8).value == 1 and k.convert(k.const(3, S8), F32).value == 3


@pytest.mark.parametrize(("build", "error", "message"), [
    (lambda k, x, s, z: k.splat(k.variable("w", F32, 2), 4), ValueError, "a vector of 2 lanes does not spread over 4"),
    (lambda k, x, s, z: k.shuffle(x, x, (0,)), TypeError, "shuffle of f32x1 and f32x1"),
    (lambda k, x, s, z: k.shuffle(k.splat(x, 4), k.splat(s, 4), (0,)), TypeError, "shuffle of f32x4 and s32x4"),
    (lambda k, x, s, z: k.shuffle(k.splat(x, 4), k.splat(x, 2), (0,)), TypeError, "shuffle of f32x4 and f32x2"),
    (lambda k, x, s, z: k.reduce("sub", k.splat(x, 4)), ValueError, "no reduction sub"),
    (lambda k, x, s, z: k.reduce("mul", k.splat(z, 4)), TypeError, "reduce mul of complex lanes"),
    (lambda k, x, s, z: k.unary("half", x), ValueError, "the vocabulary has no unary half"),
    (lambda k, x, s, z: k.unary("popcnt", x), TypeError, "popcnt of f32"), (lambda k, x, s, z: k.unary("exp", s), TypeError, "exp of s32"),
    (lambda k, x, s, z: k.unary("neg", k.pred(True)), TypeError, "neg of pred"), (lambda k, x, s, z: k.unary("erf", z), TypeError, "erf of c64"),
    (lambda k, x, s, z: k.binary("plus", x, x), ValueError, "the vocabulary has no binary plus"),
    (lambda k, x, s, z: k.binary("and", x, x), TypeError, "and of f32"), (lambda k, x, s, z: k.binary("atan2", s, s), TypeError, "atan2 of s32"),
    (lambda k, x, s, z: k.binary("div", k.pred(True), k.pred(True)), TypeError, "div of pred"),
    (lambda k, x, s, z: k.binary("max", z, z), TypeError, "max of c64"), (lambda k, x, s, z: k.compare("LT", z, z), TypeError, "comparison LT of c64"),
    (lambda k, x, s, z: k.binary("add", x, s), TypeError, "operands of f32 and s32"), (lambda k, x, s, z: k.fma(x, x, k.variable("d", F64)), TypeError, "fma of"),
    (lambda k, x, s, z: k.compare("XX", x, x), ValueError, "no comparison XX"), (lambda k, x, s, z: k.select(s, x, x), TypeError, "select by s32"),
    (lambda k, x, s, z: k.bitcast(x, F64), TypeError, "bitcast of f32 to f64"), (lambda k, x, s, z: k.complex(s, s), TypeError, "complex of s32"),
    (lambda k, x, s, z: k.binary("floordiv", k.splat(s, 4), k.splat(k.const(0, S32), 4)), ValueError, "positive constant"),
    (lambda k, x, s, z: k.binary("floormod", k.splat(x, 4), 2.0), ValueError, "// and % take integers"),
])
def test_what_is_refused(build: Callable[..., Any], error: type[Exception], message: str) -> None:
    k = KernelBuilder("k")
    with pytest.raises(error, match=message):
        build(k, k.variable("x", F32), k.variable("s", S32), k.variable("z", C64))
