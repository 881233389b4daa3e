"""HLO steps: places that are computed: slices, gathers, scatters, sorts."""
from __future__ import annotations

from dataclasses import replace
from math import prod

from tests.programs.hlo import STEPS, Hlo, commas, type_of
from tests.programs.hlo_movement import partial
from tests.programs.maker import Misfit, arithmetic, exact, keep, ordered, real, within
from tests.programs.numbers import INTEGERS, ends, is_complex, joined, summed
from tests.programs.program import Shape, Statement, Value

INDICES = ("s32", "s32", "s64", "u8", "s8", "u32", "s16")


def starts(maker: Hlo, count: int, most: int) -> list[str]:
    """Scalar indices of one type: constants in and out of bounds, inputs, and parts of values."""
    dtype = maker.draws.one(INDICES)
    low = 0 if dtype[0] == "u" else -3
    there = [v for v in maker.values if v.dtype == dtype and not v.shape]
    names = []
    for _ in range(count):
        if there and maker.draws.chance(0.4):
            names.append(maker.draws.late(there).name)
        elif maker.draws.chance(0.5):
            names.append(maker.constant(dtype, maker.draws.between(low, most + 3)).name)
        else:
            names.append(maker.input(dtype, (), low, most + 3).name)
    return names


@STEPS(2, "index")
def dynamic_slice(maker: Hlo) -> None:
    value = partial(maker.pick(lambda v: bool(v.shape)))
    sizes = tuple(maker.draws.between(min(1, n), n) for n in value.shape)
    names = starts(maker, len(sizes), max(value.shape))
    maker.add(replace(value, shape=sizes), f"dynamic-slice({value.name}, {', '.join(names)}), dynamic_slice_sizes={{{commas(sizes)}}}")


@STEPS(2, "index", "framed")
def dynamic_update_slice(maker: Hlo) -> None:
    value = partial(maker.pick(lambda v: bool(v.shape)))
    sizes = tuple(maker.draws.between(min(1, n), n) for n in value.shape)
    update = partial(maker.alike(replace(value, shape=sizes), exact=exact(value)))
    names = starts(maker, len(sizes), max(value.shape))
    maker.add(replace(keep(joined([value, update])), shape=value.shape), f"dynamic-update-slice({value.name}, {update.name}, {', '.join(names)})")


def index_input(maker: Hlo, shape: Shape, most: int) -> Value:
    """Indices, some of them out of bounds."""
    dtype = maker.draws.one(INDICES)
    return maker.input(dtype, shape, 0 if dtype[0] == "u" or maker.draws.chance(0.4) else -3, most + maker.draws.one((-1, 0, 3)))


@STEPS(2, "index")
def gather(maker: Hlo) -> None:
    """Slices from places along any dimensions; some dimensions are dropped, some batched."""
    value = partial(maker.pick(lambda v: 1 <= len(v.shape) <= 3 and 0 not in v.shape, fresh=0.2))
    draws, rank = maker.draws, len(value.shape)
    mapped = draws.order(range(rank))[:draws.between(1, min(2, rank))]
    places = draws.one(((3,), (1,), (2, 2), (17,), ()))
    axis = draws.between(0, len(places))
    if len(mapped) == 1 and draws.chance(0.5):
        axis = len(places)
        indices = index_input(maker, places, value.shape[mapped[0]])
    else:
        indices = index_input(maker, (*places[:axis], len(mapped), *places[axis:]), max(value.shape[d] for d in mapped))
    collapsed = sorted(d for d in mapped if draws.chance(0.6))
    sizes = [1 if d in collapsed else draws.between(1, n) if d in mapped or draws.chance(0.3) else n for d, n in enumerate(value.shape)]
    window = [sizes[d] for d in range(rank) if d not in collapsed]
    whole = len(places) + len(window)
    offsets = sorted(draws.order(range(whole))[:len(window)]) if draws.chance(0.5) else list(range(len(places), whole))
    batch, part = list(places), list(window)
    shape = tuple(part.pop(0) if d in offsets else batch.pop(0) for d in range(whole))
    maker.add(within(value, shape=shape),
              f"gather({value.name}, {indices.name}), offset_dims={{{commas(offsets)}}}, collapsed_slice_dims={{{commas(collapsed)}}}, "
              f"start_index_map={{{commas(mapped)}}}, index_vector_dim={axis}, slice_sizes={{{commas(sizes)}}}")


COMBINE = ("add", "maximum", "minimum", "multiply", "second", "second", "first")


@STEPS(2, "index")
def scatter(maker: Hlo) -> None:
    """Updates of any window at places that repeat and overlap; every way to combine old and new."""
    value = maker.pick(lambda v: 1 <= len(v.shape) <= 3 and 0 not in v.shape and exact(v) and arithmetic(v) and not v.dtype.startswith("f8"), fresh=0.2)
    draws, rank = maker.draws, len(value.shape)
    mapped = draws.order(range(rank))[:draws.between(1, min(2, rank))]
    places = draws.one(((3,), (1,), (5,), (2, 2), (17,), ()))
    axis = len(places)
    if len(mapped) == 1 and draws.chance(0.5):
        indices = index_input(maker, places, value.shape[mapped[0]])
    else:
        indices = index_input(maker, (*places, len(mapped)), max(value.shape[d] for d in mapped))
    inserted = sorted(d for d in mapped if draws.chance(0.5))
    sizes = [1 if d in inserted else draws.between(1, n) for d, n in enumerate(value.shape)]
    window = [sizes[d] for d in range(rank) if d not in inserted]
    whole = len(places) + len(window)
    windows = sorted(draws.order(range(whole))[:len(window)]) if draws.chance(0.4) else list(range(len(places), whole))
    batch, part = list(places), list(window)
    shape = tuple(part.pop(0) if d in windows else batch.pop(0) for d in range(whole))
    updates = maker.alike(within(value, shape=shape))
    op = draws.one(COMBINE)
    if is_complex(value.dtype) and op in ("maximum", "minimum"):
        op = "add"
    count = prod(places) + 1
    if op in ("add",):
        made = joined([value, keep(summed(updates, count)), keep(summed(value, 2))])
        made = keep(joined([keep(made), replace(value, low=value.low + updates.most * -count, high=value.high + updates.most * count)]))
    elif op == "multiply":
        if value.dtype not in INTEGERS:
            raise Misfit
        low, high = ends(value.dtype)
        made = replace(value, low=low, high=high)
    else:
        made = keep(joined([value, updates]))
    maker.add(replace(made, shape=value.shape),
              f"scatter({value.name}, {indices.name}, {updates.name}), update_window_dims={{{commas(windows)}}}, "
              f"inserted_window_dims={{{commas(inserted)}}}, scatter_dims_to_operand_dims={{{commas(mapped)}}}, index_vector_dim={axis}, "
              f"to_apply={maker.reducer(value.dtype, op)}")


@STEPS(1.5, "index")
def sort(maker: Hlo) -> None:
    """One array, or keys and what goes with them; stable, so that equal keys keep their order."""
    value = maker.pick(lambda v: bool(v.shape) and exact(v) and ordered(v) and arithmetic(v) and not v.dtype.startswith("f8"))
    if maker.palette.special and real(value):
        raise Misfit
    axis = maker.draws.between(0, len(value.shape) - 1)
    way = maker.draws.one(("LT", "GT"))
    if maker.draws.chance(0.5):
        maker.add(value, f"sort({value.name}), dimensions={{{axis}}}, is_stable=true, to_apply={compared(maker, [value], way)}")
        return
    other = maker.alike(replace(value, dtype=maker.draws.one((value.dtype, "s32", "f32"))))
    both = maker.name()
    maker.statements.append(Statement(
        f"{both} = ({type_of(value)}, {type_of(other)}) sort({value.name}, {other.name}), dimensions={{{axis}}}, is_stable=true, "
        f"to_apply={compared(maker, [value, other], way)}"))
    maker.add(value, f"get-tuple-element({both}), index=0")
    maker.add(other, f"get-tuple-element({both}), index=1")


def compared(maker: Hlo, values: list[Value], way: str) -> str:
    """The comparator of a sort by the first of its arrays."""
    lines = []
    for i, v in enumerate(values):
        lines += [f"  a{i} = {v.dtype}[] parameter({2 * i})", f"  b{i} = {v.dtype}[] parameter({2 * i + 1})"]
    return maker.helper("{\n" + "\n".join(lines) + f"\n  ROOT r = pred[] compare(a0, b0), direction={way}\n}}")
