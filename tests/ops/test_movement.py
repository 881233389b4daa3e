"""Operators that move elements: types, numpy and compiled code agree on random shapes; faults name what does not fit."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irscope.graph import DTYPES, TensorType
from irscope.ops import TypeFault
from tests.ops import running
from tests.ops.running import read, reference, typed

few = settings(max_examples=12, deadline=None)
SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def dims(shape: Any) -> str:
    return ",".join(map(str, shape))


def check(body: str, *arrays: Any) -> list[Any]:
    """The body of an entry, run in every way."""
    return running.check(f"ENTRY e {{\n{body} }}", *arrays)


def drawn(shape: Any) -> Any:
    return np.arange(prod(shape), dtype=np.float32).reshape(shape)


@few
@given(SHAPES, st.data())
def test_transpose(shape: tuple[int, ...], data: Any) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    x = drawn(shape)
    [got] = check(f"x = f32[{dims(shape)}] parameter(0)\nROOT t = f32[{dims(shape[d] for d in order)}] transpose(x), dimensions={{{dims(order)}}}", x)
    assert np.array_equal(got, x.transpose(order))


@few
@given(SHAPES, st.data())
def test_broadcast(shape: tuple[int, ...], data: Any) -> None:
    extra = data.draw(st.lists(st.integers(1, 3), max_size=2))
    places = data.draw(st.permutations(range(len(shape) + len(extra))))[:len(shape)]
    result = list(extra)
    full = [0] * (len(shape) + len(extra))
    for size, place in zip(shape, places, strict=True):
        full[place] = size
    full = [n or result.pop() for n in full]
    x = drawn(shape)
    [got] = check(f"x = f32[{dims(shape)}] parameter(0)\nROOT b = f32[{dims(full)}] broadcast(x), dimensions={{{dims(places)}}}", x)
    assert all(got[i] == x[tuple(i[p] for p in places)] for i in np.ndindex(*full))


@pytest.mark.parametrize(("before", "after"), [("3,0", "0"), ("0", "3,0"), ("2,0,5", "0,7"), ("0", "1,0")])
def test_reshape_of_empty_arrays(before: str, after: str) -> None:
    x = np.zeros([int(n) for n in before.split(",")], np.float32)
    [got] = check(f"x = f32[{before}] parameter(0)\nROOT r = f32[{after}] reshape(x)", x)
    assert got.size == 0


@few
@given(st.lists(st.sampled_from((1, 2, 3, 4)), min_size=1, max_size=4), st.data())
def test_reshape(factors: list[int], data: Any) -> None:
    def grouped() -> list[int]:
        cuts = sorted(data.draw(st.lists(st.integers(0, len(factors)), max_size=3)))
        return [prod(factors[a:b]) for a, b in zip([0, *cuts], [*cuts, len(factors)])]
    before, after = grouped(), grouped()
    x = drawn(before)
    [got] = check(f"x = f32[{dims(before)}] parameter(0)\nROOT r = f32[{dims(after)}] reshape(x)", x)
    assert np.array_equal(got, x.reshape(after))


@few
@given(SHAPES, st.data())
def test_slice_and_reverse(shape: tuple[int, ...], data: Any) -> None:
    ranges = []
    for n in shape:
        start = data.draw(st.integers(0, n - 1))
        ranges.append((start, data.draw(st.integers(start + 1, n)), data.draw(st.integers(1, 2))))
    x = drawn(shape)
    want = x[tuple(slice(*r) for r in ranges)]
    text = ", ".join(f"[{a}:{b}:{s}]" for a, b, s in ranges)
    [got] = check(f"x = f32[{dims(shape)}] parameter(0)\nROOT s = f32[{dims(want.shape)}] slice(x), slice={{{text}}}", x)
    assert np.array_equal(got, want)
    turned = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True))
    [got] = check(f"x = f32[{dims(shape)}] parameter(0)\nROOT r = f32[{dims(shape)}] reverse(x), dimensions={{{dims(turned)}}}", x)
    assert np.array_equal(got, np.flip(x, turned))


@few
@given(SHAPES, st.data())
def test_concatenate(shape: tuple[int, ...], data: Any) -> None:
    along = data.draw(st.integers(0, len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3).filter(any))
    arrays = [drawn((*shape[:along], n, *shape[along + 1:])) + 100 * i for i, n in enumerate(sizes)]
    want = np.concatenate(arrays, along)
    lines = [f"p{i} = f32[{dims(a.shape)}] parameter({i})" for i, a in enumerate(arrays)]
    names = ", ".join(f"p{i}" for i in range(len(arrays)))
    [got] = check("\n".join(lines) + f"\nROOT c = f32[{dims(want.shape)}] concatenate({names}), dimensions={{{along}}}", *arrays)
    assert np.array_equal(got, want)


@few
@given(st.lists(st.integers(0, 3), min_size=1, max_size=3), st.data())
def test_pad(shape: list[int], data: Any) -> None:
    padding = [(data.draw(st.integers(-2, 2)), data.draw(st.integers(-2, 2)), data.draw(st.integers(0, 2))) for _ in shape]
    result = [n + low + high + max(n - 1, 0) * interior for n, (low, high, interior) in zip(shape, padding, strict=True)]
    if min(result) <= 0:
        return
    x, value = drawn(shape), np.float32(-1)
    text = "x".join("_".join(map(str, p)) for p in padding)
    [got] = check(f"x = f32[{dims(shape)}] parameter(0)\nv = f32[] parameter(1)\n"
                  f"ROOT p = f32[{dims(result)}] pad(x, v), padding={text}", x, value)
    for i in np.ndindex(*result):
        places = [p - low for p, (low, _, _) in zip(i, padding, strict=True)]
        steps = [interior + 1 for _, _, interior in padding]
        inside = all(p >= 0 and p % s == 0 and p // s < n for p, s, n in zip(places, steps, shape, strict=True))
        assert got[i] == (x[tuple(p // s for p, s in zip(places, steps, strict=True))] if inside else value)


@pytest.mark.parametrize(("before", "after"), [("f32[2,3]{0,1}", "s32[3,2]{1,0}"), ("f32[4]", "u8[16]"), ("u8[2,8]{0,1}", "f32[4]"), ("f32[2]", "f64[1]")])
def test_bitcast_to_another_type_reads_the_bits(before: str, after: str) -> None:
    module = typed(read(f"ENTRY e {{\n  x = {before} parameter(0)\n  ROOT b = {after} bitcast(x)\n}}\n"))
    source, target = module.main().params[0].type, module.main().result().type
    assert isinstance(source, TensorType) and isinstance(target, TensorType)
    x = np.arange(source.elements).reshape(source.dims()).astype(source.dtype.numpy())
    memory = (x.T if "{0,1}" in before else x).reshape(-1)
    [got] = reference(module, x)
    assert got.dtype == target.dtype.numpy() and got.reshape(-1).tobytes() == memory.tobytes()


@few
@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.data())
def test_bitcast_reads_memory_as_the_layouts_say(shape: list[int], data: Any) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    after = data.draw(st.permutations(shape))
    back = data.draw(st.permutations(range(len(shape))))
    x = drawn(shape)
    memory = x.transpose(order).reshape(-1)
    want = memory.reshape([after[d] for d in back]).transpose(np.argsort(back))
    [got] = check(f"x = f32[{dims(shape)}]{{{dims(reversed(order))}}} parameter(0)\n"
                  f"ROOT b = f32[{dims(after)}]{{{dims(reversed(back))}}} bitcast(x)", x)
    assert np.array_equal(got, want)


@pytest.mark.parametrize(("before", "after"), [
    ("f32[3]", "s32[3]"), ("f32[3]", "f32[3]"), ("c64[3]", "c64[3]"), ("f32[3]", "u8[3,4]"), ("u8[3,4]", "f32[3]"), ("u16[2,2]", "u32[2]"), ("s64[2]", "u16[2,4]"),
    ("u4[2,2]", "u8[2]"), ("s8[3]", "s4[3,2]"), ("c128[2]", "c64[2,2]"), ("c64[2,2]", "c128[2]")])
def test_bitcast_convert(before: str, after: str) -> None:
    dtype, shape = before[:-1].split("[")
    numbers = tuple(int(n) for n in shape.split(","))
    low = 0 if dtype[0] in "uc" else -3
    wide = "complex128" if dtype[0] == "c" else "int8" if dtype in ("u4", "s4") else "float64"
    x = np.arange(low, low + prod(numbers)).astype(wide).astype(DTYPES[dtype].numpy()).reshape(numbers)
    [got] = check(f"x = {before} parameter(0)\nROOT b = {after} bitcast-convert(x)", x)
    if not {"u4", "s4"} & {dtype, after.split("[")[0]}:
        assert got.tobytes() == x.tobytes()
    else:
        assert got.astype(int).tolist() == {"u4": [0x10, 0x32], "s8": [[-3, -1], [-2, -1], [-1, -1]]}[dtype]


@pytest.mark.parametrize("result", ["f32[3]", "u8[3]", "s32[3]", "bf16[3]", "c64[3]", "s4[3]"])
def test_iota(result: str) -> None:
    [got] = check(f"ROOT i = {result} iota(), iota_dimension=0")
    assert got.astype(complex).tolist() == [0, 1, 2]


def test_iota_wraps() -> None:
    [got] = check("ROOT i = u8[300] iota(), iota_dimension=0")
    assert got[299] == 299 - 256


def test_dynamic_sizes_leave_out_what_lies_beyond() -> None:
    from irscope.analysis.reference import evaluate
    module = read("""
        add { a = f32[] parameter(0)
              b = f32[] parameter(1)
              ROOT s = f32[] add(a, b) }
        ENTRY e { x = f32[5] parameter(0)
                  n = s32[] parameter(1)
                  d = f32[<=5] set-dimension-size(x, n), dimensions={0}
                  z = f32[] constant(0)
                  t = f32[] reduce(d, z), dimensions={0}, to_apply=add
                  s = s32[] get-dimension-size(d), dimensions={0}
                  ROOT r = (f32[], s32[]) tuple(t, s) }""")
    total, size = evaluate(module.main(), [np.ones(5, np.float32), np.int32(3)])
    assert (float(total), int(size)) == (3.0, 3)


@pytest.mark.parametrize(("text", "words"), [
    ("x = f32[2,3] parameter(0)\nROOT t = f32[3,2] transpose(x), dimensions={1,1}", ("each of its 2 dimensions once",)),
    ("x = f32[2] parameter(0)\nROOT b = f32[3] broadcast(x), dimensions={0}", ("f32[2]", "f32[3]", "sizes differ")),
    ("x = f32[2] parameter(0)\nROOT b = f32[2,2] broadcast(x), dimensions={2}", ("out of range for rank 2",)),
    ("x = f32[2] parameter(0)\nROOT b = s32[2,2] broadcast(x), dimensions={0}", ("element type", "s32[2,2]")),
    ("x = f32[6] parameter(0)\nROOT r = f32[4] reshape(x)", ("f32[6] with 6", "f32[4] with 4")),
    ("x = f32[6] parameter(0)\nROOT r = f32[3] slice(x), slice={[4:7]}", ("[4:7:1]", "f32[6]")),
    ("x = f32[6] parameter(0)\nROOT r = f32[6] reverse(x), dimensions={0,0}", ("twice",)),
    ("x = f32[2,2] parameter(0)\ny = f32[3,3] parameter(1)\nROOT c = f32[5,2] concatenate(x, y), dimensions={0}", ("differ in dimension 1",)),
    ("x = f32[2] parameter(0)\nv = s32[] parameter(1)\nROOT p = f32[3] pad(x, v), padding=0_1", ("f32[2]", "s32[]")),
    ("x = f32[2] parameter(0)\nv = f32[] parameter(1)\nROOT p = f32[0] pad(x, v), padding=-2_-1", ("negative size -1",)),
    *((f"x = f32[{n}] parameter(0)\nv = f32[] parameter(1)\nROOT p = f32[{n}] pad(x, v), padding={padding}", ("do not fit in 64 bits",))
      for n, padding in ((1, f"0_0_{2 ** 63 - 1}"), (2, f"{2 ** 63 - 1}_{1 - 2 ** 63}_0"), (2, f"0_{1 - 2 ** 63}_{2 ** 63 - 1}"))),
    ("x = f32[3] parameter(0)\nROOT b = f64[1] bitcast-convert(x)", ("last dimension of 2",)),
    ("x = f32[3] parameter(0)\nROOT b = bf16[3] bitcast(x)", ("96 bits", "48")),
    ("ROOT i = pred[3] iota(), iota_dimension=0", ("pred[3]",)),
    ("ROOT i = f32[3] iota(), iota_dimension=1", ("out of range for rank 1",)),
])
def test_faults_name_what_does_not_fit(text: str, words: tuple[str, ...]) -> None:
    root = read(f"ENTRY e {{\n{text} }}").main().result()
    assert root.op.infer is not None
    with pytest.raises(TypeFault) as fault:
        root.op.infer(root)
    assert all(word in fault.value.message for word in words), fault.value.message
