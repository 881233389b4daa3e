"""TorchScript steps: writes in place, after which something else reads the same memory."""
from __future__ import annotations

from dataclasses import replace

from tests.programs.maker import Misfit, keep
from tests.programs.numbers import DIGITS, added, fits, is_float, joined, multiplied
from tests.programs.program import Statement, Value
from tests.programs.torchscript import STEPS, Torch, type_of


def target(maker: Torch, floating: bool = False) -> Value:
    return maker.pick(lambda v: v.name not in maker.locked and v.grade == "exact" and v.dtype != "pred" and (not floating or is_float(v.dtype)))


@STEPS(6, "write", "alias")
def arithmetic(maker: Torch) -> None:
    """``add_``, ``sub_``, ``mul_`` by a tensor or a number."""
    value = target(maker)
    op = maker.draws.one(("add", "sub", "mul"))
    if maker.draws.chance(0.4):
        number = maker.draws.one((1, 2, -1, 3)) if value.dtype != "u8" else maker.draws.one((1, 2, 3))
        other = Value(maker.constant(number), value.dtype, (), "exact", number, number)
    else:
        other = maker.apart(value, maker.fit(value, value.shape))
        value = next(v for v in maker.values if v.name == value.name)
    bounds = multiplied(value, other) if op == "mul" else added(value, other, 1 if op == "add" else -1)
    one = [] if op == "mul" else [maker.constant(1)]
    maker.write(value, keep(bounds), op + "_", value.name, other.name, *one)


@STEPS(4, "write", "alias")
def overwrite(maker: Torch) -> None:
    """``fill_``, ``zero_``, ``copy_``."""
    value = target(maker)
    kind = maker.draws.one(("fill_", "zero_", "copy_", "copy_"))
    if kind == "copy_":
        other = maker.apart(value, maker.fit(value, value.shape))
        value = next(v for v in maker.values if v.name == value.name)
        maker.write(value, keep(joined([value, other])), kind, value.name, other.name, maker.constant(False))
        return
    number = maker.draws.one((1, 2, 7)) if kind == "fill_" else 0
    bounds = replace(value, low=min(value.low, number), high=max(value.high, number))
    if is_float(value.dtype) and not fits(value.dtype, bounds.most, value.grain):
        raise Misfit
    maker.write(value, bounds, kind, value.name, *([maker.constant(number)] if kind == "fill_" else []))


@STEPS(3, "write")
def unary_in_place(maker: Torch) -> None:
    """``relu_``, ``neg_``, ``abs_``, ``clamp_``, ``floor_``."""
    value = target(maker)
    kind = maker.draws.one(("relu_", "neg_", "abs_", "clamp_", "floor_"))
    if value.dtype[0] == "c" or (kind == "floor_" and not is_float(value.dtype)) or (value.dtype == "u8" and kind in ("neg_", "abs_")):
        raise Misfit
    arguments = [maker.constant(-1), maker.constant(2)] if kind == "clamp_" else []
    bounds = replace(value, low=min(-value.high, value.low, -1) if value.dtype != "u8" else 0, high=max(value.most, 2))
    maker.write(value, bounds, kind, value.name, *arguments)


@STEPS(2, "write")
def masked(maker: Torch) -> None:
    """``masked_fill_`` under a comparison of the same tensor, and ``where`` with what was there."""
    value = target(maker)
    if value.dtype[0] == "c":
        raise Misfit
    mask = maker.call(Value("", "pred", value.shape, "exact", 0, 1), maker.draws.one(("gt", "le", "eq")), value.name, maker.constant(0), like=value.name)
    bounds = replace(value, low=min(0, value.low), high=max(5, value.high))
    if is_float(value.dtype) and not fits(value.dtype, bounds.most, value.grain):
        raise Misfit
    maker.write(value, bounds, "masked_fill_", value.name, mask.name, maker.constant(5))


@STEPS(2, "write")
def at_places(maker: Torch) -> None:
    """``index_put_``, ``index_fill_``, ``index_copy_``, ``index_add_`` along the first axis; places of the last add up or are distinct."""
    value = target(maker)
    if not value.shape or value.shape[0] < 1:
        raise Misfit
    n = value.shape[0]
    count = maker.draws.between(1, 3)
    kind = maker.draws.one(("index_put_", "index_fill_", "index_add_", "index_put_"))
    repeated = kind != "index_put_" or maker.draws.chance(0.5)
    index = maker.input("s64", (count if repeated else 1,), 0, n - 1)
    maker.values.remove(index)
    if kind == "index_fill_":
        bounds = replace(value, high=max(2, value.high))
        maker.write(value, bounds, kind, value.name, maker.constant(0), index.name, maker.constant(2))
        return
    source = maker.input(value.dtype, (index.shape[0], *value.shape[1:]))
    grown = replace(source, low=source.low * count, high=source.high * count)
    if kind == "index_add_":
        maker.write(value, keep(added(value, grown)), kind, value.name, maker.constant(0), index.name, source.name, maker.constant(1))
        return
    places = maker.name()
    maker.statements.append(Statement(f"%{places} : Tensor?[] = prim::ListConstruct(%{index.name})"))
    bounds = keep(added(value, grown) if repeated else joined([value, source]))
    maker.write(value, bounds, kind, value.name, places, source.name, maker.constant(repeated))


@STEPS(1.5, "write", "alias")
def shape_in_place(maker: Torch) -> None:
    """``t_``, ``transpose_``, ``unsqueeze_``, ``squeeze_``: the tensor itself gets another shape, its views keep theirs."""
    value = maker.pick(lambda v: v.name not in maker.locked and len(v.shape) == 2 and v.grade == "exact")
    own = maker.strides[value.name]
    if any(v.name == value.name for v in maker.inputs):
        raise Misfit
    kind = maker.draws.one(("t_", "transpose_", "unsqueeze_"))
    if kind == "unsqueeze_":
        made, strides, arguments = (1, *value.shape), None, [maker.constant(0)]
    else:
        made, strides = value.shape[::-1], None if own is None else own[::-1]
        arguments = [maker.constant(0), maker.constant(1)] if kind == "transpose_" else []
    result = replace(value, shape=made)
    names = {v.name for v in maker.values if maker.cells[v.name] == maker.cells[value.name] and v.shape == value.shape}
    if len(names) > 1:
        raise Misfit  # another name may mean the same tensor
    same = replace(result, name=maker.name())
    maker.statements.append(Statement(f"%{same.name} : {type_of(same, maker.traced)} = aten::{kind}("
                                      f"{', '.join('%' + a for a in (value.name, *arguments))})", same, effect=True))
    maker.share(same.name, value.name, strides)
    maker.values = [v for v in maker.values if v.name != value.name]
    maker.values.append(same)


@STEPS(1.5, "write")
def rounded(maker: Torch) -> None:
    """``sigmoid_``, ``tanh_``, ``exp_``: behind them nothing is exact."""
    value = target(maker, floating=True)
    if value.dtype not in ("f32", "f64") or value.most > 8:
        raise Misfit
    kind = maker.draws.one(("sigmoid_", "tanh_", "exp_"))
    maker.write(value, replace(value, grade="rough", low=-3000, high=3000), kind, value.name)


@STEPS(1, "write")
def cumulative(maker: Torch) -> None:
    value = target(maker)
    if not value.shape or value.dtype not in DIGITS:
        raise Misfit
    axis = maker.draws.between(0, len(value.shape) - 1)
    n = max(1, value.shape[axis])
    bounds = replace(value, low=value.low * n, high=value.high * n)
    if not fits(value.dtype, bounds.most, value.grain):
        raise Misfit
    maker.write(value, replace(bounds, low=min(bounds.low, value.low), high=max(bounds.high, value.high)), "cumsum_", value.name,
                maker.constant(axis), maker.none())
