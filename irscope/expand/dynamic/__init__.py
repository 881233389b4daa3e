"""Pads dynamic sizes to static ones: each array gets its upper bound as its size, and a scalar holds the number of valid elements.

    n = s32[] parameter(1)                                        n = s32[] parameter(1)
    d = f32[<=6] set-dimension-size(x, n), dimensions={0}    ->   m = pred[6] compare(iota, broadcast(n)), direction=LT
    ROOT r = f32[] reduce(d, zero), dimensions={0}                s = f32[6] select(m, x, broadcast(zero))
                                                                  ROOT r = f32[] reduce(s, zero), dimensions={0}

Elements beyond the size are undefined, so operators that sum, multiply, sort or move along the dimension mask them first.
Sizes and masks follow XLA's DynamicDimensionInference and DynamicPadder (xla/service, as of jaxlib 0.10.2); the results were compared
with those of its programs.
"""
from __future__ import annotations

from irscope.expand.dynamic.program import is_dynamic, pad_dynamic
from irscope.expand.dynamic.varying import KEY, Varying

__all__ = ["KEY", "Varying", "is_dynamic", "pad_dynamic"]
