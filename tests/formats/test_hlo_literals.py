"""Values of constants: what is accepted, what is refused and where, and that text and array are each other's inverse."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irscope.formats.hlo import read
from irscope.formats.hlo.arrays import array_of, text_of
from irscope.formats.hlo.literals import TextLiteral
from irscope.formats.hlo.plain import is_plain
from irscope.graph import DTYPES, Node, TensorType, tensor
from irscope.ops.attrs import Literal
from irscope.source import SourceText

REALS = [d for d in DTYPES.values() if d.kind == "float"]
INTEGERS = [d for d in DTYPES.values() if d.is_integer]


def constant(type: str, value: str) -> tuple[bool, str, Node]:
    """Whether the constant is accepted, the first message, and the node."""
    got = read(SourceText("t", f"HloModule m\nENTRY e {{\n  ROOT c = {type} constant({value})\n}}\n"))
    return got.ok, got.findings[0].message if got.findings else "", got.module().main().nodes[-1]


ACCEPTED = [
    ("f32[]", "1.5", 1.5), ("f32[]", "inf", np.inf), ("f32[]", "-inf", -np.inf), ("f32[]", ".5", 0.5), ("f32[]", "1.", 1.0), ("f32[]", "1e-46", 0.0),
    ("f32[]", "3.40282347e+38", 3.4028235e38), ("f16[]", "65519", 65504.0), ("f8e4m3fn[]", "463", 448.0), ("f4e2m1fn[]", "100", 6.0),
    ("s32[]", "-2147483648", -2147483648), ("u8[]", "255", 255), ("s4[]", "-8", -8), ("u64[]", "18446744073709551615", 2**64 - 1),
    ("s64[]", "-9223372036854775808", -2**63), ("pred[]", "true", True), ("pred[]", "2", True), ("f32[2]", "{1 2}", [1, 2]), ("f32[2]", "{1,,2}", [1, 2]),
    ("f32[2,2]", "{ { 1, 2 }, { 3, 4 } }", [[1, 2], [3, 4]]), ("f32[2,1]{0,1}", "{{1},{2}}", [[1], [2]]), ("s8[1,1,2]", "{{{-128,127}}}", [[[-128, 127]]]),
    ("f32[0]", "{}", np.zeros(0)), ("f32[3,0]", "{{},{},{}}", np.zeros((3, 0))), ("c64[]", "(1, -2)", 1 - 2j), ("c128[2]", "{(0, inf), (1e300, 1)}", [complex(0, np.inf), 1e300 + 1j]),
    ("f32[2]", "{ /*i0=0*/ 1, // one\n 2}", [1, 2]), ("f32[2,2]", "7", [[7, 0], [0, 0]]),
]


@pytest.mark.parametrize("type, text, value", ACCEPTED, ids=lambda v: str(v)[:30])
def test_accepted(type: str, text: str, value: object) -> None:
    ok, message, node = constant(type, text)
    assert ok, message
    got = node.attrs["literal"].value()
    assert isinstance(node.type, TensorType) and got.dtype == node.type.dtype.numpy() and got.shape == node.type.shape
    np.testing.assert_array_equal(got, np.asarray(value).astype(got.dtype))
    assert not got.flags.writeable


REFUSED = [
    ("f16[]", "65520", "out of the range of f16"), ("bf16[]", "1e100", "out of the range of bf16"), ("f32[]", "1e39", "out of the range of f32"),
    ("f64[]", "1e400", "out of the range of f64"), ("f8e4m3fn[]", "464", "out of the range"), ("f8e8m0fnu[]", "1e39", "out of the range"),
    ("u4[]", "16", "0 to 15"), ("u4[]", "-1", "0 to 15"), ("s4[]", "-9", "-8 to 7"), ("s8[3]", "{1, 128, 3}", "128 is out of the range of s8"),
    ("u64[]", "18446744073709551616", "64 bits"), ("s32[]", "1.5", "an integer for s32"), ("pred[]", "1.0", "an integer for pred"), ("s32[]", "true", "an integer"),
    ("f32[]", "true", "a number for f32"), ("f32[2]", "{1, 2, 3}", "more than the 2 elements"), ("f32[2]", "{1}", "needs 2 elements in dimension 0, but here are 1"),
    ("f32[2,2]", "{{1, 2}, {3}}", "needs 2 elements in dimension 1"), ("f32[2,2]", "{1, 2, 3, 4}", "nested 1 deep"), ("f32[2]", "{{1, 2}}", "nested deeper than the 1"),
    ("f32[]", "{1}", "nested deeper than the 0"), ("f32[]", "{...}", "nested deeper"), ("f32[2]", "...", "must be written {...}"), ("c64[]", "1", "before a complex number"),
    ("c64[]", "(1e100, 0)", "out of the range of c64"), ("f32[]", "(1, 2)", "a number for f32"), ("token[]", "1", "cannot be of type token[]"),
    ("f8e4m3fn[]", "nan(0x1)", "NaN payload 0x1"), ("f32[?]", "{1}", "open type"), ("(f32[], s32[])", "(1)", "element 1 of the tuple"),
    ("f32[9999999999,9999999999]", "{{1}}", "does not fit into any memory"),
]


@pytest.mark.parametrize("type, text, words", REFUSED, ids=lambda v: str(v)[:30])
def test_refused(type: str, text: str, words: str) -> None:
    ok, message, _ = constant(type, text)
    assert not ok and words in message, message


def test_payloads_signs_and_tuples() -> None:
    _, _, node = constant("f32[3]", "{nan(0x1), -nan, -0.0}")
    bits = node.attrs["literal"].value().view(np.uint32)
    assert [hex(b) for b in bits] == ["0x7f800001", "0xffc00000", "0x80000000"]
    _, _, node = constant("((f32[2], s32[]), pred[1])", "(({1, 2}, 7), {true})")
    (floats, integer), flags = node.attrs["literal"].value()
    assert floats.tolist() == [1, 2] and integer == 7 and flags.tolist() == [True]


def test_elided_values_are_known_as_such() -> None:
    ok, _, node = constant("f32[1000000,1000000]", "{...}")
    literal = node.attrs["literal"]
    assert ok and literal.elided
    with pytest.raises(ValueError, match="elides"):
        literal.value()


def test_long_values_stay_in_the_dump() -> None:
    value = "{" + ", ".join(map(str, range(500))) + "}"
    ok, _, node = constant("s32[500]", value)
    assert ok and isinstance(node.attrs["literal"], TextLiteral) and node.attrs["literal"].text == value
    assert node.attrs["literal"].value()[499] == 499


def test_no_array_is_made_while_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: object) -> None:
        raise AssertionError("an array was made")
    monkeypatch.setattr("irscope.formats.hlo.literals.array_of", never)
    assert constant("f32[2]", "{1, 2}")[0] and constant("f32[2,2]", "{ {1, 2}, // a\n {3, 4} }")[0]


def test_equal_constants_share_their_literal() -> None:
    got = read(SourceText("t", "HloModule m\nENTRY e {\n  a = f32[] constant(2)\n  b = f32[] constant(2)\n  ROOT t = (f32[], f32[]) tuple(a, b)\n}\n"))
    a, b = got.module().main().nodes[:2]
    assert a.attrs is b.attrs


def roundtrip(array: np.ndarray, type: TensorType) -> None:
    text = text_of(array, type)
    back = array_of(text, type)
    assert back.tobytes() == array.tobytes(), text
    ok, message, _ = constant(str(type), text)
    assert ok, f"{text}: {message}"


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_real_comes_back(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(REALS))
    storage = np.dtype(f"u{dtype.storage}")
    shape = data.draw(st.lists(st.integers(0, 3), max_size=3).map(tuple))
    bits = data.draw(st.lists(st.integers(0, 2**dtype.bits - 1), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    array = np.array(bits, dtype=storage).view(dtype.numpy()).reshape(shape)
    if dtype.storage < 2 or dtype.name == "bf16":  # one NaN is as good as another where the payload is not kept
        with np.errstate(invalid="ignore"):  # ml_dtypes warns of a signalling NaN
            array = np.where(np.isnan(array), np.array(1, array.dtype), array)
    roundtrip(array.reshape(shape), tensor(dtype, *shape))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_any_integer_comes_back(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(INTEGERS))
    low, high = (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1) if dtype.is_signed else (0, (1 << dtype.bits) - 1)
    shape = data.draw(st.lists(st.integers(1, 3), max_size=3).map(tuple))
    n = int(np.prod(shape))
    values = data.draw(st.lists(st.integers(low, high), min_size=n, max_size=n))
    array = np.array(values, dtype=np.int64 if low else np.uint64).astype(dtype.numpy()).reshape(shape)
    type = tensor(dtype, *shape)
    text = text_of(array, type)
    assert is_plain(text, type) and array_of(text, type).astype(object).tolist() == array.astype(object).tolist()


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([d for d in DTYPES.values() if d.kind in ("int", "uint", "float", "pred")]), st.lists(st.integers(0, 3), max_size=3),
       st.text(st.sampled_from("{},, 0123-e.+tru faslnin"), max_size=30))
def test_what_the_patterns_accept_the_cursor_accepts(dtype: object, shape: list[int], text: str) -> None:
    from irscope.formats.hlo.faults import Refused
    from irscope.formats.hlo.lexer import Cursor
    from irscope.formats.hlo.literals import _value
    type = tensor(dtype, *shape)  # type: ignore[arg-type]
    if is_plain(text, type):
        cursor = Cursor(text)
        try:
            _value(cursor, type)
        except Refused as refused:
            raise AssertionError(f"{type}: {text!r}: {refused}") from refused
        assert cursor.kind == "end"


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_ranges_are_exact(dtype: object) -> None:
    type = tensor(dtype, 1)  # type: ignore[arg-type]
    bits = type.dtype.bits
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if type.dtype.is_signed else (0, (1 << bits) - 1)
    for value, fits in ((low, True), (high, True), (low - 1, False), (high + 1, False), (0, True), (high * 10, bits == 1), (high // 2, True)):
        if bits == 1 and value == high * 10:
            continue
        assert is_plain(f"{{{value}}}", type) is fits, value


def test_a_literal_of_an_array_prints() -> None:
    type = tensor("f32", 2, 2)
    literal = Literal.of(np.array([[0.1, -0.0], [1e30, 3.0]], np.float32), type)
    assert text_of(literal.value(), type) == "{ {0.1, -0.0}, {1e+30, 3} }"
