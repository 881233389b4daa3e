"""Convolutions: windows, strides, paddings and layouts, alone and one behind the other."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irscope.api import load
from irscope.lower.printer import print_kernel
from irscope.lower.repeated import MOST_REPEATED, work_of
from tests.lower.running import check, compiled, drawn, entry

RELU = "z = f32[] constant(0)\n zs = {t} broadcast(z), dimensions={{}}\n ROOT r = {t} maximum(c, zs)"


def conv(x: str, w: str, out: str, window: str, labels: str, more: str = "", relu: bool = True) -> str:
    """One convolution, with a ReLU behind it."""
    body = f"x = f32[{x}] parameter(0)\n w = f32[{w}] parameter(1)\n"
    tail = RELU.format(t=f"f32[{out}]") if relu else f"ROOT r = f32[{out}] negate(c)"
    return entry(body + f"c = f32[{out}] convolution(x, w), window={{{window}}}, dim_labels={labels}{more}\n" + tail)


NCHW, NHWC = "bf01_oi01->bf01", "b01f_01io->b01f"


@pytest.mark.parametrize("fixed", [(), (1,)])
@pytest.mark.parametrize(("x", "w", "out", "window", "labels"), [
    ("2,5,9,9", "20,5,3,3", "2,20,9,9", "size=3x3 pad=1_1x1_1", NCHW),
    ("1,9,9,5", "3,3,5,20", "1,9,9,20", "size=3x3 pad=1_1x1_1", NHWC),
    ("1,3,23,23", "24,3,7,7", "1,24,12,12", "size=7x7 stride=2x2 pad=3_3x3_3", NCHW),
    ("1,17,8,6", "33,17,1,1", "1,33,8,6", "size=1x1", NCHW),
    ("2,8,6,17", "1,1,17,33", "2,4,3,33", "size=1x1 stride=2x2", NHWC),
    ("1,8,6,17", "2,3,17,16", "1,6,9,16", "size=2x3 pad=-1_0x2_3", NHWC),
    ("1,11,12,4", "3,3,4,18", "1,9,10,18", "size=3x3 rhs_dilate=2x2 pad=1_1x1_1", NHWC),
    ("1,11,12,4", "3,3,4,18", "1,9,10,18", "size=3x3 rhs_reversal=1x1", NHWC),
])
def test_images(x: str, w: str, out: str, window: str, labels: str, fixed: tuple[int, ...]) -> None:
    check(conv(x, w, out, window, labels), fixed, template="convolution")


@pytest.mark.parametrize("channels", [1, 2, 8])
def test_padding_of_both_signs_is_padding_of_its_own(channels: int) -> None:
    """XLA's CPU compiler reads the next row where such a window reaches over the end of one; its own ``pad`` and a convolution do not."""
    x, w, out = f"1,9,9,{channels}", f"2,3,{channels},4", "1,5,7,4"
    whole = conv(x, w, out, "size=2x3 pad=-1_-2x-1_1", NHWC)
    apart = entry(f"""x = f32[{x}] parameter(0)
      w = f32[{w}] parameter(1)
      zero = f32[] constant(0)
      p = f32[1,6,9,{channels}] pad(x, zero), padding=0_0x-1_-2x-1_1x0_0
      c = f32[{out}] convolution(p, w), window={{size=2x3}}, dim_labels={NHWC}
      """ + RELU.format(t=f"f32[{out}]"))
    arrays = drawn(load(whole).module())
    results = [compiled(text)[1](*arrays)[0] for text in (whole, apart)]
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5, atol=1e-5)
    check(whole)


@pytest.mark.parametrize("fixed", [(), (1,)])
def test_groups(fixed: tuple[int, ...]) -> None:
    check(conv("1,7,7,12", "3,3,4,36", "1,7,7,36", "size=3x3 pad=1_1x1_1", NHWC, ", feature_group_count=3"), fixed, template="convolution")
    check(conv("1,12,7,7", "36,4,3,3", "1,36,7,7", "size=3x3 pad=1_1x1_1", NCHW, ", feature_group_count=3"), fixed, template="convolution")


@pytest.mark.parametrize("fixed", [(), (1,)])
@pytest.mark.parametrize(("x", "w", "out", "window", "labels"), [
    ("2,5,30", "20,5,4", "2,20,30", "size=4 pad=1_2", "bf0_oi0->bf0"),
    ("2,30,5", "4,5,20", "2,14,20", "size=4 stride=2", "b0f_0io->b0f"),
    ("1,4,6,5,3", "3,3,3,3,16", "1,4,6,5,16", "size=3x3x3 pad=1_1x1_1x1_1", "b012f_012io->b012f"),
])
def test_other_ranks(x: str, w: str, out: str, window: str, labels: str, fixed: tuple[int, ...]) -> None:
    check(conv(x, w, out, window, labels), fixed, template="convolution")


@pytest.mark.parametrize("fixed", [(), (1,)])
def test_transposed_convolutions_read_an_image_with_holes(fixed: tuple[int, ...]) -> None:
    check(conv("1,5,6,4", "3,3,4,8", "1,9,11,8", "size=3x3 lhs_dilate=2x2 pad=1_1x1_1", NHWC), fixed, template="convolution")
    check(conv("2,20,5,5", "16,20,4,4", "2,16,10,10", "size=4x4 lhs_dilate=2x2 pad=2_2x2_2 rhs_reversal=1x1", NCHW), fixed, template="convolution")
    check(conv("1,5,5,32", "3,3,32,32", "1,11,11,32", "size=3x3 lhs_dilate=2x2 pad=2_2x2_2", NHWC), fixed, template="convolution")


@pytest.mark.parametrize("fixed", [(), (1,)])
def test_few_result_channels_leave_the_lanes_to_the_image(fixed: tuple[int, ...]) -> None:
    check(conv("1,3,20,37", "2,3,3,3", "1,2,20,37", "size=3x3 pad=1_1x1_1", NCHW), fixed, template="convolution")
    check(conv("2,1,20,37", "1,1,5,5", "2,1,20,37", "size=5x5 pad=2_2x2_2", NCHW), fixed, template="convolution")
    check(conv("1,20,37,3", "3,3,3,1", "1,20,37,1", "size=3x3 pad=1_1x1_1", NHWC), fixed, template="convolution")


@pytest.mark.parametrize("fixed", [(), (1,)])
def test_batch_groups(fixed: tuple[int, ...]) -> None:
    check(conv("6,8,8,3", "3,3,3,40", "3,6,6,40", "size=3x3", NHWC, ", batch_group_count=2"), fixed, template="convolution")


@pytest.mark.parametrize("labels", [NCHW, NHWC])
def test_in_a_net_only_the_edges_are_copied(labels: str) -> None:
    """Batch normalisation, residuals and several windows: values lie channels last inside, whatever the text says."""
    nchw = labels == NCHW

    def t(channels: int, size: int = 10) -> str:
        return f"f32[1,{channels},{size},{size}]" if nchw else f"f32[1,{size},{size},{channels}]"

    def w(o: int, i: int, n: int) -> str:
        return f"f32[{o},{i},{n},{n}]" if nchw else f"f32[{n},{n},{i},{o}]"

    axis = 1 if nchw else 3
    text = entry(f"""
      x = {t(3)} parameter(0)
      w0 = {w(32, 3, 3)} parameter(1)
      w1 = {w(16, 32, 1)} parameter(2)
      w2 = {w(16, 16, 3)} parameter(3)
      w3 = {w(32, 16, 1)} parameter(4)
      scale = f32[32] parameter(5)
      shift = f32[32] parameter(6)
      c0 = {t(32)} convolution(x, w0), window={{size=3x3 pad=1_1x1_1}}, dim_labels={labels}
      scales = {t(32)} broadcast(scale), dimensions={{{axis}}}
      shifts = {t(32)} broadcast(shift), dimensions={{{axis}}}
      m0 = {t(32)} multiply(c0, scales)
      a0 = {t(32)} add(m0, shifts)
      c1 = {t(16)} convolution(a0, w1), window={{size=1x1}}, dim_labels={labels}
      n1 = {t(16)} negate(c1)
      c2 = {t(16)} convolution(n1, w2), window={{size=3x3 pad=1_1x1_1 rhs_dilate=1x1}}, dim_labels={labels}
      c3 = {t(32)} convolution(c2, w3), window={{size=1x1}}, dim_labels={labels}
      r = {t(32)} add(c3, a0)
      c4 = {t(16)} convolution(r, w1), window={{size=1x1}}, dim_labels={labels}
      c5 = {t(16, 5)} convolution(c4, w2), window={{size=3x3 stride=2x2 pad=1_1x1_1}}, dim_labels={labels}
      ROOT out = {t(16, 5)} negate(c5)""")
    program = check(text, (1, 2, 3, 4, 5, 6), template="convolution")
    copies = [k.name for k in program.kernels() if k.name.endswith(("_frame", "_relay"))]
    assert len(copies) == (2 if nchw else 1), copies


@settings(max_examples=25, deadline=None)
@given(h=st.integers(3, 12), w=st.integers(3, 12), ci=st.integers(1, 20), co=st.integers(1, 40), kh=st.integers(1, 3), kw=st.integers(1, 3),
       stride=st.integers(1, 3), low=st.integers(0, 2), high=st.integers(0, 2), dilate=st.integers(1, 2), labels=st.sampled_from([NCHW, NHWC]),
       fixed=st.sampled_from([(), (1,)]))
def test_random_windows(h: int, w: int, ci: int, co: int, kh: int, kw: int, stride: int, low: int, high: int, dilate: int, labels: str,
                        fixed: tuple[int, ...]) -> None:
    oh = (h + low + high - (kh - 1) * dilate - 1) // stride + 1
    ow = (w + high - (kw - 1) * dilate - 1) // stride + 1
    if oh <= 0 or ow <= 0:
        return
    nchw = labels == NCHW
    x, k, out = ((f"2,{ci},{h},{w}", f"{co},{ci},{kh},{kw}", f"2,{co},{oh},{ow}") if nchw
                 else (f"2,{h},{w},{ci}", f"{kh},{kw},{ci},{co}", f"2,{oh},{ow},{co}"))
    window = f"size={kh}x{kw} stride={stride}x{stride} pad={low}_{high}x0_{high} rhs_dilate={dilate}x{dilate}"
    check(conv(x, k, out, window, labels), fixed)


@pytest.mark.parametrize(("x", "w", "out", "window", "labels"), [
    ("1,9,11,40", "3,3,1,40", "1,9,11,40", "size=3x3 pad=1_1x1_1", NHWC),
    ("2,40,9,11", "40,1,3,3", "2,40,5,6", "size=3x3 stride=2x2 pad=1_1x1_1", NCHW),
    ("1,9,11,16", "5,5,1,16", "1,9,11,16", "size=5x5 pad=2_2x2_2", NHWC),
    ("1,14,14,7", "3,3,1,7", "1,10,10,7", "size=3x3 rhs_dilate=2x2", NHWC),
])
def test_depthwise(x: str, w: str, out: str, window: str, labels: str) -> None:
    channels = w.split(",")[3] if labels == NHWC else w.split(",")[0]
    text = conv(x, w, out, window, labels, f", feature_group_count={channels}")
    check(text, (1,), template="depthwise")
    check(text, (), template="depthwise")


def test_gradients_of_depthwise_convolutions() -> None:
    image = conv("2,5,6,40", "3,3,1,40", "2,9,11,40", "size=3x3 lhs_dilate=2x2 pad=1_1x1_1", NHWC, ", feature_group_count=40")
    check(image, template="depthwise")
    weights = conv("2,12,12,40", "2,5,5,40", "3,3,1,40", "size=5x5 rhs_dilate=2x2 pad=0_-1x0_-1", "f01b_i01o->01bf", ", batch_group_count=40")
    check(weights, template="convolution")


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("size", "window", "out"), [(7, "size=7x7 pad=1_1x1_1", 3), (4, "size=4x4 pad=1_1x1_1 rhs_dilate=2x2", 3)])
def test_gradients_of_depthwise_weights_channels_first(size: int, window: str, out: int, turned: bool) -> None:
    """Both images lie as lanes want to walk them, and so does the result before it is turned: nothing is computed again."""
    text = entry(f"""x = f32[5,40,7,7] parameter(0)
      g = f32[5,40,{size},{size}] parameter(1)
      y = f32[5,40,7,7] tanh(x)
      h = f32[5,40,{size},{size}] exponential(g)
      {"" if turned else "ROOT "}c = f32[{out},{out},1,40] convolution(y, h), window={{{window}}}, dim_labels=fb01_io01->01bf, batch_group_count=40
      {f"ROOT t = f32[40,1,{out},{out}] transpose(c), dimensions={{3,2,0,1}}" if turned else ""}""")
    program = check(text, template="convolution")
    assert "groups" in {k.schedule.get("by") for k in program.kernels()}
    assert all(w.ratio <= MOST_REPEATED for w in work_of(load(text).module()))


@pytest.mark.parametrize("precision", ["default", "fast", "exact"])
@pytest.mark.parametrize(("x", "w", "out", "labels", "pad"), [
    ("1,12,12,16", "3,3,16,32", "1,12,12,32", NHWC, "1_1x1_1"),
    ("2,13,15,20", "3,3,20,37", "2,13,15,37", NHWC, "1_1x1_1"),
    ("1,24,18,17", "40,24,3,3", "1,40,18,17", NCHW, "1_1x1_1"),
    ("1,21,24,32", "3,3,32,16", "1,19,24,16", NHWC, "0_0x2_0"),
    ("1,64,56,56", "64,64,3,3", "1,64,56,56", NCHW, "1_1x1_1"),
])
def test_winograd(x: str, w: str, out: str, labels: str, pad: str, precision: str) -> None:
    check(conv(x, w, out, f"size=3x3 pad={pad}", labels), (1,), 2e-5 if precision == "fast" else 5e-6,
          "convolution" if precision == "exact" else "winograd", precision)


def test_many_rows_and_few_weights() -> None:
    program = check(conv("2,3,64,64", "64,3,7,7", "2,64,32,32", "size=7x7 stride=2x2 pad=3_3x3_3", NCHW), (1,), template="convolution")
    assert any(k.schedule.get("rows_outer") for k in program.kernels())


@pytest.mark.parametrize("product", [
    "x = f64[1,1,3,3] parameter(0)\n c = f64[1,1,3,3] convolution(x, x), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01",
    "x = f64[1,4,5,1] parameter(0)\n w = f64[3,3,1,8] parameter(1)\n"
    "c = f64[1,4,5,8] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
    "x = u8[1,2] parameter(0)\n w = u8[1,1] parameter(1)\n"
    "c = u8[2,1] dot(x, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
])
@pytest.mark.parametrize("between", ["", "negate"])
def test_what_is_reversed_twice_is_the_result_in_its_place(product: str, between: str) -> None:
    shape = product.split("c = ")[1].split(" ")[0]
    last = f"n = {shape} negate(a)\n ROOT r = {shape} reverse(n)" if between else f"ROOT r = {shape} reverse(a)"
    check(entry(f"{product}\n a = {shape} reverse(c), dimensions={{0,1}}\n {last}, dimensions={{0,1}}"))


def test_concatenations_and_pointwise_values_lie_as_convolutions_wish() -> None:
    """A dense block and a squeeze-and-excite block, channels first in the text: nothing is turned around inside."""
    t = "f32[1,{},9,9]".format
    program = check(entry(f"""
      x = f32[1,3,9,9] parameter(0)
      w0 = f32[24,3,3,3] parameter(1)
      w1 = f32[24,24,1,1] parameter(2)
      w2 = f32[16,48,1,1] parameter(3)
      s = f32[48] parameter(4)
      g = f32[16,16] parameter(5)
      c0 = {t(24)} convolution(x, w0), window={{size=3x3 pad=1_1x1_1}}, dim_labels=bf01_oi01->bf01
      c1 = {t(24)} convolution(c0, w1), window={{size=1x1}}, dim_labels=bf01_oi01->bf01
      both = {t(48)} concatenate(c0, c1), dimensions={{1}}
      sb = {t(48)} broadcast(s), dimensions={{1}}
      scaled = {t(48)} multiply(both, sb)
      c2 = {t(16)} convolution(scaled, w2), window={{size=1x1}}, dim_labels=bf01_oi01->bf01
      on = {t(16)} logistic(c2)
      swish = {t(16)} multiply(c2, on)
      zero = f32[] constant(0)
      sum = f32[1,16] reduce(swish, zero), dimensions={{2,3}}, to_apply=add
      gate = f32[1,16] dot(sum, g), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
      gates = {t(16)} broadcast(gate), dimensions={{0,1}}
      gated = {t(16)} multiply(swish, gates)
      w3 = f32[32,16,1,1] parameter(6)
      c3 = {t(32)} convolution(gated, w3), window={{size=1x1}}, dim_labels=bf01_oi01->bf01
      ROOT n = {t(32)} negate(c3)""", """add { a = f32[] parameter(0)
        b = f32[] parameter(1)
        ROOT r = f32[] add(a, b) }"""), (1, 2, 3, 4, 5, 6), template="reduction")
    copies = [k.name for k in program.kernels() if k.name.endswith(("_frame", "_relay")) or k.schedule.get("template") == "transposition"]
    assert copies == ["c0_frame", "c3_relay"], copies


@pytest.mark.parametrize("window", ["size=2x2 stride=3x3", "size=2x2 stride=1x3", "size=1x2 stride=2x5"])
def test_depthwise_windows_that_leave_pixels_out(window: str) -> None:
    (h, w), (down, right) = ([int(n) for n in part.split("=")[1].split("x")] for part in window.split(" "))
    out = f"1,{(11 - h) // down + 1},{(17 - w) // right + 1},20"
    check(conv("1,11,17,20", f"{h},{w},1,20", out, window, NHWC, ", feature_group_count=20"), template="depthwise")


@pytest.mark.parametrize("first", ["2,4,4", "8,4,1"])
def test_images_whose_pixels_follow_each_other_are_one_row_of_pixels(first: str) -> None:
    """A convolution by single pixels is the same kernel however they are cut into images and lines."""
    def loops(pixels: str) -> list[str]:
        program, _ = compiled(conv(f"{pixels},16", "1,1,16,24", f"{pixels},24", "size=1x1", NHWC))
        [kernel] = program.kernels()
        assert kernel.schedule["template"] == "convolution"
        return [line for line in print_kernel(kernel).splitlines() if line.lstrip().startswith(("for", "par"))]

    assert loops(first) == loops("1,8,4")
