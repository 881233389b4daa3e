"""Building blocks of operators as code: types of sums, blocks of nests, flat indices, clamped ones; and scalar sorts."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

from irscope.graph import DTYPES, DType
from irscope.graph.dtypes import BF16, C64, C128, F16, F32, F64, PRED, S8, S32, S64, U32, U64
from irscope.lower.build import KernelBuilder
from irscope.lower.interpret import interpret_kernel
from irscope.ops import get
from irscope.ops.nests import SUM_BLOCK, accumulator, blocks, clamped, flat, fold_type, split, widened
from irscope.ops.numerics import widen
from irscope.ops.scalar_bodies import arg_extreme_body, overwrite_body, sort_body
from tests.ops.running import compiled_node, kernel_of, reference_of
from tests.ops.typed_nodes import node_of


@pytest.mark.parametrize(("result", "operands", "want"), [
    (F32, (), F32), (BF16, (), F32), (F16, (F16,), F32), (F64, (), F64), (F32, (F64,), F64), (BF16, (F32, F64), F64), (S32, (), S32), (S8, (S8, S8), S8),
    (S32, (F32,), F32), (S32, (S8, F64), F64), (PRED, (), PRED), (C64, (), C64), (C128, (), C128), (C64, (F64,), C128), (C64, (C128,), C128),
    (C64, (F32, C64), C64)])
def test_types_of_sums(result: DType, operands: tuple[DType, ...], want: DType) -> None:
    assert accumulator(result, *operands) is want
    assert operands or widened(result) is want


@pytest.mark.parametrize(("dtype", "op", "terms", "want"), [
    (F32, "add", 64, F32), (F32, "add", 65, F64), (BF16, "add", 64, F32), (BF16, "add", 65, F64), (F64, "add", 9999, F64), (S32, "add", 9999, S32),
    (C64, "add", 64, C64), (C64, "add", 65, C128), (F32, "multiply", 9999, F32), (BF16, "multiply", 2, F32), (F32, "maximum", 9999, F32),
    (BF16, "maximum", 2, BF16), (BF16, None, 9999, BF16), (PRED, "add", 9999, PRED)])
def test_types_of_folds(dtype: DType, op: str | None, terms: int, want: DType) -> None:
    assert SUM_BLOCK == 64 and fold_type(dtype, get(op) if op else None, terms) is want


@pytest.mark.parametrize(("sizes", "limit", "unit", "want"), [
    ((3, 200), 64, 1, [(1, 64), (1, 8)]), ((3, 200), 600, 1, [(3, 200)]), ((3, 200), 599, 1, [(2, 200), (1, 200)]), ((4, 10), 20, 1, [(2, 10)]),
    ((5, 10), 20, 1, [(2, 10), (1, 10)]), ((2, 3, 4), 4, 1, [(1, 1, 4)]), ((2, 3, 4), 3, 1, [(1, 1, 3), (1, 1, 1)]), ((2, 3, 4), 12, 1, [(1, 3, 4)]),
    ((200,), 64, 1, [(64,), (8,)]), ((128,), 64, 1, [(64,)]), ((64,), 64, 1, [(64,)]), ((), 64, 1, [()]), ((3, 200), 10, 16, [(1, 160), (1, 40)]),
    ((3, 200), 39, 16, [(3, 200)]), ((3, 200), 38, 16, [(2, 200), (1, 200)]), ((3, 200), 13, 16, [(1, 200)]), ((2, 3), 1, 1, [(1, 1)])])
def test_blocks_of_a_nest(sizes: tuple[int, ...], limit: int, unit: int, want: list[tuple[int, ...]]) -> None:
    """Each element is in one block, and no block has more steps than allowed."""
    k = KernelBuilder("k")
    y = k.buffer("y", S32, (max(1, prod(sizes)),), "inout")
    found = []
    for first, extents in blocks(k, sizes, limit, unit):
        found.append(tuple(extents))
        assert prod([*extents[:-1], -(-extents[-1] // unit)] if extents else []) <= limit
        for inside in np.ndindex(*extents):
            at = flat([f + i for f, i in zip(first, inside, strict=True)], sizes)
            k.store(y, at, k.binary("add", k.load(y, at), 1))
    assert found == want
    counted = np.zeros(max(1, prod(sizes)), np.int32)
    interpret_kernel(k.finish(), [counted])
    assert (counted == 1).all()


def test_flat_indices() -> None:
    k = KernelBuilder("k")
    sizes = (3, 4, 5)
    for at in np.ndindex(*sizes):
        place = int(np.ravel_multi_index(at, sizes))
        assert flat(at, sizes) == place
        assert [part.value for part in split(k.index(place), sizes)] == list(at)  # type: ignore[attr-defined]
    assert flat((), ()) == 0 and split(k.index(0), ()) == []


@pytest.mark.parametrize(("dtype", "values", "want"), [
    (S32, [-5, 0, 3, 7, 8], [0, 0, 3, 7, 7]), (S8, [-128, 127], [0, 7]), (U32, [0, 9, 2 ** 32 - 1], [0, 7, 7]), (U64, [3, 2 ** 64 - 1], [3, 7]),
    (S64, [-2 ** 63, 2 ** 63 - 1], [0, 7])])
def test_clamped_indices(dtype: DType, values: list[int], want: list[int]) -> None:
    k = KernelBuilder("k")
    x, y = k.buffer("x", dtype, (len(values),), "in"), k.buffer("y", S64, (len(values),), "out")
    with k.loop(0, len(values)) as i:
        k.store(y, i, clamped(k, k.load(x, i), 7))
    found = np.zeros(len(values), np.int64)
    interpret_kernel(k.finish(), [np.array(values, dtype.numpy()), found])
    assert found.tolist() == want


def test_a_scalar_is_sorted() -> None:
    one = node_of("sort", "f32[]", "f32[]", {}, ["(f32[], f32[]) -> pred[] compare(a, b), direction=LT"])
    two = node_of("sort", "f32[], s32[]", "(f32[], s32[])", {}, ["(f32[], f32[], s32[], s32[]) -> pred[] compare(a, b), direction=LT"])
    for node, given in ((one, [np.float32(3)]), (two, [np.float32(3), np.int32(4)])):
        for results in (reference_of(node, *given), compiled_node(node, *given)):
            assert [float(v) for v in results] == [float(v) for v in given]


def test_names_of_computations() -> None:
    made: list[Any] = [arg_extreme_body(F32, S32, True), arg_extreme_body(F32, S32, False), sort_body([F32], True), sort_body([F32], False), overwrite_body(F32)]
    assert [body.name for body in made] == ["arg_max", "arg_min", "descending", "ascending", "overwrite_f32"]


@pytest.mark.parametrize(("length", "count", "scratch"), [
    (256, 64, {64}), (260, 65, {520}), (40, 10, {10}), (39, 10, {78}), (4, 1, {1}), (3, 1, {6}), (255, 64, {510})])
def test_few_of_many_are_kept_by_insertion(length: int, count: int, scratch: set[int]) -> None:
    """At most 64, of at least four times as many; else the whole row is sorted."""
    node = node_of("topk", f"f32[{length}]", f"(f32[{count}], s32[{count}])", {"k": count})
    [kernel] = kernel_of(node).kernels()
    assert {buffer.elements for buffer in kernel.buffers if buffer.scope == "scratch"} == scratch


@pytest.mark.parametrize("name", [name for name, dtype in DTYPES.items() if dtype.is_float or dtype.is_integer])
def test_arithmetic_is_done_in_a_wide_type(name: str) -> None:
    dtype = DTYPES[name]
    wide = widen(np.zeros(2, dtype.numpy())).dtype
    if dtype.bits >= 32 or (dtype.is_integer and dtype.bits >= 8):
        assert wide == dtype.numpy()
    else:
        assert wide == (np.float32 if dtype.is_float else np.int8 if dtype.kind == "int" else np.uint8)
