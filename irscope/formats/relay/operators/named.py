"""Operators that irscope knows by name: shown, linted, and refused with a clear word when they should run.

Random numbers have no value to compare with; the sparse ones, proposals and non-maximum suppression have results whose size depends on
data; the memory and virtual-machine ones belong to a program after it was lowered.
"""

from __future__ import annotations

from irscope.formats.relay.operators import opaque
from irscope.graph import Effect, Kind

C, INJ = Kind.CONTRACTION, Kind.INJECTIVE

opaque(
    "nn.sparse_dense(data, weight_data, weight_indices, weight_indptr; sparse_lhs=False)",
    "nn.internal.sparse_dense_padded(data, weight_data, weight_indices, weight_indptr; sparse_lhs=False)",
    "nn.sparse_transpose(sparse_data, sparse_indices, sparse_indptr)",
    "nn.sparse_conv2d(data, sparse_data, sparse_indices, sparse_indptr; layout='NHWC', kernel_size=[1, 1])",
    "nn.bitserial_dense(data, weight; units!, data_bits=1, weight_bits=1, pack_dtype=None, out_dtype=None, unipolar=True)",
    level=1,
    kind=C,
)
opaque("nn.sparse_add(dense_data, sparse_data, sparse_indices, sparse_indptr)", level=1)
opaque(
    "nn.bitserial_conv2d(data, weight; strides=[1, 1], padding=[0, 0], kernel_size=[3, 3], channels=None, activation_bits=1, "
    "weight_bits=1, data_layout='NCHW', kernel_layout='OIHW', pack_dtype=None, out_dtype=None, unipolar=True)",
    level=2,
    kind=C,
)
opaque("nn.bitpack(data; bits=1, pack_axis=1, bit_axis=-1, pack_type=None, name='BitPack')", level=2, kind=INJ)
opaque(
    "dft(re_data, im_data; inverse=False)",
    "stft(data, window; n_fft=-1, hop_length=-1, win_length=-1, normalized=False, onesided=True)",
    "unique(data; sorted=True, return_counts=False)",
    "argwhere(condition)",
    "sparse_fill_empty_rows(sparse_indices, sparse_values, dense_shape, default_value)",
    "dyn.sparse_to_dense(sparse_indices, sparse_values, default_value, output_shape)",
    "nn.fifo_buffer(data, buffer; axis=0)",
    level=3,
)
opaque("sparse_reshape(sparse_indices, prev_shape, new_shape)", "meta_schedule_layout_transform(data; index_map!)", level=3, kind=INJ)
opaque(
    "nn.contrib_conv2d_gemm_weight_transform(weights; tile_N!, tile_K!)",
    "nn.contrib_conv2d_gemm_without_weight_transform(data, weight; strides=[1, 1], padding=[0, 0], dilation=[1, 1], groups=1, "
    "channels=None, kernel_size=None, data_layout='NCHW', kernel_layout='OIHW', out_layout='', out_dtype=None)",
    "qnn.contrib_dense_pack(data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale; units!, out_dtype='int32', "
    "weight_layout='NC')",
    level=10,
    kind=C,
)
opaque("nn.contrib_conv2d_winograd_nnpack_weight_transform(weight; convolution_algorithm!, out_dtype=None)", level=10)
opaque(
    "qnn.simulated_quantize(data, out_dtype, output_scale, output_zero_point; axis=-1)",
    "qnn.simulated_dequantize(data, in_dtype, input_scale, input_zero_point; axis=-1)",
    level=11,
    kind=Kind.ELEMENTWISE,
)
opaque(
    "memory.alloc_storage(size, shape, alignment?; virtual_device=None, dtype=None, device_id=None, device_type=None)",
    "memory.alloc_tensor(storage, offset, shape; const_shape=None, assert_shape=None, dtype=None)",
    "memory.kill(to_free)",
    "vm.invoke_tvm_op(op, ins, outs)",
    "call_lowered(func, call_args; metadata=None)",
    "debug(program; debug_func=None)",
    "annotation.with_funcid(func; funcid=None)",
    "torch_op(inputs?; serialized_function='', len=-1)",
    level=10,
    effect=Effect.CONTROL,
)
