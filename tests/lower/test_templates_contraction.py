"""Matrix products: every order of dimensions, every size of tail, every way of reading the right operand."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lower.running import check, compiled, entry


def product(m: int, n: int, k: int, lhs: str, rhs: str, dtype: str = "f32", out: str = "", epilogue: bool = True) -> str:
    """``lhs`` and ``rhs`` are orders of dimensions: mk or km, kn or nk."""
    sizes = {"m": m, "n": n, "k": k}
    shapes = [",".join(str(sizes[d]) for d in order) for order in (lhs, rhs)]
    out = out or dtype
    tail = f"""
      b = {out}[{n}] parameter(2)
      w = {out}[{m},{n}] broadcast(b), dimensions={{1}}
      ROOT s = {out}[{m},{n}] add(d, w)""" if epilogue else f"ROOT c = {out}[{m},{n}] copy(d)"
    return entry(f"""
      x = {dtype}[{shapes[0]}] parameter(0)
      y = {dtype}[{shapes[1]}] parameter(1)
      d = {out}[{m},{n}] dot(x, y), lhs_contracting_dims={{{lhs.index('k')}}}, rhs_contracting_dims={{{rhs.index('k')}}}
      {tail}""")


@pytest.mark.parametrize("fixed", [(), (1,), (0,)])
@pytest.mark.parametrize("rhs", ["kn", "nk"])
@pytest.mark.parametrize("lhs", ["mk", "km"])
@pytest.mark.parametrize("sizes", [(17, 37, 19), (3, 64, 40), (64, 5, 33)])
def test_orders_of_dimensions(sizes: tuple[int, int, int], lhs: str, rhs: str, fixed: tuple[int, ...]) -> None:
    check(product(*sizes, lhs, rhs), fixed, template="contraction")


@pytest.mark.parametrize("sizes", [(1, 100, 70), (100, 1, 70), (1, 1, 100), (130, 2, 300), (2, 130, 300), (1, 1000, 3)])
@pytest.mark.parametrize("fixed", [(), (1,)])
def test_vectors(sizes: tuple[int, int, int], fixed: tuple[int, ...]) -> None:
    check(product(*sizes, "mk", "kn"), fixed)
    check(product(*sizes, "mk", "nk"), fixed)


def test_long_sums_go_in_blocks() -> None:
    program = check(product(40, 96, 3000, "mk", "kn"), (1,), 1e-5, "contraction")
    assert any(k.schedule["sum_block"] for k in program.kernels())


@pytest.mark.parametrize(("dtype", "out", "tolerance"), [("f64", "f64", 1e-14), ("bf16", "bf16", 1e-2), ("f16", "f16", 2e-3), ("bf16", "f32", 1e-5),
                                                         ("s32", "s32", 0), ("s8", "s32", 0), ("u8", "u32", 0), ("s64", "s64", 0), ("s16", "s16", 0)])
@pytest.mark.parametrize("fixed", [(), (1,)])
def test_element_types(dtype: str, out: str, tolerance: float, fixed: tuple[int, ...]) -> None:
    check(product(13, 45, 29, "mk", "kn", dtype, out), fixed, tolerance, "contraction")


@pytest.mark.parametrize("fixed", [(), (1,)])
def test_batches_in_any_place(fixed: tuple[int, ...]) -> None:
    check(entry("""
      x = f32[2,9,3,20] parameter(0)
      y = f32[3,20,2,35] parameter(1)
      d = f32[2,3,9,35] dot(x, y), lhs_batch_dims={0,2}, rhs_batch_dims={2,0}, lhs_contracting_dims={3}, rhs_contracting_dims={1}
      ROOT e = f32[2,3,9,35] negate(d)"""), fixed, template="contraction")


@pytest.mark.parametrize("fixed", [(), (1,)])
def test_several_dimensions_a_role(fixed: tuple[int, ...]) -> None:
    check(entry("""
      x = f32[4,5,6,7] parameter(0)
      y = f32[7,3,5,33] parameter(1)
      ROOT d = f32[4,6,3,33] dot(x, y), lhs_contracting_dims={1,3}, rhs_contracting_dims={2,0}"""), fixed, template="contraction")


def test_attention_reads_heads_where_they_lie() -> None:
    program = check(entry("""
      q = f32[1,24,4,32] parameter(0)
      k = f32[1,24,4,32] parameter(1)
      v = f32[1,24,4,32] parameter(2)
      qt = f32[1,4,24,32] transpose(q), dimensions={0,2,1,3}
      kt = f32[1,4,24,32] transpose(k), dimensions={0,2,1,3}
      vt = f32[1,4,24,32] transpose(v), dimensions={0,2,1,3}
      s = f32[1,4,24,24] dot(qt, kt), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={3}
      o = f32[1,4,24,32] dot(s, vt), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={2}
      ROOT r = f32[1,24,4,32] transpose(o), dimensions={0,2,1,3}"""), template="contraction")
    assert len([k for k in program.kernels() if k.schedule["template"] == "contraction"]) == 2


def test_batches_that_lie_side_by_side_are_lanes() -> None:
    program = check(entry("""
      x = f32[6,5,40] parameter(0)
      y = f32[6,40] parameter(1)
      d = f32[40,5] dot(x, y), lhs_batch_dims={2}, rhs_batch_dims={1}, lhs_contracting_dims={0}, rhs_contracting_dims={0}
      ROOT t = f32[5,40] transpose(d), dimensions={1,0}"""), template="contraction")
    assert program.kernels()[0].schedule.get("by") == "batches"


def test_results_that_lie_side_by_side_along_nothing() -> None:
    check(entry("""
      x = f32[3,20,17] parameter(0)
      y = f32[3,17,21] parameter(1)
      d = f32[3,20,21] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
      n = f32[3,20,21] negate(d)
      ROOT t = f32[20,21,3] transpose(n), dimensions={1,2,0}"""), template="contraction")


def test_operands_may_be_slices_and_run_backwards() -> None:
    check(entry("""
      x = f32[30,50] parameter(0)
      y = f32[60,70] parameter(1)
      a = f32[10,20] slice(x), slice={[2:22:2], [5:45:2]}
      b = f32[20,40] slice(y), slice={[0:60:3], [10:50]}
      c = f32[20,40] reverse(b), dimensions={0}
      ROOT d = f32[10,40] dot(a, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""), template="contraction")


def test_nothing_to_sum_and_nothing_to_give() -> None:
    check(entry("""
      x = f32[3,0] parameter(0)
      y = f32[0,20] parameter(1)
      ROOT d = f32[3,20] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""))
    check(entry("""
      x = f32[0,4] parameter(0)
      y = f32[4,20] parameter(1)
      ROOT d = f32[0,20] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""))


@settings(max_examples=25, deadline=None)
@given(m=st.integers(1, 40), n=st.integers(1, 70), k=st.integers(1, 50), lhs=st.sampled_from(["mk", "km"]), rhs=st.sampled_from(["kn", "nk"]),
       fixed=st.sampled_from([(), (0,), (1,)]))
def test_random_sizes(m: int, n: int, k: int, lhs: str, rhs: str, fixed: tuple[int, ...]) -> None:
    check(product(m, n, k, lhs, rhs), fixed)


@pytest.mark.parametrize("middle", ["30", "5,6", "3,2,5"])
def test_a_product_reshaped_there_and_back_keeps_its_epilogue(middle: str) -> None:
    """15 columns on 16 lanes: the arithmetic of the indices does not show that they are the same again."""
    check(entry(f"""
      x = f32[2,1] parameter(0)
      w = f32[15,1] parameter(1)
      d = f32[2,15] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
      r = f32[{middle}] reshape(d)
      f = f32[{middle}] floor(r)
      s = f32[6,5] reshape(f)
      c = f32[6,5] cosine(s)
      ROOT q = f32[2,15] reshape(c)"""))


@pytest.mark.parametrize("out", ["u4", "u8", "s8", "s32", "s64"])
def test_floats_become_integers_of_the_result_before_they_are_multiplied(out: str) -> None:
    """-1.5 is 0 as u8, whose products are 0 too."""
    text = entry(f"""
      x = f32[4,5] parameter(0)
      y = f32[5,6] parameter(1)
      h = f32[] constant(100)
      s = f32[4,5] broadcast(h), dimensions={{}}
      z = f32[4,5] multiply(x, s)
      ROOT d = {out}[4,6] dot(z, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}""")
    check(text)


@pytest.mark.parametrize("dtype", ["f32", "s32", "u8", "s64", "f64"])
def test_inner_products_of_batches_and_of_rows_of_two_dimensions(dtype: str) -> None:
    """Few columns, both operands contiguous along the sum: lanes walk it, in every batch."""
    program = check(entry(f"""
      x = {dtype}[2,3,5,40] parameter(0)
      y = {dtype}[3,2,40] parameter(1)
      ROOT d = {dtype}[3,2,5,2] dot(x, y), lhs_batch_dims={{1}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{3}}, rhs_contracting_dims={{2}}"""),
      tolerance=1e-5 if dtype == "f32" else 1e-13 if dtype == "f64" else 0, template="contraction")
    assert set(program.kernels()[0].schedule) == {"rows", "template"}


def test_batches_side_by_side_have_rows_and_columns() -> None:
    program = check(entry("""
      x = f32[6,5,40] parameter(0)
      y = f32[6,3,2,40] parameter(1)
      d = f32[40,5,3,2] dot(x, y), lhs_batch_dims={2}, rhs_batch_dims={3}, lhs_contracting_dims={0}, rhs_contracting_dims={0}
      ROOT t = f32[5,3,2,40] transpose(d), dimensions={1,2,3,0}"""), template="contraction")
    assert program.kernels()[0].schedule.get("by") == "batches"


def test_long_sums_of_batches_side_by_side_are_kept_wide() -> None:
    """Sums of 2048 products are exact in f32, those of 20000 only beside it."""
    text = entry("""
      x = f32[20000,8] parameter(0)
      y = f32[20000,8] parameter(1)
      ROOT d = f32[8] dot(x, y), lhs_batch_dims={1}, rhs_batch_dims={1}, lhs_contracting_dims={0}, rhs_contracting_dims={0}""")
    program, executable = compiled(text)
    assert program.kernels()[0].schedule.get("by") == "batches"
    factors = np.array([8191, 8189, 8187, 8185, 4099, 4097, 3, 1], np.float32)
    x, y = np.ones((20000, 8), np.float32), np.ones((20000, 1), np.float32) * factors
    assert executable(x, y)[0].tolist() == (factors * np.float32(20000)).tolist()


@pytest.mark.parametrize("fixed", [(), (1,)])
def test_columns_of_two_dimensions_that_lie_apart(fixed: tuple[int, ...]) -> None:
    """Weights [out, depth, head]: in panels, the columns of a head are together."""
    check(entry("""
      x = f32[4,7] parameter(0)
      y = f32[3,7,33] parameter(1)
      b = f32[4,33,3] parameter(2)
      d = f32[4,3,33] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}
      t = f32[4,33,3] transpose(d), dimensions={0,2,1}
      ROOT s = f32[4,33,3] add(t, b)"""), fixed, template="contraction")
    check(entry("""
      x = f32[4,7] parameter(0)
      y = f32[3,7,33] parameter(1)
      ROOT d = f32[4,3,33] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}"""), fixed, template="contraction")


@pytest.mark.parametrize(("counted", "template"), [
    ("i = f32[6,5] iota(), iota_dimension=1", "contraction"), ("i = f32[6,5] iota(), iota_dimension=0", "contraction"),
    ("j = f32[2,15] iota(), iota_dimension=1\n i = f32[6,5] reshape(j)", ""),
])
def test_a_product_is_joined_with_numbers_that_count(counted: str, template: str) -> None:
    program = check(entry(f"""
      x = f32[6,20] parameter(0)
      y = f32[20,5] parameter(1)
      d = f32[6,5] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
      {counted}
      ROOT s = f32[6,5] add(d, i)"""), template=template)
    assert len(program.launches()) == 1
