"""Small HLO texts that the tests of analyses and drawings share."""
from __future__ import annotations

from irscope import api
from irscope.analysis.survey import Survey
from irscope.graph import Node

LOOP = """HloModule loop

cond {
  state = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  n = s32[] constant(10)
  ROOT less = pred[] compare(i, n), direction=LT
}

body {
  state = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  one = s32[] constant(2)
  next = s32[] add(i, one)
  x = f32[4] get-tuple-element(state), index=1
  y = f32[4] multiply(x, x)
  ROOT out = (s32[], f32[4]) tuple(next, y)
}

ENTRY main {
  x = f32[4] parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[4]) tuple(zero, x)
  run = (s32[], f32[4]) while(init), condition=cond, body=body
  ROOT y = f32[4] get-tuple-element(run), index=1
}
"""

FUSED = """HloModule fused, is_scheduled=true

add_f32 {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

fused_computation {
  p0 = f32[8,16] parameter(0)
  p1 = f32[16] parameter(1)
  wide = f32[8,16] broadcast(p1), dimensions={1}
  ROOT sum = f32[8,16] add(p0, wide), metadata={op_name="jit(f)/dense/add"}
}

ENTRY main {
  x = f32[8,4] parameter(0)
  w = f32[4,16] parameter(1)
  bias = f32[16] parameter(2)
  dot = f32[8,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dense/dot_general"}
  biased = f32[8,16] fusion(dot, bias), kind=kLoop, calls=fused_computation, metadata={op_name="jit(f)/dense/add"}
  zero = f32[] constant(0)
  ROOT total = f32[8] reduce(biased, zero), dimensions={1}, to_apply=add_f32, metadata={op_name="jit(f)/pool/reduce_sum"}
}
"""


def layers(n: int, scoped: bool = False) -> str:
    """A chain of ``n`` equal layers of four operations, with or without the user's names."""
    lines = ["HloModule layers", "", "ENTRY main {", "  x = f32[4,4] parameter(0)"]
    value = "x"
    for i in range(n):
        lines.append(f"  w_{i} = f32[4,4] parameter({i + 1})")
        for step, (op, operands) in enumerate((("dot", f"{value}, w_{i}"), ("tanh", f"s{i}_0"), ("negate", f"s{i}_1"), ("add", f"s{i}_2, {value}"))):
            attrs = ", lhs_contracting_dims={1}, rhs_contracting_dims={0}" if op == "dot" else ""
            name = f', metadata={{op_name="jit(f)/Net/layer_{i}/{op}"}}' if scoped else ""
            root = "ROOT " if i == n - 1 and step == 3 else ""
            lines.append(f"  {root}s{i}_{step} = f32[4,4] {op}({operands}){attrs}{name}")
        value = f"s{i}_3"
    return "\n".join([*lines, "}", ""])


def survey(text: str) -> Survey:
    """The facts about the first module of a text."""
    return Survey(api.load(text).module())


def node(of: Survey, name: str) -> Node:
    """The node of a name, wherever it stands."""
    return next(n for graph in of.module.graphs.values() for n in graph.nodes if n.name == name)


def training(n: int) -> str:
    """A step of training as jax names it: ``n`` layers forward, their gradients backward, and the update of each weight; schedule interleaved."""
    lines = ["HloModule training", "", "ENTRY main {", "  x = f32[4,4] parameter(0)", *(f"  w_{i} = f32[4,4] parameter({i + 1})" for i in range(n)),
             "  rate = f32[] constant(0.1)", "  rates = f32[4,4] broadcast(rate), dimensions={}"]

    def step(name: str, op: str, operands: str, scope: str, attrs: str = "") -> str:
        lines.append(f'  {name} = f32[4,4] {op}({operands}){attrs}, metadata={{op_name="jit(step)/{scope}/{op}"}}')
        return name
    product = ", lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    value, kept = "x", []
    for i in range(n):
        scope = f"jvp(Net)/layer_{i}"
        dot = step(f"d{i}", "dot", f"{value}, w_{i}", scope, product)
        kept.append((value, step(f"t{i}", "tanh", dot, scope)))
        value = step(f"a{i}", "add", f"t{i}, {value}", scope)
    gradient = value
    news = []
    for i in reversed(range(n)):
        scope = f"transpose(jvp(Net))/layer_{i}"
        before, tanh = kept[i]
        square = step(f"q{i}", "multiply", f"{tanh}, {tanh}", scope)
        through = step(f"m{i}", "multiply", f"{gradient}, {square}", scope)
        weight = step(f"g{i}", "dot", f"{before}, {through}", scope, ", lhs_contracting_dims={0}, rhs_contracting_dims={0}")
        gradient = step(f"b{i}", "dot", f"{through}, w_{i}", scope, ", lhs_contracting_dims={1}, rhs_contracting_dims={1}")
        scaled = step(f"s{i}", "multiply", f"{weight}, rates", "optimiser")
        news.append(step(f"n{i}", "subtract", f"w_{i}, {scaled}", "optimiser"))
    types = ", ".join(["f32[4,4]"] * n)
    return "\n".join([*lines, f"  ROOT out = ({types}) tuple({', '.join(reversed(news))})", "}", ""])


def irregular(n: int) -> str:
    """A chain of ``n`` different operations without names, with a repeated stretch of three in its middle, and side values used late."""
    ops = ("negate", "exponential", "tanh", "abs", "sine", "cosine", "floor", "ceil", "sign", "logistic", "cbrt")
    lines = ["HloModule irregular", "", "ENTRY main {", "  x = f32[8] parameter(0)", "  v0 = f32[8] negate(x)"]
    for i in range(1, n):
        op = ops[i * i % len(ops)] if not n // 3 <= i < 2 * n // 3 else ("sine", "multiply", "add")[i % 3]
        other = f", v{max(0, i - 1 - i % 4)}" if op in ("add", "multiply") else ""
        lines.append(f"  {'ROOT ' if i == n - 1 else ''}v{i} = f32[8] {op}(v{i - 1}{other})")
    return "\n".join([*lines, "}", ""])


def nested() -> str:
    """Layers inside a function that is called in a loop of unknown length and beside it, and a function that a reducer calls."""
    inner = layers(5).split("\n", 2)[2].replace("ENTRY main", "net")
    params = ", ".join(["f32[4,4]"] * 6)
    given = "".join(f"  v{i} = f32[4,4] get-tuple-element(s), index={i}\n" for i in range(6))
    kept = ", ".join(f"v{i}" for i in range(1, 6))
    return f"""HloModule nested

{inner}
go {{
  s = ({params}) parameter(0)
  ROOT c = pred[] custom-call(s), custom_call_target="Go"
}}

turn {{
  s = ({params}) parameter(0)
{given}  y = f32[4,4] call(v0, {kept}), to_apply=net
  ROOT t = ({params}) tuple(y, {kept})
}}

ENTRY main {{
  a = f32[4,4] parameter(0)
  b = f32[4,4] parameter(1)
  first = f32[4,4] call(a, b, b, b, b, b), to_apply=net
  second = f32[4,4] call(first, b, b, b, b, b), to_apply=net
  t = ({params}) tuple(second, b, b, b, b, b)
  w = ({params}) while(t), condition=go, body=turn
  ROOT r = f32[4,4] get-tuple-element(w), index=0
}}
"""


def flat(count: int) -> str:
    """Operations whose scopes are numbered names without a hierarchy: two of each block."""
    lines = ["HloModule flat", "", "ENTRY main {", "  v0 = f32[8] parameter(0)"]
    for i in range(count):
        name = f"block_{i // 2}_{('expand', 'project')[i % 2]}"
        lines.append(f'  {"ROOT " if i == count - 1 else ""}v{i + 1} = f32[8] {("negate", "tanh")[i % 2]}(v{i}), metadata={{op_name="{name}/op"}}')
    return "\n".join([*lines, "}", ""])


def scrambled(n: int, named: bool) -> str:
    """``n`` operations in no order, some of which read values far behind; with ``named`` most have a scope, in stretches of uneven length."""
    ops = ("negate", "exponential", "tanh", "abs", "sine", "cosine", "add", "multiply", "transpose", "dot")
    lines = ["HloModule scrambled", "", "ENTRY main {", "  x = f32[4,4] parameter(0)", "  v0 = f32[4,4] negate(x)"]
    state, scope = 12345, 0
    for i in range(1, n):
        state = (state * 1103515245 + 12345) % 2**31
        op, far = ops[(state >> 16) % len(ops)], (state >> 8) % min(i, 23)
        scope += (state >> 20) % 7 == 0
        operands = f"v{i - 1}, v{i - 1 - far}" if op in ("add", "multiply", "dot") else f"v{i - 1}"
        attrs = {"dot": ", lhs_contracting_dims={1}, rhs_contracting_dims={0}", "transpose": ", dimensions={1,0}"}.get(op, "")
        name = f', metadata={{op_name="jit(f)/Net/part_{scope}/{op}"}}' if named and (state >> 12) % 5 else ""
        lines.append(f"  {'ROOT ' if i == n - 1 else ''}v{i} = f32[4,4] {op}({operands}){attrs}{name}")
    return "\n".join([*lines, "}", ""])
