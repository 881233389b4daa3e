"""Loops and branches around kernels: state that stays where it is, and state that is copied."""
from __future__ import annotations

from tests.grid.sizes import ARRAYS, EDGES, NUMBERS, along, each
from tests.grid.template import Maker, template
from tests.grid.text import Value

LINES = each(along((), EDGES), along((3,), EDGES))


def _loop(m: Maker, name: str, types: list[str], step: str, times: int = 3) -> tuple[str, str]:
    """A condition that counts the first part of a state, and a body whose lines ``step`` end in its ROOT."""
    state = "(" + ", ".join(types) + ")"
    parts = "\n".join(f"  p{i} = {t} get-tuple-element(s), index={i}" for i, t in enumerate(types))
    condition = m.body(f"{name}_condition", f"  s = {state} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant({times})\n"
                       "  ROOT r = pred[] compare(i, n), direction=LT")
    body = m.body(f"{name}_body", f"  s = {state} parameter(0)\n{parts}\n  one = s32[] constant(1)\n  next = s32[] add(p0, one)\n{step}\n"
                  f"  ROOT r = {state} tuple(next, {', '.join(f'n{i}' for i in range(1, len(types)))})")
    return condition, body


def _sum(dtype: str) -> str:
    return "xor" if dtype == "pred" else "add"


@template("map", LINES, ARRAYS)
def loop(m: Maker) -> list[Value]:
    """Two arrays that change places while one is added to the other."""
    x, y = m.operand(m.size), m.operand(m.size)
    condition, body = _loop(m, "swap", ["s32[]", x.type, x.type], f"  n1 = {x.type} {_sum(m.dtype)}(p1, p2)\n  n2 = {x.type} copy(p1)")
    types = [("s32", ()), (m.dtype, m.size), (m.dtype, m.size)]
    state = m.tuple_of(m.constant("s32"), x, y)
    return m.several("while", types, state, attrs=f"condition={condition}, body={body}")[:0:-1]


@template("update", along((4,), EDGES), ARRAYS)
def loop_of_updates(m: Maker) -> Value:
    """A row of the state is written in each round, in place."""
    rows, n = m.size
    x, table = m.operand((1, n)), m.operand((rows, n))
    change = "not" if m.dtype == "pred" else "negate"
    condition, body = _loop(m, "update", ["s32[]", x.type, table.type], f"""  n1 = {x.type} {change}(p1)
  zero = s32[] constant(0)
  n2 = {table.type} dynamic-update-slice(p2, p1, p0, zero)""")
    types = [("s32", ()), (m.dtype, (1, n)), (m.dtype, m.size)]
    state = m.tuple_of(m.constant("s32"), x, table)
    return m.several("while", types, state, attrs=f"condition={condition}, body={body}")[2]


@template("contraction", along((), EDGES), NUMBERS)
def loop_of_products(m: Maker) -> Value:
    """A matrix is multiplied by itself as the operand of the next round."""
    (n,) = m.size
    x, w = m.operand((3, n)), m.operand((n, n))
    condition, body = _loop(m, "product", ["s32[]", x.type, w.type], f"""  n1 = {x.type} dot(p1, p2), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  n2 = {w.type} copy(p2)""", 2)
    types = [("s32", ()), (m.dtype, (3, n)), (m.dtype, (n, n))]
    state = m.tuple_of(m.constant("s32"), x, w)
    return m.several("while", types, state, attrs=f"condition={condition}, body={body}")[1]


@template("map", LINES, ARRAYS)
def branches(m: Maker) -> Value:
    """One of two computations; the other result is the operand itself."""
    x = m.operand(m.size)
    change = "not" if m.dtype == "pred" else "negate"
    yes = m.body("yes", f"  p = {x.type} parameter(0)\n  ROOT r = {x.type} {change}(p)")
    no = m.body("no", f"  ROOT p = {x.type} parameter(0)")
    return m.op("conditional", m.dtype, m.size, m.parameter("pred", ()), x, x, attrs=f"true_computation={yes}, false_computation={no}")
