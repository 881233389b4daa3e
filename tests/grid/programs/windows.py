"""Windows that slide: pooling, sums along an axis, and the gradient of pooling."""
from __future__ import annotations

from tests.grid.sizes import ARRAYS, EDGES, INTEGERS, NUMBERS, REALS, along, each
from tests.grid.template import Maker, template
from tests.grid.text import Shape, Value

IMAGES = each(along((), EDGES, (5,)), along((3,), EDGES))
"""(channels, side of the image)"""


def window(m: Maker, x: Value, shape: Shape, attrs: str, opcode: str, init: str) -> Value:
    return m.op("reduce-window", m.dtype, shape, x, m.constant(m.dtype, init), attrs=f"window={{{attrs}}}, to_apply={m.combiner(opcode, m.dtype)}")


@template("window", IMAGES, ARRAYS)
def pool_max(m: Maker) -> Value:
    c, n = m.size
    opcode = "or" if m.dtype == "pred" else "maximum" if m.dtype in REALS else "multiply"
    return window(m, m.operand((1, 5, n, c)), (1, 3, (n + 1) // 2, c), "size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_1x1_1x0_0", opcode, "0")


@template("window", IMAGES, NUMBERS)
def pool_sum(m: Maker) -> Value:
    c, n = m.size
    return window(m, m.operand((2, 4, n, c)), (2, 4, n, c), "size=1x2x2x1 pad=0_0x1_0x0_1x0_0", "add", "1")


@template("window", IMAGES, ARRAYS)
def pool_beside_the_image(m: Maker) -> Value:
    """The first and the last row of windows lie in the padding alone."""
    c, n = m.size
    opcode = "and" if m.dtype == "pred" else "minimum" if m.dtype in REALS else "add"
    return window(m, m.operand((1, 3, n, c)), (1, 6, n, c), "size=1x2x1x1 pad=0_0x2_2x0_0x0_0", opcode, "1")


@template("generic", IMAGES, NUMBERS)
def pool_channels_first(m: Maker) -> Value:
    c, n = m.size
    return window(m, m.operand((1, c, 6, n)), (1, c, 3, (n + 1) // 2), "size=1x1x2x3 stride=1x1x2x2 pad=0_0x0_0x0_0x1_1", "add", "0")


@template("window", IMAGES, NUMBERS)
def pool_dilated(m: Maker) -> Value:
    c, n = m.size
    return window(m, m.operand((1, 5, n, c)), (1, 3, n, c), "size=1x2x2x1 pad=0_0x0_0x1_1x0_0 rhs_dilate=1x2x2x1", "add", "0")


@template("generic", IMAGES, NUMBERS)
def pool_holes(m: Maker) -> Value:
    c, n = m.size
    wide = 2 * n - 1 if n else 0
    return window(m, m.operand((1, 2, n, c)), (1, 3, wide, c), "size=1x1x3x1 pad=0_0x0_0x1_1x0_0 lhs_dilate=1x2x2x1", "add", "0")


@template("generic", each(along((3,), EDGES), along((), EDGES, (3,))), NUMBERS)
def cumulative(m: Maker) -> Value:
    rows, n = m.size
    return window(m, m.operand((rows, n)), (rows, n), f"size=1x{max(1, n)} pad=0_0x{max(0, n - 1)}_0", "add", "0")


@template("generic", each(along((3,), EDGES), along((), EDGES, (3,))), NUMBERS)
def cumulative_backwards(m: Maker) -> Value:
    n, columns = m.size
    return window(m, m.operand((n, columns)), (n, columns), f"size={max(1, n)}x1 pad=0_{max(0, n - 1)}x0_0", "multiply", "1")


@template("generic", each(along((2,), EDGES), along((), EDGES, (4,))), (*INTEGERS, "f32", "f64", "bf16", "f16"))
def select_and_scatter(m: Maker) -> Value:
    c, n = m.size
    x, source = m.operand((1, 4, n, c)), m.operand((1, 2, (n + 1) // 2, c))
    pick = m.body(f"ge_{m.dtype}", f"  a = {m.dtype}[] parameter(0)\n  b = {m.dtype}[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction=GE")
    return m.op("select-and-scatter", m.dtype, x.shape, x, source, m.constant(m.dtype),
                attrs=f"window={{size=1x2x3x1 stride=1x2x2x1 pad=0_0x0_0x1_1x0_0}}, select={pick}, scatter={m.combiner('add', m.dtype)}")
