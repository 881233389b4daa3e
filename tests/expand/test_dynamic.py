"""Sizes known at run time only: the padded program, by the reference interpreter, gives what XLA gave, and what numpy gives on the valid elements."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irscope
from irscope.backends.varying import reference_results
from irscope.expand.dynamic.reshaping import common_factors
from irscope.source import UserError
from tests.backends.test_dynamic_sizes import ANSWERS, OTHERWISE, PROGRAMS, REFUSED, arrays, close

X = np.random.default_rng(3).standard_normal((4, 5, 6)).astype(np.float32)
SIZED = """ENTRY e {
  x = f32[4,5,6] parameter(0)
  n = s32[] parameter(1)
  m = s32[] parameter(2)
  h = f32[4,<=5,6] set-dimension-size(x, n), dimensions={1}
  d = f32[4,<=5,<=6] set-dimension-size(h, m), dimensions={2}
"""


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in REFUSED and n not in OTHERWISE and f"{n}.out0" in ANSWERS.files])
def test_the_padded_program_gives_what_xla_gives(name: str) -> None:
    for one, told in zip(reference_results(irscope.load(PROGRAMS[name]).module(), arrays(name, "arg")), arrays(name, "out"), strict=True):
        assert close(one, told.ravel()[:one.size].reshape(one.shape))


RESHAPES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    # one dimension is dynamic
    "declared": ("ROOT r = f32[<=20,6] reshape(h)", lambda x: x.reshape(-1, 6)),
    "inferred": ("ROOT r = f32[20,6] reshape(h), inferred_dimension=0", lambda x: x.reshape(-1, 6)),
    "the only one": ("ROOT r = f32[4,5,2,3] reshape(h)", lambda x: x.reshape(4, -1, 2, 3)),
    "the only large one": ("ROOT r = f32[1,20,1,6] reshape(h)", lambda x: x.reshape(1, -1, 1, 6)),
    "between ones": ("ROOT r = f32[4,1,<=5,1,6] reshape(h)", lambda x: x.reshape(4, 1, -1, 1, 6)),
    "inner part declared": ("ROOT r = f32[4,3,<=10] reshape(h)", lambda x: x.reshape(4, 3, -1)),
    # two are
    "all in one": ("ROOT r = f32[<=120] reshape(d)", lambda x: x.ravel()),
    "two in one": ("ROOT r = f32[4,<=30] reshape(d)", lambda x: x.reshape(4, -1)),
    "both stay": ("ROOT r = f32[2,2,<=5,<=6] reshape(d)", lambda x: x.reshape(2, 2, *x.shape[1:])),
    "by sizes": ("c = s32[] constant(4)\n  ROOT r = f32[<=6,4,<=5] dynamic-reshape(d, m, c, n)", lambda x: x.reshape(x.shape[2], 4, x.shape[1])),
    "transposed first": ("t = f32[<=6,4,<=5] transpose(d), dimensions={2,0,1}\n  ROOT r = f32[<=24,<=5] reshape(t)",
                         lambda x: x.transpose(2, 0, 1).reshape(-1, x.shape[1])),
}


@pytest.mark.parametrize("name", RESHAPES)
def test_a_reshape_keeps_the_order_of_the_valid_elements(name: str) -> None:
    body, meaning = RESHAPES[name]
    module = irscope.load(f"{SIZED}  {body}\n}}\n").module()
    for n, m in ((5, 6), (3, 6), (3, 4), (1, 2)):
        if "(h)" in body:
            m = 6
        found, = reference_results(module, [X, np.array(n, np.int32), np.array(m, np.int32)])
        assert close(found, meaning(X[:, :n, :m])), (n, m)


@pytest.mark.parametrize("body", ["ROOT r = f32[2,60] reshape(h)", "ROOT r = f32[10,12] reshape(d)"])
def test_a_reshape_that_does_not_say_what_is_dynamic_is_refused(body: str) -> None:
    with pytest.raises(UserError) as raised:
        reference_results(irscope.load(f"{SIZED}  {body}\n}}\n").module(), [X, np.array(3, np.int32), np.array(4, np.int32)])
    assert "becomes dynamic is not stated" in raised.value.findings[0].message


@pytest.mark.parametrize(("before", "after", "groups"), [
    ((2, 6, 5), (2, 2, 3, 5), [([0], [0]), ([1], [1, 2]), ([2], [3])]),
    ((6,), (2, 3), [([0], [0, 1])]),
    ((2, 3), (6,), [([0, 1], [0])]),
    ((4, 6), (6, 4), [([0, 1], [0, 1])]),
    ((2, 3), (2, 3, 1, 1), [([0], [0]), ([1], [1, 2, 3])]),
    ((2, 3, 1), (2, 3), [([0], [0]), ([1, 2], [1])]),
])
def test_runs_of_dimensions_that_hold_the_same_elements(before: tuple[int, ...], after: tuple[int, ...], groups: list[tuple[list[int], list[int]]]) -> None:
    assert common_factors(before, after) == groups


def test_sizes_are_read_from_a_padded_value_and_given_back() -> None:
    module = irscope.load("""ENTRY e {
  d = f32[<=3,4] parameter(0)
  p = (f32[3,4], s32[]) custom-call(d), custom_call_target="PadToStatic"
  x = f32[3,4] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=1
  y = f32[3,4] negate(x)
  r = f32[<=3,4] custom-call(y, n), custom_call_target="SliceToDynamic"
  f = s32[] constant(4)
  s = f32[<=3,4] custom-call(y, n, f), custom_call_target="SliceToDynamic"
  ROOT t = (f32[<=3,4], f32[<=3,4], s32[]) tuple(r, s, n)
}
""").module()
    for n in (1, 2, 3):
        by_size, by_sizes, size = reference_results(module, [X[0, :n, :4]])
        assert close(by_size, -X[0, :n, :4]) and close(by_sizes, -X[0, :n, :4]) and size == n


def test_another_custom_call_has_no_dynamic_dimension() -> None:
    with pytest.raises(UserError) as raised:
        reference_results(irscope.load("""ENTRY e {
  d = f32[<=3,4] parameter(0)
  ROOT r = f32[<=3,4] custom-call(d), custom_call_target="Other"
}
""").module(), [X[0, :2, :4]])
    assert "'Other' does not support a dynamic dimension" in raised.value.findings[0].message
