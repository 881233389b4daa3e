"""Calls of operators that AOT graphs, Inductor and exported programs have, and that no sample of torch's own tests dispatches to."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Call = tuple[str, tuple[Any, ...]]


def core_calls(seed: int) -> Iterator[Call]:
    """Name with namespace and overload, and arguments."""
    import torch
    import torch._inductor.inductor_prims
    import torch.ao.quantization.fx._decomposed
    g = torch.Generator().manual_seed(seed)

    def r(*shape: int, dtype: Any = torch.float32) -> Any:
        return torch.randn(shape, generator=g).to(dtype)
    yield from attention(r)
    yield from norms(r)
    yield from primitives(r)
    yield from quantisation(r)
    yield from lists(r)
    yield from products(r)
    yield from distances(r)
    yield from grids(r)


def attention(r: Any) -> Iterator[Call]:
    """Kernels of attention, and their gradients."""
    import torch
    masks = [None, r(1, 1, 5, 7), torch.where(r(2, 1, 5, 7) > -0.5, 0.0, float("-inf"))]
    for dtype in (torch.float32, torch.bfloat16):
        for mask in masks:
            q, k, v = r(2, 3, 5, 8, dtype=dtype), r(2, 3, 7, 8, dtype=dtype), r(2, 3, 7, 8, dtype=dtype)
            mask = mask if mask is None else mask.to(dtype)
            for causal in (False, True) if mask is None else (False,):
                op = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
                yield "aten::_scaled_dot_product_flash_attention_for_cpu", (q, k, v, 0.0, causal, mask, 0.3)
                made, logs = op(q, k, v, 0.0, causal, attn_mask=mask)
                yield ("aten::_scaled_dot_product_flash_attention_for_cpu_backward",
                       (r(2, 3, 5, 8, dtype=dtype), q, k, v, made, logs, 0.0, causal, mask, None))
                yield "aten::_scaled_dot_product_attention_math", (q, k, v, mask, 0.0, causal, None, None, False)


def norms(r: Any) -> Iterator[Call]:
    """Normalisations with what they save."""
    import torch
    for dtype in (torch.float32, torch.bfloat16):
        x, w = r(2, 3, 4, dtype=dtype), r(4, dtype=dtype)
        yield "aten::_fused_rms_norm", (x, [4], w, 1e-5)
        yield "aten::_fused_rms_norm", (x, [3, 4], None, None)
    half = r(2, 4, 3, dtype=torch.bfloat16)
    yield "aten::native_layer_norm", (half, [3], r(3), r(3), 1e-5)  # parameters may be wider than the input
    yield "aten::native_group_norm", (half, r(4), r(4), 2, 4, 3, 2, 1e-5)
    yield "aten::native_batch_norm", (half, r(4), r(4), r(4), r(4).abs(), False, 0.1, 1e-5)
    yield "aten::native_batch_norm", (half, r(4), r(4), None, None, True, 0.1, 1e-5)
    for training in (True, False):
        yield ("aten::_native_batch_norm_legit_functional",
               (r(3, 2, 5), r(2), r(2), r(2), r(2).abs(), training, 0.1, 1e-5))
    yield "aten::_native_batch_norm_legit.no_stats", (r(3, 2, 5), None, None, True, 0.1, 1e-5)
    yield "aten::_batch_norm_with_update_functional", (r(3, 2, 5), r(2), r(2), r(2), r(2).abs(), 0.1, 1e-5)
    yield "aten::_batch_norm_no_update", (r(3, 2, 5), r(2), r(2), r(2), r(2).abs(), 0.1, 1e-5)
    own, factor = torch.ops.aten._native_batch_norm_legit_functional(
        r(3, 2, 5), r(2), r(2), r(2), r(2).abs(), True, 0.1, 1e-5)[1:3]
    yield "aten::native_batch_norm_backward", (r(3, 2, 5), r(3, 2, 5), r(2), r(2), r(2).abs(), own, factor, False, 1e-5, [True, True, False])


def primitives(r: Any) -> Iterator[Call]:
    """The namespace prims."""
    import torch
    x, y, ints = r(3, 4), r(3, 4), (r(3, 4) * 9).to(torch.int64)
    near = x.clamp(-0.9, 0.9)
    for name in ("abs cos cosh erf erfc exp expm1 floor ceil round trunc isfinite neg sign signbit sin sinh tan tanh atan asinh bessel_j0 bessel_j1 "
                 "bessel_i0 bessel_i0e bessel_i1 bessel_i1e cbrt erfcx exp2 spherical_bessel_j0").split():
        yield f"prims::{name}", (x,)
    for name in "acos asin atanh erf_inv".split():
        yield f"prims::{name}", (near,)
    for name in "log log1p log2 log10 lgamma digamma reciprocal rsqrt sqrt acosh".split():
        yield f"prims::{name}", (x.abs() + 1.1,)
    yield "prims::ndtri", (near.abs(),)
    for name in "add atan2 div eq fmax fmin fmod ge gt hypot le lt maximum minimum mul ne nextafter remainder sub".split():
        yield f"prims::{name}", (x, y)
    for name in "bitwise_and bitwise_or bitwise_xor div gcd maximum add sub mul eq".split():
        yield f"prims::{name}", (ints, (y * 5).to(torch.int64) * 2 + 1)
    for name in "shift_left shift_right_arithmetic".split():
        yield f"prims::{name}", (ints, (y.abs() * 2).to(torch.int64))
    yield "prims::pow", (x.abs(), y)
    yield "prims::zeta", (x.abs() + 1.5, y.abs() + 0.5)
    yield "prims::bitwise_not", (ints,)
    for dtype in (torch.float64, torch.int32, torch.bfloat16, torch.bool):
        yield "prims::convert_element_type", (x * 3, dtype)
    yield "prims::where", (x > 0, x, y)
    yield "prims::fma", (x, y, r(3, 4))
    yield "prims::broadcast_in_dim", (r(4), [2, 4, 3], [1])
    yield "prims::broadcast_in_dim", (r(2, 1), [2, 5, 3], [0, 2])
    yield "prims::broadcast_in_dim", (r(), [2, 3], [])
    yield "prims::collapse", (r(2, 3, 4), 0, 1)
    yield "prims::collapse_view", (r(2, 3, 4), 1, 2)
    yield "prims::split_dim", (r(6, 4), 0, 2)
    yield "prims::squeeze", (r(2, 1, 3, 1), [1, 3])
    yield "prims::transpose", (r(2, 3, 4), [2, 0, 1])
    yield "prims::reshape", (r(2, 6), [3, 4])
    yield "prims::rev", (r(2, 3, 4), [0, 2])
    yield "prims::cat", ([r(2, 3), r(2, 4)], 1)
    yield "prims::as_strided", (r(3, 4), [2, 2], [4, 1], 1)
    yield "prims::as_strided_scatter", (r(3, 4), r(2, 2), [2, 2], [4, 1], 1)
    for name in ("sum", "prod", "amax", "amin"):
        yield f"prims::{name}", (r(3, 4, 2), [0, 2])
    yield "prims::var", (r(3, 4, 2), [0, 2], 1.0)
    yield "prims::full_like", (x, 2.5, dtype_of(x), torch.device("cpu"), False)
    yield "prims::fft_r2c", (r(3, 5), [1], True)
    yield "prims::fft_c2c", (torch.complex(r(3, 4), r(3, 4)), [0, 1], True)
    yield "prims::fft_c2r", (torch.complex(r(3, 4), r(3, 4)), [1], 7)
    for ceil in (False, True):
        yield "prims::_low_memory_max_pool_with_offsets", (r(2, 3, 7, 8), [3, 2], [2, 2], [1, 0], [1, 2], ceil)
    within = torch.ops.prims._low_memory_max_pool_with_offsets(r(2, 3, 7, 8), [3, 2], [2, 2], [1, 0], [1, 2], False)[1]
    yield "prims::_low_memory_max_pool_offsets_to_indices", (within, [3, 2], [7, 8], [2, 2], [1, 0], [1, 2])
    yield "prims::prepare_softmax_online", (r(3, 4), 1)
    yield "prims::inductor_lookup_seed", (torch.tensor([5, 6, 7]), 1)


def dtype_of(x: Any) -> Any:
    """The element type of a tensor."""
    return x.dtype


def quantisation(r: Any) -> Iterator[Call]:
    """The namespace quantized_decomposed."""
    import torch
    space = "quantized_decomposed::"
    x = r(4, 8) * 3
    steps = (x * 9).round().clamp(-128, 127).to(torch.int8)
    scale, zero = torch.tensor(0.037, dtype=torch.float64), torch.tensor(-3)
    scales, zeros = r(4).abs() * 0.1 + 0.01, torch.tensor([0, 3, -5, 2])
    for dtype, low, high in ((torch.int8, -128, 127), (torch.uint8, 0, 255), (torch.int16, -32768, 32767), (torch.int32, -100, 100)):
        yield space + "quantize_per_tensor", (x, 0.0371, 3, low, high, dtype)
    yield space + "quantize_per_tensor", (x.to(torch.bfloat16), 0.0371, 3, -128, 127, torch.int8)
    yield space + "quantize_per_tensor.tensor", (x, scale, zero, -128, 127, torch.int8)
    yield space + "dequantize_per_tensor", (steps, 0.0371, 3, -128, 127, torch.int8)
    yield space + "dequantize_per_tensor.tensor", (steps, scale, zero, -128, 127, torch.int8)
    yield space + "quantize_per_channel", (x, scales, zeros, 0, -128, 127, torch.int8)
    yield space + "quantize_per_channel", (x.t().contiguous(), scales, zeros, 1, -7, 8, torch.int8)
    yield space + "dequantize_per_channel", (steps, scales, zeros, 0, -128, 127, torch.int8)
    yield space + "dequantize_per_channel", (steps, scales, None, 0, -128, 127, torch.int8)
    yield space + "choose_qparams.tensor", (x, -128, 127, 1e-6, torch.int8)
    yield space + "choose_qparams.tensor", (x.abs() + 1, 0, 255, 1e-6, torch.uint8)
    yield space + "choose_qparams_symmetric.tensor", (x, -127, 127, 1e-6, torch.int8)
    yield space + "choose_qparams_per_token", (x, torch.int8)
    yield space + "choose_qparams_per_token_asymmetric", (x, torch.int8)
    s, z = torch.ops.quantized_decomposed.choose_qparams_per_token_asymmetric(x, torch.int8)
    yield space + "quantize_per_token", (x, s, z, -128, 127, torch.int8)
    yield space + "dequantize_per_token", (steps, s, z, -128, 127, torch.int8, torch.float32)
    group_scales, group_zeros = r(4, 2).abs() * 0.1 + 0.01, torch.zeros(4, 2) + 1
    yield space + "quantize_per_channel_group", (x, group_scales, group_zeros, -8, 7, torch.int8, 4)
    yield space + "dequantize_per_channel_group", (steps, group_scales, group_zeros, -8, 7, torch.int8, 4, torch.float32)


def lists(r: Any) -> Iterator[Call]:
    """Operators of lists of tensors."""
    xs, ys, zs = [r(2, 3), r(4)], [r(2, 3), r(4)], [r(2, 3).abs() + 0.5, r(4).abs() + 0.5]
    for name in "abs cos erf exp floor neg reciprocal round sigmoid sign sin sqrt tan tanh trunc clone max".split():
        yield f"aten::_foreach_{name}", (zs if name == "sqrt" else xs,)
    for name in "add sub mul div maximum minimum clamp_max clamp_min".split():
        yield f"aten::_foreach_{name}.List", (xs, ys)
        yield f"aten::_foreach_{name}.Scalar", (xs, 0.75)
        yield f"aten::_foreach_{name}.ScalarList", (xs, [0.5, -1.5])
    yield "aten::_foreach_add.List", (xs, ys, 2.5)
    yield "aten::_foreach_mul.Tensor", (xs, r())
    yield "aten::_foreach_pow.Scalar", (zs, 1.5)
    yield "aten::_foreach_pow.List", (zs, ys)
    yield "aten::_foreach_pow.ScalarAndTensor", (2.0, ys)
    for name in ("addcmul", "addcdiv"):
        yield f"aten::_foreach_{name}.Scalar", (xs, ys, zs, 0.1)
        yield f"aten::_foreach_{name}.ScalarList", (xs, ys, zs, [0.1, 2.0])
    yield "aten::_foreach_lerp.Scalar", (xs, ys, 0.3)
    yield "aten::_foreach_lerp.List", (xs, ys, zs)
    yield "aten::_foreach_norm.Scalar", (xs, 2)


def products(r: Any) -> Iterator[Call]:
    """Matrix products in other types."""
    import torch
    a, b = (r(17, 16) * 20).to(torch.int8), (r(16, 8) * 20).to(torch.int8)
    yield "aten::_int_mm", (a, b)
    yield "aten::_addmm_activation", (r(4), r(3, 5), r(5, 4), 1, 1, True)
    yield "aten::_addmm_activation", (r(4), r(3, 5), r(5, 4), 1, 1, False)
    yield "aten::_weight_norm_interface", (r(4, 3), r(4, 1), 0)
    v, gain = r(4, 3), r(4, 1)
    norm = torch.ops.aten._weight_norm_interface(v, gain, 0)[1]
    yield "aten::_weight_norm_interface_backward", (r(4, 3), v, gain, norm, 0)
    yield "aten::native_dropout", (r(3, 4), 0.5, False)
    yield "aten::embedding_dense_backward", (r(2, 3, 4), torch.tensor([[1, 2, 5], [2, 2, 0]]), 7, 2, False)
    yield "aten::embedding_dense_backward", (r(2, 3, 4), torch.tensor([[1, 2, 5], [2, 2, 0]]), 7, -1, True)
    yield "aten::_masked_softmax", (r(2, 3, 4, 4), r(4, 4) > 0.8, 3, 0)
    yield "aten::trace_backward", (r(), [3, 4])
    yield "aten::value_selecting_reduction_backward", (r(3), 1, torch.tensor([0, 2, 1]), [3, 4], False)
    yield "aten::index_select_backward", (r(3, 4), [5, 4], 0, torch.tensor([1, 1, 3]))
    yield "aten::conv_tbc", (r(6, 2, 3), r(3, 3, 4), r(4), 1)


def distances(r: Any) -> Iterator[Call]:
    """Distances of rows by several norms."""
    import torch
    x, y = r(2, 3, 4), r(2, 5, 4)
    for p in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")):
        distance = torch.ops.aten._cdist_forward(x, y, p, None)
        yield "aten::_cdist_forward", (x, y, p, None)
        yield "aten::_cdist_backward", (r(2, 3, 5), x, y, p, distance)
    rows = r(4, 3)
    for p in (1.0, 2.0, 3.0):
        yield "aten::_pdist_backward", (r(6), rows, p, torch.ops.aten._pdist_forward(rows, p))


def grids(r: Any) -> Iterator[Call]:
    """Gradients of sampling at positions, some of them outside the image."""
    for mode in (0, 1):
        for padding in (0, 1, 2):
            for corners in (False, True):
                yield ("aten::grid_sampler_2d_backward",
                       (r(1, 2, 3, 2), r(1, 2, 4, 5), r(1, 3, 2, 2) * 0.9, mode, padding, corners, [True, True]))
    yield "aten::grid_sampler_3d_backward", (r(1, 2, 2, 2, 2), r(1, 2, 3, 4, 3), r(1, 2, 2, 2, 3) * 0.9, 0, 0, False, [True, True])
