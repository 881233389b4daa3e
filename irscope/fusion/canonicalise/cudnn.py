"""Convolutions as XLA's GPU compiler calls cuDNN for them: batch, space, features; with bias, another summand and ``relu`` inside.

XLA's ``ConvRewriter``, ``CudnnFusedConvRewriter`` and ``ConvPaddingLegalization`` (jaxlib 0.10.2), with the layouts that it takes: for
halves, and for f32 from Hopper on, input and result NHWC and filters OHWI, else NCHW and OIHW, whatever the text has.
"""
from __future__ import annotations

from dataclasses import replace

from irscope.fusion.canonicalise.terms import Body, Term, tensor_type
from irscope.fusion.canonicalise.values import is_all
from irscope.fusion.dimensions import inverse, is_sorted
from irscope.fusion.xla.gpu_device import Device
from irscope.graph import TupleType
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Convolution, CustomCall, GetTupleElement, Reverse
from irscope.ops.attrs import ConvDims, Window

TYPES = frozenset(("f16", "bf16", "f32", "f64"))
"""Element types of convolutions that become calls here; others stay as they are."""
RANKS = (4, 5)
"""Dimensions of the arrays that cuDNN convolves; with one spatial dimension XLA adds another, which is not followed."""
TARGET = {"forward": "__cudnn$convForward", "filter": "__cudnn$convBackwardFilter", "input": "__cudnn$convBackwardInput",
          "fused": "__cudnn$convBiasActivationForward"}


HOPPER = 90
"""The compute capability from which on XLA lays out convolutions of f32 with the features last."""


def call_cudnn(body: Body, device: Device) -> bool:
    """Replace convolutions by calls that compute what may follow them too, and give them the layouts that cuDNN gets."""
    changed = False
    for term in [t for t in body.instructions if t.op is hlo.convolution]:
        attrs = Convolution.of(term)
        window = attrs.window
        if window is None or term.rank not in RANKS or term.dtype not in TYPES or attrs.batch_group_count > 1:
            continue
        kind = _kind(term, window, attrs.dim_labels)
        _lay(body, _called(body, term, kind), kind, _is_features_last(term, device))
        changed = True
    return changed


def _called(body: Body, term: Term, kind: str) -> Term:
    """A convolution as a call with the dimensions of the text."""
    type = TupleType((tensor_type(term.dtype, term.dims), tensor_type("u8", (0,))))
    call = body.make(hlo.custom_call, type, term.operands, {**term.attrs, "custom_call_target": TARGET[kind]}, term)
    call.take_label(term)
    body.replace(term, _result(body, call, term))
    term.replacement = call
    return _take_in(body, call) if kind == "forward" else call


def _is_features_last(term: Term, device: Device) -> bool:
    number = device.capability.removeprefix("sm_")
    return term.dtype in ("f16", "bf16") or (term.dtype == "f32" and number.isdecimal() and int(number) >= HOPPER)


def _order(outer: int, spatial: tuple[int, ...], features: int, last: bool) -> tuple[int, ...]:
    return (outer, *spatial, features) if last else (outer, features, *spatial)


def _lay(body: Body, call: Term, kind: str, last: bool) -> None:
    """Give a call its operands in the order that cuDNN gets, and its result in the order of the text."""
    own = Convolution.of(call)
    dims, window = own.dim_labels, own.window
    assert window is not None
    lhs, rhs, *others = call.operands
    [result] = [user for user in call.users if GetTupleElement.of(user).index == 0]
    left = _order(dims.lhs_batch, dims.lhs_spatial, dims.lhs_feature, last)
    right = _order(dims.rhs_output, dims.rhs_spatial, dims.rhs_input, last)
    out = _order(dims.out_batch, dims.out_spatial, dims.out_feature, last)
    if kind == "filter":  # the batch is what is summed, and the result is a filter
        left = _order(dims.lhs_feature, dims.lhs_spatial, dims.lhs_batch, last)
        right = _order(dims.rhs_input, dims.rhs_spatial, dims.rhs_output, last)
        out = _order(dims.out_feature, dims.out_spatial, dims.out_batch, last)
    elif kind == "input":
        right = _order(dims.rhs_input, dims.rhs_spatial, dims.rhs_output, last)
        if rhs.op is hlo.reverse:  # cuDNN turns the filter around itself
            rhs = rhs.operands[0]
    lhs = _turned(body, lhs, left, call)
    if kind == "forward":
        lhs, window = _padded(body, lhs, window, last, call)
    rhs = _turned(body, rhs, right, call)
    others = [o if n == 0 else _turned(body, o, out, call) for n, o in enumerate(others)]
    shape = tensor_type(result.dtype, [result.dims[d] for d in out])
    attrs = {"custom_call_target": CustomCall.of(call).custom_call_target, "window": window,
             "feature_group_count": own.feature_group_count}
    made = body.make(hlo.custom_call, TupleType((shape, tensor_type("u8", (0,)))), (lhs, rhs, *others), attrs, call)
    made.take_label(call)
    fresh = _result(body, made, call)
    body.replace(result, fresh if is_sorted(out) else body.transpose(fresh, inverse(out), call))
    result.replacement = call.replacement = made


def _result(body: Body, call: Term, at: Term) -> Term:
    assert isinstance(call.type, TupleType)
    return body.make(hlo.get_tuple_element, call.type.elements[0], (call,), {"index": 0}, at)


def _turned(body: Body, operand: Term, order: tuple[int, ...], at: Term) -> Term:
    return operand if is_sorted(order) else body.transpose(operand, order, at)


def _kind(term: Term, window: Window, dims: ConvDims) -> str:
    """Whether a convolution is one of inputs, or the gradient of another for its filter or its input (``MatchBackwardFilter`` and
    ``MatchBackwardInput`` of conv_kind_assignment).

    A gradient for the filter has windows larger than what it gives; one for the input reads the filter turned around, or spreads out the
    gradient under a filter of one element.
    """
    spread = any(n != 1 for n in window.lhs_dilate)
    dilated = any(n != 1 for n in window.rhs_dilate)
    if Convolution.of(term).feature_group_count > 1 or any(n != 1 for n in window.stride) or any(window.rhs_reversal):
        return "forward"
    large = [k > term.dims[d] for k, d in zip(window.size, dims.out_spatial, strict=True)]
    if not spread and any(large) and (all(large) or dilated) and all(n >= 0 for n in window.pad_low):
        return "filter"
    rhs = term.operands[1]
    turned = rhs.op is hlo.reverse and sorted(Reverse.of(rhs).dimensions) == sorted(dims.rhs_spatial)
    if not dilated and (turned or (spread and all(n == 1 for n in window.size))):
        return "input"
    return "forward"


def _padded(body: Body, source: Term, window: Window, last: bool, at: Term) -> tuple[Term, Window]:
    """Zeros around and between the input, written out where both ends differ or something is between."""
    low, high, spread = window.pad_low, window.pad_high, window.lhs_dilate
    if low == high and all(n >= 0 for n in low) and all(n == 1 for n in spread):
        return source, window
    if any(n < 0 for n in (*low, *high)):
        return source, window
    around = tuple((a, b, n - 1) for a, b, n in zip(low, high, spread, strict=True))
    padding = ((0, 0, 0), *around, (0, 0, 0)) if last else ((0, 0, 0), (0, 0, 0), *around)
    sizes = [n + a + b + max(0, n - 1) * c for n, (a, b, c) in zip(source.dims, padding, strict=True)]
    made = body.make(hlo.pad, tensor_type(source.dtype, sizes), (source, body.constant(0, source.dtype, at)), {"padding": padding}, at)
    return made, replace(window, pad_low=(0,) * len(low), pad_high=(0,) * len(low), lhs_dilate=(1,) * len(low))


def _take_in(body: Body, call: Term) -> Term:
    """What reads the result alone goes into the call: a bias, or another array; then ``max(x, 0)``. The call that computes all is given."""
    if Convolution.of(call).feature_group_count > 1:
        return call
    [result] = call.users
    bias: Term | None = None
    side: Term | None = None
    while (user := _only_reader(body, result)) is not None and result in user.operands and len(user.operands) == 2:
        other = user.operands[1] if user.operands[0] is result else user.operands[0]
        if user.op is hlo.add and other is not result:
            if bias is None and side is None and _is_bias(other, call):
                bias = other.operands[0]
            elif side is None:
                side = other
            else:
                break
        elif user.op is not hlo.maximum or not is_all(other, 0):
            break
        is_last = user.op is hlo.maximum
        call, result = _grown(body, call, result, user, bias, side)
        if is_last:
            break
    return call


def _only_reader(body: Body, result: Term) -> Term | None:
    if len(result.users) != 1 or body.root is result:
        return None
    return next(iter(result.users))


def _is_bias(other: Term, call: Term) -> bool:
    """Whether one number for each feature is added."""
    return other.op is hlo.broadcast and other.operands[0].rank == 1 \
        and Broadcast.of(other).dimensions == (Convolution.of(call).dim_labels.out_feature,)


def _grown(body: Body, call: Term, result: Term, user: Term, bias: Term | None, side: Term | None) -> tuple[Term, Term]:
    """A call that computes ``user`` too."""
    base = call.operands[:2]
    size = result.dims[Convolution.of(call).dim_labels.out_feature]
    zero = bias if bias is not None else body.broadcast(body.constant(0, result.dtype, user), (size,), (), user)
    operands = [*base, zero, *([side] if side is not None else [])]
    made = body.make(hlo.custom_call, call.type, operands, {**call.attrs, "custom_call_target": TARGET["fused"]}, call)
    made.take_label(call)
    fresh = _result(body, made, call)
    body.replace(user, fresh)
    user.replacement = made
    body.erase_dead(result)
    call.replacement = result.replacement = made
    return made, fresh
