"""Convolutions as cuDNN calls of XLA's GPU compiler: batch, space, features; with bias, side input and ``relu`` fused.

XLA's ``ConvRewriter``, ``CudnnFusedConvRewriter`` and ``ConvPaddingLegalization`` (jaxlib 0.10.2), with its layout assignment: for
f16 and bf16, and for f32 from Hopper on, NHWC input and result and OHWI filters, else NCHW and OIHW, whatever the text has.
"""
from __future__ import annotations

from dataclasses import replace

from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction, Rule, tensor_type
from irscope.fusion.canonicalise.values import is_all
from irscope.fusion.dimensions import inverse
from irscope.fusion.xla.gpu_device import Device
from irscope.graph import TupleType
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Convolution, CustomCall, GetTupleElement, Reverse
from irscope.ops.attrs import ConvDims, Window

TYPES = frozenset(("f16", "bf16", "f32", "f64"))
"""Element types of convolutions that become calls here; others are not rewritten."""
RANKS = (4, 5)
"""The rank of the arrays that cuDNN convolves; with one spatial dimension XLA adds another, which is not simulated."""
TARGET = {"forward": "__cudnn$convForward", "filter": "__cudnn$convBackwardFilter", "input": "__cudnn$convBackwardInput",
          "fused": "__cudnn$convBiasActivationForward"}


HOPPER = 90
"""The compute capability from which on XLA assigns f32 convolutions a layout with the features last."""


def call_cudnn(device: Device) -> Rule:
    """Replace convolutions by cuDNN calls, fuse what follows them, and give them cuDNN's layouts."""
    def call(rewriter: HloComputation, instr: HloInstruction) -> bool:
        attrs = Convolution.of(instr)
        if attrs.window is None or instr.rank not in RANKS or instr.dtype not in TYPES or attrs.batch_group_count > 1:
            return False
        kind = _kind(instr, attrs.window, attrs.dim_labels)
        _lay(rewriter, _as_call(rewriter, instr, kind), kind, _is_features_last(instr, device))
        return True

    return call


def _as_call(rewriter: HloComputation, instr: HloInstruction, kind: str) -> HloInstruction:
    """A convolution as a call with the dimension numbers of the text."""
    type = TupleType((tensor_type(instr.dtype, instr.dims), tensor_type("u8", (0,))))
    call = rewriter.make(hlo.custom_call, type, instr.operands, {**instr.attrs, "custom_call_target": TARGET[kind]})
    call.take_label(instr)
    rewriter.replace(instr, rewriter.element(call, 0))
    instr.replacement = call
    return _take_in(rewriter, call) if kind == "forward" else call


def _is_features_last(instr: HloInstruction, device: Device) -> bool:
    number = device.capability.removeprefix("sm_")
    return instr.dtype in ("f16", "bf16") or (instr.dtype == "f32" and number.isdecimal() and int(number) >= HOPPER)


def _order(outer: int, spatial: tuple[int, ...], features: int, last: bool) -> tuple[int, ...]:
    return (outer, *spatial, features) if last else (outer, features, *spatial)


def _lay(rewriter: HloComputation, call: HloInstruction, kind: str, last: bool) -> None:
    """Transpose the operands of a call to cuDNN's order, and its result back to the order of the text."""
    own = Convolution.of(call)
    dims, window = own.dim_labels, own.window
    assert window is not None
    lhs, rhs, *others = call.operands
    [result] = [user for user in call.users if GetTupleElement.of(user).index == 0]
    left = _order(dims.lhs_batch, dims.lhs_spatial, dims.lhs_feature, last)
    right = _order(dims.rhs_output, dims.rhs_spatial, dims.rhs_input, last)
    out = _order(dims.out_batch, dims.out_spatial, dims.out_feature, last)
    if kind == "filter":  # the contraction is over the batch, and the result is a filter
        left = _order(dims.lhs_feature, dims.lhs_spatial, dims.lhs_batch, last)
        right = _order(dims.rhs_input, dims.rhs_spatial, dims.rhs_output, last)
        out = _order(dims.out_feature, dims.out_spatial, dims.out_batch, last)
    elif kind == "input":
        right = _order(dims.rhs_input, dims.rhs_spatial, dims.rhs_output, last)
        if rhs.op is hlo.reverse:  # cuDNN reverses the filter itself
            rhs = rhs.operands[0]
    rewriter.at = call
    lhs = rewriter.transpose(lhs, left)
    if kind == "forward":
        lhs, window = _pad_input(rewriter, lhs, window, last)
    rhs = rewriter.transpose(rhs, right)
    others = [o if n == 0 else rewriter.transpose(o, out) for n, o in enumerate(others)]
    shape = tensor_type(result.dtype, [result.dims[d] for d in out])
    attrs = {"custom_call_target": CustomCall.of(call).custom_call_target, "window": window, "feature_group_count": own.feature_group_count}
    made = rewriter.make(hlo.custom_call, TupleType((shape, tensor_type("u8", (0,)))), (lhs, rhs, *others), attrs)
    made.take_label(call)
    rewriter.replace(result, rewriter.transpose(rewriter.element(made, 0), inverse(out)))
    result.replacement = call.replacement = made


def _kind(instr: HloInstruction, window: Window, dims: ConvDims) -> str:
    """The kind of a convolution: forward, or the gradient of another for its filter or its input (``MatchBackwardFilter`` and
    ``MatchBackwardInput`` of conv_kind_assignment).

    A gradient for the filter has windows larger than its result; one for the input reads a reversed filter, or dilates the gradient
    under a filter of one element.
    """
    spread = any(n != 1 for n in window.lhs_dilate)
    dilated = any(n != 1 for n in window.rhs_dilate)
    if Convolution.of(instr).feature_group_count > 1 or any(n != 1 for n in window.stride) or any(window.rhs_reversal):
        return "forward"
    large = [k > instr.dims[d] for k, d in zip(window.size, dims.out_spatial, strict=True)]
    if not spread and any(large) and (all(large) or dilated) and all(n >= 0 for n in window.pad_low):
        return "filter"
    rhs = instr.operands[1]
    turned = rhs.op is hlo.reverse and sorted(Reverse.of(rhs).dimensions) == sorted(dims.rhs_spatial)
    if not dilated and (turned or (spread and all(n == 1 for n in window.size))):
        return "input"
    return "forward"


def _pad_input(rewriter: HloComputation, source: HloInstruction, window: Window, last: bool) -> tuple[HloInstruction, Window]:
    """Emit the zero padding around and between the input as a pad if both ends differ or there is interior padding."""
    low, high, spread = window.pad_low, window.pad_high, window.lhs_dilate
    if any(n < 0 for n in (*low, *high)) or (low == high and all(n == 1 for n in spread)):
        return source, window
    around = [(a, b, n - 1) for a, b, n in zip(low, high, spread, strict=True)]
    none = (0, 0, 0)
    padded = rewriter.pad(source, rewriter.constant(0, source.dtype), [none, *around, none] if last else [none, none, *around])
    return padded, replace(window, pad_low=(0,) * len(low), pad_high=(0,) * len(low), lhs_dilate=(1,) * len(low))


def _take_in(rewriter: HloComputation, call: HloInstruction) -> HloInstruction:
    """Fuse the only users of the result into the call: a bias or another array, then ``max(x, 0)``. Returns the call that computes all."""
    if Convolution.of(call).feature_group_count > 1:
        return call
    [result] = call.users
    bias: HloInstruction | None = None
    side: HloInstruction | None = None
    while (user := _only_reader(rewriter, result)) is not None and result in user.operands and len(user.operands) == 2:
        other = user.operands[1] if user.operands[0] is result else user.operands[0]
        if user.op is hlo.add and other is not result:
            if bias is None and side is None and _is_bias(other, result.operands[0]):
                bias = other.operands[0]
            elif side is None:
                side = other
            else:
                break
        elif user.op is not hlo.maximum or not is_all(other, 0):
            break
        is_last = user.op is hlo.maximum
        result = _grow(rewriter, result, user, bias, side)
        if is_last:
            break
    return result.operands[0]


def _only_reader(rewriter: HloComputation, result: HloInstruction) -> HloInstruction | None:
    if len(result.users) != 1 or rewriter.root is result:
        return None
    return next(iter(result.users))


def _is_bias(other: HloInstruction, call: HloInstruction) -> bool:
    """Whether the summand is a bias: one number for each feature."""
    return other.op is hlo.broadcast and other.operands[0].rank == 1 \
        and Broadcast.of(other).dimensions == (Convolution.of(call).dim_labels.out_feature,)


def _grow(rewriter: HloComputation, result: HloInstruction, user: HloInstruction, bias: HloInstruction | None,
          side: HloInstruction | None) -> HloInstruction:
    """Let the call whose result is read compute ``user`` too; returns the result of the new call."""
    call = result.operands[0]
    if bias is None:
        size = result.dims[Convolution.of(call).dim_labels.out_feature]
        bias = rewriter.broadcast(rewriter.constant(0, result.dtype, user), (size,), (), user)
    operands = [*call.operands[:2], bias, *([side] if side is not None else [])]
    grown = rewriter.like(call, operands, attrs={"custom_call_target": TARGET["fused"]})
    grown.take_label(call)
    new = rewriter.element(grown, 0, call)
    rewriter.replace(user, new)
    user.replacement = grown
    rewriter.erase_dead(result)
    call.replacement = result.replacement = grown
    return new
