"""reduce with all kinds of bodies, and batch normalisation against what it expands to."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irscope.expand import expand
from irscope.ops import TypeFault
from irscope.ops.bodies import combiner
from tests.ops import running
from tests.ops.running import read, reference, same, typed

ARGMAX = """
f { a = f32[] parameter(0)
    i = s32[] parameter(1)
    b = f32[] parameter(2)
    j = s32[] parameter(3)
    more = pred[] compare(a, b), direction=GE
    v = f32[] select(more, a, b)
    k = s32[] select(more, i, j)
    ROOT r = (f32[], s32[]) tuple(v, k) }
"""


def body(opcode: str, dtype: str) -> str:
    return f"f {{ a = {dtype}[] parameter(0)\nb = {dtype}[] parameter(1)\nROOT r = {dtype}[] {opcode}(a, b) }}\n"


def dims(shape: Any) -> str:
    return ",".join(map(str, shape))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=3), st.data())
def test_reduce_by_one_operator(shape: list[int], data: Any) -> None:
    along = sorted(data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True)))
    opcode, function = data.draw(st.sampled_from([("add", np.add), ("multiply", np.multiply), ("maximum", np.maximum), ("minimum", np.minimum)]))
    dtype = data.draw(st.sampled_from(["f32", "s32", "f64"]))
    x = np.random.default_rng(prod(shape)).integers(-4, 5, shape).astype({"f32": "f4", "s32": "i4", "f64": "f8"}[dtype])
    rest = [n for i, n in enumerate(shape) if i not in along]
    if 0 in rest:
        return
    [got] = running.check(body(opcode, dtype) + f"ENTRY e {{ x = {dtype}[{dims(shape)}] parameter(0)\ni = {dtype}[] parameter(1)\n"
                          f"ROOT r = {dtype}[{dims(rest)}] reduce(x, i), dimensions={{{dims(along)}}}, to_apply=f }}", x, x.dtype.type(2))
    want = np.full(rest, 2, x.dtype)
    for place in np.ndindex(*shape):
        target = tuple(p for i, p in enumerate(place) if i not in along)
        want[target] = function(want[target], x[place])
    same(got, want, 1e-6)


def test_sums_of_half_floats_are_kept_in_f32() -> None:
    x = np.full(1000, 0.1).astype("float16")
    [got] = running.check(body("add", "f16") + "ENTRY e { x = f16[1000] parameter(0)\ni = f16[] parameter(1)\n"
                          "ROOT r = f16[] reduce(x, i), dimensions={0}, to_apply=f }", x, np.float16(0))
    assert abs(float(got) - 1000 * float(x[0])) < 0.1


def test_two_operands_with_one_body() -> None:
    x = np.array([[1, 5, 5], [7, 2, 7]], np.float32)
    number = np.broadcast_to(np.arange(3, dtype=np.int32), (2, 3))
    text = ARGMAX + """ENTRY e { x = f32[2,3] parameter(0)
        n = s32[2,3] parameter(1)
        low = f32[] constant(-inf)
        zero = s32[] constant(0)
        ROOT r = (f32[2], s32[2]) reduce(x, n, low, zero), dimensions={1}, to_apply=f }"""
    value, place = running.check(text, x, number)
    assert value.tolist() == [5, 7] and place.tolist() == [1, 0]


def test_a_body_that_is_no_operator() -> None:
    text = """f { a = f32[] parameter(0)
                  b = f32[] parameter(1)
                  two = f32[] constant(2)
                  s = f32[] multiply(b, two)
                  ROOT r = f32[] add(a, s) }
              ENTRY e { x = f32[2,3] parameter(0)
                        i = f32[] parameter(1)
                        ROOT r = f32[3] reduce(x, i), dimensions={0}, to_apply=f }"""
    [got] = running.check(text, np.arange(6, dtype=np.float32).reshape(2, 3), np.float32(100))
    assert got.tolist() == [106, 110, 114]
    assert combiner(read(text).graphs["f"]) is None


@pytest.mark.parametrize("dimension", [0, 1])
@pytest.mark.parametrize("first", ["", "m = f64[] abs(a)\n"])
def test_an_init_value_may_be_narrower_than_the_sum(first: str, dimension: int) -> None:
    """The accumulator is of the type of the result: XLA's verifier lets precisions differ."""
    x = np.linspace(0.1, 9.7, 24).reshape(4, 6)
    text = f"""f {{ a = f64[] parameter(0)
                    b = f64[] parameter(1)
                    {first}ROOT r = f64[] add({"m" if first else "a"}, b) }}
              ENTRY e {{ x = f64[4,6] parameter(0)
                        i = f4e2m1fn[] constant(0.5)
                        ROOT r = f64[{(6, 4)[dimension]}] reduce(x, i), dimensions={{{dimension}}}, to_apply=f }}"""
    [got] = running.check(text, x)
    np.testing.assert_allclose(got, x.sum(dimension) + 0.5, rtol=1e-14)


def test_long_rows_are_combined_in_pairs() -> None:
    module = typed(read(ARGMAX + """ENTRY e { x = f32[10001] parameter(0)
        n = s32[10001] parameter(1)
        low = f32[] constant(-inf)
        zero = s32[] constant(0)
        ROOT r = (f32[], s32[]) reduce(x, n, low, zero), dimensions={0}, to_apply=f }"""))
    x = np.zeros(10001, np.float32)
    x[[9000, 300]] = 3
    value, place = reference(module, x, np.arange(10001, dtype=np.int32))
    assert (float(value), int(place)) == (3.0, 300)


@pytest.mark.parametrize(("reduction", "words"), [
    ("reduce(x, i), dimensions={2}, to_apply=f", ("out of range for rank 2",)),
    ("reduce(x, i), dimensions={1,1}, to_apply=f", ("twice",)),
    ("reduce(x, x), dimensions={1}, to_apply=f", ("scalar", "f32[2,3]")),
    ("reduce(x, i), dimensions={1}, to_apply=g", ("s32[]", "f32[]")),
    ("reduce(x, i), dimensions={1}, to_apply=h", ("2 parameters", "takes 1")),
])
def test_faults(reduction: str, words: tuple[str, ...]) -> None:
    text = body("add", "f32") + body("add", "s32").replace("f {", "g {") + "h { a = f32[] parameter(0)\nROOT n = f32[] negate(a) }\n"
    root = read(text + f"ENTRY e {{ x = f32[2,3] parameter(0)\ni = f32[] parameter(1)\nROOT r = f32[2] {reduction} }}").main().result()
    assert root.op.infer is not None
    with pytest.raises(TypeFault) as fault:
        root.op.infer(root)
    assert all(word in fault.value.message for word in words), fault.value.message


@pytest.mark.parametrize("text", [
    "ROOT r = (f32[2,3,4], f32[3], f32[3]) batch-norm-training(x, s, o), epsilon=0.01, feature_index=1",
    "ROOT r = f32[2,3,4] batch-norm-inference(x, s, o, m, v), epsilon=0.01, feature_index=1",
    "ROOT r = (f32[2,3,4], f32[3], f32[3]) batch-norm-grad(x, s, m, v, g), epsilon=0.01, feature_index=1",
])
def test_batch_normalisation_is_what_it_expands_to(text: str) -> None:
    rng = np.random.default_rng(0)
    shapes = {"x": (2, 3, 4), "s": (3,), "o": (3,), "m": (3,), "v": (3,), "g": (2, 3, 4)}
    lines = "\n".join(f"{n} = f32[{dims(shape)}] parameter({i})" for i, (n, shape) in enumerate(shapes.items()))
    module = typed(read(f"ENTRY e {{ {lines}\n{text} }}"))
    arrays = [np.abs(rng.standard_normal(shape)).astype(np.float32) for shape in shapes.values()]
    primitive = expand(module)
    assert not any(n.op.expand for g in primitive.graphs.values() for n in g.nodes)
    for got, want in zip(reference(primitive, *arrays), reference(module, *arrays), strict=True):
        same(got, want, 1e-5)
