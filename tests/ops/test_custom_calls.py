"""Custom calls: what known targets stand for, by the values that they give; unknown ones stay as they are."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irscope.expand import expand
from irscope.graph import Module
from irscope.ops import TypeFault
from irscope.ops.custom_calls import MEANINGS
from tests.ops.running import read, reference, typed


def expanded(text: str) -> Module:
    """The primitive graph, of which no custom call is left."""
    module = expand(typed(read(text)))
    assert not any(n.op.name == "custom-call" for g in module.graphs.values() for n in g.nodes)
    return typed(module)


def noise(*shape: int) -> Any:
    """Normal numbers."""
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("target", ["Sharding", "SPMDFullToShardShape", "xla.sdy.FuncResultSharding", "MoveToHost", "annotate_device_placement"])
def test_annotations_are_their_operand(target: str) -> None:
    module = expanded(f'ENTRY e {{ x = f32[3] parameter(0)\n ROOT r = f32[3] custom-call(x), custom_call_target="{target}" }}')
    x = noise(3)
    assert np.array_equal(reference(module, x)[0], x)


def test_what_is_not_known_stays() -> None:
    module = expand(read('ENTRY e { x = f32[3] parameter(0)\n ROOT r = f32[4] custom-call(x), custom_call_target="mine" }'))
    assert module.main().result().op.name == "custom-call"
    # A known target of an unknown form stays as well.
    module = expand(read('ENTRY e { x = f32[3] parameter(0)\n ROOT r = f32[4] custom-call(x), custom_call_target="Sharding" }'))
    assert module.main().result().op.name == "custom-call"


def test_topk() -> None:
    module = expanded('ENTRY e { x = f32[2,9] parameter(0)\n ROOT r = (f32[2,3], s32[2,3]) custom-call(x), custom_call_target="TopK" }')
    x = noise(2, 9)
    values, places = reference(module, x)
    assert np.array_equal(values, -np.sort(-x)[:, :3]) and np.array_equal(np.take_along_axis(x, places, 1), values)


# ---------------------------------------------------------------- LAPACK

def lapack(target: str, result: str, operands: str, config: str, *types: str) -> Module:
    """One call, as jax writes it."""
    params = "\n".join(f"p{i} = {t} parameter({i})" for i, t in enumerate(types))
    return expanded(f'ENTRY e {{ {params}\n ROOT r = {result} custom-call({operands}), custom_call_target="{target}", '
                    f"api_version=API_VERSION_TYPED_FFI, backend_config={config} }}")


@pytest.mark.parametrize("letter", ["L", "U"])
def test_potrf(letter: str) -> None:
    a = noise(4, 4)
    a = a @ a.T + np.eye(4, dtype=np.float32)
    module = lapack("lapack_spotrf_ffi", "(f32[4,4]{0,1}, s32[])", "p0", f"{{uplo = {ord(letter)} : ui8}}", "f32[4,4]")
    found, info = reference(module, a)
    assert np.allclose(found @ found.T if letter == "L" else found.T @ found, a, atol=1e-5) and info == 0
    assert reference(module, -a)[1] != 0


def test_trsm() -> None:
    a, b = noise(4, 4) + 3 * np.eye(4, dtype=np.float32), noise(3, 4)
    module = lapack("lapack_strsm_ffi", "f32[3,4]{0,1}", "p0, p1", "{diag = 78 : ui8, side = 82 : ui8, trans_x = 84 : ui8, uplo = 76 : ui8}",
                    "f32[4,4]", "f32[3,4]")
    assert np.allclose(reference(module, a, b)[0] @ np.tril(a).T, b, atol=1e-5)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_systems_by_the_numbers_of_their_first_form(left: bool, lower: bool, transposed: bool, unit: bool) -> None:
    a, b = noise(4, 4) + 3 * np.eye(4, dtype=np.float32), noise(4, 4, 1)[..., 0]
    options = [int(not left), int(lower), int(transposed), int(unit)]  # side, uplo, trans_x, diag
    numbers = "\n".join(f"n{i} = s32[] constant({n})" for i, n in enumerate([*options, 1, 4, 4]))
    module = expanded(f"ENTRY e {{ {numbers}\n one = f32[] constant(1)\n p0 = f32[4,4] parameter(0)\n p1 = f32[4,4] parameter(1)\n "
                      "ROOT r = f32[4,4]{0,1} custom-call(n0, n1, n2, n3, n4, n5, n6, one, p0, p1), custom_call_target=\"blas_strsm\" }")
    matrix = np.tril(a) if lower else np.triu(a)
    matrix = matrix - np.diag(np.diag(a)) + np.eye(4) if unit else matrix
    matrix = matrix.T if transposed else matrix
    x, = reference(module, a, b)
    assert np.allclose(matrix @ x if left else x @ matrix, b, atol=1e-3)


def test_lu_qr_and_spectra_by_their_old_and_new_names() -> None:
    a = noise(4, 4)
    new = lapack("lapack_sgetrf_ffi", "(f32[4,4]{0,1}, s32[4], s32[])", "p0", "{}", "f32[4,4]")
    old = expanded("ENTRY e { one = s32[] constant(1)\n four = s32[] constant(4)\n p0 = f32[4,4] parameter(0)\n ROOT r = (f32[4,4]{0,1}, s32[4], s32[]) "
                   'custom-call(one, four, four, p0), custom_call_target="lapack_sgetrf" }')
    for x, y in zip(reference(new, a), reference(old, a), strict=True):
        assert np.array_equal(x, y)
    qr = lapack("lapack_sgeqrf_ffi", "(f32[4,4]{0,1}, f32[4])", "p0", "{}", "f32[4,4]")
    packed, tau = reference(qr, a)
    q, = reference(lapack("lapack_sorgqr_ffi", "f32[4,4]{0,1}", "p0, p1", "{}", "f32[4,4]", "f32[4]"), packed, tau)
    assert np.allclose(q @ np.triu(packed), a, atol=1e-5)
    symmetric = a + a.T
    vectors, values, info = reference(
        lapack("lapack_ssyevd_ffi", "(f32[4,4]{0,1}, f32[4], s32[])", "p0", "{mode = 86 : ui8, uplo = 76 : ui8}", "f32[4,4]"), symmetric)
    assert np.allclose(vectors * values @ vectors.T, symmetric, atol=1e-5) and info == 0


@pytest.mark.parametrize(("mode", "left"), [(83, 3), (65, 5), (78, 5)])
def test_gesdd(mode: int, left: int) -> None:
    a = noise(5, 3)
    module = lapack("lapack_sgesdd_ffi", f"(f32[5,3]{{0,1}}, f32[3], f32[5,{left}]{{0,1}}, f32[3,3]{{0,1}}, s32[])", "p0",
                    f"{{mode = {mode} : ui8}}", "f32[5,3]")
    _, s, u, vt, info = reference(module, a)
    assert np.allclose(s, np.linalg.svd(a, compute_uv=False), atol=1e-5) and info == 0
    assert mode == 78 or np.allclose(u[:, :3] * s @ vt, a, atol=1e-5)


def test_eigenvectors_and_schur_forms() -> None:
    a = noise(4, 4)
    config = "{compute_left = 86 : ui8, compute_right = 86 : ui8}"
    re, im, left, right, _ = reference(lapack("lapack_sgeev_ffi", "(f32[4], f32[4], c64[4,4]{0,1}, c64[4,4]{0,1}, s32[])", "p0", config, "f32[4,4]"), a)
    w = re + 1j * im
    assert np.allclose(a @ right, right * w, atol=1e-5) and np.allclose(left.conj().T @ a, w[:, None] * left.conj().T, atol=1e-5)
    t, z, _, _, chosen, _ = reference(lapack("lapack_sgees_ffi", "(f32[4,4]{0,1}, f32[4,4]{0,1}, f32[4], f32[4], s32[], s32[])", "p0",
                                             "{mode = 86 : ui8, sort = 78 : ui8}", "f32[4,4]"), a)
    assert np.allclose(z @ t @ z.T, a, atol=1e-5) and chosen == 0


def test_tridiagonal_systems_and_pivoted_qr() -> None:
    lower, diagonal, upper, b = noise(4), noise(4) + 3, noise(4), noise(4, 2)
    types = "f32[4]", "f32[4]", "f32[4]", "f32[4,2]"
    module = lapack("lapack_sgtsv_ffi", "(f32[4], f32[4], f32[4], f32[4,2]{0,1}, s32[])", "p0, p1, p2, p3", "{}", *types)
    x = reference(module, lower, diagonal, upper, b)[3]
    assert np.allclose((np.diag(diagonal) + np.diag(lower[1:], -1) + np.diag(upper[:-1], 1)) @ x, b, atol=1e-5)
    module = expanded("ENTRY e { p0 = f32[4,4] parameter(0)\n z = s32[4] parameter(1)\n ROOT r = (f32[4,4]{0,1}, s32[4], f32[4]) custom-call(p0, z), "
                      'custom_call_target="lapack_sgeqp3_ffi", backend_config={} }')
    packed, order, tau = reference(module, noise(4, 4), np.zeros(4, np.int32))
    q, = reference(lapack("lapack_sorgqr_ffi", "f32[4,4]{0,1}", "p0, p1", "{}", "f32[4,4]", "f32[4]"), packed, tau)
    assert np.allclose(q @ np.triu(packed), noise(4, 4)[:, order - 1], atol=1e-5)


# ---------------------------------------------------------------- libraries of GPUs

DIMS = '"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"],"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]}'


def gemm(target: str, config: str, *types: str) -> Module:
    """One product of matrices with a workspace beside the result."""
    params = "\n".join(f"p{i} = {t} parameter({i})" for i, t in enumerate(types))
    names = ", ".join(f"p{i}" for i in range(len(types)))
    attrs = f", backend_config={config}" if config else ""
    return expanded(f'ENTRY e {{ {params}\n ROOT r = (f32[2,3], s8[128]) custom-call({names}), custom_call_target="{target}"{attrs} }}')


def test_gemm() -> None:
    a, b, c, bias = noise(2, 4), noise(4, 3), noise(2, 3), noise(3)
    assert np.allclose(reference(gemm("__cublas$gemm", "", "f32[2,4]", "f32[4,3]"), a, b)[0], a @ b, atol=1e-6)
    scaled = gemm("__cublas$gemm", f'{{"gemm_backend_config":{{"alpha_real":2,"beta":0.5,{DIMS},"epilogue":"DEFAULT"}}}}',
                  "f32[2,4]", "f32[4,3]", "f32[2,3]")
    assert np.allclose(reference(scaled, a, b, c)[0], 2 * a @ b + 0.5 * c, atol=1e-6)
    with_bias = gemm("__cublas$lt$matmul", f'{{"gemm_backend_config":{{"alpha_real":1,"beta":0,{DIMS},"epilogue":"BIAS_RELU"}}}}',
                     "f32[2,4]", "f32[4,3]", "f32[3]")
    assert np.allclose(reference(with_bias, a, b, bias)[0], np.maximum(a @ b + bias, 0), atol=1e-6)
    gelu = gemm("__cublas$lt$matmul", f'{{"gemm_backend_config":{{"alpha_real":1,"beta":0,{DIMS},"epilogue":"GELU"}}}}', "f32[2,4]", "f32[4,3]")
    x = a @ b
    assert np.allclose(reference(gelu, a, b)[0], x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3))), atol=1e-5)


def test_gemm_of_8_bit_floats() -> None:
    import ml_dtypes
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(ml_dtypes.float8_e4m3fn) for shape in ((2, 4), (4, 3)))
    module = gemm("__cublas$lt$matmul$f8", f'{{"gemm_backend_config":{{"alpha_real":1,"beta":0,{DIMS}}}}}', "f8e4m3fn[2,4]", "f8e4m3fn[4,3]", "f32[]", "f32[]")
    assert np.array_equal(reference(module, a, b, np.float32(2), np.float32(0.25))[0], a.astype("f") @ b.astype("f") / 2)


def test_block_scaled_dot_takes_padding_off_the_scales() -> None:
    import ml_dtypes
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (n, 8)).astype(ml_dtypes.float8_e4m3fn) for n in (3, 2))
    scales = [np.exp2(rng.integers(-2, 3, (4, 4))).astype(ml_dtypes.float8_e8m0fnu) for _ in range(2)]
    module = expanded("ENTRY e { a = f8e4m3fn[3,8] parameter(0)\n b = f8e4m3fn[2,8] parameter(1)\n c = f8e8m0fnu[4,4] parameter(2)\n "
                      "d = f8e8m0fnu[4,4] parameter(3)\n g = f32[] parameter(4)\n ROOT r = f32[3,2] custom-call(a, b, c, d, g), "
                      'custom_call_target="__op$block_scaled_dot", backend_config={"block_scaled_dot_backend_config":{"block_size":4}} }')
    x, y = (m.astype("f") * np.repeat(s.astype("f")[:len(m), :2], 4, 1) for m, s in zip((a, b), scales, strict=True))
    assert np.array_equal(reference(module, a, b, *scales, np.float32(3))[0], 3 * (x @ y.T))


def conv(target: str, result: str, window: str, *types: str, config: str = "") -> Module:
    """One convolution of cuDNN."""
    params = "\n".join(f"p{i} = {t} parameter({i})" for i, t in enumerate(types))
    names = ", ".join(f"p{i}" for i in range(len(types)))
    attrs = f", backend_config={config}" if config else ""
    return expanded(f"ENTRY e {{ {params}\n ROOT r = ({result}, u8[0]) custom-call({names}), window={window}, dim_labels=bf01_oi01->bf01, "
                    f'custom_call_target="{target}"{attrs} }}')


@pytest.mark.parametrize(("window", "out"), [("{size=3x2}", (5, 6)), ("{size=3x2 stride=2x3 pad=1_0x0_2}", (3, 3)), ("{size=3x2 rhs_dilate=2x3 pad=2_1x1_1}", (6, 6))])
def test_gradients_of_convolutions(window: str, out: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    x, w, dy = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((2, 3, 7, 7), (4, 3, 3, 2), (2, 4, *out)))
    types = {"x": "f32[2,3,7,7]", "w": "f32[4,3,3,2]", "y": f"f32[2,4,{out[0]},{out[1]}]"}
    y = reference(conv("__cudnn$convForward", types["y"], window, types["x"], types["w"]), x, w)[0]
    dx = reference(conv("__cudnn$convBackwardInput", types["x"], window, types["y"], types["w"]), dy, w)[0]
    dw = reference(conv("__cudnn$convBackwardFilter", types["w"], window, types["x"], types["y"]), x, dy)[0]
    # The result is linear in both, so its product with dy is that of each operand with its gradient.
    assert float((y * dy).sum()) == float((x * dx).sum()) == float((w * dw).sum())


@pytest.mark.parametrize(("image", "kernel"), [("f32[2,3,4,4]", "f32[5]"), ("f32[2,3,4,4]", "f32[5,4,1,1]"), ("f32[2,3]", "f32[5,3,1,1]")])
def test_operands_that_do_not_fit_leave_the_call(image: str, kernel: str) -> None:
    """XLA checks no operands of a custom call: these make no convolution."""
    module = expand(typed(read(f"ENTRY e {{ x = {image} parameter(0)\n w = {kernel} parameter(1)\n ROOT r = (f32[2,5,4,4], u8[0]) "
                               'custom-call(x, w), window={size=1x1}, dim_labels=bf01_oi01->bf01, custom_call_target="__cudnn$convForward" }')))
    assert not any(n.op.name == "convolution" for n in module.main().nodes)


def test_bias_and_activation() -> None:
    x, w, bias, side = noise(2, 3, 4, 4), noise(5, 3, 1, 1), noise(5), noise(2, 5, 4, 4)
    config = '{"cudnn_conv_backend_config":{"activation_mode":"kRelu","conv_result_scale":2,"side_input_scale":0.5,"leakyrelu_alpha":0}}'
    module = conv("__cudnn$convBiasActivationForward", "f32[2,5,4,4]", "{size=1x1}", "f32[2,3,4,4]", "f32[5,3,1,1]", "f32[5]", "f32[2,5,4,4]",
                  config=config)
    want = np.maximum(2 * np.einsum("bihw,oi->bohw", x, w[..., 0, 0]) + 0.5 * side + bias[None, :, None, None], 0)
    assert np.allclose(reference(module, x, w, bias, side)[0], want, atol=1e-5)


def test_onednn() -> None:
    a, b, bias = noise(2, 3, 4), noise(2, 4, 5), noise(5)
    module = expanded("ENTRY e { a = f32[2,3,4] parameter(0)\n b = f32[2,4,5] parameter(1)\n c = f32[5] parameter(2)\n ROOT r = f32[2,3,5] custom-call(a, b, c), "
                      'custom_call_target="__onednn$matmul", backend_config={"onednn_matmul_config":{"fusions":{"ops":["BIAS","RELU"]}}} }')
    assert np.allclose(reference(module, a, b, bias)[0], np.maximum(a @ b + bias, 0), atol=1e-5)


# ---------------------------------------------------------------- types and cost

@pytest.mark.parametrize(("text", "words"), [
    ('ENTRY e { x = f32[] parameter(0)\n ROOT r = u64[] custom-call(x), custom_call_target="GetRngSeed" }', "0 operands"),
    ('ENTRY e { ROOT r = f32[] custom-call(), custom_call_target="GetRngSeed" }', "U64"),
])
def test_what_does_not_fit_is_said(text: str, words: str) -> None:
    with pytest.raises(TypeFault) as fault:
        typed(read(text))
    assert words in fault.value.message


def test_cost_is_that_of_what_is_called() -> None:
    text = 'ENTRY e {{ a = f32[8,5] parameter(0)\n b = f32[5,7] parameter(1)\n ROOT r = f32[8,7] custom-call(a, b), custom_call_target="{}" }}'
    for target, cost in (("__cublas$gemm", 2 * 8 * 5 * 7), ("mine", 0)):
        node = read(text.format(target)).main().result()
        assert node.op.cost is not None and node.op.cost(node) == cost
    assert "lapack_zheevd_ffi" in MEANINGS and "blas_dtrsm" in MEANINGS
