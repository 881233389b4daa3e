"""Products of matrices: every order of dimensions, batches, vectors, and results of another type than the operands."""
from __future__ import annotations

from irscope.lower.templates.contraction import INNER_COLUMNS
from tests.grid.sizes import COLUMNS, DEEP, EDGES, LANES, NUMBERS, ROWS, along, each
from tests.grid.template import Maker, template
from tests.grid.text import Value, commas

CUBES = [(n, n, n) for n in (0, 1, LANES[-1] + 1, 2 * LANES[-1] + 1)]
SIZES = each(along((5, 7), EDGES), along((5,), EDGES, (17,)), along((), ROWS, (7, 17)), along((9, 5), COLUMNS), CUBES)
"""(rows, sums, columns)"""
BATCHES = each(along((3, 5, 7), EDGES), along((3,), ROWS, (7, 9)), along((), EDGES, (2, 3, 5)), [(0, 2, 3, 4), (1, 17, 17, 17)])
"""(batches, rows, sums, columns)"""
WIDER = {"bf16": "f32", "f16": "f32", "f32": "f64", "s8": "s32", "u8": "u32", "s16": "s32", "s32": "s64", "s4": "s32", "u4": "u32", "f8e5m2": "f16",
         "f8e4m3fn": "bf16", "f8e4m3": "f32", "u16": "u32", "u32": "u64", "c64": "c128"}


def product(m: Maker, left: str, right: str, batch: str = "", out: str = "", sizes: dict[str, int] | None = None) -> Value:
    """A dot of operands whose dimensions are letters: ``m`` rows, ``n`` columns, ``k`` sums, batches as ``batch`` says."""
    sizes = sizes or dict(zip("bmkn" if batch else "mkn", m.size, strict=True))
    x, y = (m.operand(tuple(sizes[d] for d in order)) for order in (left, right))
    summed = [d for d in left if d in right and d not in batch]
    rows, columns = ([d for d in order if d not in summed and d not in batch] for order in (left, right))
    attrs = f"lhs_contracting_dims={{{commas([left.index(d) for d in summed])}}}, rhs_contracting_dims={{{commas([right.index(d) for d in summed])}}}"
    if batch:
        attrs = f"lhs_batch_dims={{{commas([left.index(d) for d in batch])}}}, rhs_batch_dims={{{commas([right.index(d) for d in batch])}}}, " + attrs
    return m.op("dot", out or m.dtype, tuple(sizes[d] for d in [*batch, *rows, *columns]), x, y, attrs=attrs)


@template("contraction", SIZES, NUMBERS)
def dot(m: Maker) -> Value:
    return product(m, "mk", "kn")


@template("contraction", each(SIZES, along((3, 40), range(1, INNER_COLUMNS + 2))), NUMBERS)
def dot_right_transposed(m: Maker) -> Value:
    return product(m, "mk", "nk")


@template("contraction", SIZES, NUMBERS)
def dot_left_transposed(m: Maker) -> Value:
    return product(m, "km", "kn")


@template("contraction", SIZES, NUMBERS)
def dot_both_transposed(m: Maker) -> Value:
    return product(m, "km", "nk")


@template("contraction", [(25, DEEP, COLUMNS[-1]), (3, DEEP, COLUMNS[-2])], ("f32", "bf16", "s8"))
def dot_in_blocks(m: Maker) -> Value:
    return product(m, "mk", "kn")


@template("contraction", [(25, 40, 4095)], ("f32", "f64", "bf16", "s8", "s32"))
def dot_of_distant_rows(m: Maker) -> Value:
    return product(m, "mk", "kn")


@template("contraction", SIZES, tuple(WIDER))
def dot_wider(m: Maker) -> Value:
    return product(m, "mk", "kn", out=WIDER[m.dtype])


@template("contraction", BATCHES, NUMBERS)
def dot_batched(m: Maker) -> Value:
    return product(m, "bmk", "bkn", "b")


@template("contraction", BATCHES, NUMBERS)
def dot_batches_inside(m: Maker) -> Value:
    return product(m, "mbk", "knb", "b")


@template("contraction", each(along((), EDGES, (1, 3, 1)), along((), EDGES, (1, 0, 1)), along((5, 1), EDGES, (1,))), NUMBERS)
def dot_of_batches_alone(m: Maker) -> Value:
    return product(m, "bk", "bk", "b")


@template("contraction", each(along((5,), EDGES), along((), ROWS, (7,))), NUMBERS)
def dot_matrix_vector(m: Maker) -> Value:
    return product(m, "mk", "k", sizes=dict(zip("mk", m.size)))


@template("contraction", each(along((7,), EDGES), along((), EDGES, (17,))), NUMBERS)
def dot_vector_matrix(m: Maker) -> Value:
    return product(m, "k", "kn", sizes=dict(zip("kn", m.size)))


@template("contraction", along((), EDGES), NUMBERS)
def dot_vectors(m: Maker) -> Value:
    return product(m, "k", "k", sizes={"k": m.size[0]})


@template("contraction", each(along((5,), EDGES), along((), ROWS, (17,))), NUMBERS)
def dot_outer(m: Maker) -> Value:
    return product(m, "m", "n", sizes=dict(zip("mn", m.size)))


@template("contraction", each(along((3,), EDGES, (5,)), along((4, 3), EDGES)), NUMBERS)
def dot_of_several_dimensions(m: Maker) -> Value:
    a, b, c = m.size
    x, y = m.operand((4, a, b, 3)), m.operand((3, 2, a, c))
    return m.op("dot", m.dtype, (4, b, 2, c), x, y, attrs="lhs_contracting_dims={1,3}, rhs_contracting_dims={2,0}")


@template("attention", each(along((), EDGES, (9, 8, 17)), along((5,), EDGES, (8, 16)), along((5, 9), EDGES, (7,)), along((5, 9, 4), EDGES),
                            [(70, 200, 8, 8), (17, 257, 5, 33)]), ("f32", "f64", "bf16", "f16"))
def attention(m: Maker) -> Value:
    """(queries, keys, depth, values) of two batches and two heads."""
    queries, keys, depth, values = m.size
    q, k, v = m.operand((2, 2, queries, depth)), m.operand((2, 2, keys, depth)), m.operand((2, 2, keys, values))
    batches = "lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, "
    scores = m.op("dot", m.dtype, (2, 2, queries, keys), q, k, attrs=batches + "lhs_contracting_dims={3}, rhs_contracting_dims={3}")
    weights = softmax(m, m.like("multiply", scores, m.broadcast(m.constant(m.dtype, "0.25"), scores.shape)))
    return m.op("dot", m.dtype, (2, 2, queries, values), weights, v, attrs=batches + "lhs_contracting_dims={3}, rhs_contracting_dims={2}")


def softmax(m: Maker, x: Value) -> Value:
    """Over the last dimension."""
    rows = tuple(range(len(x.shape) - 1))
    top = m.reduce(x, [len(rows)], "maximum", "-inf")
    e = m.like("exponential", m.like("subtract", x, m.broadcast(top, x.shape, rows)))
    return m.like("divide", e, m.broadcast(m.reduce(e, [len(rows)]), x.shape, rows))
