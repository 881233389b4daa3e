"""Convolutions: layouts, strides, holes, groups, and the algorithms that take them."""
from __future__ import annotations

from irscope.lower.templates.convolution import FEW
from irscope.lower.templates.winograd import MIN_CHANNELS
from tests.grid.sizes import COLUMNS, EDGES, FLOATS, LANES, NUMBERS, along, each
from tests.grid.template import Maker, template
from tests.grid.text import Value

SIZES = each(along((3,), EDGES, (5,)), along((), EDGES, (9, 4)), along((2, 5), EDGES), along((3,), COLUMNS, (3,)), [(17, 17, 6), (8, 8, 1)])
"""(channels, results, side of the image)"""
FEWER = each(along((3,), EDGES, (4,)), along((), EDGES, (5, 4)), along((2, 9), EDGES))


def convolution(m: Maker, image: tuple[int, ...], kernel: tuple[int, ...], window: str, labels: str, sides: tuple[int, ...], more: str = "") -> Value:
    """``image`` and ``kernel`` are shapes as ``labels`` orders them; ``sides`` of the result come in place of its spatial dimensions."""
    into, out = labels.split("->")
    x, w = m.operand(image), m.operand(kernel)
    left, right = into.split("_")
    sizes = {"b": image[left.index("b")] // (int(more.split("=")[1]) if "batch_group" in more else 1), "f": kernel[right.index("o")]}
    sizes.update({str(d): n for d, n in enumerate(sides)})
    return m.op("convolution", m.dtype, tuple(sizes[c] for c in out), x, w, attrs=f"window={{{window}}}, dim_labels={labels}{', ' + more if more else ''}")


@template("convolution", SIZES, NUMBERS)
def conv_channels_last(m: Maker) -> Value:
    c, o, n = m.size
    return convolution(m, (1, n, 3, c), (3, 3, c, o), "size=3x3 pad=1_1x1_1", "b01f_01io->b01f", (n, 3))


@template("convolution", SIZES, NUMBERS)
def conv_channels_first(m: Maker) -> Value:
    c, o, n = m.size
    return convolution(m, (2, c, 3, n), (o, c, 3, 3), "size=3x3 pad=1_1x1_1", "bf01_oi01->bf01", (3, n))


@template("convolution", each(along((), EDGES, (5,)), along((), EDGES, (1,)), [(16, 8)]), NUMBERS)
def conv_residual(m: Maker) -> Value:
    """As many results as channels, so that the operand can be added."""
    c, n = m.size
    return convolution(m, (1, c, n, n), (c, c, 3, 3), "size=3x3 pad=1_1x1_1", "bf01_oi01->bf01", (n, n))


@template("convolution", each(along((), EDGES, (5,)), along((), EDGES, (1,)), [(16, 8)]), NUMBERS)
def conv_residual_computed(m: Maker) -> Value:
    """The operand is computed for the convolution and the sum alone: it is left in a halo, and both read it there."""
    c, n = m.size
    m.first = m.changed(m.operand((1, c, n, n)))
    w = m.operand((c, c, 3, 3))
    return m.op("convolution", m.dtype, (1, c, n, n), m.first, w, attrs="window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01")


@template("convolution", along((), EDGES), NUMBERS)
def conv_same_type(m: Maker) -> Value:
    """Image and kernel of one type: they may be one value."""
    (c,) = m.size
    return convolution(m, (3, 3, c, c), (3, 3, c, c), "size=3x3 pad=1_1x1_1", "b01f_01io->b01f", (3, c))


@template("convolution", FEWER, NUMBERS)
def conv_1x1(m: Maker) -> Value:
    c, o, n = m.size
    return convolution(m, (1, 3, n, c), (1, 1, c, o), "size=1x1", "b01f_01io->b01f", (3, n))


@template("convolution", FEWER, NUMBERS)
def conv_strided(m: Maker) -> Value:
    c, o, n = m.size
    return convolution(m, (1, 5, n, c), (3, 3, c, o), "size=3x3 stride=2x2 pad=1_1x1_1", "b01f_01io->b01f", (3, (n + 1) // 2))


@template("convolution", FEWER, NUMBERS)
def conv_dilated(m: Maker) -> Value:
    c, o, n = m.size
    return convolution(m, (1, 5, n, c), (3, 3, c, o), "size=3x3 pad=2_2x2_2 rhs_dilate=2x2", "b01f_01io->b01f", (5, n))


@template("convolution", FEWER, NUMBERS)
def conv_transposed(m: Maker) -> Value:
    """An image with holes, as the gradient of a strided convolution reads it."""
    c, o, n = m.size
    wide = max(0, 2 * n - 1 + 2 - 2) if n else 0
    return convolution(m, (1, 2, n, c), (3, 3, c, o), "size=3x3 pad=1_1x1_1 lhs_dilate=2x2", "b01f_01io->b01f", (3, wide))


@template("convolution", FEWER, NUMBERS)
def conv_reversed(m: Maker) -> Value:
    c, o, n = m.size
    return convolution(m, (1, 3, n, c), (3, 3, c, o), "size=3x3 pad=1_1x1_1 rhs_reversal=1x1", "b01f_01io->b01f", (3, n))


@template("convolution", FEWER, NUMBERS)
def conv_padded_unevenly(m: Maker) -> Value:
    """A negative padding on one side, a wide one on the other."""
    c, o, n = m.size
    return convolution(m, (1, 4, n, c), (3, 2, c, o), "size=3x2 pad=-1_3x2_-1", "b01f_01io->b01f", (4, n))


@template("convolution", FEWER, NUMBERS)
def conv_1d(m: Maker) -> Value:
    c, o, n = m.size
    return convolution(m, (2, c, n), (o, c, 4), "size=4 pad=1_2", "bf0_oi0->bf0", (n,))


@template("convolution", FEWER, NUMBERS)
def conv_3d(m: Maker) -> Value:
    c, o, n = m.size
    return convolution(m, (1, 2, 3, n, c), (2, 3, 3, c, o), "size=2x3x3 pad=1_0x1_1x1_1", "b012f_012io->b012f", (2, 3, n))


@template("convolution", each(along((3,), range(1, FEW + 1), (9,)), along((5, 2), EDGES), along((), EDGES, (1, 9))), NUMBERS)
def conv_to_few_channels(m: Maker) -> Value:
    """Vectors along the image."""
    c, o, n = m.size
    return convolution(m, (1, c, 3, n), (o, c, 3, 3), "size=3x3 pad=1_1x1_1", "bf01_oi01->bf01", (3, n))


@template("depthwise", each(along((), EDGES, (5,)), along((5,), EDGES), along((LANES[-1] + 1,), EDGES)), FLOATS)
def conv_depthwise(m: Maker) -> Value:
    c, n = m.size
    return convolution(m, (1, 4, n, c), (3, 3, 1, c), "size=3x3 pad=1_1x1_1", "b01f_01io->b01f", (4, n), f"feature_group_count={max(1, c)}")


@template("depthwise", each(along((), EDGES, (5,)), along((5,), EDGES)), FLOATS)
def conv_depthwise_strided(m: Maker) -> Value:
    c, n = m.size
    return convolution(m, (1, c, 5, n), (c, 1, 3, 3), "size=3x3 stride=2x2 pad=1_1x1_1", "bf01_oi01->bf01", (3, (n + 1) // 2),
                       f"feature_group_count={max(1, c)}")


@template("convolution", each(along((), [n for n in EDGES if n], (5,)), along((5,), EDGES)), NUMBERS)
def conv_by_groups(m: Maker) -> Value:
    """One result a group, in one dimension: vectors along the groups."""
    c, n = m.size
    return convolution(m, (1, n, 2 * c), (3, 2, c), "size=3 pad=1_1", "b0f_0io->b0f", (n,), f"feature_group_count={c}")


@template("convolution", each(along((), [n for n in EDGES if n], (5,)), along((5,), [n for n in EDGES if n])), NUMBERS)
def conv_gradient(m: Maker) -> Value:
    """The gradient of the weights of a depthwise convolution, channels first: the second image is the kernel."""
    c, n = m.size
    return convolution(m, (3, c, 4, n), (3, c, 4, n), f"size=4x{n} pad=1_1x1_1", "fb01_io01->01bf", (3, 3), f"batch_group_count={c}")


@template("convolution", FEWER, NUMBERS)
def conv_grouped(m: Maker) -> Value:
    c, o, n = m.size
    return convolution(m, (1, 3, n, 2 * c), (3, 3, c, 2 * o), "size=3x3 pad=1_1x1_1", "b01f_01io->b01f", (3, n), "feature_group_count=2")


@template("convolution", FEWER, NUMBERS)
def conv_grouped_batches(m: Maker) -> Value:
    c, o, n = m.size
    return convolution(m, (4, 3, n, c), (3, 3, c, 2 * o), "size=3x3 pad=1_1x1_1", "b01f_01io->b01f", (3, n), "batch_group_count=2")


@template("winograd", each(along((MIN_CHANNELS,), [n for n in EDGES if n >= MIN_CHANNELS - 1], (6,)), along((17, 17), (5, 6, 7, 8, 9)),
                           along((), [n for n in EDGES if n >= MIN_CHANNELS - 1], (MIN_CHANNELS, 7)), along((16,), COLUMNS[-3:], (6,))),
          ("f32", "f64", "bf16", "f16", "f8e4m3fn"))
def conv_winograd(m: Maker) -> Value:
    """Weights that are known before the program is compiled."""
    c, o, n = m.size
    x, w = m.operand((1, n, n, c)), m.parameter(m.dtype, (3, 3, c, o), fixed=True)
    return m.op("convolution", m.dtype, (1, n, n, o), x, w, attrs="window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f")
