"""Data that moves: transposes, slices, concatenations, paddings, and movement that strides cannot say."""
from __future__ import annotations

from irscope.lower.templates.transposition import SMALLEST
from tests.grid.sizes import ARRAYS, EDGES, along, each
from tests.grid.template import Maker, template
from tests.grid.text import Value

MATRICES = each(along((5,), EDGES), along((), EDGES, (5,)), along((33,), EDGES), along((SMALLEST,), EDGES), [(17, 17), (40, 70)])
CUBES = each(along((2, 3), EDGES), along((2,), EDGES, (3,)), along((), EDGES, (3, 5)), [(3, 17, 9)])


@template("transposition", MATRICES, ARRAYS)
def transpose(m: Maker) -> Value:
    return m.transpose(m.operand(m.size), (1, 0))


@template("transposition", MATRICES, ARRAYS)
def transpose_and_add(m: Maker) -> Value:
    return m.sum(m.transpose(m.operand(m.size), (1, 0)), m.operand(m.size[::-1]))


@template("map", CUBES, ARRAYS)
def transpose_inner(m: Maker) -> Value:
    return m.transpose(m.operand(m.size), (0, 2, 1))


@template("map", CUBES, ARRAYS)
def transpose_outer(m: Maker) -> Value:
    return m.transpose(m.operand(m.size), (1, 0, 2))


@template("map", CUBES, ARRAYS)
def transpose_all(m: Maker) -> Value:
    return m.changed(m.transpose(m.operand(m.size), (2, 1, 0)))


@template("map", CUBES, ARRAYS)
def reverse(m: Maker) -> Value:
    return m.like("reverse", m.operand(m.size), attrs="dimensions={0,2}")


@template("map", CUBES, ARRAYS)
def flatten_transposed(m: Maker) -> Value:
    """A reshape that no strides can say."""
    a, b, c = m.size
    return m.changed(m.reshape(m.transpose(m.operand(m.size), (2, 0, 1)), (a * b * c,)))


@template("map", CUBES, ARRAYS)
def slices(m: Maker) -> Value:
    x = m.operand(tuple(n + 3 for n in m.size))
    return m.slice(x, [(1, m.size[0] + 1, 1), (0, m.size[1], 1), (2, m.size[2] + 2, 1)])


@template("map", CUBES, ARRAYS)
def slices_with_steps(m: Maker) -> Value:
    x = m.operand(tuple(3 * n + 1 for n in m.size))
    return m.changed(m.slice(x, [(0, 3 * n, 3) for n in m.size]))


@template("map", CUBES, ARRAYS)
def pad(m: Maker) -> Value:
    shape = (m.size[0] + 1, m.size[1], m.size[2] + 5)
    return m.op("pad", m.dtype, shape, m.operand(m.size), m.constant(m.dtype, "1"), attrs="padding=1_0x0_0x2_3")


@template("map", CUBES, ARRAYS)
def pad_inside(m: Maker) -> Value:
    """Holes between elements, and a side that is cut."""
    a, b, c = m.size
    shape = (a + 1, b, max(0, 2 * c - 1) + 1 if c else 1)
    value = m.op("pad", m.dtype, shape, m.operand(m.size), m.operand(()), attrs="padding=2_-1x0_0x0_1_1")
    return m.changed(value)


@template("map", CUBES, ARRAYS)
def concatenate(m: Maker) -> Value:
    a, b, c = m.size
    shapes = [(a, b, n) for n in (c, 1, c + 2)]
    return m.op("concatenate", m.dtype, (a, b, 2 * c + 3), *(m.operand(s) for s in shapes), attrs="dimensions={2}")


@template("map", CUBES, ARRAYS)
def concatenate_computed(m: Maker) -> Value:
    """Parts that kernels write where they belong."""
    a, b, c = m.size
    x, y = m.changed(m.operand(m.size)), m.sum(m.operand((1, b, c)), m.operand((1, b, c)))
    return m.op("concatenate", m.dtype, (a + 2, b, c), x, y, y, attrs="dimensions={0}")


@template("map", MATRICES, ARRAYS)
def tile(m: Maker) -> Value:
    a, b = m.size
    return m.changed(m.reshape(m.broadcast(m.operand(m.size), (3, a, 2, b), (1, 3)), (3 * a, 2 * b)))


@template("generic", along((3,), EDGES), ("f32", "s32", "u8", "bf16", "c64"))
def bitcast_convert(m: Maker) -> Value:
    """The same bits as elements of one byte."""
    x = m.operand(m.size)
    width = x.kind.storage
    return m.op("bitcast-convert", "s8", (*m.size, width) if width > 1 else m.size, x)
