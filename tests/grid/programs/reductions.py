"""Reductions over the last, first and middle dimensions, and what is made of several of them in one kernel."""
from __future__ import annotations

from tests.grid.programs.contractions import softmax as normalised
from tests.grid.sizes import ARRAYS, EDGES, FLOATS, INTEGERS, NUMBERS, REALS, along, each
from tests.grid.template import Maker, template
from tests.grid.text import Value

MATRICES = each(along((3,), EDGES), along((), EDGES, (3,)), [(2, 129), (33, 17), (2, 1000)])


def lowest(m: Maker) -> str:
    """What leaves a maximum as it is."""
    return "-inf" if m.dtype in ("f32", "f64", "bf16", "f16") else str(m.constant(m.dtype).kind.lowest) if m.dtype in INTEGERS else "-1"


@template("rows", MATRICES, NUMBERS)
def row_sum(m: Maker) -> Value:
    return m.reduce(m.operand(m.size), [1])


@template("rows", MATRICES, REALS)
def row_max(m: Maker) -> Value:
    return m.reduce(m.operand(m.size), [1], "maximum", lowest(m))


@template("rows", MATRICES, ("pred", *INTEGERS))
def row_and(m: Maker) -> Value:
    return m.reduce(m.operand(m.size), [1], "and", "1")


@template("rows", each(along((), EDGES), [(4097,), (65537,)]), NUMBERS)
def full_sum(m: Maker) -> Value:
    return m.reduce(m.operand(m.size), [0])


@template("reduction", MATRICES, NUMBERS)
def column_sum(m: Maker) -> Value:
    return m.reduce(m.operand(m.size), [0])


@template("reduction", MATRICES, REALS)
def column_min(m: Maker) -> Value:
    return m.reduce(m.operand(m.size), [0], "minimum", "1")


@template("reduction", each(along((2, 3), EDGES), along((2,), EDGES, (3,)), along((), EDGES, (3, 5))), NUMBERS)
def middle_sum(m: Maker) -> Value:
    return m.reduce(m.operand(m.size), [1])


@template("reduction", each(along((2, 3), EDGES), along((), EDGES, (3, 5))), NUMBERS)
def outer_sum(m: Maker) -> Value:
    """The first and the last dimension at once."""
    return m.reduce(m.operand(m.size), [0, 2])


@template("generic", MATRICES, (*INTEGERS, "f32", "f64", "bf16", "f16"))
def argmax(m: Maker) -> list[Value]:
    x, t = m.operand(m.size), m.dtype
    places = m.op("iota", "s32", x.shape, attrs="iota_dimension=1")
    body = m.body(f"argmax_{t}", f"""  a = {t}[] parameter(0)
  i = s32[] parameter(1)
  b = {t}[] parameter(2)
  j = s32[] parameter(3)
  ge = pred[] compare(a, b), direction=GE
  gt = pred[] compare(a, b), direction=GT
  lt = pred[] compare(i, j), direction=LT
  first = pred[] select(gt, gt, lt)
  top = {t}[] select(ge, a, b)
  eq = pred[] compare(a, b), direction=EQ
  near = s32[] select(lt, i, j)
  far = s32[] select(gt, i, j)
  at = s32[] select(eq, near, far)
  ROOT r = ({t}[], s32[]) tuple(top, at)""")
    shape = x.shape[:1]
    return m.several("reduce", [(t, shape), ("s32", shape)], x, places, m.constant(t, lowest(m)), m.constant("s32", "2147483647"),
                     attrs=f"dimensions={{1}}, to_apply={body}")


@template("rows", MATRICES, FLOATS)
def softmax(m: Maker) -> Value:
    return normalised(m, m.operand(m.size))


@template("rows", MATRICES, ("f32", "f64", "bf16", "f16"))
def layer_norm(m: Maker) -> Value:
    n = m.size[1]
    x, gain, shift = m.operand(m.size), m.operand((n,)), m.operand((n,))

    def mean(value: Value) -> Value:
        total = m.reduce(value, [1])
        part = m.like("divide", total, m.broadcast(m.constant(m.dtype, str(max(1, n))), total.shape))
        return m.broadcast(part, x.shape, (0,))

    apart = m.like("subtract", x, mean(x))
    spread = mean(m.like("multiply", apart, apart))
    scale = m.like("rsqrt", m.like("add", spread, m.broadcast(m.constant(m.dtype, "0.001"), x.shape)))
    scaled = m.like("multiply", m.like("multiply", apart, scale), m.broadcast(gain, x.shape, (1,)))
    return m.like("add", scaled, m.broadcast(shift, x.shape, (1,)))


@template("rows", MATRICES, ARRAYS)
def row_any_beside(m: Maker) -> list[Value]:
    """A reduction, and the values that it is made of as a second result."""
    x = m.changed(m.operand(m.size))
    return [m.reduce(x, [1], "or" if m.dtype == "pred" else "add"), x]
