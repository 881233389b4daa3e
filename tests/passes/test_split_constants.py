"""What is computed from constants alone, before a program runs, and what is left to the run."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.analysis.reference import results
from irscope.api import load
from irscope.graph import Module
from irscope.passes.split_constants import Split, split_constants

ARRAY = "c = f32[2,3] constant({{1, 2, 3}, {4, 5, 6}})"


def module(*lines: str, params: str = "x = f32[2,3] parameter(0)") -> Module:
    reading = load("HloModule m\nENTRY e {\n" + "\n".join([params, *lines]) + "\n}\n")
    assert reading.ok, [f.message for f in reading.findings]
    return reading.module()


def early(split: Split) -> list[str]:
    return [node.name for node in split.nodes]


@pytest.mark.parametrize(("lines", "names"), [
    ((ARRAY, "a = f32[2,3] add(c, c)", "ROOT r = f32[2,3] add(a, x)"), ["a"]),
    ((ARRAY, "a = f32[2,3] add(c, c)", "b = f32[2,3] exponential(a)", "ROOT r = f32[2,3] add(b, x)"), ["b"]),
    ((ARRAY, "a = f32[2,3] add(c, c)", "b = f32[2,3] exponential(a)", "s = f32[2,3] add(a, x)", "ROOT r = f32[2,3] add(b, s)"), ["a", "b"]),
    (("c = f32[] constant(2)", "a = f32[] add(c, c)", "b = f32[2,3] broadcast(a), dimensions={}", "ROOT r = f32[2,3] add(b, x)"), []),
    (("c = f32[] constant(2)", "a = f32[] exponential(c)", "b = f32[2,3] broadcast(a), dimensions={}", "ROOT r = f32[2,3] add(b, x)"), ["a"]),
    (("v = f32[3] constant({1, 2, 3})", "b = f32[2,3] broadcast(v), dimensions={1}", "n = f32[2,3] negate(b)", "ROOT r = f32[2,3] add(n, x)"), ["n"]),
    (("c = f32[] constant(2)", "b = f32[2,3] broadcast(c), dimensions={}", "n = f32[2,3] negate(b)", "ROOT r = f32[2,3] add(n, x)"), []),
    ((ARRAY, "a = f32[2,3] add(c, c)", "ROOT r = (f32[2,3], f32[2,3]) tuple(a, x)"), ["a"]),
    (("ROOT n = f32[2,3] negate(x)",), []),
], ids=["array", "chain", "two", "scalar", "costly scalar", "broadcast of an array", "broadcast of a scalar", "result", "none"])
def test_what_is_worth_computing_early(lines: tuple[str, ...], names: list[str]) -> None:
    split = split_constants(module(*lines))
    assert early(split) == names and (split.early is None) is (not names)


def numbers(count: int) -> tuple[str, ...]:
    """``count`` additions of numbers, one after the other, spread to the size of the input."""
    return ("v0 = f32[] constant(2)", *(f"v{i} = f32[] add(v{i - 1}, v0)" for i in range(1, count + 1)),
            f"b = f32[2,3] broadcast(v{count}), dimensions={{}}", "ROOT r = f32[2,3] add(b, x)")


def test_a_dozen_operations_on_numbers_are_worth_a_program() -> None:
    assert early(split_constants(module(*numbers(11)))) == [] and early(split_constants(module(*numbers(12)))) == ["v12"]
    heavy = ("c = f32[] constant(2)", "a = f32[] exponential(c)", "b = f32[] add(a, c)", "w = f32[2,3] broadcast(b), dimensions={}",
             "ROOT r = f32[2,3] add(w, x)")
    assert early(split_constants(module(*heavy))) == ["b"], "with what it is computed from"


SPREAD = ("c = f32[] constant(2)", "b = f32[2,3] broadcast(c), dimensions={}")


@pytest.mark.parametrize(("lines", "names"), [
    ((*SPREAD, "m = f32[3,2] reshape(b)", "n = f32[3,2] negate(m)", "ROOT r = f32[2,3] reshape(n)"), ["r"]),
    ((*SPREAD, "m = f32[2,3] reverse(b), dimensions={0}", "a = f32[2,3] add(m, b)", "ROOT r = f32[2,3] add(a, x)"), ["a"]),
    ((*SPREAD, "t = f32[3,2] transpose(b), dimensions={1,0}", "d = f32[3,2] broadcast(c), dimensions={}", "s = f32[3,2] add(d, t)",
      "y = f32[2,3] transpose(s), dimensions={1,0}", "ROOT r = f32[2,3] add(y, x)"), ["y"]),
    ((*SPREAD, "m = f32[3,2] reshape(b)", "y = f32[2,3] reshape(m)", "ROOT r = f32[2,3] add(y, x)"), []),
    ((*SPREAD, *(f"b{i} = f32[{'3,2' if i % 2 else '2,3'}] reshape(b{i - 1 if i > 1 else ''})" for i in range(1, 13)), "ROOT r = f32[2,3] add(b12, x)"), []),
    (("v = f32[3] constant({1, 2, 3})", "b = f32[2,3] broadcast(v), dimensions={1}", "m = f32[2,3,1] reshape(b)",
      "n = f32[2,3] reshape(m)", "ROOT r = f32[2,3] add(n, x)"), ["n"]),
    ((*SPREAD, "d = f32[2,2] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}", "p = f32[2,3] dot(d, x), lhs_contracting_dims={1}, "
      "rhs_contracting_dims={0}", "ROOT r = f32[2,3] add(p, x)"), ["d"]),
    (("c = f32[] constant(2)", "v = f32[1] reshape(c)", "n = f32[1] negate(v)", "m = f32[] reshape(n)", "b = f32[2,3] broadcast(m), dimensions={}",
      "ROOT r = f32[2,3] add(b, x)"), []),
    (("c = f32[] constant(2)", "b = f32[2] broadcast(c), dimensions={}", "m = f32[1,2] reshape(b)", "n = f32[1,2] negate(m)", "v = f32[2] reshape(n)",
      "w = f32[2,3] broadcast(v), dimensions={0}", "ROOT r = f32[2,3] add(w, x)"), ["v"]),
    (("i = s32[2,3] iota(), iota_dimension=1", "f = f32[2,3] convert(i)", "ROOT r = f32[2,3] add(f, x)"), []),
    ((ARRAY, "ROOT a = f32[2,3] add(c, c)"), ["a"]), ((ARRAY, "a = f32[2,3] add(c, c)", "ROOT t = (f32[2,3]) tuple(a)"), ["a"]),
    ((ARRAY, "ROOT r = f32[2,3] copy(c)"), ["r"]), (("ROOT c = f32[2] constant({1, 2})",), []),
    ((ARRAY, "s = f32[2,3] copy(c)", "ROOT t = (f32[2,3]) tuple(x)"), []),
], ids=["moved number", "moved and spread", "spread and moved", "moved twice", "moved a dozen times", "moved rows", "product", "one element", "two elements", "iota",
        "result", "part of the result", "copied result", "constant", "unused"])
def test_movement_of_numbers_is_free_and_arithmetic_on_arrays_is_not(lines: tuple[str, ...], names: list[str]) -> None:
    before = module(*lines)
    split = split_constants(before)
    assert early(split) == names
    if split.early is not None:
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        np.testing.assert_array_equal(results(split.with_values(results(split.early, [])), [x])[0], results(before, [x])[0])


def test_the_program_reads_the_values_that_were_computed_early() -> None:
    before = module(ARRAY, "a = f32[2,3] add(c, c)", "b = f32[2,3] exponential(a)", "s = f32[2,3] add(a, x)", "ROOT r = f32[2,3] add(b, s)")
    split = split_constants(before)
    assert split.early is not None
    assert (split.early.name, split.early.entry, list(split.early.graphs)) == ("m.constants", "e.constants", ["e.constants"])
    assert [n.op.name for n in split.early.main().nodes] == ["constant", "add", "exponential", "tuple"] and not split.early.main().params
    assert [n.origin[0].name for n in split.early.main().nodes[:3]] == ["c", "a", "b"]
    after = split.with_values(results(split.early, []))
    assert [n.op.name for n in after.main().nodes] == ["parameter", "constant", "constant", "add", "add"]
    assert after.entry == "e" and [n.name for n in after.main().nodes] == ["x", "a", "b", "s", "r"]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(results(after, [x])[0], results(before, [x])[0])


def test_a_program_without_such_values_stays() -> None:
    before = module("ROOT n = f32[2,3] negate(x)")
    split = split_constants(before)
    assert split.module is before and split.with_values([]) is before


@pytest.mark.parametrize(("move", "shape", "values"), [
    ("reshape(c)", "3,2", [[1, 2], [3, 4], [5, 6]]), ("transpose(c), dimensions={1,0}", "3,2", [[1, 4], [2, 5], [3, 6]]),
    ("slice(c), slice={[0:2],[0:3:2]}", "2,2", [[1, 3], [4, 6]]), ("slice(c), slice={[1:2],[0:3]}", "1,3", [[4, 5, 6]]),
])
def test_movement_is_applied_to_the_constant(move: str, shape: str, values: list[list[int]]) -> None:
    split = split_constants(module(ARRAY, f"m = f32[{shape}] {move}", f"ROOT r = f32[{shape}] add(m, x)", params=f"x = f32[{shape}] parameter(0)"))
    assert not split.nodes and [n.op.name for n in split.module.main().nodes] == ["parameter", "constant", "add"]
    np.testing.assert_array_equal(split.module.main().nodes[1].attrs["literal"].value(), values)
    assert split.module.main().nodes[1].name == "m"


def test_a_single_element_is_not_moved() -> None:
    before = module("c = f32[1,1] constant({{2}})", "m = f32[1] reshape(c)", "ROOT r = f32[1] add(m, x)", params="x = f32[1] parameter(0)")
    assert split_constants(before).module is before
