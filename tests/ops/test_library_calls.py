"""Forms of library calls that dumps have less often: activations, post-operations, options; and those that stay as they are."""
from __future__ import annotations

from collections.abc import Callable
from math import erf
from typing import Any

import numpy as np
import pytest

from irscope.expand import expand
from irscope.graph import Module
from irscope.ops import TypeFault
from irscope.ops.custom_calls import target_of
from irscope.ops.lapack import MEANINGS
from irscope.source import UserError
from tests.ops.running import read, reference, typed

Array = Any


def noise(*shape: int) -> Array:
    """Normal numbers."""
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def call(target: str, result: str, *types: str, config: str = "", attrs: str = "") -> Module:
    """One call, expanded."""
    params = "\n".join(f"p{i} = {t} parameter({i})" for i, t in enumerate(types))
    names = ", ".join(f"p{i}" for i in range(len(types)))
    more = attrs + (f", backend_config={config}" if config else "")
    return expand(typed(read(f'ENTRY e {{ {params}\n ROOT r = {result} custom-call({names}), custom_call_target="{target}"{more} }}')))


def stays(module: Module) -> bool:
    """Whether the call is not expanded."""
    return any(n.op.name == "custom-call" for g in module.graphs.values() for n in g.nodes)


def logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def gelu(x: Array) -> Array:
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "NONE": lambda x: x, "RELU": lambda x: np.maximum(x, 0), "RELU6": lambda x: np.clip(x, 0, 6), "ELU": lambda x: np.where(x > 0, x, np.expm1(x)),
    "SIGMOID": logistic, "LOGISTIC": logistic, "TANH": np.tanh, "SILU": lambda x: x * logistic(x), "SWISH": lambda x: x * logistic(x),
    "GELU": gelu, "GELU_TANH": gelu, "GELU_ERF": lambda x: x / 2 * (1 + np.vectorize(erf)(x / np.sqrt(2))),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    a, b = 3 * noise(4, 5), noise(5, 6)
    want = ACTIVATIONS[name](a @ b)
    config = f'{{"onednn_matmul_config":{{"fusions":{{"ops":["{name}"]}}}}}}'
    got = reference(call("__onednn$matmul", "f32[4,6]", "f32[4,5]", "f32[5,6]", config=config), a, b)[0]
    np.testing.assert_allclose(got, want, atol=2e-5)
    if name in ("RELU", "RELU6", "ELU", "SIGMOID", "TANH", "NONE"):
        config = f'{{"cudnn_conv_backend_config":{{"activation_mode":"k{name.title()}"}}}}'
        module = call("__cudnn$convBiasActivationForward", "(f32[4,6,1,1], u8[0])", "f32[4,5,1,1]", "f32[6,5,1,1]", config=config,
                      attrs=", window={size=1x1}, dim_labels=bf01_oi01->bf01")
        np.testing.assert_allclose(reference(module, a.reshape(4, 5, 1, 1), b.T.reshape(6, 5, 1, 1))[0][:, :, 0, 0], want, atol=2e-5)


@pytest.mark.parametrize("epilogue", ["DEFAULT", "BIAS", "RELU", "BIAS_RELU", "GELU", "BIAS_GELU", "SILU", "BIAS_SILU"])
def test_epilogues_of_products(epilogue: str) -> None:
    a, b, bias = noise(4, 5), noise(5, 6), noise(6)
    given = [a, b, bias] if "BIAS" in epilogue else [a, b]
    types = ["f32[4,5]", "f32[5,6]", "f32[6]"][:len(given)]
    config = f'{{"gemm_backend_config":{{"alpha_real":2,"beta":0.0,"epilogue":"{epilogue}"}}}}'
    product = 2 * a @ b + (bias if "BIAS" in epilogue else 0)
    name = epilogue.removeprefix("BIAS").removeprefix("_").replace("DEFAULT", "") or "NONE"
    got = reference(call("__cublas$lt$matmul", "f32[4,6]", *types, config=config), *given)[0]
    np.testing.assert_allclose(got, ACTIVATIONS[name](product), atol=2e-5)
    wrong = given[:2] if "BIAS" in epilogue else [*given, bias]
    assert stays(call("__cublas$lt$matmul", "f32[4,6]", *["f32[4,5]", "f32[5,6]", "f32[6]"][:len(wrong)], config=config))


def test_scales_of_every_operand_and_of_the_result() -> None:
    a, b, c = noise(4, 5), noise(5, 6), noise(4, 6)
    scales = [np.float32(s) for s in (2, 0.5, 3, 4)]
    config = '{"gemm_backend_config":{"alpha_real":1,"beta":0.5}}'
    for count, want in ((1, 2 * a @ b + c / 2), (2, a @ b + c / 2), (3, a @ b + 1.5 * c), (4, 4 * (a @ b + 1.5 * c))):
        module = call("__cublas$lt$matmul$f8", "f32[4,6]", "f32[4,5]", "f32[5,6]", "f32[4,6]", *["f32[]"] * count, config=config)
        np.testing.assert_allclose(reference(module, a, b, c, *scales[:count])[0], want, atol=1e-5)
    assert stays(call("__cublas$lt$matmul$f8", "f32[4,6]", "f32[4,5]", "f32[5,6]", "f32[4,6]", *["f32[]"] * 5, config=config))


def test_one_call_has_doubles_and_integers() -> None:
    for kind, dtype in (("f64", np.float64), ("s32", np.int32)):
        a: Array = np.arange(6).reshape(2, 3).astype(dtype)
        b: Array = np.arange(12).reshape(3, 4).astype(dtype)
        got = reference(call("__cublas$gemm", f"{kind}[2,4]", f"{kind}[2,3]", f"{kind}[3,4]"), a, b)[0]
        assert got.dtype == dtype and np.array_equal(got, a @ b)
    a, b = (np.full((2, 300), 1 / 3, np.float16), np.full((300, 2), 1 / 3, np.float16))
    got = reference(call("__cublas$gemm", "f16[2,2]", "f16[2,300]", "f16[300,2]"), a, b)[0]
    assert got.dtype == np.float16 and got[0, 0] == np.float16(300 * float(np.float16(1 / 3)) ** 2), "sums are accumulated in f32"


@pytest.mark.parametrize(("transposed", "shapes"), [((False, False), ((4, 5), (5, 6))), ((True, False), ((5, 4), (5, 6))),
                                                     ((False, True), ((4, 5), (6, 5))), ((True, True), ((5, 4), (6, 5)))])
def test_onednn_products(transposed: tuple[bool, bool], shapes: tuple[tuple[int, int], tuple[int, int]]) -> None:
    a, b = noise(2, *shapes[0]), noise(2, *shapes[1])
    config = '{{"onednn_matmul_config":{{"transpose_a":{},"transpose_b":{}}}}}'.format(*(str(t).lower() for t in transposed))
    module = call("__onednn$matmul", "f32[2,4,6]", *(f"f32[2,{m},{n}]" for m, n in shapes), config=config)
    x, y = a.swapaxes(1, 2) if transposed[0] else a, b.swapaxes(1, 2) if transposed[1] else b
    np.testing.assert_allclose(reference(module, a, b)[0], x @ y, atol=1e-5)


def test_post_operations_in_order() -> None:
    a, b, c, bias = noise(4, 5), noise(5, 6), noise(4, 6), noise(6)
    types = ("f32[4,5]", "f32[5,6]")

    def config(*names: str) -> str:
        return '{"onednn_matmul_config":{"fusions":{"ops":[' + ",".join(f'"{n}"' for n in names) + "]}}}"
    module = call("__onednn$matmul", "f32[4,6]", *types, "f32[6]", "f32[4,6]", config=config("BIAS", "TANH", "BINARY_ADD"))
    np.testing.assert_allclose(reference(module, a, b, bias, c)[0], np.tanh(a @ b + bias) + c, atol=1e-5)
    module = call("__onednn$matmul", "f32[4,6]", *types, "f32[4,6]", config=config("SUM", "RELU"))
    np.testing.assert_allclose(reference(module, a, b, c)[0], np.maximum(a @ b + c, 0), atol=1e-5)
    assert stays(call("__onednn$matmul", "f32[4,6]", *types, config=config("BIAS"))), "an operand is missing"
    assert stays(call("__onednn$matmul", "f32[4,6]", *types, "f32[6]", config=config("TANH"))), "an operand is left"
    assert stays(call("__onednn$matmul", "f32[4,6]", *types, "f32[4]", config=config("BIAS"))), "the bias lies along another dimension"
    assert stays(call("__onednn$matmul", "f32[4,6]", *types, config=config("MAGIC")))
    x, w = noise(2, 3, 4, 4), noise(5, 3, 1, 1)
    labels = ", window={size=1x1}, dim_labels=bf01_oi01->bf01"
    conv = '{"onednn_conv_config":{"fusions":{"ops":["BIAS","RELU"]}}}'
    module = call("__onednn$convolution", "f32[2,5,4,4]", "f32[2,3,4,4]", "f32[5,3,1,1]", "f32[5]", config=conv, attrs=labels)
    want = np.maximum(np.einsum("bihw,oi->bohw", x, w[..., 0, 0]) + noise(5)[None, :, None, None], 0)
    np.testing.assert_allclose(reference(module, x, w, noise(5))[0], want, atol=1e-5)
    assert stays(call("__onednn$convolution", "f32[2,5,4,4]", "f32[2,3,4,4]", "f32[5,3,1,1]")), "the labels are missing"


def test_a_block_scaled_product_with_one_scale_or_scalars() -> None:
    a, b = np.arange(8, dtype=np.float32).reshape(2, 4), np.arange(12, dtype=np.float32).reshape(3, 4)
    left = np.array([[1, 2], [3, 4]], np.float32)
    want = (a * np.repeat(left, 2, 1)) @ b.T
    config = '{"block_scaled_dot_backend_config":{"block_size":2}}'
    module = call("__op$block_scaled_dot", "f32[2,3]", "f32[2,4]", "f32[3,4]", "f32[2,2]", config=config)
    np.testing.assert_array_equal(reference(module, a, b, left)[0], want)
    module = call("__op$block_scaled_dot", "f32[2,3]", "f32[2,4]", "f32[3,4]", "f32[2,2]", "f32[]", config=config)
    np.testing.assert_array_equal(reference(module, a, b, left, np.float32(1))[0], want)
    module = call("__op$block_scaled_dot", "f32[1,2,3]", "f32[1,2,4]", "f32[1,3,4]", "f32[1,2,2]", config=config)
    np.testing.assert_array_equal(reference(module, a[None], b[None], left[None])[0], want[None])
    for types in (("f32[2,4]", "f32[3,4]"), ("f32[4]", "f32[4]", "f32[2]"), ("f32[1,2,4]", "f32[3,4]", "f32[2,2]"),
                  ("f32[2,4]", "f32[3,4]", "f32[2,2]", "f32[3,2]", "f32[]", "f32[]")):
        assert stays(call("__op$block_scaled_dot", "f32[2,3]", *types, config=config))


@pytest.mark.parametrize(("target", "result", "types", "config"), [
    ("__cublas$gemm", "f32[2,3]", ("f32[2,4]",), ""),
    ("__cublas$gemm", "f32[5,2,3]", ("f32[5,2,4]", "f32[5,4,3]"), ""), ("__cublas$gemm", "f32[2,3]", ("f32[2,4]", "f32[4,3]", "f32[2,3]"), ""),
    ("__cublas$gemm", "f32[5,2,3]", ("f32[5,4,2]", "f32[4,3]"), ""),
    ("__cublas$gemm", "f32[2,3]", ("f32[2,4]", "f32[4,3]"), '{"gemm_backend_config":{"alpha_real":1,"alpha_imag":1}}'),
    ("__cublas$gemm", "f32[2,3]", ("f32[2,4]", "f32[4,3]"), '{"gemm_backend_config":{"epilogue":"MAGIC"}}'),
    ("__cublas$gemm", "f32[2,4]", ("f32[2,4]", "f32[4,3]"), ""), ("__cublas$gemm", "f32[2,3]", ("f32[2,5]", "f32[4,3]"), ""),
    ("__cublas$lt$matmul", "f32[2,3]", ("f32[2,4]", "f32[4,3]", "f32[2]"), '{"gemm_backend_config":{"epilogue":"BIAS"}}'),
    ("__cudnn$convForward", "f32[2,5,4,4]", ("f32[2,3,4,4]", "f32[5,3,1,1]"), ""),
    ("__onednn$matmul", "f32[2,3]", ("f32[4]", "f32[4]"), ""), ("__onednn$matmul", "f32[2,3]", ("f32[1,2,4]", "f32[4,3]"), ""),
    ("TopK", "f32[2,3]", ("f32[2,9]",), ""), ("TopK", "(f32[2,3], s32[2,3], s32[])", ("f32[2,9]",), ""), ("TopK", "((f32[2,3]), s32[2,3])", ("f32[2,9]",), ""),
    ("lapack_spotrf_ffi", "(f32[4,4], s32[])", ("f32[4,4]",), "{}"), ("lapack_spotrf_ffi", "(f32[4,4], s32[])", ("f32[4,4]", "f32[4,4]"), "{uplo = 76 : ui8}"),
    ("lapack_sgetrf_ffi", "(f32[4,4], s32[4])", ("f32[4,4]",), "{}"), ("lapack_sgeqrf_ffi", "f32[4,4]", ("f32[4,4]",), "{}"),
    ("lapack_sorgqr_ffi", "f32[4,4]", ("f32[4,4]",), "{}"), ("lapack_ssyevd_ffi", "(f32[4,4], f32[4])", ("f32[4,4]",), "{uplo = 76 : ui8}"),
    ("lapack_ssyevd_ffi", "(f32[4,4], f32[4], s32[])", ("f32[4,4]",), "{}"), ("lapack_sgesdd_ffi", "(f32[4,4], f32[4], f32[4,4], f32[4,4], s32[])", ("f32[4,4]",), "{}"),
    ("lapack_sgesdd_ffi", "(f32[4,4], f32[4], f32[4,4], f32[4,4])", ("f32[4,4]",), "{mode = 83 : ui8}"),
    ("lapack_sgeqp3_ffi", "(f32[4,4], s32[4], f32[4])", ("f32[4,4]",), "{}"), ("lapack_sgeqp3_ffi", "(f32[4,4], s32[4])", ("f32[4,4]", "s32[4]"), "{}"),
    ("lapack_sgehrd_ffi", "(f32[4,4], f32[3], s32[])", ("f32[4,4]",), "{low = 2 : i32, high = 4 : i32}"),
    ("lapack_sgehrd_ffi", "(f32[4,4], f32[3], s32[])", ("f32[4,4]",), "{low = 1 : i32, high = 3 : i32}"),
    ("lapack_sgehrd_ffi", "(f32[4,4], f32[3])", ("f32[4,4]",), "{low = 1 : i32, high = 4 : i32}"),
    ("lapack_ssytrd_ffi", "(f32[4,4], f32[4], f32[3], f32[3], s32[])", ("f32[4,4]",), "{uplo = 85 : ui8}"),
    ("lapack_ssytrd_ffi", "(f32[4,4], f32[4], f32[3], f32[3])", ("f32[4,4]",), "{uplo = 76 : ui8}"),
    ("lapack_sgtsv_ffi", "(f32[4], f32[4], f32[4], f32[4,2])", ("f32[4]", "f32[4]", "f32[4]", "f32[4,2]"), "{}"),
    ("lapack_sgees_ffi", "(f32[4,4], f32[4,4], f32[4], f32[4], s32[], s32[])", ("f32[4,4]",), "{sort = 83 : ui8}"),
    ("lapack_sgees_ffi", "(f32[4,4], f32[4,4], f32[4], s32[], s32[])", ("f32[4,4]",), "{sort = 78 : ui8}"),
    ("lapack_sgeev_ffi", "(f32[4], f32[4], c64[4,4], c64[4,4])", ("f32[4,4]",), "{}"),
    ("lapack_strsm_ffi", "f32[4,4]", ("f32[4,4]", "f32[4,4]"), "{diag = 78 : ui8, side = 82 : ui8, trans_x = 90 : ui8, uplo = 76 : ui8}"),
    ("lapack_strsm_ffi", "f32[4,4]", ("f32[4,4]", "f32[4,4]"), "{diag = 78 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}"),
    ("lapack_strsm_ffi", "f32[4,4]", ("f32[4,4]", "f32[4,4]"), "{side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}"),
    ("lapack_strsm_ffi", "f32[4,4]", ("f32[4,4]", "f32[4,4]"), "{diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8}"),
    ("lapack_strsm_ffi", "f32[4,4]", ("f32[4,4]",), "{diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}"),
])
def test_forms_that_are_not_known_stay(target: str, result: str, types: tuple[str, ...], config: str) -> None:
    assert stays(call(target, result, *types, config=config))


def test_hessenberg_and_tridiagonal_forms() -> None:
    a = noise(4, 4)
    module = call("lapack_sgehrd_ffi", "(f32[4,4], f32[3], s32[])", "f32[4,4]", config="{low = 1 : i32, high = 4 : i32}")
    packed, _, status = reference(module, a)
    h = np.triu(packed, -1).astype(np.float64)
    assert status == 0 and np.allclose(np.poly(h), np.poly(a.astype(np.float64)), atol=1e-4), "the eigenvalues are those of the matrix"
    symmetric = a + a.T
    module = call("lapack_ssytrd_ffi", "(f32[4,4], f32[4], f32[3], f32[3], s32[])", "f32[4,4]", config="{uplo = 76 : ui8}")
    _, diagonal, beside, _, status = reference(module, symmetric)
    assert status == 0
    assert np.allclose(np.linalg.eigvalsh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)), np.linalg.eigvalsh(symmetric), atol=1e-5)


@pytest.mark.parametrize(("full", "vectors"), [(0, 1), (1, 1), (0, 0)])
def test_singular_values_by_the_numbers_of_their_first_form(full: int, vectors: int) -> None:
    a = noise(5, 3)
    columns = 5 if full or not vectors else 3
    text = (f"ENTRY e {{ f = s32[] constant({full})\n v = s32[] constant({vectors})\n p0 = f32[5,3] parameter(0)\n ROOT r = (f32[5,3], f32[3], f32[5,{columns}], "
            'f32[3,3], s32[]) custom-call(f, v, p0), custom_call_target="lapack_sgesdd" }')
    _, s, u, vt, info = reference(expand(typed(read(text))), a)
    assert np.allclose(s, np.linalg.svd(a, compute_uv=False), atol=1e-5) and info == 0
    assert np.allclose(u[:, :3] * s @ vt, a, atol=1e-5) if vectors else not u.any() and not vt.any()


@pytest.mark.parametrize(("target", "result", "config"), [
    ("lapack_sgetrf_ffi", "f32[4,4], s32[4], s32[]", "{}"), ("lapack_sgeqrf_ffi", "f32[4,4], f32[4]", "{}"),
    ("lapack_ssyevd_ffi", "f32[4,4], f32[4], s32[]", "{uplo = 76 : ui8}"), ("lapack_sgehrd_ffi", "f32[4,4], f32[3], s32[]", "{}"),
    ("lapack_ssytrd_ffi", "f32[4,4], f32[4], f32[3], f32[3], s32[]", "{uplo = 76 : ui8}"),
    ("lapack_sgesdd_ffi", "f32[4,4], f32[4], f32[4,4], f32[4,4], s32[]", "{mode = 83 : ui8}")])
def test_further_results_are_zeros(target: str, result: str, config: str) -> None:
    a = noise(4, 4)
    *found, more = reference(call(target, f"({result}, f32[7])", "f32[4,4]", config=config), a)
    assert more.tolist() == [0] * 7 and len(found) == result.count("[")
    for one, other in zip(found, reference(call(target, f"({result})", "f32[4,4]", config=config), a), strict=True):
        assert np.array_equal(one, other)


def test_pivoted_columns_with_further_results() -> None:
    module = call("lapack_sgeqp3_ffi", "(f32[4,4], s32[4], f32[4], f32[7])", "f32[4,4]", "s32[4]")
    *_, more = reference(module, noise(4, 4), np.zeros(4, np.int32))
    assert more.tolist() == [0] * 7


@pytest.mark.parametrize("target", ["__cudnn$convForward", "__onednn$convolution"])
def test_convolutions_in_groups(target: str) -> None:
    labels = ", window={size=1x1}, dim_labels=bf01_oi01->bf01"
    x, w = noise(2, 4, 3, 3), noise(6, 2, 1, 1)
    [got, *_] = reference(call(target, "(f32[2,6,3,3], u8[0])", "f32[2,4,3,3]", "f32[6,2,1,1]", attrs=labels + ", feature_group_count=2"), x, w)
    want = np.concatenate([np.einsum("bihw,oi->bohw", x[:, 2 * g:2 * g + 2], w[3 * g:3 * g + 3, :, 0, 0]) for g in range(2)], 1)
    np.testing.assert_allclose(got, want, atol=1e-5)
    w = noise(6, 4, 1, 1)
    [got, *_] = reference(call(target, "(f32[1,6,3,3], u8[0])", "f32[2,4,3,3]", "f32[6,4,1,1]", attrs=labels + ", batch_group_count=2"), x, w)
    want = np.concatenate([np.einsum("bihw,oi->bohw", x[g:g + 1], w[3 * g:3 * g + 3, :, 0, 0]) for g in range(2)], 1)
    np.testing.assert_allclose(got, want, atol=1e-5)
    gradient = call("__cudnn$convBackwardInput", "(f32[2,4,3,3], u8[0])", "f32[2,6,3,3]", "f32[6,2,1,1]", attrs=labels + ", feature_group_count=2")
    assert stays(gradient), "gradients of groups are not known"


def test_a_factor_alone() -> None:
    a = noise(3, 3)
    a = a @ a.T + np.eye(3, dtype=np.float32)
    [factor] = reference(call("lapack_spotrf_ffi", "f32[3,3]", "f32[3,3]", config="{uplo = 76 : ui8}"), a)
    assert np.allclose(factor @ factor.T, a, atol=1e-5)
    batch = np.stack([a, -a])
    factor, status = reference(call("lapack_spotrf_ffi", "(f32[2,3,3], s32[2])", "f32[2,3,3]", config="{uplo = 76 : ui8}"), batch)
    assert status.tolist() == [0, 1] and np.isnan(factor[1]).any() and np.allclose(factor[0] @ factor[0].T, a, atol=1e-5)
    empty = reference(call("lapack_spotrf_ffi", "(f32[0,0], s32[])", "f32[0,0]", config="{uplo = 76 : ui8}"), np.zeros((0, 0), np.float32))
    assert empty[1] == 0


@pytest.mark.parametrize("count", [1, 2])
def test_the_exact_answer_of_an_approximate_topk(count: int) -> None:
    x = noise(2, 9)
    places = np.tile(np.arange(9, dtype=np.int32), (2, 1))
    more = "".join(f" c{i} = s32[] parameter({i})\n" for i in (2, 3)) if count == 2 else ""
    text = (f"HloModule m\ngt {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n{more} ROOT r = pred[] compare(a, b), direction=GT }}\n"
            "ENTRY e { x = f32[2,9] parameter(0)\n i = s32[2,9] parameter(1)\n z = f32[] constant(0)\n n = s32[] constant(0)\n ROOT r = "
            + ("(f32[2,4], s32[2,4]) custom-call(x, i, z, n)" if count == 2 else "f32[2,4] custom-call(x, z)")
            + ', custom_call_target="ApproxTopK", called_computations={gt}, backend_config={"top_k" = 4 : i64, "reduction_dim" = 1 : i64} }')
    found = expand(read(text.replace('"top_k"', "top_k").replace('"reduction_dim"', "reduction_dim")))
    assert not stays(found)
    values = reference(found, x, places)
    assert np.array_equal(values[0], -np.sort(-x)[:, :4])
    assert count == 1 or np.array_equal(np.take_along_axis(x, values[1], 1), values[0])
    other = text.replace('"top_k" = 4', "top_k = 3").replace('"reduction_dim"', "reduction_dim")
    assert stays(expand(read(other))), "the sizes of the results are others"


def test_annotations_run_unexpanded() -> None:
    module = read('ENTRY e { x = f32[3] parameter(0)\n ROOT r = f32[3] custom-call(x), custom_call_target="Sharding" }')
    x = noise(3)
    assert np.array_equal(reference(module, x)[0], x)
    two = read('ENTRY e { x = f32[3] parameter(0)\n ROOT r = (f32[3], f32[3]) custom-call(x, x), custom_call_target="LayoutConstraint" }')
    assert [v.tolist() for v in reference(two, x)] == [x.tolist()] * 2 == [v.tolist() for v in reference(expand(two), x)]
    for text in ('f32[3] custom-call(x), custom_call_target="mine"', 'f32[4] custom-call(x), custom_call_target="Sharding"',
                 'f32[3] custom-call(), custom_call_target="Sharding"', '(f32[3]) custom-call(x, x), custom_call_target="Sharding"'):
        with pytest.raises(UserError, match="cannot be run"):
            reference(read(f"ENTRY e {{ x = f32[3] parameter(0)\n ROOT r = {text} }}"), x)


@pytest.mark.parametrize("target", ["Pin", "Unpin"])
def test_pins_have_one_pair(target: str) -> None:
    text = f'ENTRY e {{ x = f32[3] parameter(0)\n ROOT r = f32[3] custom-call(x), custom_call_target="{target}"'
    with pytest.raises(TypeFault, match=f"{target} must have one output-to-operand aliasing pair, but has 0"):
        typed(read(text + " }"))
    typed(read(text + ", output_to_operand_aliasing={{}: (0, {})} }"))


def test_every_routine_has_a_name_for_each_element_type() -> None:
    assert {name for name in MEANINGS if "getrf" in name} == {f"lapack_{t}getrf{end}" for t in "sdcz" for end in ("", "_ffi")}
    assert {name for name in MEANINGS if "trsm" in name} == {name for t in "sdcz" for name in (f"lapack_{t}trsm_ffi", f"blas_{t}trsm")}
    routines = "potrf trsm getrf geqrf orgqr ungqr geqp3 syevd heevd gesdd gesvd gehrd sytrd hetrd gtsv gees geev".split()
    assert len(MEANINGS) == 8 * len(routines) and all(any(r in name for r in routines) for name in MEANINGS)
    module = read('ENTRY e { x = f32[3] parameter(0)\n ROOT r = f32[3] custom-call(x), custom_call_target="mine" }')
    assert target_of(module.main().result()) == "mine"
