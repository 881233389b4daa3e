"""Relay steps: reductions, products, convolutions, pools, and the readers that want their results in a frame or a slot."""
from __future__ import annotations

from dataclasses import replace
from math import prod

from tests.programs.maker import Misfit, exact, keep, real, within
from tests.programs.numbers import NARROW, added, contracted, joined, summed
from tests.programs.program import Value
from tests.programs.relay import STEPS, Relay, listed


def axis_of(maker: Relay, value: Value) -> int:
    return maker.draws.between(0, len(value.shape) - 1)


@STEPS(4, "reduction")
def reduce(maker: Relay) -> None:
    """A reduction over some axes, and sometimes what it leaves of the value."""
    value = maker.pick(lambda v: bool(v.shape) and exact(v) and v.dtype not in ("pred", "u8", "s8", "s16"))
    axes = maker.draws.some(range(len(value.shape)), maker.draws.between(1, len(value.shape)))
    kept = maker.draws.chance(0.5)
    count = prod(value.shape[d] for d in axes)
    op = maker.draws.one(("sum", "sum", "max", "min"))
    made = keep(summed(value, count)) if op == "sum" else value
    shape = tuple(1 if d in axes else n for d, n in enumerate(value.shape) if d not in axes or kept)
    small = maker.add(replace(made, shape=shape), f"{op}(%{value.name}, axis={listed(axes)}{', keepdims=True' if kept else ''})")
    if kept and maker.draws.chance(0.6):
        maker.add(replace(keep(added(value, small, -1)), shape=value.shape), f"subtract(%{value.name}, %{small.name})")


@STEPS(1.5, "reduction")
def normal(maker: Relay) -> None:
    """``nn.softmax``, and ``nn.layer_norm`` of rows that differ."""
    value = maker.pick(lambda v: v.dtype in ("f32", "f64") and bool(v.shape) and exact(v) and v.most <= 12)
    if maker.draws.chance(0.6):
        axis = maker.draws.one((-1, axis_of(maker, value)))
        maker.add(replace(value, grade="positive", low=0, high=1), f"nn.softmax(%{value.name}, axis={axis})")
        return
    if value.shape[-1] < 2 or value.dtype != "f32":
        raise Misfit
    n = value.shape[-1]
    # A row of equal numbers leaves nothing but rounding: a ramp on top is as different as can be.
    ramp = maker.add(Value("", "f32", (n,), "exact", 0, 16 * n), f'arange(0f, {16 * n}f, 16f, start=0f, stop={16 * n}f, step=16f, dtype="float32")')
    moved = maker.add(keep(added(value, replace(ramp, shape=value.shape))), f"add(%{value.name}, %{ramp.name})")
    gamma, beta = maker.input("f32", (n,), 1, 2), maker.input("f32", (n,), 1, 2)
    maker.add(replace(moved, grade="rough"), f"nn.layer_norm(%{moved.name}, %{gamma.name}, %{beta.name}, epsilon=0.01f)")


@STEPS(0.5, "framed")
def upsampled_twice(maker: Relay) -> None:
    """The same interpolation by two operators: their difference is zero, which no other engine needs to confirm."""
    value = maker.pick(lambda v: v.dtype == "f32" and len(v.shape) == 4 and exact(v) and 0 not in v.shape and prod(v.shape) <= 512)
    n, c, h, w = value.shape
    method, other = maker.draws.one((("bilinear", "linear"), ("nearest_neighbor", "nearest_neighbor")))
    rounding = ', rounding_method="floor"' if other == "nearest_neighbor" else ""
    made = replace(value, shape=(n, c, 2 * h, 2 * w), grain=value.grain / 4)
    one = maker.add(made, f'nn.upsampling(%{value.name}, scale_h=2f, scale_w=2f, method="{method}")')
    two = maker.add(made, f'image.resize2d(%{value.name}, size=[{2 * h}, {2 * w}], method="{other}", '
                          f'coordinate_transformation_mode="asymmetric"{rounding})')
    maker.add(replace(made, low=0, high=0), f"subtract(%{one.name}, %{two.name})")


@STEPS(2, "narrow")
def dense(maker: Relay) -> None:
    value = maker.pick(lambda v: len(v.shape) == 2 and exact(v) and v.dtype in ("f32", "f64", "f16", "s32"))
    n = maker.width() or 1
    other = maker.input(value.dtype, (n, value.shape[1]), -1, 1)
    made = within(keep(contracted(value, other, value.shape[1])), shape=(value.shape[0], n))
    made = maker.add(made, f"nn.dense(%{value.name}, %{other.name}, units={n})")
    if maker.draws.chance(0.4) and exact(made):
        bias = maker.input(made.dtype, (n,))
        maker.add(keep(added(made, bias)), f"nn.bias_add(%{made.name}, %{bias.name})")


@STEPS(1.5)
def batch_matmul(maker: Relay) -> None:
    value = maker.pick(lambda v: len(v.shape) == 3 and exact(v) and real(v) and v.dtype != "bf16")
    n = maker.draws.one((1, 3, 5, 17))
    other = maker.input(value.dtype, (value.shape[0], n, value.shape[2]), -1, 1)
    made = within(keep(contracted(value, other, value.shape[2])), shape=(*value.shape[:2], n))
    maker.add(made, f"nn.batch_matmul(%{value.name}, %{other.name}, transpose_b=True)")


@STEPS(3, "framed")
def residual(maker: Relay) -> None:
    """A convolution, its own input added, and a reader that wants the sum in a frame or slot."""
    draws = maker.draws
    dtype = draws.one(("f32", "f32", "f32", "f64", "f16"))
    layout = draws.one(("NCHW", "NHWC"))
    c = draws.one((1, 3, 8, 17))
    sizes = {"N": draws.one((1, 2)), "C": c, "H": draws.one((3, 4, 6)), "W": draws.one((3, 5, 7))}
    there = [v for v in maker.values if v.dtype == dtype and len(v.shape) == 4 and exact(v) and v.most <= 16 and min(v.shape) > 0]
    x = draws.late(there) if there else maker.input(dtype, tuple(sizes[a] for a in layout))
    channels = x.shape[layout.index("C")]
    conv = convolved(maker, x, layout, channels, draws.one((1, 3, 3)), 1)
    made = conv
    if exact(conv) and draws.chance(0.8):
        made = maker.add(keep(added(conv, x)), f"add(%{conv.name}, %{x.name})")
    if draws.chance(0.4) and exact(made):
        made = maker.add(replace(made, low=0), f"nn.relu(%{made.name})")
    if not exact(made):
        return
    kind = draws.one(("pad", "concatenate", "conv", "pool"))
    if kind == "pad":
        sides = [(0, 0) if a in "NC" else (1, draws.one((0, 1))) for a in layout]
        shape = tuple(low + n + high for n, (low, high) in zip(made.shape, sides, strict=True))
        maker.add(within(replace(made, low=min(0, made.low), high=max(0, made.high)), shape=shape),
                  f"nn.pad(%{made.name}, 0, pad_width={listed([list(s) for s in sides])})")
    elif kind == "concatenate":
        joined_up(maker, [made, x], axis_of(maker, made))
    elif kind == "conv":
        convolved(maker, made, layout, 2, 3, draws.one((1, 2)))
    else:
        pooled(maker, made, layout)


def convolved(maker: Relay, x: Value, layout: str, out: int, k: int, stride: int) -> Value:
    sizes = dict(zip(layout, x.shape, strict=True))
    kernel = {"O": out, "I": sizes["C"], "H": k, "W": k}
    order = "OIHW" if layout == "NCHW" else "HWIO"
    weights = maker.weights(x.dtype, tuple(kernel[a] for a in order))
    edge = k // 2
    made = {"N": sizes["N"], "C": out, "H": (sizes["H"] + 2 * edge - k) // stride + 1, "W": (sizes["W"] + 2 * edge - k) // stride + 1}
    value = within(keep(contracted(x, weights, k * k * sizes["C"])), shape=tuple(made[a] for a in layout))
    layouts = "" if layout == "NCHW" else ', data_layout="NHWC", kernel_layout="HWIO"'
    return maker.add(value, f"nn.conv2d(%{x.name}, %{weights.name}, strides=[{stride}, {stride}], padding=[{edge}, {edge}, {edge}, {edge}], "
                            f"channels={out}, kernel_size=[{k}, {k}]{layouts})")


@STEPS(1)
def batch_norm(maker: Relay) -> None:
    """Batch normalisation with given moments, and dropout, which does nothing: the first of a tuple each."""
    value = maker.pick(lambda v: len(v.shape) in (2, 4) and v.dtype == "f32" and exact(v) and v.most <= 100)
    if maker.draws.chance(0.3):
        both = maker.line(f"nn.dropout(%{value.name}, rate=0.5f)")
        maker.add(value, f"copy(%{both}.0)")
        return
    shape = (value.shape[1],)
    gamma, beta, mean, spread = (maker.weights("f32", shape, low, 2) for low in (1, 0, 0, 1))
    both = maker.line(f"nn.batch_norm(%{value.name}, %{gamma.name}, %{beta.name}, %{mean.name}, %{spread.name}, epsilon=0.01f)")
    maker.add(replace(value, grade="rough"), f"copy(%{both}.0)")


@STEPS(1, "framed")
def convolution_with_itself(maker: Relay) -> None:
    """One value is data and kernel."""
    n, k, edge = maker.draws.one((1, 3, 8)), maker.draws.one((2, 3)), maker.draws.one((0, 1))
    x = maker.weights("f32", (n, n, k, k), -3, 3)
    out = 2 * edge + 1
    made = within(keep(contracted(x, x, n * k * k)), shape=(n, n, out, out))
    maker.add(made, f"nn.conv2d(%{x.name}, %{x.name}, padding=[{edge}, {edge}, {edge}, {edge}], channels={n}, kernel_size=[{k}, {k}])")


def pooled(maker: Relay, x: Value, layout: str) -> Value:
    sizes = dict(zip(layout, x.shape, strict=True))
    kind = maker.draws.one(("nn.max_pool2d", "nn.global_avg_pool2d"))
    if kind == "nn.global_avg_pool2d":
        shape = tuple(1 if a in "HW" else n for a, n in sizes.items())
        grade = "rough" if x.low < 0 or x.dtype in NARROW else "positive"
        return maker.add(replace(x, shape=shape, grade=grade), f'{kind}(%{x.name}, layout="{layout}")')
    made = {a: (n - 2) // 2 + 1 if a in "HW" else n for a, n in sizes.items()}
    if min(made.values()) < 1:
        raise Misfit
    return maker.add(replace(x, shape=tuple(made.values())), f'{kind}(%{x.name}, pool_size=[2, 2], strides=[2, 2], layout="{layout}")')


def joined_up(maker: Relay, parts: list[Value], axis: int) -> Value:
    pair = maker.line(f"({', '.join('%' + p.name for p in parts)})")
    shape = tuple(sum(p.shape[axis] for p in parts) if d == axis else n for d, n in enumerate(parts[0].shape))
    return maker.add(within(keep(joined(parts)), shape=shape), f"concatenate(%{pair}, axis={axis})")


@STEPS(2, "framed")
def concatenate(maker: Relay) -> None:
    value = maker.pick(lambda v: bool(v.shape) and v.grade != "rough")
    others = [v for v in maker.values if v.dtype == value.dtype and v.shape == value.shape and v.grade != "rough"]
    joined_up(maker, [value, *(maker.draws.one(others) for _ in range(maker.draws.one((1, 1, 2))))], axis_of(maker, value))
