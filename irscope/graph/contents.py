"""A key of an array by its bits, which stays small for an array that repeats one element."""
from __future__ import annotations

import hashlib
from collections.abc import Hashable

from irscope.lazy import Array, np

SMALL = 1 << 10
"""Bytes that are a key themselves; of more, their digest is."""


def contents(array: Array) -> Hashable:
    """A key that arrays share which have one element type, one shape and the same bits in all elements.

    >>> contents(np.full(3, 2.0)) == contents(np.broadcast_to(np.asarray(2.0), 3)) == contents(np.asarray([2.0, 2.0, 2.0]))
    True
    """
    if is_splat(array):
        return array.dtype.name, array.shape, array[(slice(1),) * array.ndim].tobytes()
    data = array.tobytes()
    return array.dtype.name, array.shape, data if len(data) <= SMALL else hashlib.sha256(data).digest()


def is_splat(array: Array) -> bool:
    """Whether all elements have the same bits. An array that is broadcast from one element is not copied."""
    if not array.size:
        return False
    if all(stride == 0 or size == 1 for stride, size in zip(array.strides, array.shape, strict=True)):
        return True
    first, last = (slice(1),) * array.ndim, (slice(-1, None),) * array.ndim
    if array[first].tobytes() != array[last].tobytes():
        return False
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return bool((raw[array.itemsize:] == raw[:-array.itemsize]).all())
