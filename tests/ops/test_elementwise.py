"""Elementwise operators of every element type: what inference says, what numpy gives, what the compiled code gives."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irscope.backends.executable import Executable, Port
from irscope.graph import DTYPES, Builder, DType, Graph, Node, TensorType
from irscope.lower.build import KernelBuilder
from irscope.lower.program import Launch, Program, Slot
from irscope.ops import TypeFault, all_ops, get
from irscope.ops.choice import DIRECTIONS
from irscope.ops.numerics import common_shape

Array = Any
KINDS = ("pred", "s4", "u4", "s8", "u16", "s32", "u32", "s64", "u64", "f16", "bf16", "f32", "f64", "f8e4m3fn", "f8e5m2", "c64", "c128")
TOLERANCE = {"f32": 4e-6, "c64": 4e-6, "f64": 1e-12, "c128": 1e-11, "f16": 1.1e-3, "bf16": 8.1e-3}
# How these treat zeros in complex planes and NaN differs between libraries; XLA says nothing.
OWN_RULES = {("c64", "atan2"), ("c128", "atan2"), ("c64", "power"), ("c128", "power")}


def interesting(dtype: DType) -> Array:
    """Values at which arithmetic goes wrong."""
    if dtype.kind == "pred":
        return np.array([False, True])
    if dtype.is_integer:
        low, high = -(1 << dtype.bits - 1) if dtype.kind == "int" else 0, (1 << dtype.bits - (dtype.kind == "int")) - 1
        values = {low, low + 1, high, high - 1, 0, 1, 2, 3, 7, max(low, -1), max(low, -7), min(high, 31), min(high, 33)}
        return np.array(sorted(values), "int64" if low else "uint64").astype(f"{'i' if low else 'u'}{dtype.storage}").astype(dtype.numpy())
    if dtype.is_complex:
        parts = [0.0, 1.0, -1.5, 3.0, 0.25, -7.0]
        return np.array([complex(a, b) for a in parts for b in parts]).astype(dtype.numpy())
    with np.errstate(all="ignore"):
        return np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 3.0, 0.3, -7.0, 100.0, 1e-3, 60000.0, np.inf, -np.inf, np.nan, 0.75]
                        ).astype(dtype.numpy())


def node(name: str, types: list[TensorType], attrs: dict[str, Any], result: TensorType | None = None) -> Node:
    """A node over parameters, with the inferred type."""
    graph = Graph("g")
    builder = Builder(graph)
    operands = [builder.param(get("parameter"), t, f"p{i}") for i, t in enumerate(types)]
    made = builder.add(get(name), operands, attrs, result)
    if result is not None:
        assert made.op.infer is not None and made.op.infer(made) == result
    return made


def cases(dtype: DType) -> list[tuple[Node, list[Array]]]:
    """Every operator that takes this element type, over all pairs of interesting values."""
    values = interesting(dtype)
    x, y = np.repeat(values, len(values)), np.tile(values, len(values))
    t, pred = TensorType(dtype, (len(x),)), TensorType(DTYPES["pred"], (len(x),))
    found = [(node("select", [pred, t, t], {}), [np.arange(len(x)) % 3 == 0, x, y])]
    for to in (DTYPES[k] for k in KINDS):
        found.append((node("convert", [t], {}, TensorType(to, t.shape)), [x]))
    for op in all_ops("hlo"):
        if op.scalar is None or op.name in ("select", "convert", "map", "stochastic-convert"):
            continue
        sets: list[dict[str, Any]] = [{}]
        if op.name == "compare":
            sets = [{"direction": d} for d in DIRECTIONS] + [{"direction": d, "type": "TOTALORDER"} for d in DIRECTIONS]
        elif op.name == "reduce-precision":
            sets = [{"exponent_bits": e, "mantissa_bits": m} for e, m in ((8, 7), (5, 2), (4, 3), (3, 0), (1, 1), (11, 52))]
        for attrs in sets:
            for given in ([x], [x, y], [np.roll(y, 3), x, y]):
                try:
                    found.append((node(op.name, [t] * len(given), attrs), given))
                except TypeFault:
                    continue
    return found


def compiled(todo: list[tuple[Node, list[Array]]]) -> list[Array]:
    """All nodes as one kernel."""
    k = KernelBuilder("elementwise", precision="exact")
    arrays: list[Array] = []
    slots, ports, outs = [], [], []
    n = len(todo[0][1][0])
    with_views = []
    for made, given in todo:
        views = []
        for operand, array in zip(made.operands, given, strict=True):
            assert isinstance(operand.type, TensorType)
            number, dtype = len(arrays), operand.type.dtype
            arrays.append(array)
            slots.append(Slot(f"in{number}", dtype, n, "input", number))
            ports.append(Port(f"in{number}", dtype, (n,)))
            views.append(k.view(k.buffer(f"in{number}", dtype, (n,), "in")))
        with_views.append((made, views))
    results = []
    for number, (made, _) in enumerate(with_views):
        assert isinstance(made.type, TensorType)
        outs.append(Slot(f"out{number}", made.type.dtype, n, "output", number))
        results.append(k.view(k.buffer(f"out{number}", made.type.dtype, (n,), "out")))
    with k.loop(0, n) as i:
        for (made, views), result in zip(with_views, results, strict=True):
            assert made.op.scalar is not None
            result.store([i], made.op.scalar(k, made, *[v.load([i]) for v in views]))
    program = Program("elementwise", slots, outs)
    program.steps = [Launch(k.finish(), [(s, 0) for s in (*slots, *outs)])]
    run = Executable.of(program, ports, [Port(s.name, s.dtype, (n,)) for s in outs], use_cache=False)
    return list(run(*arrays))


def close(got: Array, want: Array, dtype: DType) -> Array:
    """Where two results agree: integers exactly, floats within the rounding of their type, zeros with their sign."""
    if not (dtype.is_float or dtype.is_complex):
        return got.astype(np.float64) == want.astype(np.float64)
    wide = complex if dtype.is_complex else np.float64
    with np.errstate(all="ignore"):
        g, w = got.astype(wide), want.astype(wide)
        ok = (np.abs(g - w) <= TOLERANCE.get(dtype.name, 0.26) * np.abs(w) + (1e-30 if dtype.is_complex else 0)) | (g == w)
    return ok | (np.isnan(g) & np.isnan(w))


@pytest.mark.parametrize("name", KINDS)
def test_every_operator_of_an_element_type(name: str) -> None:
    dtype = DTYPES[name]
    todo = cases(dtype)
    assert len(todo) > 20
    references = []
    for made, given in todo:
        assert made.op.reference is not None and isinstance(made.type, TensorType)
        want = np.asarray(made.op.reference(None, made, *given))
        assert (want.dtype, want.shape) == (made.type.dtype.numpy(), made.type.dims()), f"{made.op.name} of {name} gives {want.dtype}"
        references.append(want)
    runnable = [i for i, (made, _) in enumerate(todo) if (name, made.op.name) not in OWN_RULES]
    for i, got in zip(runnable, compiled([todo[i] for i in runnable]), strict=True):
        made, given = todo[i]
        assert isinstance(made.type, TensorType)
        wrong = np.flatnonzero(~close(np.asarray(got), references[i], made.type.dtype))
        assert not len(wrong), (f"{made.op.name} {dict(made.attrs)} of {name} to {made.type.dtype}: "
                                f"{[tuple(x[j] for x in given) for j in wrong[:3]]} gives {got[wrong[:3]]}, not {references[i][wrong[:3]]}")


def apply(name: str, *operands: Array, **attrs: Any) -> list[Any]:
    """The reference of an operator on small arrays."""
    from irscope.graph import dtype_of
    given = [np.asarray(o) for o in operands]
    made = node(name, [TensorType(dtype_of(g.dtype), g.shape) for g in given], attrs)
    assert made.op.reference is not None
    return list(np.asarray(made.op.reference(None, made, *given)).tolist())


def test_integers_divide_by_zero() -> None:
    x, y = np.array([7, -7, -128, 5], np.int8), np.array([0, 0, -1, -2], np.int8)
    assert apply("divide", x, y) == [-1, -1, -128, -2]
    assert apply("remainder", x, y) == [7, -7, 0, 1]
    assert apply("divide", np.array([7], np.uint8), np.array([0], np.uint8)) == [255]


def test_shifts_out_of_range() -> None:
    x, y = np.array([-8, -8, -8, 8], np.int32), np.array([1, 32, -1, 33], np.int32)
    assert apply("shift-left", x, y) == [-16, 0, 0, 0]
    assert apply("shift-right-arithmetic", x, y) == [-4, -1, -1, 0]
    assert apply("shift-right-logical", x, y) == [2147483644, 0, 0, 0]


def test_not_a_number_wins_and_zeros_are_ordered() -> None:
    nan = np.float32("nan")
    assert str(apply("maximum", np.array([nan, 1, -0.0], np.float32), np.array([1, nan, 0.0], np.float32))) == "[nan, nan, 0.0]"
    assert str(apply("minimum", np.array([nan, 1, 0.0], np.float32), np.array([1, nan, -0.0], np.float32))) == "[nan, nan, -0.0]"
    assert str(apply("clamp", np.array([0, nan], np.float32), np.array([nan, 1], np.float32), np.array([1, 1], np.float32))) == "[nan, nan]"
    assert apply("clamp", np.array([5], np.float32), np.array([1], np.float32), np.array([2], np.float32)) == [2.0]


def test_conversion_saturates() -> None:
    x = np.array([3.9, -3.9, 300, -300, np.nan, np.inf], np.float32)
    made = node("convert", [TensorType(DTYPES["f32"], (6,))], {}, TensorType(DTYPES["s8"], (6,)))
    assert made.op.reference is not None
    assert np.asarray(made.op.reference(None, made, x)).tolist() == [3, -3, 127, -128, 0, 127]
    made = node("convert", [TensorType(DTYPES["f32"], (2,))], {}, TensorType(DTYPES["s64"], (2,)))
    assert made.op.reference is not None
    assert np.asarray(made.op.reference(None, made, np.array([1e19, -1e19], np.float32))).tolist() == [2**63 - 1, -(2**63)]
    made = node("convert", [TensorType(DTYPES["s32"], (2,))], {}, TensorType(DTYPES["u8"], (2,)))
    assert made.op.reference is not None
    assert np.asarray(made.op.reference(None, made, np.array([-1, 300], np.int32))).tolist() == [255, 44]


def test_powers_of_integers_and_of_not_a_number() -> None:
    assert apply("power", np.array([2, -1, 1, 3], np.int32), np.array([-1, -3, -5, 4], np.int32)) == [0, 0, 1, 81]
    assert apply("power", np.array([1, np.nan], np.float32), np.array([np.nan, 0], np.float32)) == [1.0, 1.0]


def test_rounding() -> None:
    x = np.array([0.5, -2.5, 2.5, 0.49999997, -0.3], np.float32)
    assert str(apply("round-nearest-afz", x)) == "[1.0, -3.0, 3.0, 0.0, -0.0]"
    assert str(apply("round-nearest-even", x)) == "[0.0, -2.0, 2.0, 0.0, -0.0]"


def test_denormals_count_as_zeros_where_something_is_computed() -> None:
    x = np.array([1e-40, -1e-40], np.float32)
    assert str(apply("sqrt", x)) == "[0.0, -0.0]"
    assert str(apply("floor", x)) == "[0.0, -0.0]"
    assert apply("negate", x) == (-x).tolist()


def test_total_order_sorts_by_sign() -> None:
    x = np.array([-np.nan, -np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan], np.float32)
    x[0] = np.copysign(np.float32("nan"), np.float32(-1))
    assert apply("compare", x[:-1], x[1:], direction="LT", type="TOTALORDER") == [True] * 7
    assert apply("compare", x[3:4], x[4:5], direction="LT") == [False]


def test_high_half_of_products() -> None:
    big = np.array([2**63 - 1, -(2**63), -1], np.int64)
    assert apply("mulhi", big, big) == [(int(b) * int(b)) >> 64 for b in big]
    wide = np.array([2**64 - 1, 2**63, 3], np.uint64)
    assert apply("mulhi", wide, wide) == [(int(b) * int(b)) >> 64 for b in wide]


@pytest.mark.parametrize(("name", "types", "attrs", "words"), [
    ("add", ["f32[2]", "f32[3]"], {}, ("f32[2]", "f32[3]", "shape")),
    ("add", ["f32[2]", "s32[2]"], {}, ("dtype", "s32[2]")),
    ("subtract", ["pred[2]", "pred[2]"], {}, ("pred[2]",)),
    ("shift-left", ["f32[2]", "f32[2]"], {}, ("integer",)),
    ("not", ["f32[2]"], {}, ("f32[2]",)),
    ("negate", ["pred[2]"], {}, ("pred[2]",)),
    ("exponential", ["s32[2]"], {}, ("floating point", "s32[2]")),
    ("compare", ["s32[2]", "s32[2]"], {"direction": "LT", "type": "UNSIGNED"}, ("SIGNED", "UNSIGNED")),
    ("compare", ["c64[2]", "c64[2]"], {"direction": "LT"}, ("complex", "LT")),
    ("complex", ["f16[2]", "f16[2]"], {}, ("f32 or f64", "f16[2]")),
    ("select", ["s32[2]", "f32[2]", "f32[2]"], {}, ("pred", "s32[2]")),
    ("select", ["pred[3]", "f32[2]", "f32[2]"], {}, ("pred[3]", "f32[2]")),
    ("clamp", ["f32[3]", "f32[2]", "f32[]"], {}, ("lower bound", "f32[3]", "f32[2]")),
    ("reduce-precision", ["f32[2]"], {"exponent_bits": 0, "mantissa_bits": 3}, ("exponent",)),
])
def test_faults_name_the_types(name: str, types: list[str], attrs: dict[str, Any], words: tuple[str, ...]) -> None:
    def parsed(text: str) -> TensorType:
        dtype, dims = text[:-1].split("[")
        return TensorType(DTYPES[dtype], tuple(int(d) for d in dims.split(",") if d))
    with pytest.raises(TypeFault) as fault:
        node(name, [parsed(t) for t in types], attrs)
    assert all(word in fault.value.message for word in words), fault.value.message


@pytest.mark.parametrize("shapes", [
    [], [()], [(3,)], [(1,), (1,)], [(), (2, 3)], [(2, 3), ()], [(3,), (2, 1)], [(1, 3), (4, 2, 1)], [(1,), (5, 1, 1)], [(1, 0), (2, 1)], [(1,), (0,), ()],
])
def test_the_common_shape_of_arrays_is_the_one_that_numpy_broadcasts_to(shapes: list[tuple[int, ...]]) -> None:
    assert common_shape(*(np.zeros(shape) for shape in shapes)) == np.broadcast_shapes(*shapes)


def test_arrays_of_more_dimensions_than_numpy_broadcasts_have_a_common_shape() -> None:
    assert common_shape(np.zeros(()), np.zeros((1,) * 32), np.zeros((2, *(1,) * 31))) == (2, *(1,) * 31)
