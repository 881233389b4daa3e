"""TorchScript steps: new tensors from old ones."""
from __future__ import annotations

from dataclasses import replace
from math import prod

from tests.programs.maker import Misfit, exact, keep, real, within
from tests.programs.numbers import INTEGERS, added, contracted, ends, fits, is_complex, joined, multiplied, summed
from tests.programs.program import Shape, Statement, Value
from tests.programs.torch_views import axis_of, spelled_axis
from tests.programs.torchscript import STEPS, TORCH, Torch, type_of


def together(a: Shape, b: Shape) -> Shape:
    """The shape of two arrays that are broadcast together."""
    rank = max(len(a), len(b))
    left, right = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    return tuple(m if n == 1 else n for n, m in zip(left, right, strict=True))


@STEPS(4)
def binary(maker: Torch) -> None:
    value = maker.pick(lambda v: v.dtype != "pred" and v.grade != "rough")
    other = maker.fit(value, value.shape)
    op = maker.draws.one(("add", "sub", "mul", "maximum", "minimum"))
    if op in ("maximum", "minimum"):
        if is_complex(value.dtype):
            raise Misfit
        bounds = joined([value, other])
    else:
        bounds = multiplied(value, other) if op == "mul" else added(value, other, 1 if op == "add" else -1)
    pair = (value, other) if maker.draws.chance(0.6) else (other, value)
    if op == "sub" and pair[0] is other:
        bounds = added(other, value, -1)
    one = [maker.constant(1)] if op in ("add", "sub") else []
    maker.call(within(keep(bounds), shape=together(value.shape, other.shape)), op, pair[0].name, pair[1].name, *one, like=value.name)


@STEPS(2)
def with_number(maker: Torch) -> None:
    value = maker.pick(lambda v: v.dtype != "pred" and exact(v))
    op, number = maker.draws.one(("add", "sub", "mul")), maker.draws.one((1, 2, 3))
    other = Value(maker.constant(number), value.dtype, (), "exact", number, number)
    bounds = multiplied(value, other) if op == "mul" else added(value, other, 1 if op == "add" else -1)
    one = [maker.constant(1)] if op != "mul" else []
    maker.call(keep(bounds), op, value.name, other.name, *one, like=value.name)


@STEPS(2)
def unary(maker: Torch) -> None:
    value = maker.pick(lambda v: v.dtype not in ("pred", "u8") and not is_complex(v.dtype) and v.grade != "rough")
    op = maker.draws.one(("neg", "relu", "abs", "clone", "sign"))
    if op == "sign" and not exact(value):
        raise Misfit
    if op in ("relu", "abs") and not exact(value):
        raise Misfit
    bounds = replace(value, low=-value.most if op == "neg" else min(0, value.low), high=max(1, value.most),
                     grain=min(1.0, value.grain) if op == "sign" else value.grain,
                     grade="signed" if op == "neg" and value.grade == "positive" else value.grade)
    maker.call(bounds, op, value.name, *([maker.none()] if op == "clone" else []), like=value.name)


@STEPS(1.5, "narrow")
def convert(maker: Torch) -> None:
    """``to`` another type, which copies."""
    value = maker.pick(lambda v: exact(v) and not is_complex(v.dtype))
    dtype = maker.dtype()
    if dtype == value.dtype or is_complex(dtype) or not fits(dtype, value.most, value.grain):
        raise Misfit
    if dtype in INTEGERS and real(value):
        low, high = ends(dtype)
        if value.low < low or value.high > high:
            raise Misfit
    whole = replace(value, low=int(value.low), high=int(value.high), grain=1.0) if dtype in INTEGERS else value
    no = maker.constant(False)
    made = replace(whole, dtype=dtype) if dtype != "pred" else Value("", "pred", value.shape, "exact", 0, 1)
    maker.call(made, "to", value.name, maker.constant(TORCH[dtype][1]), no, no, maker.none(), like=value.name)


@STEPS(3, "compute")
def reduce(maker: Torch) -> None:
    value = maker.pick(lambda v: bool(v.shape) and exact(v) and v.dtype not in ("pred", "u8", "s8", "s16", "s32", "f16", "c64"))
    axis, kept = axis_of(maker, value), maker.draws.chance(0.4)
    if not value.shape[axis]:
        raise Misfit
    shape = tuple(1 if d == axis else n for d, n in enumerate(value.shape) if d != axis or kept)
    op = maker.draws.one(("sum", "sum", "amax", "amin", "all"))
    if op == "sum":
        made = replace(keep(summed(value, value.shape[axis])), shape=shape)
        maker.call(made, "sum", value.name, maker.numbers((axis,)), maker.constant(kept), maker.none())
    elif op == "all":
        made = keep(summed(value, prod(value.shape)))
        maker.call(replace(made, shape=()), "sum", value.name, maker.none())
    else:
        maker.call(replace(value, shape=shape), op, value.name, maker.numbers((axis,)), maker.constant(kept))


@STEPS(1, "compute")
def largest(maker: Torch) -> None:
    """``max`` with places, of which ties would leave open which: the values alone are a result."""
    value = maker.pick(lambda v: bool(v.shape) and exact(v) and v.dtype in ("f32", "f64", "s64") and 0 not in v.shape)
    axis = axis_of(maker, value)
    made = replace(value, name=maker.name(), shape=tuple(n for d, n in enumerate(value.shape) if d != axis))
    places = replace(made, name=maker.name(), dtype="s64")
    no = maker.constant(False)
    kind = maker.draws.one(("max", "min", "sort"))
    if kind == "sort":
        made, places = replace(value, name=made.name), replace(value, name=places.name, dtype="s64")
    maker.statements.append(Statement(f"%{made.name} : {type_of(made, maker.traced)}, %{places.name} : {type_of(places, maker.traced)} = "
                                      f"aten::{kind}(%{value.name}, %{maker.constant(axis)}, %{no})"))
    maker.own(made.name, None)
    maker.values.append(made)


@STEPS(1.5, "compute")
def smooth(maker: Torch) -> None:
    value = maker.pick(lambda v: v.dtype in ("f32", "f64") and v.most <= 12 and v.grade != "rough")
    op = maker.draws.one(("tanh", "sigmoid", "exp", "softmax", "gelu", "layer_norm", "log_softmax"))
    if op in ("softmax", "log_softmax"):
        if not value.shape or not exact(value):
            raise Misfit
        grade = "rough" if op == "log_softmax" else "positive"
        maker.call(replace(value, grade=grade, low=0, high=1), op, value.name, spelled_axis(maker, value, axis_of(maker, value)), maker.none())
    elif op == "gelu":
        if value.low < -2:
            raise Misfit  # 1 + erf(x) cancels there: the last digit of erf, which engines round differently, is the first of the result
        maker.call(replace(value, grade="rough"), op, value.name, maker.constant('"none"', "str"), like=value.name)
    elif op == "layer_norm":
        if not value.shape or value.shape[-1] < 2 or not exact(value):
            raise Misfit
        none = maker.none()
        # A row of equal numbers leaves nothing but rounding: a ramp on top is as different as can be.
        ramp = maker.input(value.dtype, (value.shape[-1],), 1, 1)
        total = maker.call(keep(summed(ramp, value.shape[-1])), "cumsum", ramp.name, maker.constant(0), none)
        sixteen = Value(maker.constant(16), value.dtype, (), "exact", 16, 16)
        far = maker.call(keep(multiplied(total, sixteen)), "mul", total.name, sixteen.name)
        moved = maker.call(keep(added(value, replace(far, shape=value.shape))), "add", value.name, far.name, maker.constant(1), like=value.name)
        maker.call(replace(moved, grade="rough", low=-9, high=9), op, moved.name, maker.numbers((value.shape[-1],)), none, none,
                   maker.constant(0.01), maker.constant(True))
    else:
        grade = "signed" if op == "tanh" else "positive"
        maker.call(replace(value, grade=grade, low=-1 if op == "tanh" else 0, high=200000.0 if op == "exp" else 1), op, value.name, like=value.name)


@STEPS(2, "compute", "narrow")
def product(maker: Torch) -> None:
    """``matmul`` and ``linear``."""
    value = maker.pick(lambda v: len(v.shape) in (2, 3) and exact(v) and v.dtype in ("f32", "f64", "bf16", "f16") and 0 not in v.shape)
    n, depth = maker.width() or 1, value.shape[-1]
    linear = maker.draws.chance(0.5)
    other = maker.input(value.dtype, (n, depth) if linear else (depth, n), -1, 1)
    made = within(keep(contracted(value, other, depth)), shape=(*value.shape[:-1], n))
    maker.call(made, "linear" if linear else "matmul", value.name, other.name, *([maker.none()] if linear else []))


@STEPS(1.5, "framed")
def residual(maker: Torch) -> None:
    """``conv2d(x) + x``, and a reader that wants the sum in a frame or a slot."""
    dtype = "f32" if maker.draws.chance(0.8) else "f64"
    c, k = maker.draws.one((1, 3, 8, 17)), maker.draws.one((1, 3, 3))
    shape = (maker.draws.one((1, 2)), c, maker.draws.one((3, 4, 6)), maker.draws.one((3, 5, 7)))
    there = [v for v in maker.values if v.dtype == dtype and len(v.shape) == 4 and exact(v) and v.most <= 16 and 0 not in v.shape]
    x = maker.draws.late(there) if there else maker.input(dtype, shape)
    c = x.shape[1]
    conv = convolved(maker, x, c, k)
    made = conv
    if maker.draws.chance(0.8):
        bounds, one = keep(added(conv, x)), maker.constant(1)
        if maker.draws.chance(0.5):
            made = maker.call(bounds, "add", conv.name, x.name, one)
        else:
            made = maker.write(conv, bounds, "add_", conv.name, x.name, one)
    kind = maker.draws.one(("pad", "cat", "conv", "pool"))
    if kind == "pad":
        made_shape = (*made.shape[:2], made.shape[2] + 2, made.shape[3] + 1)
        maker.call(replace(made, shape=made_shape, low=min(0, made.low), high=max(0, made.high)), "constant_pad_nd", made.name,
                   maker.numbers((1, 0, 1, 1)), maker.constant(0))
    elif kind == "cat":
        concatenated(maker, [made, x], maker.draws.between(0, 3))
    elif kind == "conv":
        convolved(maker, made, 2, 3)
    else:
        pooled(maker, made)


def convolved(maker: Torch, x: Value, out: int, k: int) -> Value:
    weights = maker.weights(x.dtype, (out, x.shape[1], k, k))
    made = within(keep(contracted(x, weights, k * k * x.shape[1])), shape=(x.shape[0], out, *x.shape[2:]))
    one, edge, no = maker.numbers((1, 1)), maker.numbers((k // 2, k // 2)), maker.constant(False)
    return maker.call(made, "_convolution", x.name, weights.name, maker.none(), one, edge, one, no, maker.numbers((0, 0)), maker.constant(1), no, no,
                      maker.constant(True), maker.constant(True)) if maker.traced else \
        maker.call(made, "conv2d", x.name, weights.name, maker.none(), one, edge, one, maker.constant(1))


def pooled(maker: Torch, x: Value) -> Value:
    two, none = maker.numbers((2, 2)), maker.numbers((0, 0))
    shape = (*x.shape[:2], x.shape[2] // 2, x.shape[3] // 2)
    if 0 in shape:
        raise Misfit
    return maker.call(replace(x, shape=shape), "max_pool2d", x.name, two, two, none, maker.numbers((1, 1)), maker.constant(False))


def concatenated(maker: Torch, parts: list[Value], axis: int) -> Value:
    pieces = maker.name()
    maker.statements.append(Statement(f"%{pieces} : Tensor[] = prim::ListConstruct({', '.join('%' + p.name for p in parts)})"))
    shape = tuple(sum(p.shape[axis] for p in parts) if d == axis else n for d, n in enumerate(parts[0].shape))
    return maker.call(within(keep(joined(parts)), shape=shape), "cat", pieces, maker.constant(axis))


@STEPS(2, "framed")
def concatenate(maker: Torch) -> None:
    value = maker.pick(lambda v: bool(v.shape) and v.grade != "rough")
    others = [v for v in maker.values if v.dtype == value.dtype and v.shape == value.shape and v.grade != "rough"]
    concatenated(maker, [value, *(maker.draws.one(others) for _ in range(maker.draws.one((1, 1, 2))))], axis_of(maker, value))


@STEPS(2)
def choose(maker: Torch) -> None:
    value = maker.pick(lambda v: exact(v) and not is_complex(v.dtype) and v.dtype != "pred")
    other = maker.fit(value, value.shape)
    shape = together(value.shape, other.shape)
    mask = maker.call(Value("", "pred", shape, "exact", 0, 1), maker.draws.one(("gt", "lt", "ge", "eq", "ne")), value.name, other.name)
    maker.call(within(keep(joined([value, other])), shape=shape), "where", mask.name, value.name, other.name)


@STEPS(1.5)
def pick_places(maker: Torch) -> None:
    """``index_select``, ``index`` by a tensor, ``flip``, ``roll``: copies all."""
    value = maker.pick(lambda v: bool(v.shape) and v.grade != "rough")
    axis = axis_of(maker, value)
    n = value.shape[axis]
    kind = maker.draws.one(("index_select", "index", "flip", "roll"))
    if kind in ("flip", "roll"):
        arguments = [maker.numbers((axis,))] if kind == "flip" else [maker.numbers((maker.draws.between(-2, 3),)), maker.numbers((axis,))]
        maker.call(value, kind, value.name, *arguments)
        return
    n = value.shape[0] if kind == "index" else n
    if not n:
        raise Misfit
    count = maker.draws.between(1, 4)
    index = maker.input("s64", (count,), 0 if kind == "index_select" else -n, n - 1)
    maker.values.remove(index)
    if kind == "index_select":
        maker.call(within(value, shape=(*value.shape[:axis], count, *value.shape[axis + 1:])), kind, value.name, maker.constant(axis), index.name)
        return
    places = maker.name()
    maker.statements.append(Statement(f"%{places} : Tensor?[] = prim::ListConstruct(%{index.name})"))
    maker.call(within(value, shape=(count, *value.shape[1:])), kind, value.name, places)


