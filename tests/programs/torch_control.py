"""TorchScript steps: ``prim::If`` and ``prim::Loop``, decided by sizes, by numbers and by data, one inside the other."""
from __future__ import annotations

from dataclasses import replace

from tests.programs.maker import Misfit, exact
from tests.programs.program import Statement, Value
from tests.programs.torchscript import STEPS, Torch, type_of

INSIDE = ("binary", "with_number", "unary", "slice", "order", "select", "reshape", "choose", "overwrite", "masked", "branch", "loop")
"""The steps of blocks: what they write stays within bounds however often they run."""
LEVELS = 2


def carried(maker: Torch) -> Value:
    return maker.pick(lambda v: exact(v) and v.dtype in ("f32", "s64", "f64") and v.most <= 64)


def condition(maker: Torch) -> str:
    """The name of a bool: of data, of a size, or of a constant."""
    kind = maker.draws.one(("data", "data", "size", "constant"))
    if kind == "constant":
        return maker.constant(maker.draws.chance(0.5))
    name, value = maker.name(), maker.pick(lambda v: exact(v) and v.dtype in ("f32", "s64", "f64") and (bool(v.shape) or kind == "data"))
    if kind == "size":
        size = maker.size(value, 0)
        maker.statements.append(Statement(f"%{name} : bool = aten::{maker.draws.one(('gt', 'eq'))}(%{size}, %{maker.constant(maker.draws.between(1, 4))})"))
        return name
    total = maker.call(replace(value, shape=(), low=-1e6, high=1e6), "sum", value.name, maker.none())
    mask = maker.call(Value("", "pred", (), "exact", 0, 1), maker.draws.one(("gt", "lt")), total.name, maker.constant(0))
    maker.statements.append(Statement(f"%{name} : bool = aten::Bool(%{mask.name})"))
    return name


def block(maker: Torch, value: Value, parameters: str, own: list[Value], number: int, first: str = "") -> tuple[str, Value, bool]:
    """The text of a block that gives a value like this one, that value, and whether something was written in place."""
    outside, visible = maker.statements, {v.name for v in maker.values}
    maker.statements = []
    maker.values += own
    maker.level += 1
    try:
        maker.run(maker.draws.between(0, 3), INSIDE)
        fitting = [v for v in maker.values if (v.dtype, v.shape) == (value.dtype, value.shape) and exact(v) and v.most <= 1000]
        made = maker.draws.late(fitting) if fitting else value
        low, high = maker.constant(-2), maker.constant(2)
        made = maker.call(replace(made, low=-2, high=2), "clamp", made.name, low, high, like=made.name)
    finally:
        inside, maker.statements = maker.statements, outside
        kept = visible | {v.name for v in maker.inputs}
        maker.values = [v for v in maker.values if v.name in kept]
        maker.level -= 1
    lines = [line for s in inside for line in s.text.split("\n")]
    effect = any(s.effect for s in inside)
    result = f"{first}%{made.name}"
    return f"  block{number}({parameters}):\n" + "".join(f"    {line}\n" for line in lines) + f"    -> ({result})", made, effect


@STEPS(1.5, "control")
def branch(maker: Torch) -> None:
    if maker.level >= LEVELS:
        raise Misfit
    value, which = carried(maker), condition(maker)
    yes, first, wrote = block(maker, value, "", [], 0)
    no, second, wrote_too = block(maker, value, "", [], 1)
    made = replace(value, name=maker.name(), low=-2, high=2, grain=min(first.grain, second.grain))
    maker.statements.append(Statement(f"%{made.name} : {type_of(made, False)} = prim::If(%{which})\n{yes}\n{no}", made, wrote or wrote_too))
    maker.own(made.name, None)
    maker.values.append(made)


@STEPS(1.5, "control")
def loop(maker: Torch) -> None:
    """A loop with a number of trips that is known, a size or data, and an exit that may depend on data."""
    if maker.level >= LEVELS:
        raise Misfit
    value = carried(maker)
    if value.grain != 1.0:
        raise Misfit
    trips = maker.constant(maker.draws.between(0, 4))
    if value.shape and maker.draws.chance(0.3) and value.shape[0] <= 5:
        trips = maker.size(value, 0)
    x = replace(value, name=maker.name(), low=min(-2, value.low), high=max(2, value.high))
    maker.share(x.name, value.name, None)  # in the first trip it is the value itself
    counter, true = maker.name(), maker.constant(True)
    go_on = true
    text, made, wrote = block(maker, x, f"%{counter} : int, %{x.name} : {type_of(x, False)}", [x], 0, first=f"%{go_on}, ")
    if maker.draws.chance(0.4):
        total, mask, more = maker.name(), maker.name(), maker.name()
        head, _, _ = text.rpartition("    -> (")
        text = (f"{head}    %{total} : Tensor = aten::sum(%{made.name}, %{maker.none()})\n    %{mask} : Tensor = aten::lt(%{total}, %{maker.constant(3)})\n"
                f"    %{more} : bool = aten::Bool(%{mask})\n    -> (%{more}, %{made.name})")
    # The body may have written to what it began with.
    result = replace(maker.in_memory(value, replace(value, low=-2, high=2)), name=maker.name())
    maker.statements.append(Statement(f"%{result.name} : {type_of(result, False)} = prim::Loop(%{trips}, %{true}, %{value.name})\n{text}", result, wrote))
    # No trip at all gives the value itself, which may be written later on.
    maker.share(result.name, value.name, None)
    maker.values.append(result)
