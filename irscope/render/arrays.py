"""Arrays as people read them: a type, and the range of the values."""
from __future__ import annotations

from irscope.graph import dtype_of
from irscope.lazy import Array, np

BLOCK = 1 << 20
"""Elements that are widened to f64 at a time."""


def type_of(array: Array) -> str:
    """``f32[8,128]``."""
    return f"{dtype_of(array.dtype).name}[{','.join(map(str, array.shape))}]"


def range_of(array: Array) -> str:
    """The values of a small array, the range of a large one."""
    if not array.size:
        return "empty"
    if array.size <= 4:
        return " ".join(f"{v:.6g}" if array.dtype.kind == "f" else str(v) for v in array.reshape(-1))
    if array.dtype.kind in "bc":
        return f"{int(array.sum())} of {array.size} true" if array.dtype.kind == "b" else f"{array.reshape(-1)[0]} ..."
    low, high, total, count = float("inf"), float("-inf"), 0.0, 0
    for at in range(0, array.size, BLOCK):
        wide = array.reshape(-1)[at:at + BLOCK].astype(np.float64)
        finite = wide[np.isfinite(wide)]
        if finite.size:
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
            total, count = total + float(finite.sum()), count + finite.size
    if not count:
        return "no finite value"
    odd = array.size - count
    return f"{low:.6g} to {high:.6g}, mean {total / count:.6g}" + (f", {odd} not finite" if odd else "")
