"""TorchScript's operators on plain Python values and on known numbers: a row for each name, with what Python or torch gives."""
from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from irscope.expand.torchscript.python_values import ARITHMETIC, CONTAINERS, READ, SAME, UNKNOWN, VALUES, compute, fold_known
from irscope.formats.torchscript.abstract import Tensor

A, B = [1, 2], {"k": 3, "l": 4}
ROWS: list[tuple[str, list[Any], Any]] = [
    ("mul", [6, 7], 42), ("pow", [2, 5], 32), ("neg", [3], -3), ("floordiv", [-7, 2], -4), ("eq", [2, 2], True), ("ne", [2, 2], False), ("lt", [1, 2], True),
    ("le", [2, 2], True), ("gt", [2, 2], False), ("ge", [2, 2], True), ("__and__", [6, 3], 2), ("__or__", [6, 3], 7), ("__xor__", [6, 3], 5),
    ("__not__", [0], True), ("__lshift__", [3, 2], 12), ("__rshift__", [12, 2], 3), ("__getitem__", [[5, 6], -1], 6), ("__contains__", [[5, 6], 6], True),
    ("floor", [-1.5], -2), ("ceil", [-1.5], -1), ("sqrt", [9.0], 3.0), ("exp", [0.0], 1.0), ("log", [1.0], 0.0), ("sin", [0.5], math.sin(0.5)),
    ("cos", [0.5], math.cos(0.5)), ("tan", [0.5], math.tan(0.5)), ("asin", [0.5], math.asin(0.5)), ("acos", [0.5], math.acos(0.5)),
    ("atan", [0.5], math.atan(0.5)), ("atan2", [1.0, 2.0], math.atan2(1, 2)), ("sinh", [0.5], math.sinh(0.5)), ("cosh", [0.5], math.cosh(0.5)),
    ("tanh", [0.5], math.tanh(0.5)), ("asinh", [0.5], math.asinh(0.5)), ("acosh", [1.5], math.acosh(1.5)), ("atanh", [0.5], math.atanh(0.5)),
    ("log2", [8.0], 3.0), ("log10", [100.0], 2.0), ("log1p", [0.0], 0.0), ("expm1", [0.0], 0.0), ("erf", [0.5], math.erf(0.5)), ("erfc", [0.5], math.erfc(0.5)),
    ("lgamma", [5.0], math.lgamma(5.0)), ("gamma", [5.0], 24.0), ("fabs", [-2.0], 2.0), ("fmod", [-7.0, 3.0], -1.0), ("gcd", [12, 18], 6),
    ("ldexp", [1.5, 3], 12.0), ("isnan", [math.nan], True), ("isinf", [math.inf], True), ("isfinite", [1.0], True), ("degrees", [math.pi], 180.0),
    ("radians", [180.0], math.pi), ("copysign", [2.0, -1.0], -2.0), ("factorial", [5], 120),
    ("startswith", ["abc", "ab"], True), ("endswith", ["abc", "bc"], True), ("lower", ["AbC"], "abc"), ("upper", ["abc"], "ABC"), ("strip", [" a "], "a"),
    ("split", ["a b"], ["a", "b"]), ("replace", ["aba", "a", "c"], "cbc"), ("find", ["abcb", "b"], 1), ("rfind", ["abcb", "b"], 3), ("isdigit", ["12"], True),
    ("isalpha", ["ab"], True), ("isalnum", ["a1"], True), ("isupper", ["AB"], True), ("islower", ["ab"], True), ("isspace", [" "], True),
    ("title", ["ab cd"], "Ab Cd"), ("capitalize", ["ab"], "Ab"), ("lstrip", [" a "], "a "), ("rstrip", [" a "], " a"), ("splitlines", ["a\nb"], ["a", "b"]),
    ("rjust", ["a", 3], "  a"), ("ljust", ["a", 3], "a  "), ("center", ["a", 3], " a "), ("zfill", ["7", 3], "007"), ("rsplit", ["a b c", " ", 1], ["a b", "c"]),
    ("partition", ["a=b", "="], ("a", "=", "b")),
    ("str", [12], "12"), ("ord", ["a"], 97), ("chr", [97], "a"), ("hex", [255], "0xff"), ("bin", [5], "0b101"), ("oct", [8], "0o10"), ("len", [[1, 2]], 2),
    ("abs", [-3], 3), ("max", [2, 5], 5), ("min", [2, 5], 2), ("sum", [[1, 2]], 3), ("any", [[0, 1]], True), ("all", [[0, 1]], False),
    ("sorted", [[2, 1]], [1, 2]), ("dict", [[("a", 1)]], {"a": 1}),
    ("add", [2, 3], 5), ("add", [2, 3, 4], 14), ("add", ["a", "b"], "ab"), ("sub", [2, 3], -1), ("sub", [2, 3, 4], -10), ("div", [7, 2], 3.5),
    ("div", [-7, 2, "floor"], -4), ("div", [-7.0, 2, "floor"], -4.0), ("div", [7, -2.0, "floor"], -4.0), ("div", [-7, 2, "trunc"], -3), ("div", [7, 2, None], 3.5),
    ("floor_divide", [-7, 2], -4), ("remainder", [-7, 2], 1),
    ("__is__", [None, None], True), ("__is__", [1, None], False), ("__isnot__", [1, None], True), ("__isnot__", [None, None], False),
    ("__round_to_zero_floordiv", [-7, 2], -3), ("round", [2.5], 2.0), ("divmod", [7, 2], [3, 1]), ("mathremainder", [7.0, 4.0], -1.0),
    ("modf", [2.5], [0.5, 2.0]), ("frexp", [8.0], [0.5, 4]), ("real", [2 + 3j], 2.0), ("imag", [2 + 3j], 3.0),
    ("prim::abs", [-3], 3), ("prim::min", [2, 5], 2), ("prim::max", [2, 5], 5), ("prim::type", ["cpu"], "cpu"), ("prim::index", ["cuda:1"], 0),
    ("Int", ["12"], 12), ("Float", ["1.5"], 1.5), ("Bool", [2], True), ("Complex", [1, 2], 1 + 2j), ("ScalarType", [6], 6), ("Size", [(1, 2)], [1, 2]),
    ("ScalarImplicit", [3], 3), ("is_scripting", [], True), ("device", ["cuda", 1], "cuda"),
    ("format", ["{} is {}", 1, "b"], "1 is b"), ("format", ["none", 1], "none"), ("format", ["{0}{}", 1], "{0}1"), ("percentFormat", ["%d-%s", 1, "b"], "1-b"),
    ("join", [",", ["a", "b"]], "a,b"), ("__range_length", [1, 8, 3], 3), ("__derive_index", [2, 1, 3], 7),
    ("slice", [[0, 1, 2, 3, 4], 1, 4, 2], [1, 3]), ("slice", [[0, 1, 2]], [0, 1, 2]), ("slice", [[0, 1, 2], 1], [1, 2]), ("list", [[1, 2]], [1, 2]),
    ("keys", [B], ["k", "l"]), ("values", [B], [3, 4]), ("items", [B], [("k", 3), ("l", 4)]), ("get", [B, "k"], 3), ("get", [B, "z"], None),
    ("get", [B, "z", 7], 7), ("index", [[4, 5], 5], 1), ("count", [[4, 5, 4], 4], 2), ("copy", [[1, 2]], [1, 2]), ("copy", [{"a": 1}], {"a": 1}), ("copy", [3], 3),
]
WRITING: list[tuple[str, list[Any], Any, Any]] = [
    # name, operands, result, what the first operand becomes
    ("_set_item", [[1, 2], 0, 9], [9, 2], [9, 2]), ("append", [[1], 2], [1, 2], [1, 2]), ("extend", [[1], [2, 3]], [1, 2, 3], [1, 2, 3]),
    ("add_", [[1], [2]], [1, 2], [1, 2]), ("insert", [[1, 2], 1, 9], [1, 9, 2], [1, 9, 2]), ("pop", [[1, 2]], 2, [1]), ("pop", [[1, 2], 0], 1, [2]),
    ("clear", [[1]], None, []), ("reverse", [[1, 2]], None, [2, 1]), ("sort", [[2, 1, 3]], None, [1, 2, 3]), ("sort", [[2, 1, 3], True], None, [3, 2, 1]),
    ("remove", [[1, 2, 1], 1], None, [2, 1]), ("Delete", [{"a": 1}, "a"], None, {}), ("setdefault", [{"a": 1}, "b", 2], 2, {"a": 1, "b": 2}),
    ("update", [{"a": 1}, {"b": 2}], None, {"a": 1, "b": 2}), ("popitem", [{"a": 1, "b": 2}], ("a", 1), {"b": 2}),
]


def full(name: str) -> str:
    return name if "::" in name else f"aten::{name}"


@pytest.mark.parametrize(("name", "operands", "result"), ROWS)
def test_values(name: str, operands: list[Any], result: Any) -> None:
    got = compute(full(name), operands)
    assert got == result and type(got) is type(result)


@pytest.mark.parametrize(("name", "operands", "result", "after"), WRITING)
def test_operators_that_write(name: str, operands: list[Any], result: Any, after: Any) -> None:
    first = type(operands[0])(operands[0])
    got = compute(full(name), [first, *operands[1:]])
    assert (got, first) == (result, after)


def test_every_operator_has_a_row() -> None:
    assert {*(full(row[0]) for row in ROWS), *(full(row[0]) for row in WRITING)} == set(VALUES)
    assert {full(name) for name in ("len __getitem__ append extend insert pop clear reverse copy list slice keys values items get _set_item add "
                                                  "__contains__ mul add_ Delete setdefault update popitem").split()} == CONTAINERS


def test_copies_are_new() -> None:
    values: list[object] = [1]
    assert compute("aten::copy", [values]) is not values
    assert compute("aten::list", [values]) is not values


def test_other_operators_and_operands_are_unknown() -> None:
    assert compute("aten::conv2d", [1]) is UNKNOWN
    assert compute("aten::startswith", [1, "a"]) is UNKNOWN
    with pytest.raises(ValueError, match="too few values for the 2 places in '{} {}'"):
        compute("aten::format", ["{} {}", 1])


def number(value: Any, dtype: Any = np.int64) -> Tensor:
    return Tensor(known=np.asarray(value, dtype))


def folded(name: str, *values: Any) -> Any:
    found = fold_known(f"aten::{name}", values)
    return (found.known.item(), str(found.known.dtype)) if isinstance(found, Tensor) and found.known is not None else found


@pytest.mark.parametrize(("name", "operands", "result"), [
    ("add", [7, 2], 9), ("add", [7, 2, 3], 13), ("sub", [7, 2], 5), ("sub", [7, 2, 3], 1), ("rsub", [7, 2], -5), ("rsub", [7, 2, 3], -19), ("mul", [7, 2], 14),
    ("floor_divide", [7, 2], 3), ("remainder", [7, 2], 1), ("pow", [7, 2], 49), ("neg", [7], -7), ("abs", [-7], 7), ("max", [7, 2], 7), ("min", [7, 2], 2),
    ("maximum", [7, 2], 7), ("minimum", [7, 2], 2), ("clamp_min", [7, 9], 9), ("ceil", [7], 7), ("floor", [7], 7),
    ("eq", [7, 2], False), ("ne", [7, 2], True), ("lt", [7, 2], False), ("le", [7, 7], True), ("gt", [7, 2], True), ("ge", [7, 7], True),
    ("logical_and", [7, 0], False), ("logical_or", [7, 0], True), ("logical_not", [7], False),
])
def test_arithmetic_on_known_numbers(name: str, operands: Sequence[int], result: int) -> None:
    dtype = "bool" if isinstance(result, bool) else "int64"
    assert folded(name, *map(number, operands[:2]), *operands[2:]) == (result, dtype)
    if len(operands) > 1:
        assert folded(name, number(operands[0]), *operands[1:]) == (result, dtype)
        assert folded(name, operands[0], number(operands[1]), *operands[2:]) == (result, dtype)


def test_numbers_of_floats() -> None:
    assert folded("div", number(7), 2) == (3.5, "float32")
    assert folded("div", number(7.0, np.float64), 2) == (3.5, "float64")
    assert folded("div", 2, number(0.5, np.float32)) == (4.0, "float32")
    marked = number(7.0, np.float64)
    marked.number = True
    assert folded("div", marked, 2) == (3.5, "float32")
    assert folded("ceil", number(1.5, np.float32)) == (2.0, "float32")
    assert folded("floor", number(-1.5, np.float32)) == (-2.0, "float32")
    assert folded("div", number(7), 2, "trunc") == (3, "int64")
    assert folded("div", number(7), 2, None) == (3.5, "float32")
    assert folded("div", number(7), None) is None and folded("add", number(7), [1]) is None


@pytest.mark.parametrize(("name", "value", "result"), [
    ("Int", 2.75, 2), ("Float", 2, 2.0), ("Bool", 2, True), ("ScalarImplicit", 3, 3), ("IntImplicit", 3.5, 3), ("FloatImplicit", 3, 3.0), ("item", 3, 3),
    ("Number", 3, 3), ("_local_scalar_dense", 3, 3), ("is_nonzero", 0, False),
])
def test_reading_a_known_number_gives_a_python_number(name: str, value: Any, result: Any) -> None:
    found = folded(name, Tensor(known=np.asarray(value)))
    assert found == result and type(found) is type(result)


def test_every_arithmetic_has_a_row() -> None:
    assert set(ARITHMETIC) == {f"aten::{name}" for name in (
        "add sub rsub mul div floor_divide remainder pow neg eq ne lt le gt ge ceil floor abs max min maximum minimum logical_and logical_or logical_not "
        "clamp_min").split()}
    assert set(READ) == {f"aten::{name}" for name in "Int Float Bool ScalarImplicit IntImplicit FloatImplicit item Number _local_scalar_dense is_nonzero".split()}
    assert {f"aten::{name}" for name in "detach contiguous to cpu alias lift_fresh".split()} == SAME


def test_known_numbers_pass_through_what_does_not_change_them() -> None:
    three = number(3)
    for name in ("detach", "contiguous", "cpu", "alias", "lift_fresh"):
        assert fold_known(f"aten::{name}", [three]) is three
    copy = fold_known("aten::clone", [three])
    assert copy is not three and copy.known is not three.known and copy.known == 3


@pytest.mark.parametrize(("operands", "result"), [
    ([6, False, False, None], (3.0, "float32")), ([4, False, False], "same"), ([4, False, True], (3, "int64")), (["cpu", 7, False, False], (3.0, "float64")),
    (["cpu", 4, False, True], (3, "int64")), ([False, False], "same"), ([None], "same"), (["cpu"], None), ([99], None), ([11], (True, "bool")),
    ([number(0.0, np.float32), False, False], (3.0, "float32")),
])
def test_conversions_of_known_numbers(operands: list[Any], result: Any) -> None:
    three = number(3)
    found = fold_known("aten::to", [three, *operands])
    assert found is three if result == "same" else (found if found is None else (found.known.item(), str(found.known.dtype))) == result


@pytest.mark.parametrize("operands", [
    [Tensor(), 2], [2, Tensor()], [2, 3], [], [number(7), Tensor()], [number(7), [1]], [number(7), 0], ["a", number(7)],
])
def test_what_is_not_known_is_not_folded(operands: list[Any]) -> None:
    assert fold_known("aten::floor_divide", operands) is None
    assert fold_known("aten::conv2d", operands) is None


def test_a_number_out_of_range_is_cast_as_in_torch() -> None:
    """A mask of -1e9 in half precision is -inf, without a warning of numpy's."""
    half = 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = fold_known("aten::to", [Tensor(known=np.array(-1e9, np.float32)), half, False, False, None])
    assert isinstance(result, Tensor) and result.known is not None
    assert result.known.dtype == np.float16
    assert result.known == -np.inf
