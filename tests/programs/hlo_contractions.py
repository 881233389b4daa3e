"""HLO steps: products and convolutions, and the readers that want their results in a frame or a slot."""
from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from tests.programs.hlo import STEPS, Hlo, commas
from tests.programs.maker import Misfit, arithmetic, exact, keep, real, within
from tests.programs.numbers import added, contracted, fits, is_float
from tests.programs.program import Shape, Value

MANY = 8
"""Sums of rounded numbers are judged beside the largest of so many: fewer may all cancel."""


def factor(value: Value) -> bool:
    return arithmetic(value) and (not is_float(value.dtype) or value.grade != "rough") and value.dtype not in ("s4", "u4")


@STEPS(4, "narrow")
def dot(maker: Hlo) -> None:
    """A product of matrices, with batches sometimes; either side may be stored either way round."""
    left = maker.pick(lambda v: factor(v) and len(v.shape) in (1, 2, 3), fresh=0.3)
    left = maker.small(left) if exact(left) else left
    rank = len(left.shape)
    if not rank:
        raise Misfit
    batches = maker.draws.one((0, 0, 1)) if rank == 3 else 0
    axis = maker.draws.between(batches, rank - 1)
    depth = left.shape[axis]
    if maker.draws.chance(0.15) and rank == 2 and left.shape[0] == left.shape[1]:
        right, place = left, maker.draws.between(0, 1)
    else:
        shape: Shape = (*left.shape[:batches], depth, maker.width())
        place = batches
        if maker.draws.chance(0.4):
            shape, place = (*left.shape[:batches], shape[-1], depth), batches + 1
        there = [v for v in maker.values if v.dtype == left.dtype and v.shape == shape and exact(v)]
        right = maker.small(maker.draws.late(there)) if there else maker.input(left.dtype, shape)
    rest = tuple(n for d, n in enumerate(left.shape) if d >= batches and d != axis)
    other = tuple(n for d, n in enumerate(right.shape) if d >= batches and d != place)
    made = within(keep(contracted(left, right, depth)), shape=(*left.shape[:batches], *rest, *other))
    if made.grade == "rough" and prod(made.shape) < MANY:
        raise Misfit
    dims = f"lhs_batch_dims={{{commas(range(batches))}}}, rhs_batch_dims={{{commas(range(batches))}}}, " if batches else ""
    result = maker.add(made, f"dot({left.name}, {right.name}), {dims}lhs_contracting_dims={{{axis}}}, rhs_contracting_dims={{{place}}}")
    if maker.draws.chance(0.3):
        behind(maker, result)


@dataclass(frozen=True, slots=True)
class Window:
    """One spatial dimension of a convolution."""

    size: int
    stride: int = 1
    low: int = 0
    high: int = 0
    base: int = 1
    dilation: int = 1
    reverse: int = 0

    def made(self, n: int) -> int:
        whole = (n - 1) * self.base + 1 if n else 0
        reach = (self.size - 1) * self.dilation + 1 if self.size else 0
        return max(0, (whole + self.low + self.high - reach) // self.stride + 1) if whole + self.low + self.high >= reach else 0


def window_text(windows: list[Window]) -> str:
    """``window={...}``, with the parts that are not as usual."""
    parts = ["size=" + "x".join(str(w.size) for w in windows)]
    if any(w.stride != 1 for w in windows):
        parts.append("stride=" + "x".join(str(w.stride) for w in windows))
    if any(w.low or w.high for w in windows):
        parts.append("pad=" + "x".join(f"{w.low}_{w.high}" for w in windows))
    if any(w.base != 1 for w in windows):
        parts.append("lhs_dilate=" + "x".join(str(w.base) for w in windows))
    if any(w.dilation != 1 for w in windows):
        parts.append("rhs_dilate=" + "x".join(str(w.dilation) for w in windows))
    if any(w.reverse for w in windows):
        parts.append("rhs_reversal=" + "x".join(str(w.reverse) for w in windows))
    return "window={" + " ".join(parts) + "}"


@STEPS(2, "window")
def convolution(maker: Hlo) -> None:
    """Any strides, paddings, dilations, groups and layouts."""
    dtype = maker.dtype()
    if (not is_float(dtype) and dtype not in ("s8", "s32", "u8")) or dtype.startswith("f8"):
        raise Misfit
    draws, rank = maker.draws, maker.draws.one((1, 2, 2, 2, 3))
    batch, out, groups, batch_groups = draws.one((1, 1, 2)), draws.one((1, 2, 4, 8, 16, 17)), draws.one((1, 1, 1, 2)), 1
    features = draws.one((1, 2, 3, 8, 16))
    if groups == 2:
        features, out = 2 * features, 2 * out
        if draws.chance(0.4):
            groups, out = features, features * draws.one((1, 2))  # depthwise
    elif draws.chance(0.1):
        batch, batch_groups, out = 2, 2, 2 * out
    sizes = tuple(draws.one((1, 3, 4, 5, 8)) if rank < 3 else draws.one((2, 3, 4)) for _ in range(rank))
    windows = [Window(draws.one((1, 2, 3, 3)), draws.one((1, 1, 2)), draws.one((0, 1, 1, 2, -1)), draws.one((0, 1, 1, 2)),
                      draws.one((1, 1, 1, 2)), draws.one((1, 1, 1, 2)), draws.one((0, 0, 0, 0, 1))) for _ in sizes]
    made = tuple(w.made(n) for w, n in zip(windows, sizes, strict=True))
    if 0 in made:
        raise Misfit
    letters = "012"[:rank]
    data_order, kernel_order, out_order = (draws.one((f"b{letters}f", f"bf{letters}")), draws.one((f"{letters}io", f"oi{letters}")),
                                           draws.one((f"b{letters}f", f"bf{letters}", f"{letters}bf")))
    axes = dict(zip(letters, sizes, strict=True)) | {"b": batch, "f": features}
    kernel_axes = {c: w.size for c, w in zip(letters, windows, strict=True)} | {"i": features // groups, "o": out}
    out_axes = dict(zip(letters, made, strict=True)) | {"b": batch // batch_groups, "f": out}
    shape = tuple(axes[c] for c in data_order)
    there = [v for v in maker.values if v.dtype == dtype and v.shape == shape and exact(v)]
    data = maker.small(draws.late(there)) if there else maker.input(dtype, shape)
    kernel = maker.weights(dtype, tuple(kernel_axes[c] for c in kernel_order), 0 if dtype == "u8" else -3, 3)
    count = prod(w.size for w in windows) * (features // groups)
    result = within(keep(contracted(data, kernel, count)), shape=tuple(out_axes[c] for c in out_order))
    extra = (f", feature_group_count={groups}" if groups > 1 else "") + (f", batch_group_count={batch_groups}" if batch_groups > 1 else "")
    maker.add(result, f"convolution({data.name}, {kernel.name}), {window_text(windows)}, dim_labels={data_order}_{kernel_order}->{out_order}{extra}")


@STEPS(2, "framed")
def residual(maker: Hlo) -> None:
    """``conv(x) + x`` with a frame around x, as a residual block has it, and then a reader that wants the sum in a frame or slot."""
    dtype = maker.dtype()
    if not is_float(dtype) or dtype.startswith("f8"):
        raise Misfit
    draws = maker.draws
    channels, k = draws.one((1, 3, 8, 16, 17)), draws.one((1, 3, 3, 3, 2))
    order, kernel_order = draws.one((("bf01", "oi01"), ("b01f", "01io")))
    axes = {"b": draws.one((1, 1, 2)), "f": channels, "0": draws.one((2, 4, 6)), "1": draws.one((3, 4, 7))}
    shape = tuple(axes[c] for c in order)
    there = [v for v in maker.values if v.dtype == dtype and v.shape == shape and exact(v)]
    x = maker.small(draws.late(there)) if there else maker.input(dtype, shape)
    if draws.chance(0.5):  # what the program computes may be left in a frame, where the sum finds it too; a parameter is copied into one
        x = maker.add(replace(x, low=-x.high, high=-x.low), f"negate({x.name})")
    windows = [Window(k, 1, (k - 1) // 2, k // 2)] * 2
    weights = maker.weights(dtype, tuple({"o": channels, "i": channels, "0": k, "1": k}[c] for c in kernel_order))
    conv = within(keep(contracted(x, weights, k * k * channels)))
    made = maker.add(conv, f"convolution({x.name}, {weights.name}), {window_text(windows)}, dim_labels={order}_{kernel_order}->{order}")
    if conv.grade == "exact":
        op = draws.one(("add", "add", "subtract", "maximum"))
        result = made if op == "maximum" else added(made, x, 1 if op == "add" else -1)
        if result is not None:
            made = maker.add(replace(result, low=min(made.low, result.low), high=max(made.high, result.high)), f"{op}({made.name}, {x.name})")
    behind(maker, made)


def behind(maker: Hlo, value: Value) -> None:
    """A reader that wants a value in a frame or slot: a pad, a concatenation, the next convolution."""
    if value.grade == "rough":
        return
    kind = maker.draws.one(("pad", "concatenate", "convolution", "both"))
    if kind in ("pad", "both"):
        zero = maker.constant(value.dtype, 0)
        sides = [(0, 0) if d < len(value.shape) - 2 else (maker.draws.one((0, 1)), maker.draws.one((0, 1, 2))) for d in range(len(value.shape))]
        shape = tuple(low + n + high for n, (low, high) in zip(value.shape, sides, strict=True))
        maker.add(within(replace(value, low=min(0, value.low), high=max(0, value.high)), shape=shape),
                  f"pad({value.name}, {zero.name}), padding={'x'.join(f'{a}_{b}' for a, b in sides)}")
    if kind in ("concatenate", "both") and value.shape:
        axis = maker.draws.between(0, len(value.shape) - 1)
        other = maker.alike(value, exact=exact(value))
        if other.grade != value.grade:
            raise Misfit
        shape = tuple(2 * n if d == axis else n for d, n in enumerate(value.shape))
        pair = [value, other] if maker.draws.chance(0.5) else [other, value]
        maker.add(within(replace(value, low=min(value.low, other.low), high=max(value.high, other.high), grain=min(value.grain, other.grain)), shape=shape),
                  f"concatenate({pair[0].name}, {pair[1].name}), dimensions={{{axis}}}")
    if kind == "convolution" and len(value.shape) == 4 and real(value) and exact(value):
        weights = maker.weights(value.dtype, (2, value.shape[1], 3, 3))
        made = keep(contracted(value, weights, 9 * value.shape[1]))
        maker.add(within(made, shape=(value.shape[0], 2, *value.shape[2:])),
                  f"convolution({value.name}, {weights.name}), {window_text([Window(3, 1, 1, 1)] * 2)}, dim_labels=bf01_oi01->bf01")


@STEPS(0.7, "framed", "window")
def convolution_with_itself(maker: Hlo) -> None:
    """One value is data and kernel."""
    draws = maker.draws
    dtype = maker.dtype()
    if not is_float(dtype) or dtype.startswith("f8"):
        raise Misfit
    n, k, edge = draws.one((1, 3, 4, 8)), draws.one((2, 3, 4)), draws.one((0, 1, 2))
    value = maker.weights(dtype, (n, n, k, k))
    made = keep(contracted(value, value, n * k * k))
    windows = [Window(k, 1, edge, edge)] * 2
    out = windows[0].made(k)
    if not fits("f32", made.most, made.grain):
        raise Misfit
    maker.add(within(made, shape=(n, n, out, out)), f"convolution({value.name}, {value.name}), {window_text(windows)}, dim_labels=bf01_oi01->bf01")
