"""Relay steps: one element at a time, with numpy's broadcasting."""
from __future__ import annotations

from dataclasses import replace

from tests.programs.maker import Misfit, exact, keep, real, within
from tests.programs.numbers import DIGITS, INTEGERS, NARROW, added, ends, fits, joined, multiplied
from tests.programs.program import Value
from tests.programs.relay import NAMES, STEPS, Relay, literal
from tests.programs.torch_compute import together


@STEPS(6)
def binary(maker: Relay) -> None:
    value = maker.pick(lambda v: v.dtype != "pred" and v.grade != "rough")
    other = maker.fit(value, value.shape)
    op = maker.draws.one(("add", "subtract", "multiply", "maximum", "minimum"))
    pair = (value, other) if maker.draws.chance(0.6) else (other, value)
    if op in ("maximum", "minimum"):
        made = joined([value, other])
    else:
        made = multiplied(*pair) if op == "multiply" else added(*pair, 1 if op == "add" else -1)
    maker.add(within(keep(made), shape=together(value.shape, other.shape)), f"{op}(%{pair[0].name}, %{pair[1].name})")


@STEPS(2)
def with_number(maker: Relay) -> None:
    value = maker.pick(lambda v: v.dtype in ("f32", "f64", "s32", "s64", "f16") and exact(v))
    number = maker.draws.one((1, 2, 3))
    other = Value("", value.dtype, (), "exact", number, number)
    op = maker.draws.one(("add", "subtract", "multiply"))
    made = multiplied(value, other) if op == "multiply" else added(value, other, 1 if op == "add" else -1)
    maker.add(keep(made), f"{op}(%{value.name}, {literal(value.dtype, number)})")


@STEPS(2)
def unary(maker: Relay) -> None:
    value = maker.pick(lambda v: v.dtype not in ("pred", "u8") and v.grade != "rough")
    op = maker.draws.one(("negative", "abs", "nn.relu", "clip", "sign", "floor", "copy"))
    if op in ("sign", "floor", "clip", "nn.relu") and not exact(value):
        raise Misfit
    if op in ("sign", "floor") and maker.palette.special:
        raise Misfit  # whether a sum with denormals is zero depends on the order of its terms
    if op in ("floor",) and not real(value):
        raise Misfit
    attrs = ", a_min=-2f, a_max=3f" if op == "clip" else ""
    if op == "clip":
        made = replace(value, low=-2, high=3, grain=min(1.0, value.grain))
    elif op == "abs":
        made = replace(value, low=0, high=value.most, grade="positive" if value.grade == "signed" else value.grade)
    else:
        made = replace(value, low=min(-1, -value.most), high=max(1, value.most), grain=min(1.0, value.grain),
                       grade="signed" if op == "negative" and value.grade == "positive" else value.grade)
    maker.add(made, f"{op}(%{value.name}{attrs})")


@STEPS(2, "reduction")
def smooth(maker: Relay) -> None:
    value = maker.pick(lambda v: real(v) and v.grade != "rough" and v.most <= 12)
    narrow = value.dtype in NARROW
    if narrow and not exact(value):
        raise Misfit
    op = maker.draws.one(("tanh", "sigmoid", "exp", "erf", "sqrt", "rsqrt"))
    grade = "rough" if narrow else "positive"
    if op in ("sqrt", "rsqrt"):
        value = maker.add(replace(value, low=0, high=value.most, grade="exact" if exact(value) else "positive"), f"abs(%{value.name})")
        one = Value("", value.dtype, (), "exact", 1, 1)
        value = maker.add(keep(added(value, one)), f"add(%{value.name}, {literal(value.dtype, 1)})")
        maker.add(replace(value, grade=grade), f"{op}(%{value.name})")
    elif op in ("tanh", "erf"):
        maker.add(replace(value, grade="rough" if narrow else "signed", low=-1, high=1), f"{op}(%{value.name})")
    else:
        maker.add(replace(value, grade=grade, low=0, high=200000 if op == "exp" else 1), f"{op}(%{value.name})")


@STEPS(2, "narrow", "integer")
def cast(maker: Relay) -> None:
    value = maker.pick(exact)
    dtype = maker.dtype()
    if dtype == value.dtype or not fits(dtype, value.most, value.grain):
        raise Misfit
    if dtype in INTEGERS and real(value):
        low, high = ends(dtype)
        if value.low < low or value.high > high:
            raise Misfit
        value = replace(value, low=int(value.low), high=int(value.high), grain=1.0)
    if dtype in DIGITS and value.dtype in INTEGERS and value.most > 2.0 ** DIGITS[dtype]:
        raise Misfit
    maker.add(replace(value, dtype=dtype), f'cast(%{value.name}, dtype="{NAMES[dtype]}")')


@STEPS(2)
def where(maker: Relay) -> None:
    value = maker.pick(lambda v: exact(v) and v.dtype != "pred")
    other = maker.fit(value, value.shape)
    shape = together(value.shape, other.shape)
    op = maker.draws.one(("less", "greater", "equal", "not_equal", "less_equal", "greater_equal"))
    mask = maker.add(within(Value("", "pred", shape, "exact", 0, 1)), f"{op}(%{value.name}, %{other.name})")
    if maker.draws.chance(0.3):
        mask = maker.add(mask, f"logical_not(%{mask.name})")
    maker.add(replace(keep(joined([value, other])), shape=shape), f"where(%{mask.name}, %{value.name}, %{other.name})")


@STEPS(1, "integer")
def bits(maker: Relay) -> None:
    value = maker.pick(lambda v: v.dtype in INTEGERS)
    other = maker.fit(value, value.shape)
    low, high = ends(value.dtype)
    op = maker.draws.one(("bitwise_and", "bitwise_or", "bitwise_xor"))
    maker.add(within(replace(value, low=low, high=high), shape=together(value.shape, other.shape)), f"{op}(%{value.name}, %{other.name})")
