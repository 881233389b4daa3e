"""Work on single elements: arithmetic, choices, functions, conversions between all types, and values that are counted or repeated."""
from __future__ import annotations

from irscope.lower.templates.map import BLOCK
from tests.grid.sizes import ARRAYS, COMPLEX, EDGES, FLOATS, INTEGERS, NUMBERS, REALS, SIGNED, along, each
from tests.grid.template import Maker, template
from tests.grid.text import Value

LINES = along((), EDGES)
SHAPES = each(LINES, along((3,), EDGES), along((), EDGES, (3,)), [()])
LONG = [(n,) for n in (BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 17)]


@template("map", each(SHAPES, LONG), ARRAYS)
def add(m: Maker) -> Value:
    return m.sum(m.operand(m.size), m.operand(m.size))


@template("map", each(SHAPES, LONG), ARRAYS)
def change(m: Maker) -> Value:
    return m.changed(m.operand(m.size))


@template("map", SHAPES, REALS)
def arithmetic(m: Maker) -> Value:
    x, y, z = (m.operand(m.size) for _ in range(3))
    return m.like("maximum", m.like("subtract", m.like("multiply", x, y), z), m.like("minimum", x, z))


@template("map", LINES, NUMBERS)
def divide(m: Maker) -> Value:
    return m.like("divide", m.operand(m.size), m.operand(m.size))


@template("map", LINES, REALS)
def remainder(m: Maker) -> Value:
    return m.like("remainder", m.operand(m.size), m.operand(m.size))


@template("map", SHAPES, ARRAYS)
def select(m: Maker) -> Value:
    x, y = m.operand(m.size), m.operand(m.size)
    return m.op("select", m.dtype, m.size, m.parameter("pred", m.size), x, y)


@template("map", SHAPES, ARRAYS)
def compare(m: Maker) -> Value:
    return m.compare(m.operand(m.size), m.operand(m.size), "NE" if m.dtype in COMPLEX else "LT")


@template("map", LINES, REALS)
def clamp(m: Maker) -> Value:
    x = m.operand(m.size)
    return m.op("clamp", m.dtype, m.size, m.constant(m.dtype, "0"), x, m.constant(m.dtype, "1"))


@template("map", LINES, INTEGERS)
def bits(m: Maker) -> Value:
    x, y = m.operand(m.size), m.operand(m.size)
    shifted = m.like("shift-left", x, m.like("and", y, m.operand(m.size)))
    return m.like("xor", m.like("or", shifted, y), m.like("shift-right-logical", m.like("not", x), m.broadcast(m.constant(m.dtype, "0"), m.size)))


@template("map", LINES, INTEGERS)
def count_bits(m: Maker) -> Value:
    x = m.operand(m.size)
    return m.like("add", m.like("popcnt", x), m.like("count-leading-zeros", x))


@template("map", LINES, (*FLOATS, *COMPLEX))
def functions(m: Maker) -> Value:
    x = m.operand(m.size)
    return m.like("add", m.like("exponential", x), m.like("tanh", m.like("sine", x)))


@template("map", LINES, FLOATS)
def roots(m: Maker) -> Value:
    x = m.like("abs", m.operand(m.size))
    return m.like("add", m.like("sqrt", x), m.like("logistic", m.like("log-plus-one", x)))


@template("map", LINES, SIGNED)
def magnitude(m: Maker) -> Value:
    x = m.operand(m.size)
    kind = {"c64": "f32", "c128": "f64"}.get(m.dtype, m.dtype)
    return m.op("abs", kind, m.size, x)


@template("map", LINES, COMPLEX)
def parts(m: Maker) -> list[Value]:
    x, kind = m.operand(m.size), {"c64": "f32", "c128": "f64"}[m.dtype]
    real, imag = m.op("real", kind, m.size, x), m.op("imag", kind, m.size, x)
    return [m.op("complex", m.dtype, m.size, imag, real), real]


def _convert(target: str) -> None:
    def convert(m: Maker) -> Value:
        return m.op("convert", target, m.size, m.operand(m.size))
    convert.__name__ = f"convert_{target}"
    template("map", LINES, [d for d in ARRAYS if d != target and (d not in COMPLEX or target in COMPLEX)])(convert)


for _target in ("pred", "s1", "s4", "s8", "s16", "s32", "s64", "u2", "u4", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64", "f8e5m2", "f8e4m3", "f8e4m3fn",
                "f8e4m3b11fnuz", "f8e3m4", "f8e5m2fnuz", "f8e4m3fnuz", "f8e8m0fnu", "f4e2m1fn", "f6e3m2fn", "f6e2m3fn", "c64", "c128"):
    _convert(_target)


def _convert_twice(middle: str, target: str) -> None:
    def convert(m: Maker) -> Value:
        return m.op("convert", target, m.size, m.op("convert", middle, m.size, m.operand(m.size)))
    convert.__name__ = f"convert_{middle}_{target}"
    template("map", [(3, 17)], [d for d in ARRAYS if d not in COMPLEX])(convert)


for _middle, _target in (("f32", "s4"), ("f32", "u2"), ("f32", "s8"), ("f64", "u4"), ("s32", "s2"), ("s16", "f8e4m3"), ("f16", "bf16")):
    _convert_twice(_middle, _target)


@template("map", SHAPES, ARRAYS)
def two_results(m: Maker) -> list[Value]:
    """One kernel that stores a value and what is made of it."""
    x = m.changed(m.operand(m.size))
    return [m.sum(x, m.operand(m.size)), x]


@template("map", each(along((), EDGES, (3,)), along((3,), EDGES)), ARRAYS)
def broadcasts(m: Maker) -> Value:
    """A scalar, a row and a column at once."""
    rows, columns = m.size
    row, column, scalar = m.operand((columns,)), m.operand((rows,)), m.operand(())
    return m.sum(m.sum(m.broadcast(row, m.size, (1,)), m.broadcast(column, m.size, (0,))), m.broadcast(scalar, m.size))


@template("map", each(along((), EDGES, (3,)), along((3,), EDGES)), NUMBERS)
def count(m: Maker) -> Value:
    """An iota along each dimension."""
    return m.sum(m.sum(m.op("iota", m.dtype, m.size, attrs="iota_dimension=0"), m.op("iota", m.dtype, m.size, attrs="iota_dimension=1")), m.operand(m.size))


@template("map", LINES, ("f32", "f64", "bf16", "f16"))
def reduce_precision(m: Maker) -> Value:
    return m.like("reduce-precision", m.operand(m.size), attrs="exponent_bits=5, mantissa_bits=4")
