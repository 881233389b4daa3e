"""Every word on every integer type: machine code, the interpreter, Python's integers."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.graph import DTYPES, DType
from irscope.graph.dtypes import PRED
from irscope.lower.expressions import limits
from irscope.ops.vocabulary import COMPARE
from tests.backends.running import assert_same, both, grid

INTEGERS = [d for d in DTYPES.values() if d.is_integer]
BINARY = "add sub mul div rem max min and or xor shl shr_logical shr_arithmetic mulhi pow".split()
UNARY = "neg abs sign not popcnt clz".split()


def specials(dtype: DType) -> list[int]:
    low, high = limits(dtype)
    if dtype.bits < 8:
        return list(range(low, high + 1))
    wanted = [low, low + 1, -17, -2, -1, 0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 33, 63, 64, 100, high - 1, high]
    return sorted({v for v in wanted if low <= v <= high})


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_machine_code_agrees_with_the_interpreter(dtype: DType, lanes: int) -> None:
    x, y = grid(specials(dtype), dtype)
    words = [w for w in BINARY if w != "pow" or lanes == 1]
    got, want = both(lambda k, a, b: [*(k.binary(w, a, b) for w in words), *(k.unary(w, a) for w in UNARY)], [x, y],
                     [dtype] * (len(words) + len(UNARY)), lanes)
    for word, g, w in zip([*words, *UNARY], got, want, strict=True):
        try:
            assert_same(g, w, x, y)
        except AssertionError as error:
            raise AssertionError(f"{word} of {dtype}: {error}") from None


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_comparisons(dtype: DType) -> None:
    x, y = grid(specials(dtype), dtype)
    got, want = both(lambda k, a, b: [k.compare(d, a, b) for d in sorted(COMPARE)], [x, y], [PRED] * 6, 8)
    for g, w in zip(got, want, strict=True):
        assert_same(g, w, x, y)
    assert (got[sorted(COMPARE).index("LT")] == (x.astype(object) < y.astype(object))).all()


def test_the_words_mean_what_hlo_says() -> None:
    low = -(1 << 31)
    x = np.array([low, 7, -7, 5, 1, low, 1, -8, 2], np.int32)
    y = np.array([-1, 0, 2, -3, -5, 0, 32, 40, -1], np.int32)
    s32 = DTYPES["s32"]
    (div, rem, left, logical, arithmetic, power), _ = both(
        lambda k, a, b: [k.binary(w, a, b) for w in ("div", "rem", "shl", "shr_logical", "shr_arithmetic", "pow")], [x, y], [s32] * 6)
    assert div.tolist() == [low, -1, -3, -1, 0, -1, 0, 0, -2]
    assert rem.tolist() == [0, 7, -1, 2, 1, low, 1, -8, 0]
    assert left.tolist() == [0, 7, -28, 0, 0, low, 0, 0, 0]
    assert logical[6:].tolist() == [0, 0, 0]
    assert arithmetic[6:].tolist() == [0, -1, 0]
    assert power[2] == 49 and power[4] == 1 and power[3] == 0 and power[5] == 1


def test_pred_words() -> None:
    x, y = grid([False, True], PRED)
    words = ["add", "mul", "max", "min", "and", "or", "xor"]
    got, want = both(lambda k, a, b: [*(k.binary(w, a, b) for w in words), k.unary("not", a), *(k.compare(d, a, b) for d in sorted(COMPARE)),
                                      k.select(a, b, k.unary("not", b))], [x, y], [PRED] * 15, 4)
    for g, w in zip(got, want, strict=True):
        assert_same(g, w, x, y)
    assert (got[0] == (x | y)).all() and (got[1] == (x & y)).all() and (got[6] == (x ^ y)).all()


@pytest.mark.parametrize("divisor", [1, 2, 3, 8, 10])
@pytest.mark.parametrize("name", ["s64", "s32", "u32"])
def test_floor_division_of_lanes(name: str, divisor: int) -> None:
    dtype = DTYPES[name]
    x = np.arange(-20 if dtype.kind == "int" else 0, 21).astype(dtype.numpy())
    (quotient, rest), want = both(lambda k, a: [a // divisor, a % divisor], [x], [dtype] * 2, 8)
    assert (quotient == x // divisor).all() and (rest == x % divisor).all()
    assert (want[0] == quotient).all() and (want[1] == rest).all()


@pytest.mark.parametrize("exponent", [0, 1, 2, 5, 10])
def test_constant_powers(exponent: int) -> None:
    x = np.arange(-4, 5).astype(np.int32)
    (got,), _ = both(lambda k, a: [k.binary("pow", a, exponent)], [x], [DTYPES["s32"]], 4)
    assert (got == x ** exponent).all()
