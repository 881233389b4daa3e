"""Relay steps: branches, functions that are called twice, functions that call themselves."""
from __future__ import annotations

from dataclasses import replace

from tests.programs.maker import Misfit, exact
from tests.programs.program import Value
from tests.programs.relay import STEPS, Relay, literal, type_of

INSIDE = ("binary", "with_number", "unary", "where", "reduce", "transpose", "reshape", "slice", "repeat", "concatenate", "branch", "recursion", "function")
"""The steps of bodies."""
LEVELS = 2000
"""Names of values count from a thousand times as high in each body: two levels inside each other are enough."""


def carried(maker: Relay) -> Value:
    return maker.pick(lambda v: exact(v) and v.dtype in ("f32", "s32") and v.grain == 1.0 and v.most <= 1000)


def inside(maker: Relay, values: list[Value]) -> tuple[str, Value]:
    """The text of a body over these values, and what it gives: like the first, between -2 and 2."""
    if maker.count > 1000 * LEVELS:
        raise Misfit
    inner = Relay(maker.draws, maker.steps, maker.palette, count=1000 * (1 + maker.count), helpers=maker.helpers)
    inner.values = list(values)
    inner.run(maker.draws.between(0, 3), INSIDE)
    if inner.inputs:
        raise Misfit
    fitting = [v for v in inner.values if (v.dtype, v.shape) == (values[0].dtype, values[0].shape) and exact(v)]
    made = maker.draws.late(fitting)
    made = inner.add(replace(made, low=-2, high=2, grain=min(1.0, made.grain)), f"clip(%{made.name}, a_min=-2f, a_max=2f)")
    if made.grain < 1.0:
        raise Misfit
    return "".join(f"  {line}\n" for s in inner.statements for line in s.text.split("\n")) + f"  %{made.name}", made


@STEPS(1.2, "control")
def branch(maker: Relay) -> None:
    """``if`` by data, over values from around it."""
    value = carried(maker)
    if maker.draws.chance(0.5):
        total = maker.add(replace(value, shape=(), low=-1e6, high=1e6), f"sum(%{value.name})") if value.shape else value
        which = maker.add(Value("", "pred", (), "exact", 0, 1), f"less(%{total.name}, {literal(value.dtype, 1)})").name
    else:
        which = maker.input("pred", ()).name
    around = [value] + [v for v in maker.values if exact(v) and v.dtype == value.dtype and v.grain == 1.0][-2:]
    yes, _ = inside(maker, around)
    no, _ = inside(maker, around)
    maker.add(replace(value, low=-2, high=2), f"if (%{which}) {{\n{yes}\n}} else {{\n{no}\n}}")


@STEPS(1, "control")
def function(maker: Relay) -> None:
    """A function that is called once or twice."""
    value = carried(maker)
    parameters = [replace(value, name=maker.name())]
    body, made = inside(maker, parameters)
    params = ", ".join(f"%{p.name}: {type_of(p)}" for p in parameters)
    name = maker.helper(f"def {{}}({params}) -> {type_of(made)} {{\n{body}\n}}")
    result = maker.add(replace(value, low=-2, high=2), f"@{name}(%{value.name})")
    if maker.draws.chance(0.5):
        maker.add(replace(value, low=-2, high=2), f"@{name}(%{result.name})")


@STEPS(1.2, "control")
def recursion(maker: Relay) -> None:
    """A function that ends by calling itself: a loop, so often or until the data say so."""
    value = carried(maker)
    counter = Value(maker.name(), "s32", ())
    x = replace(value, name=maker.name(), low=min(-2, value.low), high=max(2, value.high))
    body, made = inside(maker, [x])
    trips = maker.draws.between(0, 4)
    more, after, both, total, small = (maker.name() for _ in range(5))
    condition = f"  %{more} = less(%{counter.name}, {trips});\n"
    if maker.draws.chance(0.4) and value.shape:
        condition += (f"  %{total} = sum(%{x.name});\n  %{small} = less(%{total}, {literal(value.dtype, 5)});\n"
                      f"  %{both} = logical_and(%{more}, %{small});\n")
        more = both
    head, _, _ = body.rpartition("  %")
    name = maker.helper(f"def {{}}(%{counter.name}: int32, %{x.name}: {type_of(x)}) -> {type_of(x)} {{\n{condition}  if (%{more}) {{\n"
                        + head + f"  %{after} = add(%{counter.name}, 1);\n  {{}}(%{after}, %{made.name})\n  }} else {{\n  %{x.name}\n  }}\n}}")
    start = "0"
    if maker.draws.chance(0.5):
        start = "%" + maker.input("s32", (), 0, 3).name
    maker.add(replace(value, low=min(-2, value.low), high=max(2, value.high)), f"@{name}({start}, %{value.name})")
