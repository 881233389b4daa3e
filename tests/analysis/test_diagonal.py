"""Diagonal matrices in each spelling, and what only looks like one."""
from __future__ import annotations

import pytest

from irscope import api
from irscope.analysis.diagonal import diagonal, is_identity
from irscope.analysis.values import uniform_axes
from irscope.graph import Graph

HEAD = """HloModule m
ENTRY e {
  v = f32[4] parameter(0)
  a = f32[4,4] parameter(1)
  rows = s32[4,4] iota(), iota_dimension=0
  columns = s32[4,4] iota(), iota_dimension=1
  line = s32[4] iota(), iota_dimension=0
  down = s32[4,4] broadcast(line), dimensions={0}
  across = s32[4,4] broadcast(line), dimensions={1}
  n0 = s32[] constant(0)
  zero = s32[4,4] broadcast(n0), dimensions={}
  n1 = s32[] constant(1)
  one = s32[4,4] broadcast(n1), dimensions={}
  f0 = f32[] constant(0)
  nought = f32[4,4] broadcast(f0), dimensions={}
  f1 = f32[] constant(1)
  unit = f32[4,4] broadcast(f1), dimensions={}
  vs = f32[4,4] broadcast(v), dimensions={0}
  on = pred[4,4] compare(rows, columns), direction=EQ
  eye = f32[4,4] convert(on)
"""


def entry(*lines: str) -> Graph:
    """The graph of some instructions behind the iotas above; its result is the last."""
    return api.load(HEAD + "".join(f"  {line}\n" for line in lines[:-1]) + f"  ROOT {lines[-1]}\n}}\n", format="hlo").module().main()


def found(*lines: str) -> tuple[str, str] | None:
    """The names of the matrix and of its diagonal (empty for ones), or None."""
    graph = entry(*lines)
    one = diagonal(graph.result(), uniform_axes(graph))
    return None if one is None else (one.matrix.name, one.values.name if one.values is not None else "")


@pytest.mark.parametrize(("lines", "is_one"), [
    (("r = f32[4,4] convert(on)",), True),
    (("c = pred[4,4] compare(columns, rows), direction=EQ", "r = s32[4,4] convert(c)"), True),
    (("r = pred[4,4] compare(down, across), direction=EQ",), True),
    (("r = pred[4,4] compare(rows, across), direction=EQ",), True),
    (("s = s32[4,4] add(rows, zero)", "r = pred[4,4] compare(s, columns), direction=EQ"), True),
    (("s = s32[4,4] add(down, zero)", "r = pred[4,4] compare(s, across), direction=EQ"), True),
    (("d = s32[4,4] subtract(rows, columns)", "r = pred[4,4] compare(d, zero), direction=EQ"), True),
    (("r = f32[4,4] select(on, unit, nought)",), True),
    (("r = f32[4,4] select(on, nought, unit)",), False),
    (("r = f32[4,4] select(on, unit, unit)",), False),
    (("r = f32[4,4] select(on, nought, nought)",), False),
    (("r = pred[4,4] compare(rows, columns), direction=NE",), False),
    (("r = pred[4,4] compare(rows, rows), direction=EQ",), False),
    (("r = pred[4,4] compare(down, rows), direction=EQ",), False),
    (("s = s32[4,4] add(rows, one)", "r = pred[4,4] compare(s, columns), direction=EQ"), False),
    (("s = s32[4,4] add(rows, rows)", "r = pred[4,4] compare(s, columns), direction=EQ"), False),
    (("s = s32[4,4] multiply(rows, zero)", "r = pred[4,4] compare(s, columns), direction=EQ"), False),
    (("d = s32[4,4] subtract(rows, columns)", "r = pred[4,4] compare(d, one), direction=EQ"), False),
    (("d = s32[4,4] add(rows, columns)", "r = pred[4,4] compare(d, zero), direction=EQ"), False),
    (("k = s32[4,4] parameter(2)", "r = pred[4,4] compare(k, columns), direction=EQ"), False),
    (("k = s32[4] parameter(2)", "w = s32[4,4] broadcast(k), dimensions={0}", "r = pred[4,4] compare(w, columns), direction=EQ"), False),
    (("r = pred[4,4] compare(zero, columns), direction=EQ",), False),
])
def test_an_identity_compares_two_counts(lines: tuple[str, ...], is_one: bool) -> None:
    graph = entry(*lines)
    assert is_identity(graph.result(), uniform_axes(graph)) is is_one


@pytest.mark.parametrize(("lines", "named"), [
    (("r = f32[4,4] copy(eye)",), ("on", "")),
    (("r = f32[4,4] select(on, unit, nought)",), ("r", "")),
    (("r = f32[4,4] select(on, vs, nought)",), ("r", "vs")),
    (("r = f32[4,4] multiply(vs, eye)",), ("r", "vs")),
    (("m = f32[4,4] multiply(eye, vs)", "r = f32[4,4] copy(m)"), ("m", "vs")),
    (("r = f32[4,4] select(on, nought, vs)",), None),
    (("r = f32[4,4] select(on, vs, unit)",), None),
    (("p = pred[4,4] parameter(2)", "r = f32[4,4] select(p, vs, nought)"), None),
    (("r = f32[4,4] multiply(vs, a)",), None),
    (("r = f32[4,4] add(vs, eye)",), None),
    (("w = f32[2,4] slice(eye), slice={[0:2],[0:4]}", "r = f32[2,4] copy(w)"), None),
    (("r = f32[4] copy(v)",), None),
])
def test_a_diagonal_has_its_values(lines: tuple[str, ...], named: tuple[str, str] | None) -> None:
    assert found(*lines) == named


def test_a_matrix_of_one_element_or_of_another_shape_is_no_diagonal() -> None:
    assert found("i = s32[1,1] iota(), iota_dimension=0", "j = s32[1,1] iota(), iota_dimension=1", "r = pred[1,1] compare(i, j), direction=EQ") is None
    assert found("i = s32[2,3] iota(), iota_dimension=0", "j = s32[2,3] iota(), iota_dimension=1", "r = pred[2,3] compare(i, j), direction=EQ") is None
    assert found("i = s32[2,2,2] iota(), iota_dimension=0", "j = s32[2,2,2] iota(), iota_dimension=1",
                 "r = pred[2,2,2] compare(i, j), direction=EQ") is None
