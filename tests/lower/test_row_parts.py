"""Long rows are reduced in parts, which are divided among threads: every operation, any number of parts, the same results on any."""
from __future__ import annotations

import numpy as np
import pytest

import irscope
from irscope.analysis.reference import evaluate, flatten
from irscope.api import load
from irscope.lower.interpret import interpret_program
from irscope.lower.program import Program
from irscope.lower.templates import rows
from tests.lower.running import compiled, drawn, entry


@pytest.fixture(autouse=True)
def short_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 200 elements are long."""
    monkeypatch.setattr(rows, "LONG_ROW", 200)


def body(operation: str, dtype: str = "f32") -> str:
    return f"by {{ a = {dtype}[] parameter(0)\n b = {dtype}[] parameter(1)\n ROOT r = {dtype}[] {operation}(a, b) }}"


def reducing(operation: str, shape: str, dims: str, kept: str, init: str = "0", dtype: str = "f32", before: str = "copy(x)") -> str:
    return entry(f"""
      x = {dtype}[{shape}] parameter(0)
      y = {dtype}[{shape}] {before}
      i = {dtype}[] constant({init})
      ROOT r = {dtype}[{kept}] reduce(y, i), dimensions={{{dims}}}, to_apply=by""", body(operation, dtype))


def parts(program: Program) -> list[int]:
    return [k.schedule.get("part", 0) for k in program.kernels()]


def check(text: str, *arrays: np.ndarray, divided: bool = True) -> None:
    """Compare a program with the reference, compiled and interpreted."""
    module = load(text).module()
    given = list(arrays) or drawn(module)
    with np.errstate(all="ignore"):
        expected = flatten(evaluate(module.main(), given))
    program, executable = compiled(text)
    assert any(parts(program)) == divided
    with np.errstate(all="ignore"):
        found = (executable(*given), interpret_program(program, given))
    for results in found:
        for result, wanted in zip(results, expected, strict=True):
            np.testing.assert_allclose(np.asarray(result, np.float64).reshape(wanted.shape), np.asarray(wanted, np.float64), rtol=2e-6,
                                       atol=1e-5)


@pytest.mark.parametrize(("operation", "init", "shape", "dims", "kept"), [
    ("add", "3", "9001", "0", ""), ("add", "3", "3,8999", "1", "3"), ("add", "3", "90,100", "0,1", ""), ("multiply", "2", "9001", "0", ""),
    ("maximum", "-inf", "3,8999", "1", "3"), ("minimum", "0.5", "90,100", "0,1", "")])
def test_operations(operation: str, init: str, shape: str, dims: str, kept: str) -> None:
    check(reducing(operation, shape, dims, kept, init, before="cosine(x)"))


@pytest.mark.parametrize(("operation", "dtype", "init"), [
    ("add", "f64", "0"), ("add", "bf16", "0"), ("add", "s32", "0"), ("add", "u8", "0"), ("maximum", "s64", "-9"), ("and", "s32", "-1"),
    ("or", "pred", "false")])
def test_types(operation: str, dtype: str, init: str) -> None:
    check(reducing(operation, "20000", "0", "", init, dtype))


@pytest.mark.parametrize("operation", ["add", "maximum", "minimum"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_infinite_elements(operation: str, value: float) -> None:
    x = np.ones(9001, np.float32)
    for place in (0, 4096, 9000):
        there = x.copy()
        there[place] = value
        check(reducing(operation, "9001", "0", "", "0"), there)


def test_several_reductions_and_work_on_their_results() -> None:
    check(entry("""
      x = f32[2,9001] parameter(0)
      y = f32[2] parameter(1)
      z = f32[] constant(0)
      s = f32[2] reduce(x, z), dimensions={1}, to_apply=by
      q = f32[2,9001] multiply(x, x)
      t = f32[2] reduce(q, z), dimensions={1}, to_apply=by
      n = f32[] constant(9001)
      nb = f32[2] broadcast(n), dimensions={}
      m = f32[2] divide(s, nb)
      w = f32[2] add(m, y)
      ROOT r = (f32[2], f32[2]) tuple(w, t)""", body("add")))


def test_rows_of_several_axes() -> None:
    """The parts are of the first one."""
    check(entry("""
      x = f32[301,57] parameter(0)
      w = f32[57] parameter(1)
      wb = f32[301,57] broadcast(w), dimensions={1}
      y = f32[301,57] multiply(x, wb)
      z = f32[] constant(0)
      ROOT r = f32[] reduce(y, z), dimensions={0,1}, to_apply=by""", body("add")))


@pytest.mark.parametrize(("shape", "dims", "kept"), [("199", "0", ""), ("8,9000", "1", "8")])
def test_short_rows_and_many_rows_are_not_divided(shape: str, dims: str, kept: str) -> None:
    check(reducing("add", shape, dims, kept), divided=False)


def test_a_reduction_that_depends_on_another_is_not_divided() -> None:
    check(entry("""
      x = f32[9001] parameter(0)
      z = f32[] constant(0)
      s = f32[] reduce(x, z), dimensions={0}, to_apply=by
      sb = f32[9001] broadcast(s), dimensions={}
      d = f32[9001] subtract(x, sb)
      q = f32[9001] multiply(d, d)
      ROOT t = f32[] reduce(q, z), dimensions={0}, to_apply=by""", body("add")), divided=False)


@pytest.mark.parametrize(("behind", "divided"), [
    ("ROOT r = f32[9001] subtract(x, sb)", False), ("d = f32[9001] subtract(x, sb)\n ROOT r = (f32[], f32[9001]) tuple(s, d)", True)])
def test_a_row_whose_elements_are_results_of_the_same_kernel_is_not_divided(behind: str, divided: bool) -> None:
    """A part does not know the sum of the others; a kernel behind does."""
    check(entry(f"""
      x = f32[9001] parameter(0)
      z = f32[] constant(0)
      s = f32[] reduce(x, z), dimensions={{0}}, to_apply=by
      sb = f32[9001] broadcast(s), dimensions={{}}
      {behind}""", body("add")), divided=divided)


def test_threads_do_not_change_a_bit() -> None:
    text = reducing("add", "3,300007", "1", "3", before="cosine(x)")
    (x,) = drawn(load(text).module())
    first, *others = (np.asarray(irscope.compile(text, threads=n)(x)) for n in (1, 2, 5))
    assert all(other.tobytes() == first.tobytes() for other in others)


@pytest.mark.parametrize("precision", ["default", "exact", "fast"])
def test_a_sum_of_many_equal_terms(precision: str) -> None:
    x = np.full(1 << 24, 0.1, np.float32)
    (total,) = irscope.compile(reducing("add", "16777216", "0", ""), precision=precision)(x)
    assert abs(float(total) - x.sum(dtype=np.float64)) <= 1e-6 * total
