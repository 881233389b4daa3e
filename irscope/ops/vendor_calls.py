"""Calls of cuBLAS, cuDNN and oneDNN in optimized dumps, expanded to contractions and convolutions.

The backend's own configuration has dimension numbers, scales, and the epilogue (a bias, an activation). A call whose configuration is
not fully known here stays as it is.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isqrt, prod
from typing import Any

from irscope.graph import Node, TensorType
from irscope.graph.dtypes import F32, F64
from irscope.ops.attributes import CustomCall
from irscope.ops.attrs import ConvDims, Window
from irscope.ops.building import type_of
from irscope.ops.calls import WrittenCall
from irscope.ops.shapes import size

# ---------------------------------------------------------------- what follows


def _activated(call: WrittenCall, x: Node, name: str) -> Node | None:
    """``x`` after an activation, or None for an unknown one."""
    t = type_of(x)
    match name.upper().removeprefix("K"):
        case "" | "NONE" | "DEFAULT":
            return x
        case "RELU":
            return call.add("maximum", (x, call.constant(0, t)))
        case "RELU6":
            return call.add("minimum", (call.add("maximum", (x, call.constant(0, t))), call.constant(6, t)))
        case "ELU":
            rest = call.add("exponential-minus-one", (x,))
            return call.add("select", (call.add("compare", (x, call.constant(0, t)), {"direction": "GT"}), x, rest))
        case "SIGMOID" | "LOGISTIC":
            return call.add("logistic", (x,))
        case "TANH":
            return call.add("tanh", (x,))
        case "SILU" | "SWISH":
            return call.add("multiply", (x, call.add("logistic", (x,))))
        case "GELU" | "GELU_TANH":
            return _gelu_tanh(call, x, t)
        case "GELU_ERF":
            scaled = call.add("erf", (call.add("multiply", (x, call.constant(0.7071067811865476, t))),))
            return call.add("multiply", (call.add("multiply", (x, call.constant(0.5, t))), call.add("add", (scaled, call.constant(1, t)))))
    return None


def _gelu_tanh(call: WrittenCall, x: Node, t: TensorType) -> Node:
    """``x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))``, as in cuBLAS."""
    cube = call.add("multiply", (call.add("multiply", (x, x)), x))
    inner = call.add("add", (x, call.add("multiply", (cube, call.constant(0.044715, t)))))
    bent = call.add("tanh", (call.add("multiply", (inner, call.constant(0.7978845608028654, t))),))
    return call.add("multiply", (call.add("multiply", (x, call.constant(0.5, t))), call.add("add", (bent, call.constant(1, t)))))


def _scaled(call: WrittenCall, x: Node, factor: float) -> Node:
    """``x * factor``; nothing for 1."""
    return x if factor == 1 else call.add("multiply", (x, call.constant(factor, type_of(x))))


def _along(call: WrittenCall, bias: Node, t: TensorType, dimension: int) -> Node | None:
    """A vector along one dimension of ``t``; None when it does not fit."""
    b = bias.type
    if not isinstance(b, TensorType) or b.shape != (t.shape[dimension],):
        return None
    return call.convert(call.add("broadcast", (bias,), {"dimensions": (dimension,)}, TensorType(b.dtype, t.shape)), t.dtype)


def _summed_type(t: TensorType) -> TensorType:
    """The type in which a library accumulates and applies the epilogue."""
    return TensorType(F64 if t.dtype is F64 else F32, t.shape) if t.dtype.is_float else TensorType(t.dtype, t.shape)


# ---------------------------------------------------------------- matrix products

_PLAIN = {"lhs_contracting_dimensions": [1], "rhs_contracting_dimensions": [0]}
_EPILOGUES = {
    "DEFAULT": (False, ""), "BIAS": (True, ""), "RELU": (False, "RELU"), "BIAS_RELU": (True, "RELU"), "GELU": (False, "GELU"),
    "BIAS_GELU": (True, "GELU"), "SILU": (False, "SILU"), "BIAS_SILU": (True, "SILU"),
}


def _dot_attrs(dims: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {f"{side}_{what}_dims": tuple(int(d) for d in dims.get(f"{side}_{what}_dimensions", ()))
            for side in ("lhs", "rhs") for what in ("contracting", "batch")}


def _batched(rank: int, lhs: int, rhs: int) -> dict[str, tuple[int, ...]]:
    """A product of matrices in the last two dimensions, over the contracting dimensions named."""
    batch = tuple(range(rank - 2))
    return {"lhs_contracting_dims": (lhs,), "rhs_contracting_dims": (rhs,), "lhs_batch_dims": batch, "rhs_batch_dims": batch}


def _gemm(call: WrittenCall) -> Node | None:
    """``alpha * dot(a, b) + beta * c``, then the epilogue. Without a configuration, the product of two matrices.

    Operands are a, b, c (where beta is not 0), scalar scales of 8-bit floats (of a, of b, of c, and of the result), and the bias.
    """
    config = call.config().get("gemm_backend_config", {})
    types = call.types()
    if len(call.operands) < 2 or not types or config.get("alpha_imag", 0):
        return None
    if not config and any(not isinstance(o.type, TensorType) or o.type.rank != 2 for o in call.operands[:2]):
        return None
    has_bias, activation = _EPILOGUES.get(config.get("epilogue", "DEFAULT"), (False, "?"))
    matrices = [o for o in call.operands if isinstance(o.type, TensorType) and o.type.rank > 1]
    scales = [o for o in call.operands if isinstance(o.type, TensorType) and not o.type.rank]
    vectors = [o for o in call.operands if isinstance(o.type, TensorType) and o.type.rank == 1]
    # Some configurations have a beta without the operand for it.
    beta = float(config.get("beta", 0)) if len(matrices) > 2 else 0.0
    if len(matrices) not in (2, 3) or len(vectors) != has_bias or (len(matrices) == 3) != (beta != 0) or len(scales) > 4:
        return None
    wide = _summed_type(types[0])
    total = call.add("dot", matrices[:2], _dot_attrs(config.get("dot_dimension_numbers", _PLAIN)), wide)
    total = _scaled(call, total, float(config.get("alpha_real", 1)))
    for scale in scales[:2]:
        total = _times(call, total, scale)
    if beta:
        more = _scaled(call, call.convert(matrices[2], wide.dtype), beta)
        total = call.add("add", (total, _times(call, more, scales[2]) if len(scales) > 2 else more))
    if has_bias:
        bias = _along(call, vectors[0], wide, wide.rank - 1)
        if bias is None:
            return None
        total = call.add("add", (total, bias))
    done = _activated(call, total, activation)
    if done is None:
        return None
    done = _times(call, done, scales[3]) if len(scales) > 3 else done
    return call.result([call.convert(done, types[0].dtype)])


def _times(call: WrittenCall, x: Node, scale: Node) -> Node:
    """An array times a scalar."""
    t = type_of(x)
    return call.add("multiply", (x, call.add("broadcast", (call.convert(scale, t.dtype),), {"dimensions": ()}, t)))


def _block_scaled_dot(call: WrittenCall) -> Node | None:
    """Rows of blocks with a scale each: a scaled-dot over the last dimensions, and an optional scale of the result."""
    if len(call.operands) not in (3, 4, 5) or not call.types():
        return None
    lhs, rhs = (o.type for o in call.operands[:2])
    if not isinstance(lhs, TensorType) or not isinstance(rhs, TensorType) or lhs.rank != rhs.rank or lhs.rank not in (2, 3):
        return None
    block = int(call.config().get("block_scaled_dot_backend_config", {}).get("block_size", 0))
    scales = [_unpadded(call, scale, side, block) for scale, side in zip(call.operands[2:4], (lhs, rhs), strict=False)]
    if len(scales) == 1:
        scales.append(call.constant(1, TensorType(F32, ())))
    attrs = _batched(lhs.rank, lhs.rank - 1, rhs.rank - 1)
    t = call.types()[0]
    whole = call.add("scaled-dot", (*call.operands[:2], *scales), attrs, _summed_type(t))
    whole = _times(call, whole, call.operands[4]) if len(call.operands) == 5 else whole
    return call.result([call.convert(whole, t.dtype)])


def _unpadded(call: WrittenCall, scale: Node, side: TensorType, block: int) -> Node:
    """A scale without the rows and blocks that only pad a tile."""
    t = type_of(scale)
    if not t.rank or not block:
        return scale
    wanted = (*side.dims()[:-1], -(-side.dims()[-1] // block))
    return scale if t.dims() == wanted else call.add("slice", (scale,), {"slice": tuple((0, n, 1) for n in wanted)})


def _onednn_matmul(call: WrittenCall) -> Node | None:
    config = call.config().get("onednn_matmul_config", {})
    lhs, rhs = (o.type for o in call.operands[:2])
    if not isinstance(lhs, TensorType) or not isinstance(rhs, TensorType) or lhs.rank != rhs.rank or lhs.rank < 2:
        return None
    attrs = _batched(lhs.rank, lhs.rank - (2 if config.get("transpose_a") else 1), rhs.rank - (1 if config.get("transpose_b") else 2))
    t = call.types()[0]
    total = call.add("dot", call.operands[:2], attrs, _summed_type(t))
    return _with_fusions(call, total, config, t.rank - 1)


def _with_fusions(call: WrittenCall, total: Node, config: Mapping[str, Any], feature: int) -> Node | None:
    """The post-operations of oneDNN, in order; each BIAS and BINARY_ADD takes one more operand."""
    more = iter(call.operands[2:])
    for name in config.get("fusions", {}).get("ops", ()):
        t = type_of(total)
        if name in ("BIAS", "BINARY_ADD", "SUM"):
            other = next(more, None)
            if other is None or not isinstance(other.type, TensorType):
                return None
            same = other.type.shape == t.shape
            term = call.convert(other, t.dtype) if same else _along(call, other, t, feature)
        else:
            term = _activated(call, total, name)
        if term is None:
            return None
        total = call.add("add", (total, term)) if name in ("BIAS", "BINARY_ADD", "SUM") else term
    return None if next(more, None) is not None else call.result([call.convert(total, call.types()[0].dtype)])


# ---------------------------------------------------------------- convolutions

def _groups(call: WrittenCall) -> dict[str, int]:
    attrs = CustomCall.of(call.node)
    return {"feature_group_count": attrs.feature_group_count, "batch_group_count": attrs.batch_group_count}


def _conv_parts(call: WrittenCall) -> tuple[ConvDims, Window, TensorType] | None:
    dims, types = CustomCall.of(call.node).dim_labels, call.types()
    if not isinstance(dims, ConvDims) or len(call.operands) < 2 or not types:
        return None
    window = CustomCall.of(call.node).window or Window.make(())
    return dims, window, types[0]


def _conv_forward(call: WrittenCall) -> Node | None:
    """``activation(scale * convolution(x, w) + bias + side_scale * side)``."""
    parts = _conv_parts(call)
    if parts is None:
        return None
    dims, window, t = parts
    config = call.config().get("cudnn_conv_backend_config", {})
    wide = _summed_type(t)
    total = call.add("convolution", call.operands[:2], {"dim_labels": dims, "window": window, **_groups(call)}, wide)
    total = _scaled(call, total, float(config.get("conv_result_scale", 1)))
    rest = call.operands[2:]
    if len(rest) > 1:
        total = call.add("add", (total, _scaled(call, call.convert(rest[1], wide.dtype), float(config.get("side_input_scale", 0)))))
    if rest:
        bias = _along(call, rest[0], wide, dims.out_feature)
        if bias is None:
            return None
        total = call.add("add", (total, bias))
    done = _activated(call, total, str(config.get("activation_mode", "kNone")).replace("0", "kNone"))
    return None if done is None else call.result([call.convert(done, t.dtype)])


def _only(call: WrittenCall, window: Window) -> bool:
    """Whether a gradient is of the plain kind: no groups, no base dilation, no further operands."""
    return set(_groups(call).values()) == {1} and set(window.lhs_dilate) <= {1} and len(call.operands) == 2


def _conv_backward_input(call: WrittenCall) -> Node | None:
    """The gradient of the operand: the reversed kernel over the result's gradient, dilated by the stride.

    The window and the labels of the call are those of the forward convolution.
    """
    parts = _conv_parts(call)
    if parts is None or not _only(call, parts[1]):
        return None
    dims, window, t = parts
    grad = call.operands[0].type
    if not isinstance(grad, TensorType):
        return None
    lows, highs = [], []
    for i, (n, stride, dilate) in enumerate(zip(window.size, window.stride, window.rhs_dilate, strict=True)):
        reach = (n - 1) * dilate
        spread = (grad.dims()[dims.out_spatial[i]] - 1) * stride + 1
        lows.append(reach - window.pad_low[i])
        highs.append(t.dims()[dims.lhs_spatial[i]] + reach - spread - lows[-1])
    turned = Window(window.size, (1,) * len(lows), tuple(lows), tuple(highs), window.stride, window.rhs_dilate,
                    tuple(not r for r in window.rhs_reversal))
    swapped = ConvDims(dims.out_batch, dims.out_feature, dims.out_spatial, dims.rhs_output, dims.rhs_input, dims.rhs_spatial,
                       dims.lhs_batch, dims.lhs_feature, dims.lhs_spatial)
    return _finished(call, {"dim_labels": swapped, "window": turned}, t)


def _conv_backward_filter(call: WrittenCall) -> Node | None:
    """The gradient of the kernel: the result's gradient over the operand, summed over the batch."""
    parts = _conv_parts(call)
    if parts is None or not _only(call, parts[1]) or any(parts[1].rhs_reversal):
        return None
    dims, window, t = parts
    x, grad = (o.type for o in call.operands)
    if not isinstance(x, TensorType) or not isinstance(grad, TensorType):
        return None
    sizes = tuple(grad.dims()[d] for d in dims.out_spatial)
    highs = []
    for i, n in enumerate(window.size):
        reach = (sizes[i] - 1) * window.stride[i] + 1
        highs.append((n - 1) * window.rhs_dilate[i] + reach - x.dims()[dims.lhs_spatial[i]] - window.pad_low[i])
    # Stride and dilation are swapped, as batch and features are.
    over = Window(sizes, window.rhs_dilate, window.pad_low, tuple(highs), window.lhs_dilate, window.stride, window.rhs_reversal)
    labels = ConvDims(dims.lhs_feature, dims.lhs_batch, dims.lhs_spatial, dims.out_batch, dims.out_feature, dims.out_spatial,
                      dims.rhs_input, dims.rhs_output, dims.rhs_spatial)
    return _finished(call, {"dim_labels": labels, "window": over}, t)


def _finished(call: WrittenCall, attrs: Mapping[str, object], t: TensorType) -> Node:
    config = call.config().get("cudnn_conv_backend_config", {})
    total = call.add("convolution", call.operands, attrs, _summed_type(t))
    return call.result([call.convert(_scaled(call, total, float(config.get("conv_result_scale", 1))), t.dtype)])


def _onednn_convolution(call: WrittenCall) -> Node | None:
    parts = _conv_parts(call)
    if parts is None:
        return None
    dims, window, t = parts
    total = call.add("convolution", call.operands[:2], {"dim_labels": dims, "window": window, **_groups(call)}, _summed_type(t))
    return _with_fusions(call, total, call.config().get("onednn_conv_config", {}), dims.out_feature)


MEANINGS: Mapping[str, Callable[[WrittenCall], Node | None]] = {
    "__cublas$gemm": _gemm,
    "__cublas$lt$matmul": _gemm,
    "__cublas$lt$matmul$f8": _gemm,
    "__op$block_scaled_dot": _block_scaled_dot,
    "__cudnn$convForward": _conv_forward,
    "__cudnn$convBiasActivationForward": _conv_forward,
    "__cudnn$convBackwardInput": _conv_backward_input,
    "__cudnn$convBackwardFilter": _conv_backward_filter,
    "__onednn$matmul": _onednn_matmul,
    "__onednn$convolution": _onednn_convolution,
}


# ---------------------------------------------------------------- cost, from the types alone

def _arrays(node: Node) -> list[TensorType] | None:
    """The types of the first two operands and of the first result, or None where they are not all arrays: the type check allows it."""
    result = next((t for t in node.type.leaves() if isinstance(t, TensorType)), None)
    found = [t for t in (*(o.type for o in node.operands[:2]), result) if isinstance(t, TensorType)]
    return found if len(found) == 3 else None


def _matmul_cost(node: Node) -> float:
    """2 m n k, with k from the sizes: (m k)(k n) / (m n) is k squared."""
    arrays = _arrays(node)
    if arrays is None or not arrays[2].elements:
        return 0.0
    *sides, result = arrays
    batch = prod(size(d) or 1 for d in result.shape[:-2]) if all(t.rank == result.rank for t in sides) else 1
    depth = isqrt(sides[0].elements * sides[1].elements // max(1, result.elements * batch))
    return 2.0 * result.elements * depth


def _convolution_cost(roles: Sequence[int]) -> Callable[[Node], float]:
    """2 * kernel * (places * batch), where ``roles`` says which of operands and result (2) are the kernel and the output."""
    def cost(node: Node) -> float:
        dims, arrays = CustomCall.of(node).dim_labels, _arrays(node)
        if not isinstance(dims, ConvDims) or arrays is None:
            return 0.0
        kernel, out = arrays[roles[0]], arrays[roles[1]]
        if dims.out_feature >= out.rank:
            return 0.0
        return 2.0 * out.elements * kernel.elements / max(1, size(out.shape[dims.out_feature]) or 1)
    return cost


COSTS: Mapping[str, Callable[[Node], float]] = {
    **dict.fromkeys(("__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8", "__op$block_scaled_dot", "__onednn$matmul"),
                    _matmul_cost),
    **dict.fromkeys(("__cudnn$convForward", "__cudnn$convBiasActivationForward", "__cudnn$convForwardGraph", "__onednn$convolution"),
                    _convolution_cost((1, 2))),
    "__cudnn$convBackwardInput": _convolution_cost((1, 0)),
    "__cudnn$convBackwardFilter": _convolution_cost((2, 1)),
}
