"""The types of deformable convolutions: their result, offsets and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from irscope.formats.relay.algebra import each, paddings
from irscope.graph import TensorType
from irscope.graph.types import Dim
from irscope.ops.faults import TypeFault


@dataclass(frozen=True, slots=True)
class Deformable:
    """The types that the data and the attributes of ``nn.deformable_conv2d`` require."""

    offset: TensorType
    weight: TensorType
    result: TensorType


def deformable(a: Any, data: TensorType, weight: TensorType | None) -> Deformable | None:
    """Two offsets per window position and group, at each position of the result (TVM's DeformableConv2DRel). None where this is unknown.

    Raises TypeFault where the window does not fit.
    """
    letters, kernel = str(a.data_layout), str(a.kernel_layout)
    if sorted(letters) != sorted("NCHW") or sorted(kernel) != sorted("OIHW") or data.rank != 4:
        return None
    sizes = dict(zip(letters, data.shape, strict=True))
    given: dict[str, Dim] = dict(zip(kernel, weight.shape, strict=True)) if weight is not None and weight.rank == 4 else {}
    if isinstance(a.channels, int):
        given["O"] = a.channels
    if a.kernel_size is not None:
        given |= dict(zip("HW", each(a.kernel_size, 2), strict=True))
    batch, inner, *space = (sizes[c] for c in "NCHW")
    channels, window = given.get("O"), [given.get(c) for c in "HW"]
    if not isinstance(inner, int) or not isinstance(channels, int):
        return None
    made: list[int] = []
    for n, k, step, spread, (low, high) in zip(space, window, each(a.strides, 2), each(a.dilation, 2), paddings(a.padding, 2), strict=True):
        if not isinstance(n, int) or not isinstance(k, int):
            return None
        reach = (k - 1) * spread + 1
        if n + low + high < reach:
            raise TypeFault(f"the window of {reach} is larger than the data, which is {n}")
        made.append((n + low + high - reach) // step + 1)

    def lying(c: Dim) -> TensorType:
        around: dict[str, Dim] = {"N": batch, "C": c, "H": made[0], "W": made[1]}
        return TensorType(data.dtype, tuple(around[letter] for letter in letters))

    places = [k for k in window if isinstance(k, int)]
    many: dict[str, Dim] = {"O": channels, "I": inner // int(a.groups), "H": places[0], "W": places[1]}
    offset = lying(2 * places[0] * places[1] * int(a.deformable_groups))
    return Deformable(offset, TensorType(data.dtype, tuple(many[c] for c in kernel)), lying(channels))
