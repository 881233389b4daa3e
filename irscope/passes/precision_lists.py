"""Which Relay operators gain from half precision, which tolerate it, and which do not.

Two lists, as in TVM's ``ToMixedPrecision`` (python/tvm/relay/transform/mixed_precision.py of 0.19): its names, and data movement operators
that are in none of its lists. All other operators compute in single precision, as those of TVM's third list do: their values grow quickly,
they sum many terms, or they declare their type themselves.
"""
from __future__ import annotations

from irscope.ops.sets import relay

ALWAYS = relay(
    "nn.conv1d nn.conv2d nn.conv3d nn.conv1d_transpose nn.conv2d_transpose nn.conv3d_transpose nn.dense nn.matmul nn.batch_matmul "
    "nn.conv2d_relu nn.contrib_conv2d_NCHWc nn.contrib_depthwise_conv2d_NCHWc")
"""Worth the conversions: heavy, and quicker on halves."""

MOVING = relay(
    "nn.pad nn.mirror_pad nn.batch_flatten nn.depth_to_space nn.space_to_depth concatenate stack split squeeze transpose reshape "
    "expand_dims reshape_like broadcast_to broadcast_to_like strided_slice slice_like take gather gather_nd tile repeat reverse "
    "layout_transform copy where scatter scatter_elements scatter_nd argwhere dyn.reshape dyn.broadcast_to dyn.strided_slice dyn.tile"
)
"""They move numbers and change none: on halves they move half as much."""

FOLLOWING = MOVING | relay(
    "less greater less_equal greater_equal add subtract multiply divide nn.bias_add nn.batch_norm sqrt shape_of ndarray_size max min "
    "maximum minimum argmax argmin nn.relu nn.leaky_relu nn.prelu nn.dropout sigmoid tanh fast_tanh fast_exp fast_erf clip negative abs "
    "nn.max_pool1d nn.max_pool2d nn.max_pool3d nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d nn.global_max_pool2d "
    "nn.adaptive_max_pool1d nn.adaptive_max_pool2d nn.adaptive_max_pool3d image.resize2d nn.upsampling")
"""They bear half precision, and are not worth a conversion: they follow what they read."""
