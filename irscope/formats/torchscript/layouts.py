"""The strides of what operators allocate. They decide whether a later ``reshape``, ``contiguous`` or ``to`` is a view or a copy.

The strides of an unlisted operator are unknown, unless the text states them: after it, a write that would be visible
through such a view is refused. ``make oracle`` checks the lists against torch, for operands with every order of dimensions.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irscope.formats.torchscript.abstract import Tensor
from irscope.formats.torchscript.strides import PRESERVE_FORMAT, Strided, contiguous, pointwise, preserved
from irscope.formats.torchscript.types import TorchTensorType
from irscope.graph import TensorType, Type
from irscope.graph.dtypes import PRED, U8

Shape = tuple[int, ...]
Rule = Callable[[Sequence[object], Shape], "Strided | None"]


def stated(declared: Type | None, shape: Shape) -> Strided | None:
    """The strides that the text states for a value of this shape."""
    if isinstance(declared, TorchTensorType) and declared.strides is not None and declared.shape == shape:
        return Strided(shape, declared.strides) if len(declared.strides) == len(shape) else None
    return None


def allocated(name: str, arguments: Sequence[object], shape: Shape) -> Strided | None:
    """The layout of the result of an operator that allocates; None where it is unknown."""
    if name in CONTIGUOUS:
        return contiguous(shape)
    rule = RULES.get(name)
    return rule(arguments, shape) if rule is not None else None


def may_be_view(name: str, arguments: Sequence[object]) -> list[Tensor]:
    """The tensor whose memory an operator returns for some arguments although its schema does not say so."""
    tensors = _tensors(arguments)
    return tensors if name in PASSED_ON and len(tensors) == 1 else []


# ---------------------------------------------------------------------- rules


def _tensors(arguments: Sequence[object]) -> list[Tensor]:
    flat = [v for a in arguments for v in (a if isinstance(a, list) else [a])]
    return [v for v in flat if isinstance(v, Tensor)]


def _layouts(arguments: Sequence[object]) -> list[Strided] | None:
    """The layouts of all tensors among the arguments, or None when one is unknown."""
    found = [v.layout for v in _tensors(arguments)]
    known = [at for at in found if at is not None]
    return known if len(known) == len(found) else None


def _pointwise(arguments: Sequence[object], shape: Shape) -> Strided | None:
    operands = _layouts(arguments)
    return None if operands is None else pointwise(shape, operands)


def _binary(arguments: Sequence[object], shape: Shape) -> Strided | None:
    """torch treats a number among the first two operands as a tensor without dimensions."""
    operands = _layouts(arguments)
    if operands is None:
        return None
    number = any(not isinstance(a, Tensor) for a in arguments[:2])
    return pointwise(shape, [*operands, contiguous(())] if number else operands)


def _like(arguments: Sequence[object], shape: Shape) -> Strided | None:
    """The layout of the first operand, or the memory format in the last argument."""
    wanted = arguments[-1]
    if isinstance(wanted, int) and not isinstance(wanted, bool) and wanted != PRESERVE_FORMAT:
        return contiguous(shape, wanted)
    return _preserved(arguments, shape)


def _preserved(arguments: Sequence[object], shape: Shape) -> Strided | None:
    at = arguments[0].layout if isinstance(arguments[0], Tensor) else None
    return preserved(at) if at is not None and at.sizes == shape else None


def _suggested(arguments: Sequence[Any], shape: Shape) -> Strided | None:
    """Channels last where the first operand is, else contiguous."""
    at = arguments[0].layout
    return contiguous(shape, at.suggested_format()) if at is not None else None


def _padded(arguments: Sequence[object], shape: Shape) -> Strided | None:
    mode = arguments[2] if len(arguments) > 2 else "constant"
    return _suggested(arguments, shape) if mode == "constant" else contiguous(shape) if mode == "circular" else None


def _joined(arguments: Sequence[Any], shape: Shape) -> Strided | None:
    """``cat``: the memory format that all operands share."""
    operands = _layouts([v for v in arguments[0] if v.layout is None or v.layout.sizes != (0,)])
    if operands is None:
        return None
    formats = {at.suggested_format() for at in operands}
    return contiguous(shape, formats.pop() if len(formats) == 1 else 0)


def _stacked(arguments: Sequence[Any], shape: Shape) -> Strided | None:
    """``stack`` joins along a dimension, which is then split; after the last one it joins operands with one more dimension."""
    tensors, dim = arguments[0], arguments[1] % len(shape)
    if dim == len(shape) - 1:
        return contiguous(shape) if len(shape) < 4 else None
    merged = (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2:])
    joined = _joined([tensors], merged)
    return joined.viewed(shape) if joined is not None else None


def _extremum(arguments: Sequence[object], shape: Shape) -> Strided | None:
    """``max`` of two tensors, or along a dimension."""
    return _pointwise(arguments, shape) if len(arguments) > 1 and isinstance(arguments[1], Tensor) else contiguous(shape)


def _convolution(arguments: Sequence[Any], shape: Shape) -> Strided | None:
    """Channels last where the image or the kernel is."""
    operands = [v.layout for v in arguments[:2]]
    formats = [_image(at).suggested_format() for at in operands if at is not None]
    wanted = next((f for f in formats if f), 0)
    if len(formats) < 2 or (wanted and len(shape) != 4):
        return None  # for signals and volumes the kernel library decides, which torch selects by their sizes
    return contiguous(shape, wanted)


def _pooled_signal(arguments: Sequence[Any], shape: Shape) -> Strided | None:
    """Pools a signal as an image of one row."""
    at = arguments[0].layout
    if at is None or at.rank != 3:
        return None
    return contiguous((*shape[:2], 1, shape[2]), _image(at).suggested_format()).without_dim(2)


def _image(at: Strided) -> Strided:
    """A signal as an image of one row; images and volumes as they are."""
    if at.rank != 3:
        return at
    return Strided((*at.sizes[:2], 1, at.sizes[2]), (*at.strides[:2], at.sizes[2] * at.strides[2], at.strides[2]))


def _with_gaps(arguments: Sequence[Any], shape: Shape) -> Strided | None:
    """A copy of a part of memory, with its gaps (clone_preserve_strides)."""
    at = arguments[0].layout
    return None if at is None else preserved(at) if at.has_overlap() else Strided(shape, at.strides)


def _indexed(arguments: Sequence[Any], shape: Shape) -> Strided | None:
    """``index``: pointwise over the operand, with stride 0 along indexed dimensions, and the indices (AdvancedIndex)."""
    at, indices = arguments[0].layout, list(arguments[1])
    if at is None or any(i is not None and (i.layout is None or _is_mask(i)) for i in indices):
        return None
    indices += [None] * (at.rank - len(indices))
    places = [d for d, i in enumerate(indices) if i is not None]
    if not places:
        return None
    if places[-1] - places[0] + 1 != len(places):
        order = [*places, *(d for d in range(at.rank) if d not in places)]
        at, indices = at.with_dims(order), [indices[d] for d in order]
        places = list(range(len(places)))
    before, after = places[0], at.rank - places[-1] - 1
    rank = len(shape) - before - after
    source = Strided(shape, (*at.strides[:before], *(0,) * rank, *at.strides[places[-1] + 1:]))
    sizes = shape[before:before + rank]
    operands = [source]
    for d in places:
        index = indices[d].layout.expanded(sizes)
        operands.append(Strided((*(1,) * before, *index.sizes, *(1,) * after), (*(0,) * before, *index.strides, *(0,) * after)))
    return pointwise(shape, operands)


def _is_mask(index: Tensor) -> bool:
    type = index.get().type
    return isinstance(type, TensorType) and type.dtype in (PRED, U8)


def _aten(names: str) -> frozenset[str]:
    return frozenset(f"aten::{name}" for name in names.split())


CONTIGUOUS = _aten("""
    _adaptive_avg_pool3d _chunk_cat _log_softmax _safe_softmax _softmax _unsafe_masked_index _upsample_nearest_exact1d
    adaptive_avg_pool3d adaptive_max_pool3d addbmm addmm addmv all amax amin aminmax any arange argmax argmin avg_pool3d baddbmm
    bilinear bincount bmm bucketize cdist chain_matmul cosine_similarity count_nonzero cross cummax cummin cumprod cumsum
    cumulative_trapezoid diag diag_embed diagflat diagonal_copy dot embedding embedding_bag empty expand_copy eye full gather ger
    grid_sampler grid_sampler_2d grid_sampler_3d histc index_add index_copy index_reduce index_select instance_norm kthvalue layer_norm
    linalg_cross linalg_matmul linalg_multi_dot linalg_norm linalg_vander linalg_vecdot linalg_vector_norm linear linspace log_softmax
    logcumsumexp logspace logsumexp masked_fill masked_scatter masked_select matmul max_unpool3d mean median mm mode mv nanmean
    nanmedian nansum narrow_copy native_layer_norm new_empty new_full new_ones new_zeros norm one_hot ones outer pairwise_distance pdist
    permute_copy prod renorm repeat repeat_interleave scatter scatter_add scatter_reduce scalar_tensor searchsorted softmax split_copy
    squeeze_copy std std_mean sum svdvals t_copy take take_along_dim tensor tensordot tile topk transpose_copy trapezoid trapz tril
    tril_indices triu triu_indices unfold_copy unique_consecutive unsqueeze_copy upsample_linear1d upsample_nearest1d var var_mean
    view_copy zeros im2col col2im
""")
"""Operators whose results are contiguous, whatever the operands are."""
POINTWISE = _aten("""
    abs absolute acos acosh addcdiv addcmul arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh bitwise_not ceil celu
    clamp clamp_max clamp_min clip cos cosh deg2rad digamma elu erf erfc erfinv exp exp2 expm1 fix floor frac gelu glu hardshrink
    hardsigmoid hardswish hardtanh i0 isclose isfinite isinf isnan isneginf isposinf leaky_relu lerp lgamma log log10 log1p log2
    logical_not logit mish nan_to_num neg negative polygamma prelu rad2deg reciprocal relu relu6 round rsqrt selu sgn sigmoid sign
    signbit silu sin sinc sinh softplus softshrink special_bessel_j0 special_bessel_j1 special_digamma special_entr special_erf
    special_erfc special_erfcx special_erfinv special_exp2 special_expit special_expm1 special_gammaln special_i0 special_i0e special_i1
    special_i1e special_log1p special_log_ndtr special_logit special_ndtr special_ndtri special_psi special_sinc sqrt square tan tanh
    threshold trunc where
""")
"""Elementwise operators that take their tensors in the order in which torch iterates over them."""
BINARY = _aten("""
    __and__ __lshift__ __or__ __rshift__ __xor__ add arctan2 atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift
    bitwise_xor complex copysign div divide eq float_power floor_divide fmax fmin fmod gcd ge greater greater_equal gt heaviside hypot
    lcm le less less_equal logaddexp logaddexp2 logical_and logical_or logical_xor lt maximum minimum mul multiply ne nextafter
    not_equal polar pow remainder rsub special_xlog1py special_xlogy special_zeta sub subtract true_divide xlogy
""")
"""Elementwise operators of two operands, one of which may be a number."""
PRESERVING = _aten("""
    argsort copy fill flip fliplr flipud index_fill index_put lift_fresh_copy msort put sort zero _to_copy
""")
"""Operators that keep the strides of a dense first operand, and the order of dimensions of any other."""
ALLOCATING = _aten("clone empty_like full_like ones_like rand_like randn_like zeros_like")
"""The same, but for a memory format that they are given."""
SUGGESTED = _aten("""
    _native_batch_norm_legit _native_batch_norm_legit_no_training _upsample_bilinear2d_aa _upsample_nearest_exact2d
    _upsample_nearest_exact3d adaptive_avg_pool2d _adaptive_avg_pool2d adaptive_max_pool2d avg_pool2d batch_norm channel_shuffle
    constant_pad_nd group_norm max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool2d native_batch_norm
    pixel_shuffle pixel_unshuffle roll upsample_bicubic2d upsample_bilinear2d upsample_nearest2d upsample_nearest3d upsample_trilinear3d
""")
"""Operators on images whose results are channels last where the first operand is."""
PASSED_ON = _aten("cartesian_prod chain_matmul einsum")
"""Operators that may return one operand, or a view of it."""
RULES: dict[str, Rule] = {
    **dict.fromkeys(POINTWISE, _pointwise), **dict.fromkeys(BINARY, _binary), **dict.fromkeys(PRESERVING, _preserved),
    **dict.fromkeys(ALLOCATING, _like), **dict.fromkeys(SUGGESTED, _suggested), **dict.fromkeys(_aten("max min"), _extremum),
    **dict.fromkeys(_aten("cat concat concatenate"), _joined), "aten::stack": _stacked, "aten::index": _indexed, "aten::pad": _padded,
    **dict.fromkeys(_aten("adaptive_avg_pool1d adaptive_max_pool1d"), _pooled_signal),
    **dict.fromkeys(_aten("as_strided_scatter diagonal_scatter select_scatter slice_scatter"), _with_gaps),
    **dict.fromkeys(_aten("_convolution _convolution_mode convolution conv1d conv2d conv3d"), _convolution),
}
