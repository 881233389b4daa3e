"""Relay steps: elements move; places are computed."""
from __future__ import annotations

from dataclasses import replace

from tests.programs.hlo_movement import other_shapes
from tests.programs.maker import Misfit, exact, keep, real, within
from tests.programs.numbers import added, joined, summed
from tests.programs.program import Value
from tests.programs.relay import STEPS, Relay, listed


def some(maker: Relay, rank: int = 1) -> Value:
    return maker.pick(lambda v: len(v.shape) >= rank and v.grade != "rough" and 0 not in v.shape)


@STEPS(3, "reduction")
def transpose(maker: Relay) -> None:
    value = maker.pick(lambda v: len(v.shape) > 1)
    axes = maker.draws.order(range(len(value.shape)))
    maker.add(replace(value, shape=tuple(value.shape[d] for d in axes)), f"transpose(%{value.name}, axes={listed(axes)})")


@STEPS(3, "reduction")
def reshape(maker: Relay) -> None:
    value = maker.pick(lambda v: bool(v.shape) and 0 not in v.shape)
    shape = maker.draws.one(other_shapes(value.shape))
    wanted = list(shape)
    if maker.draws.chance(0.3):
        wanted[maker.draws.between(0, len(wanted) - 1)] = -1
    maker.add(replace(value, shape=shape), f"reshape(%{value.name}, newshape={listed(wanted)})")


@STEPS(2)
def slice(maker: Relay) -> None:
    value = some(maker)
    low = [maker.draws.between(0, n - 1) if maker.draws.chance(0.5) else 0 for n in value.shape]
    high = [maker.draws.between(a + 1, n) for a, n in zip(low, value.shape, strict=True)]
    steps = [maker.draws.one((1, 1, 2)) for _ in low]
    shape = tuple(-(-(b - a) // s) for a, b, s in zip(low, high, steps, strict=True))
    maker.add(replace(value, shape=shape), f"strided_slice(%{value.name}, begin={listed(low)}, end={listed(high)}, strides={listed(steps)})")


@STEPS(2)
def ones(maker: Relay) -> None:
    value = maker.pick(lambda v: len(v.shape) < 5)
    if maker.draws.chance(0.5) or 1 not in value.shape:
        axis = maker.draws.between(0, len(value.shape))
        maker.add(replace(value, shape=(*value.shape[:axis], 1, *value.shape[axis:])), f"expand_dims(%{value.name}, axis={axis})")
    else:
        axis = value.shape.index(1)
        maker.add(replace(value, shape=(*value.shape[:axis], *value.shape[axis + 1:])), f"squeeze(%{value.name}, axis=[{axis}])")


@STEPS(1.5)
def repeat(maker: Relay) -> None:
    value = some(maker)
    axis, count = maker.draws.between(0, len(value.shape) - 1), maker.draws.between(1, 3)
    kind = maker.draws.one(("repeat", "tile", "reverse", "broadcast_to"))
    grown = tuple(n * count if d == axis else n for d, n in enumerate(value.shape))
    if kind == "repeat":
        maker.add(within(value, shape=grown), f"repeat(%{value.name}, repeats={count}, axis={axis})")
    elif kind == "tile":
        maker.add(within(value, shape=grown), f"tile(%{value.name}, reps={listed([count if d == axis else 1 for d in range(len(grown))])})")
    elif kind == "reverse":
        maker.add(value, f"reverse(%{value.name}, axis={axis})")
    else:
        maker.add(within(value, shape=(count, *value.shape)), f"broadcast_to(%{value.name}, shape={listed((count, *value.shape))})")


@STEPS(1.5)
def split(maker: Relay) -> None:
    """A tuple of parts, each read by its place."""
    value = some(maker)
    axis = maker.draws.between(0, len(value.shape) - 1)
    n = value.shape[axis]
    sections = maker.draws.one([k for k in range(1, min(n, 4) + 1) if n % k == 0])
    parts = maker.line(f"split(%{value.name}, indices_or_sections={sections}, axis={axis})")
    shape = tuple(n // sections if d == axis else m for d, m in enumerate(value.shape))
    # Reading one part is a view with a name of its own.
    maker.add(replace(value, shape=shape), f"copy(%{parts}.{maker.draws.between(0, sections - 1)})")


@STEPS(2, "framed")
def pad(maker: Relay) -> None:
    value = some(maker)
    if not real(value):
        raise Misfit
    sides = [(maker.draws.one((0, 0, 1, 2)), maker.draws.one((0, 1))) for _ in value.shape]
    shape = tuple(a + n + b for n, (a, b) in zip(value.shape, sides, strict=True))
    maker.add(within(replace(value, low=min(0, value.low), high=max(0, value.high)), shape=shape),
              f"nn.pad(%{value.name}, 0, pad_width={listed([list(s) for s in sides])})")


@STEPS(2, "index")
def take(maker: Relay) -> None:
    value = some(maker)
    axis = maker.draws.between(0, len(value.shape) - 1)
    n, count = value.shape[axis], maker.draws.between(1, 5)
    index = maker.input(maker.draws.one(("s32", "s64")), (count,), 0, n - 1 + maker.draws.one((0, 2)))
    maker.values.remove(index)
    maker.add(within(value, shape=(*value.shape[:axis], count, *value.shape[axis + 1:])), f'take(%{value.name}, %{index.name}, axis={axis}, mode="clip")')


@STEPS(2, "index")
def scatter(maker: Relay) -> None:
    """``scatter_elements`` and ``gather``, places within bounds; those that repeat add up."""
    value = maker.pick(lambda v: bool(v.shape) and exact(v) and v.dtype in ("f32", "f64", "s32", "s64") and 0 not in v.shape)
    axis = maker.draws.between(0, len(value.shape) - 1)
    index = maker.input("s64", value.shape, 0, value.shape[axis] - 1)
    maker.values.remove(index)
    if maker.draws.chance(0.5):
        maker.add(value, f"gather(%{value.name}, %{index.name}, axis={axis})")
        return
    updates = maker.fit(value, value.shape)
    if updates.shape != value.shape:
        raise Misfit
    made = keep(added(value, keep(summed(updates, value.shape[axis]))))
    maker.add(made, f'scatter_elements(%{value.name}, %{index.name}, %{updates.name}, axis={axis}, reduction="add")')


@STEPS(1.5, "index")
def ordered(maker: Relay) -> None:
    """``sort``, ``cumsum``, ``one_hot``, ``stack``."""
    value = maker.pick(lambda v: bool(v.shape) and exact(v) and v.dtype in ("f32", "f64", "s32", "s64") and 0 not in v.shape)
    axis = maker.draws.between(0, len(value.shape) - 1)
    kind = maker.draws.one(("sort", "cumsum", "stack"))
    if kind == "sort":
        if maker.palette.special:
            raise Misfit
        maker.add(value, f"sort(%{value.name}, axis={axis}{', is_ascend=False' if maker.draws.chance(0.3) else ''})")
    elif kind == "cumsum":
        maker.add(keep(summed(value, value.shape[axis])), f"cumsum(%{value.name}, axis={axis})")
    else:
        other = maker.fit(value, value.shape)
        if other.shape != value.shape:
            raise Misfit
        pair = maker.line(f"(%{value.name}, %{other.name})")
        maker.add(within(keep(joined([value, other])), shape=(*value.shape[:axis], 2, *value.shape[axis:])), f"stack(%{pair}, axis={axis})")


