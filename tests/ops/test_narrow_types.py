"""Element types that numpy and IEEE 754 do not have, and arrays without elements or without memory of their own: reference and compiled code agree."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.graph import DTYPES, DType, Op
from irscope.ops import hlo
from irscope.ops.bodies import COMBINERS, combine, identity
from tests.lower.whole import check, entry, module_of, reference

ARRAYS = [d for d in DTYPES.values() if d.kind in ("pred", "int", "uint", "float")]
INTEGERS = [d for d in ARRAYS if d.is_integer]


def values_of(dtype: DType) -> np.ndarray:
    """Every value of a narrow type that is a number, some of a wide one."""
    if dtype.storage == 1 and dtype.is_float:
        found = np.arange(1 << dtype.bits).astype(np.uint8).view(dtype.numpy())
        return found[~np.isnan(found.astype(np.float32))]
    low, high = (-1 << (dtype.bits - 1), 1 << (dtype.bits - 1)) if dtype.kind == "int" else (0, 1 << min(dtype.bits, 8))
    return np.array([0, 1] if dtype.kind == "pred" else range(max(low, -99), min(high, 99))).astype(dtype.numpy())


@pytest.mark.parametrize("op", COMBINERS, ids=str)
@pytest.mark.parametrize("dtype", ARRAYS, ids=str)
def test_an_identity_changes_nothing(dtype: DType, op: Op) -> None:
    if (dtype.kind == "pred" and op in (hlo.add, hlo.multiply)) or (dtype.is_float and op in hlo.named("and or xor")):
        return  # no such operations
    if dtype.name == "f8e8m0fnu" and op is hlo.add:
        return  # a type of powers of two, which has no zero
    begin = identity(op, dtype.numpy())
    assert begin.dtype == dtype.numpy()
    values = values_of(dtype)
    wide = np.int16 if dtype.is_integer and dtype.bits < 8 else dtype.numpy()
    result = np.asarray(combine(op)(values.astype(wide), np.broadcast_to(begin, values.shape).astype(wide)))
    assert np.array_equal(result.astype(dtype.numpy()), values)


@pytest.mark.parametrize("dtype", [d for d in ARRAYS if d.kind != "pred"], ids=str)
@pytest.mark.parametrize("dimension", [0, 1])
def test_the_largest_of_a_row(dtype: DType, dimension: int) -> None:
    values = values_of(dtype)
    x = np.random.default_rng(0).choice(values, (17, 17))
    init = str(int(dtype.lowest)) if dtype.is_integer else "-1"
    text = entry(f"x = {dtype}[17,17] parameter(0)\n i = {dtype}[] constant({'0' if dtype.kind == 'uint' else '-1' if dtype.is_float else init})\n"
                 f"ROOT r = {dtype}[17] reduce(x, i), dimensions={{{dimension}}}, to_apply=most",
                 f"most {{ a = {dtype}[] parameter(0)\n b = {dtype}[] parameter(1)\n ROOT r = {dtype}[] maximum(a, b) }}\n")
    if dtype.name == "f8e8m0fnu":
        text = text.replace("constant(-1)", "constant(1)")
        x[x.astype(np.float64) < 1] = 1
    got = check(text, [x], runs=1)(x)[0]
    wide = x.astype(np.float64 if dtype.is_float else object if dtype.bits == 64 else np.int64)
    assert np.array_equal(got.astype(wide.dtype), np.maximum(wide.max(dimension), -1) if dtype.is_float else wide.max(dimension))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_products_of_integers_wrap(dtype: DType) -> None:
    x, y = (np.random.default_rng(seed).choice(values_of(dtype), shape) for seed, shape in ((0, (5, 19)), (1, (19, 17))))
    text = entry(f"x = {dtype}[5,19] parameter(0)\n y = {dtype}[19,17] parameter(1)\n"
                 f"ROOT d = {dtype}[5,17] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")
    got = check(text, [x, y], runs=1)(x, y)[0].astype(object)
    exact = x.astype(int).astype(object) @ y.astype(int).astype(object)
    low = 1 << (dtype.bits - 1) if dtype.kind == "int" else 0
    assert np.array_equal(got, (exact + low) % (1 << dtype.bits) - low)


@pytest.mark.parametrize("dtype", ["s4", "u2", "s1"])
def test_convolutions_of_narrow_integers(dtype: str) -> None:
    check(entry(f"x = {dtype}[1,5,5,3] parameter(0)\n w = {dtype}[3,3,3,4] parameter(1)\n"
                f"ROOT c = {dtype}[1,5,5,4] convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f"))


def test_a_convolution_of_no_channels_is_zero() -> None:
    model = check(entry("""x = f32[1,0,4,4] parameter(0)
      w = f32[2,0,3,3] parameter(1)
      ROOT c = f32[1,2,4,4] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01"""))
    assert not model(np.zeros((1, 0, 4, 4), np.float32), np.zeros((2, 0, 3, 3), np.float32))[0].any()


@pytest.mark.parametrize(("shape", "operand"), [("4", "broadcast(p), dimensions={1}"), ("4,3", "transpose(p), dimensions={1,0}")])
def test_scattering_into_an_array_that_is_a_view(shape: str, operand: str) -> None:
    text = entry(f"""p = f32[{shape}] parameter(0)
      x = f32[3,4] {operand}
      i = s32[1,2] parameter(1)
      u = f32[1,2,2] parameter(2)
      ROOT s = f32[3,4] scatter(x, i, u), update_window_dims={{1,2}}, inserted_window_dims={{}}, scatter_dims_to_operand_dims={{0,1}}, index_vector_dim=1, to_apply=keep""",
                 "keep { a = f32[] parameter(0)\n ROOT b = f32[] parameter(1) }\n")
    p = np.arange(np.prod([int(n) for n in shape.split(",")]), dtype=np.float32).reshape([int(n) for n in shape.split(",")])
    expected = np.array(np.broadcast_to(p, (3, 4)) if p.ndim == 1 else p.T)
    u = -np.arange(1, 5, dtype=np.float32).reshape(1, 2, 2)
    expected[1:3, 2:4] = u[0]
    given = [p, np.array([[1, 2]], np.int32), u]
    assert np.array_equal(reference(module_of(text), given)[0], expected)
    check(text, given, runs=1)


@pytest.mark.parametrize("algorithm", ["rng_three_fry", "rng_philox"])
def test_no_random_bits_move_no_state(algorithm: str) -> None:
    model = check(entry(f"s = u64[2] parameter(0)\n ROOT r = (u64[2], u32[3,0]) rng-bit-generator(s), algorithm={algorithm}"))
    assert np.array_equal(model(np.array([3, 4], np.uint64))[0], [3, 4])


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_reductions_of_several_arrays_without_elements(shape: tuple[int, int]) -> None:
    x, rows = f"f32[{shape[0]},{shape[1]}]", f"f32[{shape[0]}]"
    check(entry(f"""x = {x} parameter(0)
      z = f32[] constant(2)
      ROOT r = ({rows}, {rows}) reduce(x, x, z, z), dimensions={{1}}, to_apply=both""", """both { a = f32[] parameter(0)
      b = f32[] parameter(1)
      c = f32[] parameter(2)
      d = f32[] parameter(3)
      s = f32[] add(a, c)
      p = f32[] multiply(b, d)
      ROOT r = (f32[], f32[]) tuple(s, p) }
    """))
