"""PyTorch operators with a special lowering in Inductor."""
from __future__ import annotations

from irscope.graph import Node
from irscope.ops import lookup
from irscope.ops.sets import OpSet, torchscript

ADDITION = torchscript("add")
AS_STRIDED = torchscript("as_strided")
"""A view that needs its operand in memory."""
ATTENTION_GRADIENTS = torchscript("_scaled_dot_product_flash_attention_for_cpu_backward")
ATTENTION = ATTENTION_GRADIENTS | torchscript("scaled_dot_product_attention _scaled_dot_product_flash_attention_for_cpu")
CONVOLUTION_GRADIENTS = torchscript("convolution_backward")
"""Calls with up to three results, of which a program may read one alone."""
CLONES = torchscript("clone")
COPIES = CLONES | torchscript("contiguous")
DEVIATIONS = torchscript("var std")
GROUP_NORMS = torchscript("group_norm native_group_norm")
LAYER_NORMS = torchscript("layer_norm native_layer_norm")
LINEAR = torchscript("linear")
PRODUCTS = torchscript("matmul bmm")
SOFTMAX = torchscript("softmax _softmax")
ADAPTIVE = torchscript("adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool1d _adaptive_avg_pool2d "
                       "_adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d")
"""Poolings to a given size, which PyTorch does not decompose."""
PLANE_MEANS = torchscript("adaptive_avg_pool2d _adaptive_avg_pool2d")
AT_ONCE = torchscript("mean addcmul addcdiv avg_pool1d avg_pool2d avg_pool3d")
"""Operators of several primitives that PyTorch does not decompose."""
FILLED = torchscript("zeros ones full zeros_like ones_like full_like new_zeros new_ones new_full")
"""Operators that fill a tensor with one number: a tensor of that shape, not a broadcast number."""
FALLBACKS = torchscript(
    "_adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward _addmm_activation _cdist_backward _cdist_forward _cholesky_solve_helper "
    "_conv_depthwise2d _embedding_bag _embedding_bag_backward _embedding_bag_forward_only _embedding_bag_per_sample_weights_backward "
    "_fft_c2c _fft_c2r _fft_r2c _linalg_det _linalg_eigh _linalg_eigvals _linalg_slogdet _linalg_solve_ex _linalg_svd _masked_softmax "
    "_native_multi_head_attention _pdist_backward _pdist_forward _slow_conv2d_forward _thnn_fused_gru_cell _thnn_fused_gru_cell_backward "
    "_thnn_fused_lstm_cell _thnn_fused_lstm_cell_backward_impl _transformer_encoder_layer_fwd _trilinear _upsample_bicubic2d_aa_backward "
    "_upsample_bilinear2d_aa_backward _weight_norm_interface_backward adaptive_max_pool2d_backward adaptive_max_pool3d_backward angle "
    "cholesky cholesky_inverse cholesky_solve conv_depthwise3d conv_tbc digamma fractional_max_pool2d_backward "
    "fractional_max_pool3d_backward gcd geqrf grid_sampler_2d_backward grid_sampler_3d grid_sampler_3d_backward index_reduce "
    "linalg_cholesky_ex linalg_eig linalg_householder_product linalg_inv_ex linalg_lu linalg_lu_factor_ex linalg_lu_solve "
    "linalg_matrix_exp linalg_qr linalg_solve_triangular lu_unpack masked_scatter masked_select max_pool3d_with_indices_backward "
    "nonzero_static ormqr polygamma replication_pad1d_backward replication_pad2d_backward replication_pad3d_backward slow_conv3d_forward "
    "slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d slow_conv_transpose3d soft_margin_loss_backward special_i0e "
    "special_i1e special_modified_bessel_k0 special_modified_bessel_k1 special_ndtr special_ndtri "
    "special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 special_spherical_bessel_j0 special_zeta triangular_solve "
    "unique_dim unique_dim_consecutive upsample_bicubic2d_backward upsample_bilinear2d_backward upsample_linear1d_backward "
    "upsample_nearest1d_backward upsample_nearest3d_backward upsample_trilinear3d_backward view_as_complex")
"""Operators that have neither a lowering nor a decomposition in any known release (``fallbacks`` of lowering.py, and others)."""
LIBRARY = ATTENTION | LINEAR | CONVOLUTION_GRADIENTS | FALLBACKS | torchscript(
    "addmm mm bmm baddbmm addbmm mv addmv dot _convolution convolution conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
    "conv_transpose3d lstm cumprod cummax cummin logcumsumexp sort argsort topk kthvalue median nanmedian mode _unique2 unique_consecutive "
    "nonzero histc bincount searchsorted _grouped_mm scatter_add scatter_reduce")
"""Operators that stay calls of PyTorch's library on a CPU (addmm, convolution, flash attention, mkldnn_rnn_layer, ...): lowering.py
gives them no loops of their own, or the C++ backend has none (scans, sorts)."""
MOMENTS = LAYER_NORMS | GROUP_NORMS | DEVIATIONS | torchscript("instance_norm batch_norm var_mean std_mean")
"""Operators that PyTorch decomposes with ``var_mean``, which computes mean and variance at once."""
SPLITS = torchscript("chunk split split_with_sizes tensor_split unbind unsafe_chunk unsafe_split")
PARTED = ATTENTION | torchscript(
    "lstm max_pool1d max_pool2d max_pool3d max_pool2d_with_indices sort topk kthvalue mode median cummax cummin")
"""Views, and others, with several results in the traced program: each is extracted by a ``getitem``, which keeps its position."""
_READ = (
    (torchscript("upsample_nearest1d upsample_nearest2d upsample_nearest3d"), 1), (torchscript("upsample_linear1d"), 2),
    (torchscript("upsample_bilinear2d"), 4), (torchscript("upsample_trilinear3d"), 8), (torchscript("upsample_bicubic2d"), 16),
)
TOGETHER = LIBRARY | ADAPTIVE | torchscript(
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d upsample_trilinear3d "
    "upsample_bicubic2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa")
"""Operators whose primitives are lowered together."""


def is_of(node: Node, ops: OpSet) -> bool:
    """Whether a primitive belongs to one of these operators, or to its in-place variant."""
    op = node.origin[0].op if node.origin else node.op
    return (lookup(op.name.rstrip("_"), op.dialect) or op) in ops


def elements_read(node: Node) -> int:
    """How many elements each element of an interpolation reads at computed positions; 0 for anything else."""
    return next((count for ops, count in _READ if is_of(node, ops)), 0)
