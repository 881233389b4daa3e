"""Sizes that are known at run time only, made static: arrays as large as their bound, and a number beside each that says how much counts.

    n = s32[] parameter(1)                                        n = s32[] parameter(1)
    d = f32[<=6] set-dimension-size(x, n), dimensions={0}    ->   m = pred[6] compare(iota, broadcast(n)), direction=LT
    ROOT r = f32[] reduce(d, zero), dimensions={0}                s = f32[6] select(m, x, broadcast(zero))
                                                                  ROOT r = f32[] reduce(s, zero), dimensions={0}

What lies beyond the size may be anything, so whoever sums, multiplies, sorts or moves along the dimension masks it first. Sizes and masks
follow XLA's DynamicDimensionInference and DynamicPadder (xla/service, as of jaxlib 0.10.2), and were compared with what its programs give.
"""
from __future__ import annotations

from irscope.expand.dynamic.program import is_dynamic, pad_dynamic
from irscope.expand.dynamic.varying import KEY, Varying

__all__ = ["KEY", "Varying", "is_dynamic", "pad_dynamic"]
