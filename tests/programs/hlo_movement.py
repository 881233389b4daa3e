"""HLO steps: elements move, and nothing is computed."""
from __future__ import annotations

from dataclasses import replace
from math import prod

from tests.programs.hlo import STEPS, Hlo, commas
from tests.programs.maker import Misfit, arithmetic, keep, within
from tests.programs.numbers import joined
from tests.programs.program import Shape, Value


def shuffled(value: Value) -> Value:
    """The value with its elements elsewhere, all of them."""
    return value


def partial(value: Value) -> Value:
    """The value without some elements: an error relative to the largest says nothing about those that are left."""
    if value.grade == "rough":
        raise Misfit
    return value


@STEPS(2)
def broadcast(maker: Hlo) -> None:
    value = maker.pick(lambda v: len(v.shape) < 4)
    at = maker.draws.between(0, len(value.shape))
    shape = (*value.shape[:at], maker.draws.one((1, 2, 3, 17)), *value.shape[at:])
    made = within(value, shape=shape)
    maker.spread(made, shape, [d if d < at else d + 1 for d in range(len(value.shape))])


def other_shapes(draws_shape: Shape) -> list[Shape]:
    """Shapes of as many elements."""
    total = prod(draws_shape)
    made: list[Shape] = [(total,), (1, *draws_shape), (*draws_shape, 1)]
    for n in (2, 3, 4, 5, 7, 11, 17):
        if total and total % n == 0:
            made += [(n, total // n), (total // n, n)]
            made += [(n, m, total // n // m) for m in (2, 3, 4) if (total // n) % m == 0]
    if len(draws_shape) >= 2:
        made.append((draws_shape[0] * draws_shape[1], *draws_shape[2:]))
        made.append((*draws_shape[:-2], draws_shape[-2] * draws_shape[-1]))
    return made


@STEPS(3, "reduction")
def reshape(maker: Hlo) -> None:
    value = maker.pick(lambda v: v.dtype not in ("s4", "u4") or True)
    maker.add(replace(value, shape=maker.draws.one(other_shapes(value.shape))), f"reshape({value.name})")


@STEPS(3, "reduction")
def transpose(maker: Hlo) -> None:
    value = maker.pick(lambda v: len(v.shape) > 1)
    order = maker.draws.order(range(len(value.shape)))
    maker.add(replace(value, shape=tuple(value.shape[d] for d in order)), f"transpose({value.name}), dimensions={{{commas(order)}}}")


@STEPS(2)
def slice(maker: Hlo) -> None:
    value = partial(maker.pick(lambda v: bool(v.shape)))
    parts, shape = [], []
    for n in value.shape:
        low = maker.draws.between(0, max(0, n - 1)) if maker.draws.chance(0.5) else 0
        high, step = maker.draws.between(min(low + 1, n), n), maker.draws.one((1, 1, 2, 3))
        parts.append(f"[{low}:{high}:{step}]")
        shape.append(-(-(high - low) // step))
    maker.add(replace(value, shape=tuple(shape)), f"slice({value.name}), slice={{{', '.join(parts)}}}")


@STEPS(1)
def reverse(maker: Hlo) -> None:
    value = maker.pick(lambda v: bool(v.shape))
    dims = maker.draws.some(range(len(value.shape)), maker.draws.between(1, len(value.shape)))
    maker.add(value, f"reverse({value.name}), dimensions={{{commas(dims)}}}")


@STEPS(2, "framed", "narrow")
def concatenate(maker: Hlo) -> None:
    value = partial(maker.pick(lambda v: bool(v.shape)))
    axis = maker.draws.between(0, len(value.shape) - 1)
    parts = [value] + [partial(maker.alike(value, exact=value.grade == "exact")) for _ in range(maker.draws.one((1, 1, 2)))]
    shape = tuple(n * len(parts) if d == axis else n for d, n in enumerate(value.shape))
    maker.add(within(keep(joined(parts)), shape=shape), f"concatenate({', '.join(p.name for p in parts)}), dimensions={{{axis}}}")


@STEPS(2, "framed", "narrow")
def pad(maker: Hlo) -> None:
    """Edges of a value, holes between elements, and negative edges that cut."""
    value = partial(maker.pick(lambda v: bool(v.shape)))
    sides = [(maker.draws.one((0, 0, 1, 2, -1)), maker.draws.one((0, 0, 1, 3, -1)), maker.draws.one((0, 0, 0, 1, 2))) for _ in value.shape]
    shape = tuple(low + n + max(0, n - 1) * hole + high for n, (low, high, hole) in zip(value.shape, sides, strict=True))
    if min(shape) < 0 or (0 in shape and 0 not in value.shape):
        raise Misfit
    fill = maker.constant(value.dtype, maker.draws.one((0, 0, 1)))
    maker.add(within(keep(joined([value, fill])), shape=shape),
              f"pad({value.name}, {fill.name}), padding={'x'.join('_'.join(map(str, s)) for s in sides)}")


@STEPS(0.7)
def iota(maker: Hlo) -> None:
    dtype = maker.dtype()
    shape = maker.shape(maker.draws.between(1, 3))
    axis = maker.draws.between(0, len(shape) - 1)
    value = Value("", dtype, shape, "exact", 0, shape[axis])
    if not arithmetic(value) or shape[axis] > 100 or dtype.startswith("f8"):
        raise Misfit
    maker.add(value, f"iota(), iota_dimension={axis}")


@STEPS(0.5)
def copy(maker: Hlo) -> None:
    value = maker.pick()
    maker.add(value, f"copy({value.name})")
