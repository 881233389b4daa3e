"""Arrays as people read them: a type, and the range of the values."""
from __future__ import annotations

from irscope.graph import dtype_of
from irscope.lazy import Array, np


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
    wide = array.astype(np.float64)
    with np.errstate(all="ignore"):
        finite = wide[np.isfinite(wide)]
    odd = array.size - finite.size
    if not finite.size:
        return "no finite value"
    text = f"{finite.min():.6g} to {finite.max():.6g}, mean {finite.mean():.6g}"
    return text + (f", {odd} not finite" if odd else "")
