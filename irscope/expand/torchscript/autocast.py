"""Autocast regions: operators in them take their operands in other element types, which the text of a region does not write.

Sources: the lists of aten/src/ATen/autocast_mode.h (AT_FORALL_LOWER_PRECISION_FP, AT_FORALL_FP32 and CPU's in autocast_mode.cpp).
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from irscope.expand.torchscript.program import TorchProgram
from irscope.formats.torchscript.abstract import Tensor
from irscope.graph import DType
from irscope.graph.dtypes import BF16, F16, F32


def _aten(names: str) -> frozenset[str]:
    return frozenset(f"aten::{name}" for name in names.split())


PRODUCTS = _aten("""
    conv1d conv2d conv3d _convolution conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d bmm mm baddbmm addmm addbmm linear matmul
    linalg_vecdot prelu scaled_dot_product_attention
""")
"""Operators in the lower type on every device."""
ON_CPU = PRODUCTS | _aten("_native_multi_head_attention mkldnn_rnn_layer")
ON_GPU = PRODUCTS | _aten("""
    convolution addmv addr einsum mv chain_matmul linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell
    rnn_tanh_cell rnn_relu_cell _scaled_dot_product_flash_attention
""")
LOSSES = _aten("""
    nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss
    soft_margin_loss triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits poisson_nll_loss cosine_embedding_loss cdist
""")
WIDE_ON_CPU = LOSSES | _aten("""
    avg_pool3d binary_cross_entropy grid_sampler polar prod quantile nanquantile stft trace view_as_complex cholesky cholesky_inverse
    cholesky_solve inverse lu_solve orgqr ormqr pinverse ctc_loss cross_entropy_loss linalg_matrix_norm linalg_cond linalg_matrix_rank
    linalg_solve linalg_cholesky linalg_svdvals linalg_eigvals linalg_eigvalsh linalg_inv linalg_householder_product linalg_tensorinv
    linalg_tensorsolve linalg_qr linalg_cholesky_ex linalg_svd linalg_eig linalg_eigh linalg_lstsq linalg_inv_ex fft_fft fft_ifft fft_fft2
    fft_ifft2 fft_fftn fft_ifftn fft_rfft fft_irfft fft_rfft2 fft_irfft2 fft_rfftn fft_irfftn fft_hfft fft_ihfft geqrf triangular_solve
    replication_pad1d replication_pad2d replication_pad3d multilabel_margin_loss
""")
WIDE_ON_GPU = LOSSES | _aten("""
    acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus layer_norm native_layer_norm group_norm
    frobenius_norm nuclear_norm cosine_similarity dist pdist renorm logsumexp prod softmax log_softmax cumprod cumsum linalg_vector_norm
    linalg_matrix_norm sum upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d
    upsample_trilinear3d upsample_bicubic2d
""")
WIDEST = _aten("cat stack index_copy")
WIDEST_ON_GPU = WIDEST | _aten("addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add")


@dataclass(frozen=True, slots=True)
class Autocast:
    """A region: its lower element type, and the operators that run in it, in float32, and in the widest type of their operands."""

    dtype: DType
    lower: frozenset[str]
    wide: frozenset[str]
    widest: frozenset[str]


@contextmanager
def region(program: TorchProgram, device: str, dtype: int | None, enabled: bool) -> Iterator[None]:
    """Run the operators of the block as autocast does; where it is not enabled, as outside any region."""
    before = program.autocast
    on_cpu = device.startswith("cpu")
    kind = program.t.dtype_number(dtype, BF16 if on_cpu else F16)
    lists = (ON_CPU, WIDE_ON_CPU, WIDEST) if on_cpu else (ON_GPU, WIDE_ON_GPU, WIDEST_ON_GPU)
    program.autocast = Autocast(kind, *lists) if enabled else None
    try:
        yield
    finally:
        program.autocast = before


def cast(program: TorchProgram, name: str, values: Sequence[object]) -> list[Any]:
    """The operands of an operator in the types in which a region runs it."""
    within = program.autocast
    assert isinstance(within, Autocast), "only operators of a region are cast"
    if name in within.lower:
        kind = within.dtype
    elif name in within.wide:
        kind = F32
    elif name in within.widest:
        parts = [part for value in values for part in (value if isinstance(value, list) else [value])]
        kind = F32 if any(isinstance(x, Tensor) and program.t.dtype(x.get()) is F32 for x in parts) else within.dtype
    else:
        return list(values)
    return [_converted(program, value, kind) for value in values]


def _converted(program: TorchProgram, value: object, kind: DType) -> Any:
    """Half types and float32 are cast; float64 and integers are not."""
    if isinstance(value, list):
        return [_converted(program, part, kind) for part in value]
    if not isinstance(value, Tensor) or program.t.dtype(value.get()) not in (F16, BF16, F32) or program.t.dtype(value.get()) is kind:
        return value
    return program.cast(value, kind)
