"""Constants in every spelling."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.formats.stablehlo.spelling import constant
from irscope.graph import Type
from irscope.ops.attrs import Literal
from tests.formats.stablehlo_texts import body, one, parsed

inf, nan = float("inf"), float("nan")

CASES: dict[str, object] = {
    "dense<1.5> : tensor<2x2xf32>": [[1.5, 1.5], [1.5, 1.5]], "dense<> : tensor<0x3xf32>": [], "dense<[]> : tensor<0xf32>": [],
    "dense<[[1, -2], [3, 0x0F]]> : tensor<2x2xi32>": [[1, -2], [3, 15]], "dense<true> : tensor<2xi1>": [True, True],
    "dense<[true, false]> : tensor<2xi1>": [True, False], "dense<[0x7F800000, 0xFF800000, 1.0]> : tensor<3xf32>": [inf, -inf, 1.0],
    "dense<0x7FC0> : tensor<bf16>": nan, "dense<0x7F> : tensor<1xf8E4M3FN>": [nan], "dense<(1.0,-2.0)> : tensor<complex<f32>>": 1 - 2j,
    "dense<[(1.0,0.0), (0x7F800000,2.0)]> : tensor<2xcomplex<f32>>": [1, complex(inf, 2)],
    'dense<"0x0000803F000000C0"> : tensor<2xf32>': [1.0, -2.0], 'dense<"0x0000803F"> : tensor<3xf32>': [1.0, 1.0, 1.0],
    'dense<"0x010001"> : tensor<3xi1>': [True, False, True], 'dense<"0x0580"> : tensor<16xi1>': [True, False, True] + [False] * 12 + [True],
    'dense<"0xFF"> : tensor<16xi1>': [True] * 16, 'dense<"0x0C03"> : tensor<2xi4>': [-4, 3], "dense<[1, 255]> : tensor<2xui8>": [1, 255],
    "dense<18446744073709551615> : tensor<ui64>": 2 ** 64 - 1, "dense<[1, 0]> : tensor<2xindex>": [1, 0], "dense<-8> : tensor<i4>": -8,
    "dense<[255, -128]> : tensor<2xi8>": [-1, -128], "dense<15> : tensor<i4>": -1, "dense<000000000000000000000001> : tensor<i8>": 1,
    f"dense<0x{'0' * 5000}7> : tensor<i64>": 7, "dense<18446744073709551615> : tensor<i64>": -1,
    "dense<[[[1.0]], [[2.0]]]> : tensor<2x1x1xf64>": [[[1.0]], [[2.0]]], 'dense<"0x000000000000F03F"> : tensor<1xf64>': [1.0],
    'dense<"0x05"> : tensor<3xi1>': [True, False, True],
    'dense<"0x01"> : tensor<16xi1>': [True] * 16, 'dense<"0x01"> : tensor<8xi1>': [True] * 8, 'dense<"0x00"> : tensor<9xi1>': [False] * 9,
    "dense<[1.00390625000001, 1.00390624999999, 1.00390625]> : tensor<3xbf16>": [1.0078125, 1.0, 1.0],
    "dense<[1.06250000001, -1.06250000001, 3.0e-50]> : tensor<3xf8E4M3FN>": [1.125, -1.125, 0.0],
}


def value_of(text: str) -> Literal:
    """The literal that a text is."""
    found = one(f"%0 = stablehlo.constant {text}").attributes["value"]
    assert isinstance(found, Literal)
    return found


@pytest.mark.parametrize("text", CASES)
def test_values(text: str) -> None:
    literal = value_of(text)
    array = np.asarray(literal.value())
    expected = np.asarray(CASES[text])
    if expected.size:
        wide = np.complex128 if array.dtype.kind == "c" else np.uint64 if array.dtype == np.uint64 else np.float64
        np.testing.assert_array_equal(array.astype(wide), expected.astype(wide))
    assert array.size == expected.size and not array.flags.writeable


@pytest.mark.parametrize("text", CASES)
def test_printed_values_are_read_again(text: str) -> None:
    literal = value_of(text)
    assert isinstance(literal.type, Type)
    again = value_of(constant(literal, literal.type))
    assert np.asarray(again.value()).tobytes() == np.asarray(literal.value()).tobytes() or "F" in text


def test_elided_values() -> None:
    for text in ("dense_resource<__elided__> : tensor<3xf32>", "dense<__elided__> : tensor<3xf32>"):
        assert value_of(text).elided


def test_resources_begin_with_their_alignment() -> None:
    text = body("%0 = stablehlo.constant dense_resource<blob> : tensor<2xf32>", "return %0 : tensor<2xf32>", result="tensor<2xf32>") \
        + '\n{-#\n  dialect_resources: {\n    builtin: {\n      blob: "0x040000000000803F00000040"\n    }\n  }\n#-}\n'
    (module,), _, ok = parsed(text)
    assert ok
    literal = module.functions["main"].body.operations[0].attributes["value"]  # type: ignore[union-attr]
    assert isinstance(literal, Literal) and literal.value().tolist() == [1.0, 2.0]


def test_large_constants_are_bytes() -> None:
    array = np.arange(5000, dtype=np.int32)
    literal = value_of("dense<0> : tensor<5000xi32>")
    text = constant(Literal.of(array, literal.type), literal.type)
    assert text.startswith('dense<"0x00000000') and value_of(text).value().tolist() == array.tolist()


@pytest.mark.parametrize("text", ["dense<[1.0, [2.0]]> : tensor<2xf32>", "dense<[1.0, 2.0> : tensor<2xf32>", "dense<1.0, 2.0> : tensor<2xf32>",
                                  'dense<"0x0Z"> : tensor<1xi8>', "dense<true> : tensor<i32>", "dense<> : tensor<2xf32>", "dense<1.0> : tensor<?xf32>",
                                  "dense<2> : tensor<i1>", "dense<(1.0,2.0)> : tensor<f32>", "dense<1.0> : tensor<4611686018427387904x4xf32>",
                                  "dense<1.0> : tuple<tensor<f32>>", "dense<[1, 300]> : tensor<2xi8>", "dense<-129> : tensor<i8>",
                                  "dense<[[1, 0x1FF]]> : tensor<1x2xi8>", "dense<4> : tensor<ui2>", "dense<16> : tensor<i4>",
                                  "dense<[-1, 255]> : tensor<2xui8>", "dense<18446744073709551616> : tensor<i64>",
                                  "dense<9223372036854775808> : tensor<index>", "dense<0x7FF0000000000000> : tensor<f32>",
                                  "dense<(0x17F800000,1.0)> : tensor<complex<f32>>", f"dense<{'9' * 5000}> : tensor<3xi32>"])
def test_values_that_do_not_fit_their_type(text: str) -> None:
    _, findings, ok = parsed(body(f"%0 = stablehlo.constant {text}", "return %x : tensor<4xf32>"))
    assert not ok and findings[0].code in ("SHL014", "SHL019")
