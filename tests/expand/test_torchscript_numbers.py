"""Types and roundings of torch that an expansion must keep: whole numbers, halves, bytes."""
from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest
from ml_dtypes import bfloat16

from irscope.source import UserError
from tests.expand.torchscript_runs import graph, primitive, run

X = np.arange(-3, 3, dtype=np.float32)


def test_einsum_sums_a_letter_of_one_operand_in_int64_before_it_multiplies() -> None:
    text = graph("""
        %e : str = prim::Constant[value="...ik, ...j -> ij"]()
        %xs : Tensor[] = prim::ListConstruct(%x, %y)
        %none : NoneType = prim::Constant()
        %z : Tensor = aten::einsum(%e, %xs, %none)
        return (%z)
    """, "%x : Byte(1, 2, 3), %y : Byte(3)")
    x, y = np.array([[[6, 8, 2], [2, 8, 2]]], np.uint8), np.array([5, 1, 6], np.uint8)
    (out,) = run(text, x=x, y=y)
    assert out.dtype == np.int64
    assert out.tolist() == [[80, 16, 96], [60, 12, 72]]  # torch 2.13's own


def test_logspace_in_whole_numbers_takes_whole_ends() -> None:
    text = graph("""
        %end : float = prim::Constant[value=1.2]()
        %two : int = prim::Constant[value=2]()
        %base : float = prim::Constant[value=5.]()
        %long : int = prim::Constant[value=4]()
        %none : NoneType = prim::Constant()
        %y : Tensor = aten::logspace(%x, %end, %two, %base, %long, %none, %none, %none)
        return (%y)
    """, "%x : Long()")
    assert run(text, x=np.array(0))[0].tolist() == [1, 5]  # torch 2.13's own


def test_attention_of_half_precision_keeps_its_scores_in_float32() -> None:
    text = graph("""
        %none : NoneType = prim::Constant()
        %p : float = prim::Constant[value=0.]()
        %no : bool = prim::Constant[value=0]()
        %y : Tensor = aten::scaled_dot_product_attention(%q, %k, %v, %none, %p, %no, %none, %no)
        return (%y)
    """, "%q : BFloat16(1, 1, 4), %k : BFloat16(1, 3, 4), %v : BFloat16(1, 3, 1)")
    q = np.array([[[7.1, 3.3, -2.2, 5.9]]], bfloat16)
    k = np.array([[[6.1, 2.3, 1.7, 3.9], [6.0, 2.5, 1.6, 3.9], [5.9, 2.2, 1.1, 4.1]]], bfloat16)
    v = np.array([[[1], [2], [4]]], bfloat16)
    (out,) = run(text, q=q, k=k, v=v)
    assert out.dtype == bfloat16
    assert float(out[0, 0, 0]) == 2.546875  # torch 2.13's own; scores of bfloat16 would give 2.59375


@pytest.mark.parametrize(("start", "end", "steps", "dtype", "wanted"), [
    (50.0, 1.0, 7, 0, [50, 41, 33, 25, 17, 9, 1]), (2.7, -3.7, 4, 3, [2, 0, -1, -3])])
def test_linspace_of_whole_numbers_has_whole_ends(start: float, end: float, steps: int, dtype: int, wanted: list[int]) -> None:
    text = graph(f"""
        %start : float = prim::Constant[value={start}]()
        %end : float = prim::Constant[value={end}]()
        %n : int = prim::Constant[value={steps}]()
        %kind : int = prim::Constant[value={dtype}]()
        %none : NoneType = prim::Constant()
        %y : Tensor = aten::linspace(%start, %end, %n, %kind, %none, %none, %none)
        return (%y)
    """)
    assert run(text, x=X)[0].tolist() == wanted  # torch 2.13's own


@pytest.mark.parametrize(("start", "end", "steps", "wanted"), [
    ("0.", "inf", 3, [nan, nan, nan]), ("-inf", "1.", 4, [nan, nan, -inf, nan]), ("nan", "1.", 2, [nan, nan]), ("0.", "inf", 1, [0.0]),
    ("3.", "10.", 1, [3.0]), ("3.", "10.", 0, [])])
def test_linspace_with_infinite_ends_and_of_one_number(start: str, end: str, steps: int, wanted: list[float]) -> None:
    text = graph(f"""
        %start : float = prim::Constant[value={start}]()
        %end : float = prim::Constant[value={end}]()
        %n : int = prim::Constant[value={steps}]()
        %none : NoneType = prim::Constant()
        %y : Tensor = aten::linspace(%start, %end, %n, %none, %none, %none, %none)
        return (%y)
    """)
    np.testing.assert_array_equal(run(text, x=X)[0], np.array(wanted, np.float32))  # torch 2.13's own


@pytest.mark.parametrize(("end", "kind", "message"), [
    ("inf", 4, "the ends of linspace must be finite real numbers, not inf"), ("1.+1.j", 9, "linspace takes real ends, not")])
def test_linspace_refuses_ends_that_its_type_does_not_have(end: str, kind: int, message: str) -> None:
    text = graph(f"""
        %start : float = prim::Constant[value=0.]()
        %end : {'complex' if 'j' in end else 'float'} = prim::Constant[value={end}]()
        %n : int = prim::Constant[value=3]()
        %kind : int = prim::Constant[value={kind}]()
        %none : NoneType = prim::Constant()
        %y : Tensor = aten::linspace(%start, %end, %n, %kind, %none, %none, %none)
        return (%y)
    """)
    with pytest.raises(UserError, match=message):
        run(text, x=X)


def test_linspace_between_numbers_that_depend_on_data() -> None:
    text = graph("""
        %start : float = aten::item(%x)
        %end : float = prim::Constant[value=4.]()
        %n : int = prim::Constant[value=3]()
        %none : NoneType = prim::Constant()
        %y : Tensor = aten::linspace(%start, %end, %n, %none, %none, %none, %none)
        return (%y)
    """, "%x : Float()")
    assert run(text, x=np.float32(2))[0].tolist() == [2, 3, 4]


def test_a_number_that_depends_on_data_is_not_shown_as_an_object() -> None:
    text = graph("""
        %low : float = aten::item(%x)
        %high : float = prim::Constant[value=5.]()
        %no : bool = prim::Constant[value=0]()
        %y : Tensor = aten::rrelu_with_noise_backward(%x, %x, %x, %low, %high, %no, %no)
        return (%y)
    """, "%x : Float()")
    with pytest.raises(UserError, match="must be finite real numbers, not one that depends on data"):
        run(text, x=np.float32(2))


@pytest.mark.parametrize(("x", "index", "source", "wanted"), [
    ("5", "", "", [0, 0, 7, 0, 0]), ("5", "1", "", [0, 0, 7, 0, 0]), ("5", "", "1", [0, 0, 7, 0, 0]), ("", "1", "1", 7),
    ("2, 3", "0", "0", [[0, 0, 0], [0, 0, 0]]), ("2, 3", "0, 3", "0, 3", [[0, 0, 0], [0, 0, 0]])])
@pytest.mark.parametrize("operator", ["scatter", "scatter_add"])
def test_scatter_of_one_index_and_of_none(operator: str, x: str, index: str, source: str, wanted: object) -> None:
    """torch reads a tensor without dimensions as one element, and writes nothing where there is no index."""
    shapes = [tuple(int(n) for n in shape.split(", ") if n) for shape in (x, index, source)]
    text = graph(f"""
        %zero : int = prim::Constant[value=0]()
        %z : Tensor = aten::{operator}(%x, %zero, %i, %y)
        return (%z)
    """, f"%x : Float({x}), %i : Long({index}), %y : Float({source})")
    at = np.full(shapes[1], 2 if shapes[0] else 0)
    made = run(text, x=np.zeros(shapes[0], np.float32), i=at, y=np.full(shapes[2], 7, np.float32))[0]
    assert made.tolist() == wanted  # torch 2.13's own


@pytest.mark.parametrize(("correction", "wanted"), [("inf", inf), ("10.", inf), ("0.5", 35 / 11)])
def test_variance_with_any_correction(correction: str, wanted: float) -> None:
    text = graph(f"""
        %dims : NoneType = prim::Constant()
        %by : float = prim::Constant[value={correction}]()
        %no : bool = prim::Constant[value=0]()
        %y : Tensor = aten::var(%x, %dims, %by, %no)
        return (%y)
    """)
    with np.errstate(all="ignore"):
        assert float(run(text, x=X)[0]) == pytest.approx(wanted)  # torch 2.13's own


def test_nearest_elements_by_a_factor_that_is_not_positive_follow_from_the_sizes() -> None:
    text = graph("""
        %three : int = prim::Constant[value=3]()
        %size : int[] = prim::ListConstruct(%three)
        %by : float = prim::Constant[value=-2.]()
        %y : Tensor = aten::upsample_nearest1d(%x, %size, %by)
        return (%y)
    """, "%x : Float(1, 1, 6)")
    assert run(text, x=X.reshape(1, 1, 6))[0].ravel().tolist() == [-3, -1, 1]  # torch 2.13's own


def test_bytes_are_resized_in_fixed_point() -> None:
    text = graph("""
        %three : int = prim::Constant[value=3]()
        %five : int = prim::Constant[value=5]()
        %size : int[] = prim::ListConstruct(%three, %five)
        %no : bool = prim::Constant[value=0]()
        %none : NoneType = prim::Constant()
        %y : Tensor = aten::upsample_bilinear2d(%x, %size, %no, %none)
        return (%y)
    """, "%x : Byte(1, 1, 4, 4)")
    x = (np.arange(16, dtype=np.uint8) * 17).reshape(1, 1, 4, 4)
    assert run(text, x=x)[0].ravel().tolist() == [11, 23, 37, 50, 62, 102, 114, 128, 141, 153, 193, 205, 219, 232, 244]  # torch 2.13's own


@pytest.mark.parametrize(("left", "right", "wanted"), [
    (np.float16, np.int32, np.float16), (np.int32, np.int32, np.float32), (np.int32, bfloat16, bfloat16), (np.complex64, np.int32, np.complex64)])
def test_ldexp_has_the_type_of_its_floating_operand(left: type, right: type, wanted: type) -> None:
    kinds = {np.float16: "Half", np.int32: "Int", bfloat16: "BFloat16", np.complex64: "ComplexFloat"}
    text = graph("""
        %z : Tensor = aten::ldexp(%x, %y)
        return (%z)
    """, f"%x : {kinds[left]}(1), %y : {kinds[right]}(1)")
    (out,) = run(text, x=np.array([3], left), y=np.array([2], right))
    assert out.dtype == wanted
    assert out.tolist() == [12]


@pytest.mark.parametrize(("name", "wanted"), [
    ("eq", [False, True, False]), ("ne", [True, False, True]), ("lt", [True, False, False]), ("le", [True, True, False]),
    ("gt", [False, False, True]), ("ge", [False, True, True]),
])
def test_comparisons_of_sizes_in_tensors_are_known(name: str, wanted: list[bool]) -> None:
    # The sizes are known once the inputs are: an if on the comparison is decided before the run.
    for size, want in zip((2, 3, 4), wanted, strict=True):
        text = graph(f"""
            %zero : int = prim::Constant[value=0]()
            %three : int = prim::Constant[value=3]()
            %n : int = aten::size(%x, %zero)
            %size : Tensor = prim::NumToTensor(%n)
            %limit : Tensor = prim::NumToTensor(%three)
            %test : Tensor = aten::{name}(%size, %limit)
            %holds : bool = aten::Bool(%test)
            %y : Tensor = prim::If(%holds)
              block0():
                %a : Tensor = aten::neg(%x)
                -> (%a)
              block1():
                %none : NoneType = prim::Constant()
                %b : Tensor = aten::sum(%x, %none)
                -> (%b)
            return (%y)
        """)
        x = np.arange(1, size + 1, dtype=np.float32)
        assert [op.op.name for op in primitive(text, {"x": x}).main().nodes if op.op.name == "conditional"] == []
        assert run(text, x=x)[0].tolist() == ((-x).tolist() if want else float(x.sum()))


@pytest.mark.parametrize(("operator", "operands", "wanted"), [
    ("mul", "%x, %n", [6.0, 12.0]),
    ("add", "%x, %n, %one", [5.0, 7.0]),
    ("sub", "%x, %n, %one", [-1.0, 1.0]),
    ("div", "%x, %n", [2 / 3, 4 / 3]),
])
def test_numbers_that_depend_on_data_meet_tensors(operator: str, operands: str, wanted: list[float]) -> None:
    text = graph(f"""
        %one : int = prim::Constant[value=1]()
        %n : Scalar = aten::item(%i)
        %y : Tensor = aten::{operator}({operands})
        return (%y)
    """, "%x : Float(2), %i : Long()")
    (out,) = run(text, x=np.array([2, 4], np.float32), i=np.array(3))
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, wanted, rtol=1e-6)


@pytest.mark.parametrize(("line", "kind", "wanted"), [
    ("%r : int = aten::floordiv(%n, %two)", "int", -4),
    ("%r : int = aten::__round_to_zero_floordiv(%n, %two)", "int", -3),
    ("%r : int = aten::remainder(%n, %two)", "int", 1),
    ("%r : float = aten::div(%n, %two)", "float", -3.5),
    ("%r : int = aten::add(%n, %two)", "int", -5),
    ("%r : int = prim::max(%n, %two)", "int", 2),
    ("%r : int = prim::min(%n, %two)", "int", -7),
    ("%r : int = prim::abs(%n)", "int", 7),
    ("%h : float = aten::div(%n, %two)\n        %r : int = aten::floor(%h)", "int", -4),
    ("%h : float = aten::div(%n, %two)\n        %r : int = aten::ceil(%h)", "int", -3),
    ("%r : bool = aten::lt(%n, %two)", "bool", True),
])
def test_arithmetic_on_numbers_that_depend_on_data_is_pythons(line: str, kind: str, wanted: float) -> None:
    text = graph(f"""
        %two : int = prim::Constant[value=2]()
        %none : NoneType = prim::Constant()
        %no : bool = prim::Constant[value=0]()
        %n : int = aten::Int(%i)
        {line}
        %y : Tensor = aten::tensor(%r, %none, %none, %no)
        return (%y)
    """, "%i : Long()")
    (out,) = run(text, i=np.array(-7))
    assert out.dtype == {"int": np.int64, "float": np.float32, "bool": np.bool_}[kind]
    assert out.tolist() == wanted


@pytest.mark.parametrize("line", ["aten::__contains__(%plain, %n)", "aten::__contains__(%known, %two)", "aten::index(%plain, %n)"])
def test_lists_are_not_searched_for_numbers_that_depend_on_data(line: str) -> None:
    text = graph(f"""
        %two : int = prim::Constant[value=2]()
        %plain : int[] = prim::ListConstruct(%two)
        %n : int = aten::Int(%i)
        %known : int[] = prim::ListConstruct(%n)
        %r : bool = {line}
        return (%r)
    """, "%i : Long()")
    with pytest.raises(UserError, match="does not run yet|no overload of aten::index"):
        primitive(text, {"i": np.array(2)})


def test_negative_floats_become_bytes_by_way_of_a_signed_integer() -> None:
    """Recorded from torch 2.13: C leaves the conversion open, torch does not (``static_cast_with_inter_type``)."""
    text = graph("""
        %kind : int = prim::Constant[value=0]()
        %no : bool = prim::Constant[value=0]()
        %none : NoneType = prim::Constant()
        %y : Tensor = aten::to(%x, %kind, %no, %no, %none)
        return (%y)
    """, "%x : Float(6)")
    x = np.array([-1, -156.4, 123.9, 300.5, -0.5, nan], np.float32)
    assert run(text, x=x)[0].tolist() == [255, 100, 123, 44, 0, 0]
