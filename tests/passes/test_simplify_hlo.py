"""simplify-algebra over HLO: every rule on a program that shows it, and on one just beside it; types hold and the numbers stay."""
from __future__ import annotations

import pytest

from irscope.graph import Module
from irscope.ops.attributes import Broadcast, Pad, Slice, Transpose, Windowed
from irscope.ops.attributes import Convolution as Conv
from irscope.passes import pass_named
from tests.lower.whole import ADD, MAX, entry
from tests.passes.test_hlo_passes import after, ops

X = "x = f32[4] parameter(0)\n"
M = "x = f32[3,4] parameter(0)\n"
C = "x = f32[2,3,4] parameter(0)\n"


def simplified(lines: str, header: str = "") -> Module:
    """The program afterwards, without what nothing reads any more."""
    return pass_named("remove-dead").run(after("simplify-algebra", entry(lines, header)))


@pytest.mark.parametrize(("lines", "left"), [
    # reshapes
    (X + "a = f32[2,2] reshape(x)\nb = f32[1,4] reshape(a)\nROOT r = f32[4,1] reshape(b)", ["reshape"]),
    ("x = f32[] parameter(0)\na = f32[6] broadcast(x), dimensions={}\nROOT r = f32[2,3] reshape(a)", ["broadcast"]),
    (M + "a = f32[3,1,4,5] broadcast(x), dimensions={0,2}\nb = f32[3,1,4,5] tanh(a)\nc = f32[3,1,4,5] broadcast(x), dimensions={0,2}\n"
     "ROOT r = f32[1,3,4,5] reshape(c)", ["broadcast"]),
    ("x = f32[2,4] parameter(0)\nc = f32[5,1,2,4] broadcast(x), dimensions={2,3}\nROOT r = f32[1,5,2,4] reshape(c)", ["broadcast"]),
    (M + "c = f32[3,4,2] broadcast(x), dimensions={0,1}\nROOT r = f32[12,2] reshape(c)", ["broadcast", "reshape"]),
    ("x = f32[1,4] parameter(0)\nc = f32[1,4,2] broadcast(x), dimensions={0,1}\nROOT r = f32[4,2] reshape(c)", ["reshape", "broadcast"]),
    # broadcasts
    (M + "ROOT r = f32[3,4] broadcast(x), dimensions={0,1}", []),
    ("x = f32[3,3] parameter(0)\nROOT r = f32[3,3] broadcast(x), dimensions={1,0}", ["broadcast"]),
    (X + "a = f32[3,4] broadcast(x), dimensions={1}\nROOT r = f32[4,2,3] broadcast(a), dimensions={2,0}", ["broadcast"]),
    ("x = f32[1,4] parameter(0)\nROOT r = f32[1,4,5] broadcast(x), dimensions={0,1}", ["reshape", "broadcast"]),
    (M + "ROOT r = f32[3,1,4] broadcast(x), dimensions={0,2}", ["reshape"]),
    (M + "ROOT r = f32[4,1,3] broadcast(x), dimensions={2,0}", ["broadcast"]),
    # types that a text declares: open dimensions below static ones
    ("x = f32[4,3,1] parameter(0)\na = f32[4,?,1] reverse(x), dimensions={0}\nROOT r = f32[4,3,1] reverse(a), dimensions={2}", ["reverse", "reverse"]),
    ("x = f32[3,4] parameter(0)\na = f32[?,4] negate(x)\nb = f32[4,3] transpose(a), dimensions={1,0}\nROOT r = f32[3,4] transpose(b), dimensions={1,0}",
     ["negate", "transpose", "transpose"]),
    # transposes
    ("x = f32[3,1,4] parameter(0)\nROOT r = f32[1,3,4] transpose(x), dimensions={1,0,2}", ["reshape"]),
    (C + "a = f32[3,4,2] transpose(x), dimensions={1,2,0}\nROOT r = f32[4,2,3] transpose(a), dimensions={1,2,0}", ["transpose"]),
    (C + "a = f32[3,4,2] transpose(x), dimensions={1,2,0}\nROOT r = f32[2,3,4] transpose(a), dimensions={2,0,1}", []),
    (M + "a = f32[3,4,5] broadcast(x), dimensions={0,1}\nROOT r = f32[5,3,4] transpose(a), dimensions={2,0,1}", ["broadcast"]),
    (M + "a = f32[3,4,5] broadcast(x), dimensions={0,1}\nROOT r = f32[4,5,3] transpose(a), dimensions={1,2,0}", ["broadcast", "transpose"]),
    # slices
    (M + "a = f32[3,3] slice(x), slice={[0:3], [1:4]}\nROOT r = f32[2,2] slice(a), slice={[1:3], [0:3:2]}", ["slice"]),
    ("x = f32[20] parameter(0)\na = f32[6] slice(x), slice={[2:20:3]}\nROOT r = f32[2] slice(a), slice={[1:5:2]}", ["slice"]),
    ("x = f32[] parameter(0)\na = f32[6] broadcast(x), dimensions={}\nROOT r = f32[2] slice(a), slice={[1:3]}", ["broadcast"]),
    (X + "a = f32[4,6] broadcast(x), dimensions={0}\nROOT r = f32[4,2] slice(a), slice={[0:4], [1:3]}", ["broadcast", "slice"]),
    # concatenations, reverses
    (X + "e = f32[0] slice(x), slice={[1:1]}\nROOT r = f32[4] concatenate(e, x), dimensions={0}", []),
    (X + "ROOT r = f32[8] concatenate(x, x), dimensions={0}", ["concatenate"]),
    ("x = f32[1,4,1] parameter(0)\nROOT r = f32[1,4,1] reverse(x), dimensions={0,2}", []),
    ("x = f32[1,4,1] parameter(0)\nROOT r = f32[1,4,1] reverse(x), dimensions={0,1}", ["reverse"]),
    # divisions and conversions
    *((X + f"o = f32[] constant({number})\nb = f32[4] broadcast(o), dimensions={{}}\nROOT r = f32[4] divide(x, b)", ["broadcast", left]) for number, left in [
        ("2048", "multiply"), ("4096", "divide"), ("-0.5", "multiply"), ("0.0001220703125", "multiply"), ("0.00006103515625", "divide"), ("0", "divide"), ("inf", "divide"), ("6", "divide")]),
    ("x = s32[4] parameter(0)\no = s32[] constant(2)\nb = s32[4] broadcast(o), dimensions={}\nROOT r = s32[4] divide(x, b)", ["broadcast", "divide"]),
    ("x = u32[4] parameter(0)\nn = u32[4] negate(x)\nROOT r = u32[4] negate(n)", []),
    (X + "ROOT r = f32[4] convert(x)", []),
    (X + "a = f64[4] convert(x)\nROOT r = bf16[4] convert(a)", ["convert"]),
    # arithmetic before broadcasts and reshapes
    (X + "a = f32[3,4] broadcast(x), dimensions={1}\nb = f32[3,4] broadcast(x), dimensions={1}\nROOT r = f32[3,4] add(a, b)", ["add", "broadcast"]),
    (X + "y = f32[3] parameter(1)\na = f32[3,4] broadcast(x), dimensions={1}\nb = f32[3,4] broadcast(y), dimensions={0}\nROOT r = f32[3,4] add(a, b)",
     ["broadcast", "broadcast", "add"]),
    (X + "y = f32[] parameter(1)\na = f32[3,4] broadcast(x), dimensions={1}\nb = f32[3,4] broadcast(y), dimensions={}\nROOT r = f32[3,4] add(a, b)",
     ["broadcast", "add", "broadcast"]),
    ("x = f32[3,4] parameter(0)\ny = f32[3,4] parameter(1)\na = f32[3,1,4] reshape(x)\nb = f32[3,1,4] reshape(y)\nROOT r = f32[3,1,4] multiply(a, b)", ["multiply", "reshape"]),
    ("x = f32[3,4] parameter(0)\ny = f32[] parameter(1)\na = f32[3,1,4] reshape(x)\nb = f32[3,1,4] broadcast(y), dimensions={}\nROOT r = f32[3,1,4] multiply(a, b)",
     ["broadcast", "multiply", "reshape"]),
    ("x = f32[3,4] parameter(0)\ny = f32[3,1,4] parameter(1)\na = f32[3,1,4] reshape(x)\nROOT r = f32[3,1,4] multiply(a, y)", ["reshape", "multiply"]),
    ("x = f32[3,4] parameter(0)\na = f32[2,6] reshape(x)\nROOT r = f32[2,6] multiply(a, a)", ["reshape", "multiply"]),
])
def test_what_is_left(lines: str, left: list[str]) -> None:
    assert ops(simplified(lines)) == left


def test_attributes_of_what_is_made() -> None:
    """Dimensions and places that are put together from two operators."""
    [twice, turned, cut] = [simplified(lines).main().result() for lines in (
        X + "a = f32[3,4] broadcast(x), dimensions={1}\nROOT r = f32[4,2,3] broadcast(a), dimensions={2,0}",
        C + "a = f32[3,4,2] transpose(x), dimensions={1,2,0}\nROOT r = f32[4,2,3] transpose(a), dimensions={1,2,0}",
        "x = f32[20] parameter(0)\na = f32[6] slice(x), slice={[2:20:3]}\nROOT r = f32[2] slice(a), slice={[1:5:2]}")]
    assert tuple(Broadcast.of(twice).dimensions) == (0,)
    assert tuple(Transpose.of(turned).dimensions) == (2, 0, 1)
    [(start, stop, step)] = Slice.of(cut).slice
    assert list(range(start, stop, step)) == [5, 11]


CONV = ("x = f32[1,6,6,2] parameter(0)\nw = f32[3,3,2,4] parameter(1)\nz = f32[] constant({value})\np = f32[{shape}] pad(x, z), padding={pad}\n"
        "ROOT c = f32[{out}] convolution(p, w), window={{size=3x3{more}}}, dim_labels=b01f_01io->b01f")


@pytest.mark.parametrize(("value", "shape", "pad", "out", "more", "low", "high"), [
    ("0", "1,8,9,2", "0_0x1_1x0_3x0_0", "1,6,7,4", "", (1, 0), (1, 3)), ("0", "1,8,9,2", "0_0x2_0x0_3x0_0", "1,8,8,4", " pad=1_1x1_0", (3, 1), (1, 3)),
    ("1", "1,8,9,2", "0_0x1_1x0_3x0_0", "1,6,7,4", "", None, None), ("0", "2,8,9,2", "0_1x1_1x0_3x0_0", "2,6,7,4", "", None, None),
    ("0", "1,5,6,2", "0_0x-1_0x0_0x0_0", "1,3,4,4", "", None, None), ("0", "1,11,6,2", "0_0x0_0_1x0_0x0_0", "1,9,4,4", "", None, None),
    ("0", "1,7,7,2", "0_0x1_0x0_1x0_0", "1,11,11,4", " lhs_dilate=2x2", None, None),
])
def test_padding_of_convolutions(value: str, shape: str, pad: str, out: str, more: str, low: tuple[int, ...] | None, high: tuple[int, ...] | None) -> None:
    made = simplified(CONV.format(value=value, shape=shape, pad=pad, out=out, more=more))
    assert ops(made) == (["convolution"] if low else ["pad", "convolution"])
    window = Conv.of(made.main().result()).window
    assert window is not None and (low is None or (window.pad_low, window.pad_high) == (low, high))


@pytest.mark.parametrize(("value", "first", "pad", "shape", "out", "window", "low", "high"), [
    ("-inf", "-inf", "1_0x0_2", "7,8", "5,6", "size=3x3", (1, 0), (0, 2)), ("-inf", "-inf", "1_0x0_2", "7,8", "6,7", "size=3x3 pad=1_0x0_1", (2, 0), (0, 3)),
    ("-inf", "1", "1_0x0_2", "7,8", "5,6", "size=3x3", None, None), ("1", "-inf", "1_0x0_2", "7,8", "5,6", "size=3x3", None, None),
    ("-inf", "-inf", "-1_0x0_2", "5,8", "3,6", "size=3x3", None, None), ("-inf", "-inf", "0_0_1x0_0", "11,6", "9,4", "size=3x3", None, None),
    ("-inf", "-inf", "1_0x0_2", "7,8", "11,13", "size=3x3 lhs_dilate=2x2", None, None),
])
def test_padding_of_windows(value: str, first: str, pad: str, shape: str, out: str, window: str, low: tuple[int, ...] | None, high: tuple[int, ...] | None) -> None:
    made = simplified(f"""
        x = f32[6,6] parameter(0)
        v = f32[] constant({value})
        i = f32[] constant({first})
        p = f32[{shape}] pad(x, v), padding={pad}
        ROOT c = f32[{out}] reduce-window(p, i), window={{{window}}}, to_apply=most""", MAX)
    assert ops(made) == (["reduce-window"] if low else ["pad", "reduce-window"])
    found = Windowed.of(made.main().result()).window
    assert found is not None and (low is None or (found.pad_low, found.pad_high) == (low, high))


def test_a_sum_takes_zeros_and_a_maximum_does_not() -> None:
    lines = "x = s32[6] parameter(0)\nz = s32[] constant(0)\np = s32[8] pad(x, z), padding=1_1\nROOT c = s32[6] reduce-window(p, z), window={{size=3}}, to_apply={0}"
    assert ops(simplified(lines.format("sum"), ADD.replace("f32", "s32"))) == ["reduce-window"]
    kept = simplified(lines.format("most"), MAX.replace("f32", "s32"))
    assert ops(kept) == ["pad", "reduce-window"] and Pad.of(kept.main().nodes[-2]).padding == ((1, 1, 0),)


@pytest.mark.parametrize("op", ["multiply", "divide"])
def test_an_infinite_complex_number_times_one_has_a_part_that_is_nan(op: str) -> None:
    made = simplified("x = c64[1] parameter(0)\nc = c64[] constant((1, 0))\nb = c64[1] broadcast(c), dimensions={}\n"
                      f"ROOT r = c64[1] {op}(x, b)")
    assert made.main().result().op.name == op
