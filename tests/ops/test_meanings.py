"""What operators compute that few texts have: values stated here, by the reference and by compiled code."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from irscope.analysis.reference import evaluate, flatten
from irscope.expand import expand
from irscope.graph import DTYPES, Module
from irscope.ops import get
from irscope.ops.attrs import ConvDims, Literal, ResultAccuracy, Window
from irscope.source import UserError
from tests.ops.running import compiled, read, reference, typed
from tests.ops.typed_nodes import node_of

Array = Any


def both(text: str, *arrays: Array) -> Array:
    """The value by the reference and by compiled code, which agree in every bit."""
    module = typed(read(text))
    [want] = reference(module, *arrays)
    [got] = compiled(module, *arrays)
    assert got.dtype == want.dtype and got.tobytes() == want.tobytes(), f"{got} and {want}"
    return want


# ---- stochastic-convert

def stochastic(source: str, noise: str, target: str, x: Array, bits: Array) -> Array:
    return both(f"ENTRY e {{\n x = {source}[{len(x)}] parameter(0)\n n = {noise}[{len(x)}] parameter(1)\n"
                f" ROOT r = {target}[{len(x)}] stochastic-convert(x, n)\n}}\n", x, bits)


def test_stochastic_rounding_to_integers() -> None:
    """The chance to round away from zero is the fraction: up where it is above noise / 2^32."""
    quarter = 1 << 30
    x = np.array([1.25, 1.25, 1.25, -1.25, -1.25, 2.0, -2.0, 0.0, -0.75, 126.5, 127.5, -128.5], np.float32)
    noise = np.array([0, quarter - 1, quarter, quarter - 1, quarter, 0, 0, 0, 3 * quarter - 1, 0, 0, 0], np.uint32)
    want = [2, 2, 1, -2, -1, 2, -2, 0, -1, 127, 127, -128]
    assert stochastic("f32", "u32", "s8", x, noise).tolist() == want
    half = np.array([1.25, 1.25, -0.5, 3.0], np.float16)
    assert stochastic("f16", "u16", "s32", half, np.array([(1 << 14) - 1, 1 << 14, 0, 0], np.uint16)).tolist() == [2, 1, -1, 3]


def test_stochastic_rounding_to_narrower_floats() -> None:
    """The noise is added below the 7 bits of fraction that bf16 keeps; infinities and NaN stay."""
    one, step = 0x3F800000, 0x10000
    bits = np.array([one + 0x8000, one + 0x8000, one + 1, one + 1, one, 0xBF800000 + 0x8000, 0x7F800000, 0xFF800000, 0x7FC00000], np.uint32)
    noise = np.array([0x7FFF, 0x8000, 0xFFFE, 0xFFFF, 0xFFFFFFFF, 0xABCD8000, 0xFFFF, 0xFFFF, 0xFFFF], np.uint32)
    want = np.array([one, one + step, one, one + step, one, 0xBF800000 + step, 0x7F800000, 0xFF800000, 0x7FC00000], np.uint32)
    got = stochastic("f32", "u32", "bf16", bits.view(np.float32), noise)
    assert got.dtype == ml_dtypes.bfloat16 and (got.view(np.uint16).astype(np.uint32) << 16).tolist() == want.tolist()
    assert stochastic("bf16", "u16", "f32", np.array([1.5, -3], ml_dtypes.bfloat16), np.array([9, 9], np.uint16)).tolist() == [1.5, -3.0]
    assert stochastic("f16", "u16", "bf16", np.array([1 + 2 ** -8] * 2, np.float16), np.array([3, 4], np.uint16)).tolist() == [1, 1 + 2 ** -7]
    # A type with as many bits of fraction takes no noise.
    assert stochastic("f16", "u16", "f16", np.array([1 + 2 ** -10], np.float16), np.array([0xFFFF], np.uint16)).tolist() == [1 + 2 ** -10]


# ---- calls

def module(text: str) -> Module:
    return typed(read(text))


BRANCHES = "up { a = f32[] parameter(0)\n ROOT r = f32[] negate(a) }\nsame { a = f32[] parameter(0)\n ROOT r = f32[] copy(a) }\n" \
    "two { a = f32[] parameter(0)\n ROOT r = f32[] add(a, a) }\n"


def test_the_branch_of_a_conditional() -> None:
    text = f"HloModule m\n{BRANCHES}ENTRY e {{\n p = pred[] parameter(0)\n x = f32[] parameter(1)\n y = f32[] parameter(2)\n" \
        " ROOT r = f32[] conditional(p, x, y), true_computation=up, false_computation=same\n}\n"
    for chosen, want in ((True, -3), (False, 5)):
        assert reference(module(text), np.bool_(chosen), np.float32(3), np.float32(5))[0] == want
    text = f"HloModule m\n{BRANCHES}ENTRY e {{\n n = s32[] parameter(0)\n x = f32[] parameter(1)\n" \
        " ROOT r = f32[] conditional(n, x, x, x), branch_computations={up, same, two}\n}\n"
    for number, want in ((0, -3), (1, 3), (2, 6), (3, 6), (-1, 6), (2 ** 31 - 1, 6)):
        assert reference(module(text), np.int32(number), np.float32(3))[0] == want


def test_calls_and_fusions() -> None:
    text = f"HloModule m\n{BRANCHES}ENTRY e {{\n x = f32[] parameter(0)\n a = f32[] call(x), to_apply=two\n" \
        " ROOT r = f32[] fusion(a), kind=kLoop, calls=up\n}\n"
    assert reference(module(text), np.float32(3))[0] == -6
    extra = f"HloModule m\n{BRANCHES}ENTRY e {{\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n" \
        " ROOT r = f32[] fusion(x, y), kind=kLoop, calls=two\n}\n"
    assert reference(module(extra), np.float32(3), np.float32(8))[0] == 6, "an operand beyond the parameters is not read"


def test_a_computation_over_elements() -> None:
    body = "HloModule m\nf {\n a = f32[] parameter(0)\n b = s32[] parameter(1)\n c = f32[] convert(b)\n d = f32[] subtract(a, c)\n" \
        " ROOT r = pred[] compare(d, a), direction=LT\n}\n"
    x, y = np.array([[1, 2, 3]], np.float32), np.array([[0, -1, 1]], np.int32)
    text = body + "ENTRY e {\n x = f32[1,3] parameter(0)\n y = s32[1,3] parameter(1)\n" \
        " ROOT r = pred[1,3] map(x, y), dimensions={0,1}, to_apply=f\n}\n"
    assert both(text, x, y).tolist() == [[False, False, True]]
    assert get("map").cost is not None and get("map").cost(module(text).main().result()) == 3 * 3  # type: ignore[misc]
    constant = "HloModule m\nf {\n a = f32[] parameter(0)\n ROOT r = f32[] constant(7)\n}\nENTRY e {\n x = f32[2] parameter(0)\n" \
        " ROOT r = f32[2] map(x), to_apply=f\n}\n"
    assert both(constant, x[0, :2]).tolist() == [7, 7], "a body that reads none of its arguments gives an element for each"


def test_a_body_that_is_not_elementwise_runs_on_one_element_after_the_other() -> None:
    """A sum over a scalar spread to three elements, in one result and in two."""
    body = "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n" \
        "f {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n w = f32[3] broadcast(b), dimensions={}\n z = f32[] constant(0)\n" \
        " t = f32[] reduce(w, z), dimensions={0}, to_apply=add\n ROOT r = f32[] add(a, t)\n}\n"
    text = body + "ENTRY e {\n x = f32[2,2] parameter(0)\n z = f32[] parameter(1)\n" \
        " ROOT r = f32[2] reduce(x, z), dimensions={1}, to_apply=f\n}\n"
    x = np.array([[1, 2], [3, 4]], np.float32)
    assert reference(module(text), x, np.float32(10))[0].tolist() == [10 + 9, 10 + 21]
    pair = body.replace("ROOT r = f32[] add(a, t)", "s = f32[] add(a, t)\n ROOT r = (f32[], f32[]) tuple(s, a)").replace(
        "b = f32[] parameter(1)\n w", "c = f32[] parameter(1)\n b = f32[] parameter(2)\n d = f32[] parameter(3)\n w")
    text = pair + "ENTRY e {\n x = f32[2,2] parameter(0)\n z = f32[] parameter(1)\n" \
        " ROOT r = (f32[2], f32[2]) reduce(x, x, z, z), dimensions={1}, to_apply=f\n}\n"
    first, second = reference(module(text), x, np.float32(10))
    assert first.tolist() == [19, 31] and second.tolist() == [13, 19], "the second result is what the first was before the last step"


# ---- dynamic sizes

def test_a_size_beyond_the_bound_is_filled_with_zeros() -> None:
    text = "ENTRY e {\n x = f32[2,3] parameter(0)\n n = s32[] parameter(1)\n ROOT r = f32[2,<=3] set-dimension-size(x, n), dimensions={1}\n}\n"
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    for n, want in ((0, x[:, :0]), (2, x[:, :2]), (3, x), (-1, x[:, :0]), (4, np.pad(x, ((0, 0), (0, 1))))):
        [got] = flatten(evaluate(read(text).main(), [x, np.int32(n)]))
        assert np.asarray(got).tolist() == want.tolist()
    text = "ENTRY e {\n x = f32[6] parameter(0)\n a = s32[] parameter(1)\n b = s32[] parameter(2)\n" \
        " ROOT r = f32[<=2,<=3] dynamic-reshape(x, a, b)\n}\n"
    [got] = flatten(evaluate(read(text).main(), [x.reshape(-1), np.int32(3), np.int32(2)]))
    assert np.asarray(got).tolist() == x.reshape(3, 2).tolist()


def test_a_reshape_of_fewer_elements_shrinks_the_dynamic_dimension() -> None:
    text = "ENTRY e {\n x = f32[2,3] parameter(0)\n n = s32[] parameter(1)\n s = f32[2,<=3] set-dimension-size(x, n), dimensions={1}\n" \
        " ROOT r = f32[<=6] reshape(s)\n}\n"
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    [got] = flatten(evaluate(read(text).main(), [x, np.int32(2)]))
    assert np.asarray(got).tolist() == [0, 1, 3, 4]


# ---- what is not there

@pytest.mark.parametrize(("text", "whom"), [
    ("r = (f32[2], token[]) infeed(k)", "the host"),
    ("r = (f32[2], u32[], token[]) recv(k), channel_id=1", "another device"),
    ("r = (f32[2], u32[], token[]) recv(k), channel_id=1, is_host_transfer=true", "the host"),
])
def test_data_from_elsewhere(text: str, whom: str) -> None:
    found = read(f"ENTRY e {{\n k = token[] after-all()\n ROOT {text}\n}}\n")
    name = text.split("] ")[-1].split(") ")[-1].split("(")[0]
    with pytest.raises(UserError) as error:
        reference(found)
    assert error.value.message == f"%r = {name}(...) waits for data from {whom}, which is not there"


def test_asynchronous_values() -> None:
    x = np.array([1, 2], np.float32)
    text = "ENTRY e {\n x = f32[2] parameter(0)\n k = token[] after-all()\n a = (f32[2], f32[2], u32[]) copy-start(x)\n" \
        " b = f32[2] copy-done(a)\n s = (f32[2], u32[], token[]) send(b, k), channel_id=1\n d = token[] send-done(s), channel_id=1\n" \
        " c = f32[2] add-dependency(b, d)\n o = token[] outfeed(c, d), outfeed_shape=f32[2]\n q = f32[2] opt-barrier(c)\n" \
        " w = u32[] get-tuple-element(a), index=2\n v = u32[] get-tuple-element(s), index=1\n ROOT r = (f32[2], u32[], u32[]) tuple(q, w, v)\n}\n"
    value, first, second = reference(module(text), x)
    assert value.tolist() == [1, 2] and first == second == 0 and first.dtype == np.uint32
    late = "HloModule m\nf {\n a = f32[2] parameter(0)\n ROOT r = (f32[2], f32[2]) tuple(a, a)\n}\nENTRY e {\n x = f32[2] parameter(0)\n" \
        " s = ((f32[2]), (), (f32[3], token[])) async-start(x), calls=f\n ROOT r = (f32[2], f32[2]) async-done(s)\n}\n"
    assert [v.tolist() for v in reference(module(late), x)] == [[1, 2], [1, 2]]
    context = late.replace("ROOT r = (f32[2], f32[2]) async-done(s)", "ROOT r = (f32[3], token[]) get-tuple-element(s), index=2")
    [zeros, *_] = reference(module(context), x)
    assert zeros.tolist() == [0, 0, 0]


# ---- collectives

PERMUTE = "source_target_pairs={{0,0}}"


def expansion(text: str, *arrays: Array) -> list[Array]:
    """The results by the reference of the operators as written and as expanded, which agree."""
    found = typed(read(text))
    want, got = reference(found, *arrays), reference(expand(found), *arrays)
    assert len(want) == len(got) and all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(want, got, strict=True))
    return want


def test_a_permutation_that_is_begun() -> None:
    x, y = np.array([1, 2], np.float32), np.array([3], np.int32)
    head = "ENTRY e {\n x = f32[2] parameter(0)\n y = s32[1] parameter(1)\n"
    pair = "((f32[2], s32[1]), (f32[2], s32[1]), u32[], u32[])"
    got = expansion(f"{head} ROOT s = {pair} collective-permute-start(x, y), {PERMUTE}\n}}\n", x, y)
    assert [v.tolist() for v in got] == [[1, 2], [3], [1, 2], [3], 0, 0]
    got = expansion(f"{head} ROOT s = {pair} collective-permute-start(x, y), source_target_pairs={{{{0,1}},{{1,0}}}}\n}}\n", x, y)
    assert [v.tolist() for v in got] == [[1, 2], [3], [0, 0], [0], 0, 0]
    got = expansion(f"{head} ROOT s = (f32[2], s32[1]) collective-permute(x, y), {PERMUTE}\n}}\n", x, y)
    assert [v.tolist() for v in got] == [[1, 2], [3]]
    got = expansion(f"{head} s = (f32[2], f32[2]) collective-permute-start(x), {PERMUTE}\n ROOT d = f32[2] collective-permute-done(s)\n}}\n", x, y)
    assert [v.tolist() for v in got] == [[1, 2]]


def test_a_permutation_within_buffers_gives_the_second() -> None:
    x, y = np.array([1, 2], np.float32), np.array([3, 4, 5], np.float32)
    head = "ENTRY e {\n x = f32[2] parameter(0)\n y = f32[3] parameter(1)\n i = s32[] constant(0)\n t = (s32[]) tuple(i)\n"
    got = expansion(f"{head} ROOT r = f32[3] collective-permute(x, y, t, t), {PERMUTE}, slice_sizes={{{{1}}}}\n}}\n", x, y)
    assert got[0].tolist() == [3, 4, 5]
    got = expansion(f"{head} ROOT r = (f32[2], f32[3]) collective-permute-start(x, y, t, t), {PERMUTE}, slice_sizes={{{{1}}}}\n}}\n", x, y)
    assert [v.tolist() for v in got] == [[1, 2], [3, 4, 5]]


def test_a_broadcast_with_its_root_as_an_operand() -> None:
    x, root = np.array([1, 2], np.float32), np.int32(0)
    text = "ENTRY e {\n x = f32[2] parameter(0)\n n = s32[] parameter(1)\n" \
        " ROOT r = f32[2] collective-broadcast(x, n), has_dynamic_root=true\n}\n"
    assert expansion(text, x, root)[0].tolist() == [1, 2]
    text = text.replace(", has_dynamic_root=true", "").replace("ROOT r = f32[2]", "ROOT r = (f32[2], s32[])")
    assert [v.tolist() for v in expansion(text, x, root)] == [[1, 2], 0]


@pytest.mark.parametrize(("starts", "sizes", "targets", "want"), [
    ([1], [2], [3], [9, 9, 9, 1, 2, 9]), ([0, 3], [2, 1], [4, 0], [3, 9, 9, 9, 0, 1]), ([3], [2], [5], [9, 9, 9, 9, 9, 3]),
    ([-2], [3], [-1], [0, 0, 9, 9, 9, 9]), ([0], [9], [0], [0, 1, 2, 3, 9, 9]), ([0], [-1], [0], [9] * 6), ([0], [0], [0], [9] * 6),
])
def test_rows_that_a_device_sends_to_itself(starts: list[int], sizes: list[int], targets: list[int], want: list[int]) -> None:
    """Every row is clamped to the arrays; as many devices as there are offsets."""
    n = len(starts)
    given, result = np.arange(4)[:, None] * np.array([1, 10]), np.full((6, 2), 9, np.float32)
    constants = "".join(f" {name} = s32[{n}] constant({{{','.join(map(str, v))}}})\n" for name, v in zip("abc", (starts, sizes, targets)))
    text = f"ENTRY e {{\n x = f32[4,2] parameter(0)\n o = f32[6,2] parameter(1)\n{constants}" \
        " ROOT r = f32[6,2] ragged-all-to-all(x, o, a, b, c, b)\n}\n"
    got = both(text, given.astype(np.float32), result)
    assert got[:, 0].tolist() == want


@pytest.mark.parametrize(("given", "result"), [(0, 2), (2, 0)])
def test_no_rows(given: int, result: int) -> None:
    text = f"ENTRY e {{\n x = f32[{given}] parameter(0)\n o = f32[{result}] parameter(1)\n a = s32[1] constant({{0}})\n b = s32[1] constant({{1}})\n" \
        f" ROOT r = f32[{result}] ragged-all-to-all(x, o, a, b, a, b)\n}}\n"
    assert both(text, np.zeros(given, np.float32), np.full(result, 5, np.float32)).tolist() == [5] * result


# ---- attributes

def test_windows_count_their_places() -> None:
    """Dilated and padded, as XLA's ``window_util`` says; an empty operand and an empty window are no places of dilation."""
    window = Window.make((3, 2, 1, 0), (2, 1, 1, 1), ((1, 0), (0, 0), (2, 1), (0, 0)), (1, 2, 1, 1), (2, 1, 3, 1), None)
    assert [[window.output_size(d, n) for n in (0, 1, 2, 5, 8)] for d in range(4)] == [
        [0, 0, 0, 1, 3], [0, 0, 2, 8, 14], [3, 4, 5, 8, 11], [0, 2, 3, 6, 9]]
    assert window.rhs_reversal == (False,) * 4 and window.lhs_dilate == (1, 2, 1, 1)
    plain = Window.make((3,))
    assert plain == Window((3,), (1,), (0,), (0,), (1,), (1,), (False,)) and plain.output_size(0, 3) == 1 and plain.output_size(0, 2) == 0
    assert Window.make((1,), pad=((-2, -3),)).output_size(0, 5) == 0 and Window.make((0,), pad=((-2, -3),)).output_size(0, 6) == 2


@pytest.mark.parametrize("text", ["bf_io->bf", "b0f_0io->b0f", "bf01_oi01->bf01", "01bf_01io->f10b", "b210f_i0o12->f2b01"])
def test_labels_of_convolutions(text: str) -> None:
    dims = ConvDims.parse(text)
    assert str(dims) == text
    lhs, rest = text.split("_")
    rhs, out = rest.split("->")
    assert (dims.lhs_batch, dims.lhs_feature, dims.rhs_input, dims.rhs_output, dims.out_batch, dims.out_feature) == (
        lhs.index("b"), lhs.index("f"), rhs.index("i"), rhs.index("o"), out.index("b"), out.index("f"))
    for places, labels in ((dims.lhs_spatial, lhs), (dims.rhs_spatial, rhs), (dims.out_spatial, out)):
        assert [labels[p] for p in places] == [str(i) for i in range(len(labels) - 2)]


@pytest.mark.parametrize("text", ["b0f_0io->b1f", "b0f_0ii->b0f", "bb0_0io->b0f", "b0f_io->b0f", "b01f_01io->b0f"])
def test_labels_that_are_not_complete(text: str) -> None:
    with pytest.raises(ValueError, match="must hold each of"):
        ConvDims.parse(text)


def test_accuracy_is_compared_by_its_text() -> None:
    tolerance = ResultAccuracy("tolerance", 1e-3, 0.5, 4)
    assert str(tolerance) == "{tolerance={atol=0.001,rtol=0.5,ulps=4}}" and str(ResultAccuracy("highest", 1.0)) == "{mode=highest}"
    assert tolerance == ResultAccuracy("tolerance", 1e-3 + 1e-12, 0.5, 4) and len({tolerance, ResultAccuracy("tolerance", 1e-3, 0.5, 4)}) == 1
    assert tolerance != ResultAccuracy("tolerance", 1e-3, 0.5, 5) and tolerance != "{tolerance={atol=0.001,rtol=0.5,ulps=4}}"
    assert ResultAccuracy("default", 1.0) == ResultAccuracy() and ResultAccuracy("highest") != ResultAccuracy()


def test_literals_are_read_once() -> None:
    decoded = []
    t = node_of("iota", "", "f32[2]").type

    def parse(literal: Literal) -> Array:
        decoded.append(literal.text)
        return np.zeros(2, np.float32)
    literal = Literal(t, "{0, 0}", parse=parse)
    assert literal.value() is literal.value() and decoded == ["{0, 0}"] and str(literal) == "{0, 0}"
    assert str(Literal.of(np.array([1, 2]), t)) == "[1 2]"
    for missing in (Literal(t, "{...}", elided=True, parse=parse), Literal(t, "{0, 0}")):
        with pytest.raises(ValueError, match="elides"):
            missing.value()


@pytest.mark.parametrize(("dtype", "text", "want"), [
    ("f32", "1.5", 1.5), ("s8", "-7", -7), ("pred", "true", True), ("c64", "(1, -2)", 1 - 2j), ("bf16", "1.5", 1.5), ("f8e5m2", "0.5", 0.5),
    ("u64", "18446744073709551615", 2 ** 64 - 1), ("s4", "-8", -8),
])
def test_scalar_constants_as_code(dtype: str, text: str, want: complex) -> None:
    got = both(f"ENTRY e {{\n ROOT r = {dtype}[] constant({text})\n}}\n")
    assert got.dtype == DTYPES[dtype].numpy() and got.reshape(-1).astype(object)[0] == want
