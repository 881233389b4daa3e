"""Convolutions with the dimension order that XLA's CPU compiler uses: batch, space, features."""
from __future__ import annotations

from dataclasses import replace

from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction
from irscope.fusion.canonicalise.values import is_all
from irscope.fusion.dimensions import inverse, is_sorted
from irscope.ops import hlo
from irscope.ops.attributes import Convolution, Pad


def convolution(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Fold zero padding of the input into the window (``FoldConvInputPad``)."""
    source = instr.operands[0]
    attrs = Convolution.of(instr)
    window, dims = attrs.window, attrs.dim_labels
    if source.op is not hlo.pad or window is None or not is_all(source.operands[1], 0):
        return False
    padding = Pad.of(source).padding
    if any(inner or low < 0 or high < 0 for low, high, inner in padding) or any(n != 1 for n in window.lhs_dilate) \
            or any(padding[d][:2] != (0, 0) for d in (dims.lhs_batch, dims.lhs_feature)):
        return False
    around = [padding[d] for d in dims.lhs_spatial]
    made = replace(window, pad_low=tuple(a + p[0] for a, p in zip(window.pad_low, around, strict=True)),
                   pad_high=tuple(a + p[1] for a, p in zip(window.pad_high, around, strict=True)))
    return rewriter.become(instr, hlo.convolution, (source.operands[0], instr.operands[1]), {**instr.attrs, "window": made})


def canonicalise_convolution(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Transpose operands and results that have another dimension order: XLA's ``ConvCanonicalization``."""
    dims = Convolution.of(instr).dim_labels
    orders = ((dims.lhs_batch, *dims.lhs_spatial, dims.lhs_feature), (*dims.rhs_spatial, dims.rhs_input, dims.rhs_output),
              (dims.out_batch, *dims.out_spatial, dims.out_feature))
    if all(is_sorted(order) for order in orders):
        return False
    operands = [rewriter.transpose(o, order) for o, order in zip(instr.operands, orders, strict=False)]
    spatial = len(dims.lhs_spatial)
    space = tuple(range(1, spatial + 1))
    made = replace(dims, lhs_batch=0, lhs_feature=spatial + 1, lhs_spatial=space, rhs_input=spatial, rhs_output=spatial + 1,
                   rhs_spatial=tuple(range(spatial)), out_batch=0, out_feature=spatial + 1, out_spatial=space)
    small = rewriter.like(instr, operands, [instr.dims[d] for d in orders[2]], {"dim_labels": made})
    return rewriter.replace(instr, rewriter.transpose(small, inverse(orders[2])))
