"""HLO steps: reductions, reductions of reductions, normalisations under movement."""
from __future__ import annotations

from dataclasses import replace
from math import ceil, log2, prod

from tests.programs.hlo import STEPS, Hlo, commas, spelled, type_of
from tests.programs.hlo_movement import other_shapes
from tests.programs.maker import Misfit, arithmetic, exact, keep, ordered, real
from tests.programs.numbers import INTEGERS, added, ends, is_complex, multiplied, summed
from tests.programs.program import Shape, Statement, Value


def axes_of(maker: Hlo, value: Value) -> list[int]:
    rank = len(value.shape)
    way = maker.draws.one(("last", "last", "trailing", "leading", "any"))
    if way == "last":
        return [rank - 1]
    if way == "trailing":
        return list(range(maker.draws.between(0, rank - 1), rank))
    if way == "leading":
        return list(range(maker.draws.between(1, rank)))
    return maker.draws.some(range(rank), maker.draws.between(1, rank))


def reduced(maker: Hlo, value: Value, axes: list[int], op: str, init: float) -> Value:
    """``reduce`` over the axes."""
    shape = tuple(n for d, n in enumerate(value.shape) if d not in axes)
    start = maker.constant(value.dtype, init)
    count = prod(value.shape[d] for d in axes)
    if op == "add":
        made = keep(summed(value, count + 1))
    elif op in ("maximum", "minimum"):
        if value.grade == "rough":
            raise Misfit
        made = value if abs(init) == float("inf") else replace(value, low=min(value.low, init), high=max(value.high, init))
        if made.grade == "exact" and value.dtype not in INTEGERS and made.grain > 1:
            made = replace(made, grain=1.0)
    elif op == "multiply":
        low, high = ends(value.dtype)
        made = replace(value, low=low, high=high)
    else:
        made = value
    return maker.add(replace(made, shape=shape),
                     f"reduce({value.name}, {start.name}), dimensions={{{commas(axes)}}}, to_apply={maker.reducer(value.dtype, op)}")


def again(maker: Hlo, small: Value, shape: Shape, axes: list[int]) -> Value:
    """A reduced value, broadcast back along the axes."""
    return maker.spread(small, shape, [d for d in range(len(shape)) if d not in axes])


@STEPS(4, "reduction", "narrow")
def reduce(maker: Hlo) -> None:
    value = maker.pick(lambda v: bool(v.shape) and not v.dtype.startswith("f8") and v.dtype not in ("s4", "u4"))
    axes = axes_of(maker, value)
    if value.dtype == "pred":
        op = maker.draws.one(("and", "or"))
        reduced(maker, value, axes, op, float(op == "and"))
        return
    ops = ("add",) if is_complex(value.dtype) else ("add", "add", "maximum", "minimum")
    op = maker.draws.one(ops + (("multiply",) if value.dtype in INTEGERS else ()))
    # An initial value that is no identity counts where the axes have more than one element: XLA leaves it out where they have one.
    lonely = prod(value.shape[d] for d in axes) <= 1
    init = {"add": 0.0, "multiply": 1.0}.get(op, 0.0)
    if op in ("maximum", "minimum") and real(value) and (lonely or maker.draws.chance(0.5)):
        init = -float("inf") if op == "maximum" else float("inf")
        if 0 in value.shape:
            raise Misfit
    elif op in ("maximum", "minimum") and lonely:
        raise Misfit
    small = reduced(maker, value, axes, op, init)
    if maker.draws.chance(0.5):
        wide = again(maker, small, value.shape, axes)
        sign = maker.draws.one((1, -1))
        maker.add(keep(added(value, wide, sign)), f"{'add' if sign > 0 else 'subtract'}({value.name}, {wide.name})")


@STEPS(1.5, "reduction")
def centred(maker: Hlo) -> None:
    """A reduction of a reduction: squares of what is left of the mean, which divides by a power of two so that it is exact."""
    value = maker.small(maker.pick(lambda v: v.dtype in ("f32", "f64") and exact(v) and bool(v.shape)))
    axes = axes_of(maker, value)
    d = left_of_mean(maker, value, axes)
    squares = maker.add(keep(multiplied(d, d)), f"multiply({d.name}, {d.name})")
    second = axes if maker.draws.chance(0.7) else axes_of(maker, squares)
    reduced(maker, squares, second, "add", 0)


def left_of_mean(maker: Hlo, value: Value, axes: list[int]) -> Value:
    total = reduced(maker, value, axes, "add", 0)
    count = 2.0 ** -ceil(log2(max(1, prod(value.shape[d] for d in axes))))
    part = maker.filled(value.dtype, total.shape, count)
    part = replace(part, grain=count)
    mean = maker.add(keep(multiplied(total, part)), f"multiply({total.name}, {part.name})")
    wide = again(maker, mean, value.shape, axes)
    return maker.add(keep(added(value, wide, -1)), f"subtract({value.name}, {wide.name})")


def moved(maker: Hlo, value: Value) -> Value:
    """The value behind a reshape, a transposition, both in either order, or neither."""
    for _ in range(maker.draws.between(0, 3)):
        if maker.draws.chance(0.5) and len(value.shape) > 1:
            order = maker.draws.order(range(len(value.shape)))
            value = maker.add(replace(value, shape=tuple(value.shape[d] for d in order)), f"transpose({value.name}), dimensions={{{commas(order)}}}")
        else:
            value = maker.add(replace(value, shape=maker.draws.one(other_shapes(value.shape))), f"reshape({value.name})")
    return value


@STEPS(1.5, "reduction")
def layer_norm(maker: Hlo) -> None:
    """Layer normalisation under movement on both sides."""
    value = maker.pick(lambda v: v.dtype in ("f32", "f64") and exact(v) and bool(v.shape))
    value = moved(maker, maker.small(value))
    if not value.shape or 0 in value.shape:
        raise Misfit
    axes = axes_of(maker, value)
    d = left_of_mean(maker, value, axes)
    squares = maker.add(keep(multiplied(d, d)), f"multiply({d.name}, {d.name})")
    variance = reduced(maker, squares, axes, "add", 0)
    one = maker.filled(value.dtype, variance.shape, 1)
    spread = maker.add(replace(keep(added(variance, one)), low=1), f"add({variance.name}, {one.name})")
    root = maker.add(replace(spread, grade="positive", low=0, high=1), f"rsqrt({spread.name})")
    wide = again(maker, root, value.shape, axes)
    moved(maker, maker.add(keep(multiplied(d, wide)), f"multiply({d.name}, {wide.name})"))


@STEPS(1.5, "reduction")
def softmax(maker: Hlo) -> None:
    """Softmax under movement on both sides; behind it sometimes a product and a transposition, as attention has it."""
    value = maker.pick(lambda v: v.dtype in ("f32", "f64") and exact(v) and bool(v.shape))
    value = moved(maker, maker.small(value))
    if not value.shape or 0 in value.shape:
        raise Misfit
    axis = [maker.draws.one((len(value.shape) - 1, len(value.shape) - 1, 0))]
    most = reduced(maker, value, axis, "maximum", -float("inf"))
    wide = again(maker, most, value.shape, axis)
    shifted = maker.add(replace(keep(added(value, wide, -1)), high=0), f"subtract({value.name}, {wide.name})")
    power = maker.add(replace(shifted, grade="positive", low=1e-4, high=1), f"exponential({shifted.name})")
    total = reduced(maker, power, axis, "add", 0)
    under = again(maker, replace(total, low=1), value.shape, axis)
    made = maker.add(replace(power, high=1, low=0), f"divide({power.name}, {under.name})")
    if len(made.shape) == 2 and maker.draws.chance(0.6):
        right = maker.input(made.dtype, (made.shape[1], maker.width()))
        made = maker.add(replace(made, shape=(made.shape[0], right.shape[1]), grade="rough", low=-3, high=3),
                         f"dot({made.name}, {right.name}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")
    moved(maker, made)


@STEPS(0.8, "reduction", "index")
def argument(maker: Hlo) -> None:
    """The largest element and where it is, in one reduction of two arrays; of equal ones the first."""
    value = maker.pick(lambda v: exact(v) and ordered(v) and bool(v.shape) and arithmetic(v) and not v.dtype.startswith("f8") and 0 not in v.shape)
    if maker.palette.special and real(value):
        raise Misfit
    axis = maker.draws.between(0, len(value.shape) - 1)
    shape = tuple(n for d, n in enumerate(value.shape) if d != axis)
    places = maker.add(Value("", "s32", value.shape, "exact", 0, value.shape[axis]), f"iota(), iota_dimension={axis}")
    t = value.dtype
    lowest = spelled(t, -float("inf") if real(value) else ends(t)[0])
    start = maker.add(Value("", t, ()), f"constant({lowest})")
    zero = maker.constant("s32", 2 ** 31 - 1)
    maker.values.remove(start)
    helper = maker.helper(f"""{{
  a = {t}[] parameter(0)
  i = s32[] parameter(1)
  b = {t}[] parameter(2)
  j = s32[] parameter(3)
  more = pred[] compare(a, b), direction=GT
  same = pred[] compare(a, b), direction=EQ
  first = pred[] compare(i, j), direction=LT
  tie = pred[] and(same, first)
  left = pred[] or(more, tie)
  m = {t}[] select(left, a, b)
  k = s32[] select(left, i, j)
  ROOT r = ({t}[], s32[]) tuple(m, k)
}}""")
    best, place = replace(value, shape=shape), Value("", "s32", shape, "exact", 0, 2 ** 31 - 1)
    both = maker.name()

    maker.statements.append(Statement(
        f"{both} = ({type_of(best)}, {type_of(place)}) reduce({value.name}, {places.name}, {start.name}, {zero.name}), "
        f"dimensions={{{axis}}}, to_apply={helper}"))
    maker.add(place, f"get-tuple-element({both}), index=1")
    maker.add(best, f"get-tuple-element({both}), index=0")


