"""Costs stated by hand: operations of single nodes, weights of scalar operators, and what they may be reordered by."""
from __future__ import annotations

from typing import Any

import pytest

from irscope.api import load
from irscope.graph import Node
from irscope.ops import all_ops, get, lookup
from irscope.ops.attrs import ConvDims, Window
from irscope.ops.costs import MOST, body_flops, flops
from irscope.source.budget import limits, tick
from tests.ops.running import read
from tests.ops.typed_nodes import graph_of, node_of

ADD = "(f32[], f32[]) -> f32[] add(a, b)"
LESS = "(f32[], f32[]) -> pred[] compare(a, b), direction=LT"
TWICE = "(f32[], f32[], f32[], f32[]) -> (f32[], f32[]) tuple(a, d)"
CONTRACTING = {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (0,)}
IMAGES = {"dim_labels": ConvDims.parse("b01f_01io->b01f")}
Row = tuple[str, str, str, dict[str, Any], list[str], float]


def image(size: tuple[int, int], **more: Any) -> dict[str, Any]:
    return {**IMAGES, "window": Window.make(size, **more)}


COSTS: list[Row] = [
    ("add", "f32[2,3], f32[2,3]", "f32[2,3]", {}, [], 6), ("tanh", "f32[5]", "f32[5]", {}, [], 5), ("convert", "f32[5]", "s8[5]", {}, [], 5),
    ("reshape", "f32[6]", "f32[2,3]", {}, [], 0), ("broadcast", "f32[]", "f32[8]", {}, [], 0), ("copy", "f32[8]", "f32[8]", {}, [], 0),
    ("iota", "", "s32[8]", {"iota_dimension": 0}, [], 0), ("tuple", "f32[8]", "(f32[8])", {}, [], 0),
    ("transpose", "f32[2,3]", "f32[3,2]", {"dimensions": (1, 0)}, [], 0), ("reverse", "f32[8]", "f32[8]", {"dimensions": (0,)}, [], 0),
    ("slice", "f32[8]", "f32[4]", {"slice": ((0, 4, 1),)}, [], 0), ("pad", "f32[8], f32[]", "f32[9]", {"padding": ((0, 1, 0),)}, [], 0),
    ("dot", "f32[2,3], f32[3,4]", "f32[2,4]", CONTRACTING, [], 2 * 2 * 3 * 4),
    ("dot", "c64[2,3], c64[3,4]", "c64[2,4]", CONTRACTING, [], 4 * 2 * 2 * 3 * 4),
    ("dot", "f32[2], f32[3]", "f32[2,3]", {}, [], 2 * 6),
    ("reduce", "f32[4,5], f32[]", "f32[5]", {"dimensions": (0,)}, [ADD], 3 * 5),
    ("reduce", "f32[4,5], f32[]", "f32[]", {"dimensions": (0, 1)}, [ADD], 19),
    ("reduce", "f32[4,5], f32[4,5], f32[], f32[]", "(f32[5], f32[5])", {"dimensions": (0,)}, [TWICE], 0),
    ("reduce-window", "f32[6], f32[]", "f32[3]", {"window": Window.make((2,), (2,))}, [ADD], 3),
    ("reduce-window", "f32[6,6], f32[]", "f32[4,5]", {"window": Window.make((3, 2))}, [ADD], 4 * 5 * 5),
    ("reduce-window", "f32[6], f32[]", "f32[6]", {"window": Window.make((1,))}, [ADD], 0),
    ("reduce-window", "f32[6], f32[]", "f32[7]", {"window": Window.make((0,))}, [ADD], 0),
    ("select-and-scatter", "f32[6], f32[3], f32[]", "f32[6]", {"window": Window.make((2,), (2,))}, [LESS, ADD], 3 * (1 + 1)),
    ("select-and-scatter", "f32[9], f32[3], f32[]", "f32[9]", {"window": Window.make((3,), (3,))}, [LESS, ADD], 3 * (2 + 1)),
    ("scatter", "f32[5,3], s32[4,1], f32[4,3]", "f32[5,3]", {}, [ADD], 12), ("gather", "f32[5,3], s32[4,1]", "f32[4,3]", {}, [], 0),
    # What is no array counts nothing.
    ("scatter", "f32[5,3], s32[4,1], token[]", "f32[5,3]", {}, [ADD], 0), ("add", "f32[2], f32[2]", "token[]", {}, [], 0),
    ("select-and-scatter", "f32[6], token[], f32[]", "f32[6]", {"window": Window.make((2,), (2,))}, [LESS, ADD], 0),
    ("reduce", "f32[4,5], f32[]", "token[]", {"dimensions": (0,)}, [ADD], 20), ("all-reduce", "f32[4], token[]", "f32[4]", {}, [ADD], 4),
    ("reduce-window", "f32[6], f32[]", "token[]", {"window": Window.make((2,), (2,))}, [ADD], 0),
    ("sort", "f32[8]", "f32[8]", {"dimensions": (0,)}, [LESS], 8 * 3), ("sort", "f32[9]", "f32[9]", {"dimensions": (0,)}, [LESS], 9 * 4),
    ("sort", "f32[1]", "f32[1]", {"dimensions": (0,)}, [LESS], 0), ("sort", "f32[0]", "f32[0]", {"dimensions": (0,)}, [LESS], 0),
    ("sort", "f32[2]", "f32[2]", {"dimensions": (0,)}, [LESS], 2),
    ("topk", "f32[2,8]", "(f32[2,3], s32[2,3])", {"k": 3}, [], 16),
    ("scan", "f32[4], f32[]", "(f32[4], f32[])", {"dimensions": (0,), "num_carries": 1},
     ["(f32[], f32[]) -> f32[] add(a, b)"], 4), ("scan", "f32[?], f32[]", "f32[]", {"dimensions": (0,), "num_carries": 1}, [ADD], 1),
    ("fft", "c64[3,8]", "c64[3,8]", {"fft_type": "FFT", "fft_length": (8,)}, [], 8 * 24 * 3),
    ("fft", "c64[2,9]", "c64[2,9]", {"fft_type": "FFT", "fft_length": (2, 9)}, [], 8 * 18 * (1 + 3)),
    ("fft", "f32[8]", "c64[5]", {"fft_type": "RFFT", "fft_length": (8,)}, [], 8 * 8 * 3),
    ("fft", "c64[5]", "f32[8]", {"fft_type": "IRFFT", "fft_length": (8,)}, [], 8 * 8 * 3),
    ("fft", "c64[5,1]", "c64[5,1]", {"fft_type": "FFT", "fft_length": (1,)}, [], 0),
    ("cholesky", "f32[2,3,3]", "f32[2,3,3]", {}, [], 2 * 18 * 3 / 3),
    ("triangular-solve", "f32[3,3], f32[3,5]", "f32[3,5]", {"left_side": True}, [], 15 * 3),
    ("convolution", "f32[2,5,5,3], f32[3,3,3,4]", "f32[2,3,3,4]", image((3, 3)), [], 2 * 2 * 3 * 4 * 9 * 9),
    # Windows in the padding compute nothing: 1 + 2 + 2 ... of the taps of each axis meet the operand.
    ("convolution", "f32[1,3,1,1], f32[3,1,1,1]", "f32[1,3,1,1]", image((3, 1), pad=((1, 1), (0, 0))), [], 2 * 7),
    ("convolution", "f32[1,4,1,1], f32[2,1,1,1]", "f32[1,2,1,1]", image((2, 1), stride=(2, 1)), [], 2 * 4),
    ("convolution", "f32[1,3,1,1], f32[2,1,1,1]", "f32[1,4,1,1]", image((2, 1), lhs_dilate=(2, 1)), [], 2 * 4),
    ("convolution", "f32[1,5,1,1], f32[2,1,1,1]", "f32[1,2,1,1]", image((2, 1), rhs_dilate=(3, 1)), [], 2 * 4),
    ("convolution", "c64[1,4,1,1], c64[2,1,1,1]", "c64[1,3,1,1]", image((2, 1)), [], 4 * 2 * 6),
    ("all-reduce", "f32[4], f32[3]", "(f32[4], f32[3])", {}, [ADD], 7), ("all-reduce-start", "f32[4]", "f32[4]", {}, [ADD], 4),
    ("reduce-scatter", "f32[4]", "f32[2]", {"dimensions": (0,)}, [ADD], 4), ("all-gather", "f32[4]", "f32[8]", {"dimensions": (0,)}, [], 0),
    ("call", "f32[2], f32[]", "f32[2]", {}, ["(f32[2], f32[]) -> f32[2] negate(a)"], 2),
    ("while", "f32[2]", "f32[2]", {}, ["(f32[2]) -> pred[] constant(true)", "(f32[2]) -> f32[2] negate(a)"], 2),
    ("conditional", "pred[], f32[2], f32[2]", "f32[2]", {}, ["(f32[2]) -> f32[2] copy(a)", "(f32[2]) -> f32[2] negate(a)"], 2),
    ("conditional", "pred[]", "f32[2]", {}, [], 0),
    ("rng-bit-generator", "u64[2]", "(u64[2], u32[3])", {}, [], 2), ("rng", "f32[], f32[]", "f32[5]", {}, [], 5),
    ("lu", "f32[2,4,3]", "(f32[2,4,3], s32[2,3], s32[2])", {}, [], 2 / 3 * 24 * 3), ("lu", "c64[4,4]", "(c64[4,4], s32[4], s32[])", {}, [], 4 * 2 / 3 * 64),
    ("qr", "f32[3,4]", "(f32[3,4], f32[3])", {}, [], 4 / 3 * 12 * 3),
    ("householder-product", "f32[4,3], f32[3]", "f32[4,3]", {}, [], 4 / 3 * 12 * 3),
    ("pivoted-qr", "f32[4,3], s32[3]", "(f32[4,3], s32[3], f32[3])", {}, [], 2 * 36), ("hessenberg", "f32[3,3]", "f32[3,3]", {}, [], 90),
    ("tridiagonal", "f32[3,3]", "f32[3,3]", {}, [], 36), ("eigh", "f32[3,3]", "f32[3,3]", {}, [], 9 * 27), ("svd", "f32[3,3]", "f32[3,3]", {}, [], 540),
    ("schur", "f32[3,3]", "f32[3,3]", {}, [], 25 * 27), ("eig", "f32[3,3]", "f32[3,3]", {}, [], 30 * 27),
    ("tridiagonal-solve", "f32[3], f32[3], f32[3], f32[3,2]", "(f32[3,2], s32[])", {}, [], 8 * 7), ("lu", "f32[3,?]", "f32[3]", {}, [], 2 / 3 * 3 * 1),
]


@pytest.mark.parametrize(("opcode", "operands", "declared", "attrs", "bodies", "want"), COSTS)
def test_operations(opcode: str, operands: str, declared: str, attrs: dict[str, Any], bodies: list[str], want: float) -> None:
    node = node_of(opcode, operands, declared, attrs, bodies, "library" if lookup(opcode) is None else "hlo")
    assert flops(node) == pytest.approx(want, rel=1e-12)


def test_computations_count_what_they_call() -> None:
    module = read("HloModule m\nneg { a = f32[4] parameter(0)\n ROOT r = f32[4] negate(a) }\n"
                  "twice { a = f32[4] parameter(0)\n b = f32[4] call(a), to_apply=neg\n ROOT r = f32[4] call(b), to_apply=neg }\n"
                  "ENTRY e { a = f32[4] parameter(0)\n b = f32[4] call(a), to_apply=twice\n ROOT r = f32[4] add(a, b) }\n")
    assert body_flops(module.main()) == 4 + 8 and body_flops(graph_of("(f32[4]) -> f32[4] copy(a)")) == 0


def custom(target: str, operands: str, declared: str, **attrs: Any) -> Node:
    return node_of("custom-call", operands, declared, {"custom_call_target": target, **attrs})


LABELS = ConvDims.parse("bf01_oi01->bf01")
LIBRARIES = [
    ("__cublas$gemm", "f32[8,5], f32[5,7]", "(f32[8,7], s8[64])", {}, 2 * 8 * 5 * 7),
    ("__cublas$lt$matmul", "f32[3,8,5], f32[3,5,7]", "f32[3,8,7]", {}, 2 * 3 * 8 * 5 * 7),
    ("__cublas$lt$matmul$f8", "f32[8,5], f32[5,7]", "f32[0,7]", {}, 0), ("__onednn$matmul", "f32[8,5], f32[5,7]", "()", {}, 0),
    ("__op$block_scaled_dot", "f32[4,9], f32[6,9]", "f32[4,6]", {}, 2 * 4 * 9 * 6),
    ("__cudnn$convForward", "f32[2,3,4,4], f32[5,3,3,3]", "(f32[2,5,2,2], u8[0])", {"dim_labels": LABELS}, 2 * 40 * 27),
    ("__cudnn$convBiasActivationForward", "f32[2,3,4,4], f32[5,3,3,3]", "f32[2,5,2,2]", {"dim_labels": LABELS}, 2 * 40 * 27),
    ("__onednn$convolution", "f32[2,3,4,4], f32[5,3,3,3]", "f32[2,5,2,2]", {"dim_labels": LABELS}, 2 * 40 * 27),
    ("__cudnn$convForwardGraph", "f32[2,3,4,4], f32[5,3,3,3]", "f32[2,5,2,2]", {"dim_labels": LABELS}, 2 * 40 * 27),
    ("__cudnn$convBackwardInput", "f32[2,5,2,2], f32[5,3,3,3]", "f32[2,3,4,4]", {"dim_labels": LABELS}, 2 * 40 * 27),
    ("__cudnn$convBackwardFilter", "f32[2,3,4,4], f32[2,5,2,2]", "f32[5,3,3,3]", {"dim_labels": LABELS}, 2 * 40 * 27),
    ("__cudnn$convForward", "f32[2,3,4,4], f32[5,3,3,3]", "f32[2,5,2,2]", {}, 0), ("__cudnn$convForward", "f32[2,3,4,4]", "f32[2,5,2,2]", {"dim_labels": LABELS}, 0),
    ("__cudnn$convForward", "f32[2,3,4,4], f32[5,3,3,3]", "f32[]", {"dim_labels": LABELS}, 0),
    ("__cudnn$convForward", "f32[2,3,4,4], (f32[5,3,3,3])", "f32[2,5,2,2]", {"dim_labels": LABELS}, 0),
    ("__cublas$gemm", "f32[8,5], token[]", "f32[8,7]", {}, 0), ("__cublas$gemm", "f32[8,5]", "f32[8,7]", {}, 0),
    ("__cudnn$convForward", "f32[2,3,4,4], f32[5,3,3,3]", "()", {"dim_labels": LABELS}, 0), ("mine", "f32[8,5], f32[5,7]", "f32[8,7]", {}, 0),
    *[(f"lapack_{letter}{routine}{suffix}", "f32[6,6]", "f32[6,6]", {}, share * 216)
      for routine, share in {"potrf": 1 / 3, "getrf": 2 / 3, "geqrf": 4 / 3, "orgqr": 4 / 3, "ungqr": 4 / 3, "geqp3": 2, "syevd": 9, "heevd": 9,
                             "gesdd": 20, "gesvd": 20, "gehrd": 10 / 3, "sytrd": 4 / 3, "hetrd": 4 / 3, "gtsv": 0, "gees": 25, "geev": 30}.items()
      for letter, suffix in (("s", "_ffi"), ("d", ""), ("c", "_ffi"), ("z", ""))],
    ("lapack_strsm_ffi", "f32[6,6], f32[6,6]", "f32[6,6]", {}, 216), ("blas_dtrsm", "f32[6,6], f32[6,6]", "f32[6,6]", {}, 216),
    ("lapack_sgetrf", "s32[], f32[6,6]", "f32[6,6]", {}, 0), ("lapack_sgetrf_ffi", "f32[6]", "f32[6]", {}, 0), ("lapack_dtrsm", "f32[6,6]", "f32[6,6]", {}, 0),
]


@pytest.mark.parametrize(("target", "operands", "declared", "attrs", "want"), LIBRARIES)
def test_operations_of_library_calls(target: str, operands: str, declared: str, attrs: dict[str, Any], want: float) -> None:
    assert flops(custom(target, operands, declared, **attrs)) == pytest.approx(want, rel=1e-12)


def test_bodies_that_double_at_each_level_cost_a_finite_number_soon() -> None:
    """2,000 computations call the one before twice; a map of no element multiplies their cost with 0."""
    twice = [f"g{i} {{ p = f32[] parameter(0)\n a = f32[] call(p), to_apply=g{i - 1}\n ROOT b = f32[] call(a), to_apply=g{i - 1} }}"
             for i in range(1, 2000)]
    text = "HloModule m\ng0 { p = f32[] parameter(0)\n ROOT t = f32[] tanh(p) }\n" + "\n".join(twice) + \
        "\nENTRY e { p = f32[0] parameter(0)\n ROOT m = f32[0] map(p), dimensions={0}, to_apply=g1999 }"
    main = load(text).module().main()
    with limits(seconds=3):
        assert flops(main.result()) == 0.0
        assert body_flops(main.result().bodies[0]) == float(MOST)
        tick(10_000)


SLOW = ("remainder power atan2 exponential exponential-minus-one log log-plus-one cbrt logistic erf sine cosine tan sinh cosh tanh asin acos "
        "atan asinh acosh atanh").split()
TRAITS = {
    "commutative associative": "add multiply xor", "commutative associative idempotent": "maximum minimum and or", "commutative": "mulhi",
    "involution": "negate not reverse", "idempotent": "floor ceil round-nearest-afz round-nearest-even",
}


def test_weights_of_scalar_operators() -> None:
    weights = {op.name: op.weight for op in all_ops("hlo") if op.weight != 1}
    assert weights == {**dict.fromkeys(SLOW, 12), **dict.fromkeys(("divide", "sqrt", "rsqrt", "map", "reduce-precision"), 4)}


def test_traits() -> None:
    want = {name: frozenset(traits.split()) for traits, names in TRAITS.items() for name in names.split()}
    assert {op.name: op.traits for op in all_ops("hlo") if op.traits} == want
    assert get("subtract").traits == frozenset()
