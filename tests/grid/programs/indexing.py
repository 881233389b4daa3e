"""Places that are computed: slices, gathers, scatters, sorts."""
from __future__ import annotations

from tests.grid.sizes import ARRAYS, EDGES, INTEGERS, NUMBERS, along, each
from tests.grid.template import Maker, template
from tests.grid.text import Value

TABLES = each(along((5,), EDGES), along((), [n for n in EDGES if n], (5,)), [(9, 40)])
ORDERED = (*INTEGERS, "f32", "f64", "bf16", "f16")


@template("map", TABLES, ARRAYS)
def dynamic_slice(m: Maker) -> Value:
    a, b = m.size
    x = m.operand((a + 2, b + 3))
    return m.op("dynamic-slice", m.dtype, m.size, x, m.index(a), m.index(b), attrs=f"dynamic_slice_sizes={{{a},{b}}}")


@template("update", TABLES, ARRAYS)
def dynamic_update_slice(m: Maker) -> Value:
    a, b = m.size
    part, large = m.operand(m.size), m.operand((a + 1, b + 2))
    return m.op("dynamic-update-slice", m.dtype, large.shape, large, part, m.index(2), m.index(3))


@template("update", TABLES, ARRAYS)
def update_in_place(m: Maker) -> Value:
    """Nobody reads the old array later."""
    a, b = m.size
    large, part = m.changed(m.operand((a + 1, b + 2))), m.changed(m.operand(m.size))
    once = m.op("dynamic-update-slice", m.dtype, large.shape, large, part, m.index(2), m.index(3))
    return m.op("dynamic-update-slice", m.dtype, large.shape, once, part, m.index(2), m.index(3))


@template("map", TABLES, ARRAYS)
def gather_rows(m: Maker) -> Value:
    a, b = m.size
    x, places = m.operand(m.size), m.index(a, (7,))
    return m.op("gather", m.dtype, (7, b), x, places,
                attrs=f"offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,{b}}}")


@template("map", along((), [n for n in EDGES if n]), ARRAYS)
def gather_elements(m: Maker) -> Value:
    (n,) = m.size
    x, places = m.operand((n,)), m.index(n, (2, n + 1))
    return m.op("gather", m.dtype, (2, n + 1), x, places,
                attrs="offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1}")


@template("generic", TABLES, ARRAYS)
def gather_windows(m: Maker) -> Value:
    a, b = m.size
    x, places = m.operand((a + 1, b + 2)), m.index(3, (4, 2))
    return m.op("gather", m.dtype, (4, a, b), x, places,
                attrs=f"offset_dims={{1,2}}, collapsed_slice_dims={{}}, start_index_map={{0,1}}, index_vector_dim=1, slice_sizes={{{a},{b}}}")


@template("generic", TABLES, NUMBERS)
def scatter_add(m: Maker) -> Value:
    a, b = m.size
    x, updates = m.operand(m.size), m.operand((7, b))
    return m.op("scatter", m.dtype, m.size, x, m.index(a, (7,)), updates, attrs="update_window_dims={1}, inserted_window_dims={0}, "
                f"scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply={m.combiner('add', m.dtype)}")


@template("generic", TABLES, ARRAYS)
def scatter_windows(m: Maker) -> Value:
    """The new value is kept; windows that do not fit are left out."""
    a, b = m.size
    x, updates = m.operand((a + 2, b + 3)), m.operand((1, a, b))
    keep = m.body(f"second_{m.dtype}", f"  a = {m.dtype}[] parameter(0)\n  ROOT b = {m.dtype}[] parameter(1)")
    return m.op("scatter", m.dtype, x.shape, x, m.index(4, (1, 2)), updates, attrs="update_window_dims={1,2}, inserted_window_dims={}, "
                f"scatter_dims_to_operand_dims={{0,1}}, index_vector_dim=1, to_apply={keep}")


@template("generic", TABLES, ARRAYS)
def scatter_overlapping(m: Maker) -> Value:
    """Five windows that overlap, their rows in front of the places: the last window that holds an element gives it."""
    a, b = m.size
    x, updates = m.operand((a + 2, b + 3)), m.operand((a, 5, b))
    keep = m.body(f"second_{m.dtype}", f"  a = {m.dtype}[] parameter(0)\n  ROOT b = {m.dtype}[] parameter(1)")
    return m.op("scatter", m.dtype, x.shape, x, m.index(2, (5, 2)), updates, attrs="update_window_dims={0,2}, inserted_window_dims={}, "
                f"scatter_dims_to_operand_dims={{0,1}}, index_vector_dim=1, to_apply={keep}")


@template("generic", each(along((3,), EDGES), along((), EDGES, (3,))), ORDERED)
def sort(m: Maker) -> Value:
    less = m.body(f"less_{m.dtype}", f"  a = {m.dtype}[] parameter(0)\n  b = {m.dtype}[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction=LT")
    return m.like("sort", m.operand(m.size), attrs=f"dimensions={{1}}, is_stable=true, to_apply={less}")


@template("generic", each(along((3,), EDGES), along((), EDGES, (3,))), ORDERED)
def sort_with_places(m: Maker) -> list[Value]:
    """Along the first dimension, with what moves along."""
    t, x = m.dtype, m.operand(m.size)
    places = m.op("iota", "s32", m.size, attrs="iota_dimension=0")
    more = m.body(f"more_{t}", f"  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  i = s32[] parameter(2)\n  j = s32[] parameter(3)\n"
                  "  ROOT r = pred[] compare(a, b), direction=GT")
    return m.several("sort", [(t, m.size), ("s32", m.size)], x, places, attrs=f"dimensions={{0}}, is_stable=true, to_apply={more}")


@template("generic", along((3,), [n for n in EDGES if n]), ("f32", "bf16", "s32"))
def topk(m: Maker) -> list[Value]:
    rows, n = m.size
    k = -(-n // 2)
    return m.several("topk", [(m.dtype, (rows, k)), ("s32", (rows, k))], m.operand(m.size), attrs=f"k={k}, largest=true")
