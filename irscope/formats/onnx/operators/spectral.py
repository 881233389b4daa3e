"""Discrete Fourier transforms. Complex numbers are pairs in the last dimension."""
from __future__ import annotations

from typing import Any

from irscope.formats.onnx.algebra import Onnx, bounded
from irscope.formats.onnx.declarations import Attributes
from irscope.formats.onnx.operators import operator
from irscope.formats.torchscript.operators.fourier import BY_N, NONE, c2c, c2r
from irscope.graph import Node
from irscope.graph.dtypes import C64, C128, F32, F64, S64
from irscope.ops.faults import TypeFault
from irscope.source.budget import require


def _complex(t: Onnx, x: Node) -> Node:
    """Pairs, or single numbers, in the last dimension as complex numbers."""
    *lead, n = t.shape(x)
    if n not in (1, 2):
        raise TypeFault(f"the last dimension is {n}: 1 for real, 2 for complex numbers")
    wide = x if t.dtype(x) is F64 else t.convert(x, F32)
    parts = [t.reshape(t.slice_dim(wide, len(lead), i, i + 1), tuple(lead)) for i in range(n)]
    if n == 1:
        return t.convert(parts[0], C128 if t.dtype(wide) is F64 else C64)
    return t.emit("complex", parts)


def _pairs(t: Onnx, x: Node, like: Node) -> Node:
    shape = (*t.shape(x), 1)
    both = t.concat([t.reshape(t.unary(part, x), shape) for part in ("real", "imag")], len(shape) - 1)
    return t.convert(both, t.dtype(like))


def _resized(t: Onnx, x: Node, d: int, n: int) -> Node:
    """One dimension cut or filled with zeros at its end."""
    have = t.shape(x)[d]
    if have >= n:
        return t.slice_dim(x, d, 0, n)
    require(16 * t.type(x).elements // max(have, 1) * n, "a Fourier transform")
    return t.pad(x, t.array(0, t.dtype(x)), [0] * t.rank(x), [n - have if i == d else 0 for i in range(t.rank(x))])


@operator("DFT(input: float[2+], dft_length?: int[0-1], axis?: int[0-1]; axis: int=None, inverse=0, onesided=0)")
def dft(t: Onnx, a: Attributes, x: Node, length: Node | None, axis: Node | None) -> Node:
    """The transform along an axis; ``onesided`` takes or gives the half that is not redundant."""
    where = t.single(axis, "the axis") if axis is not None else a.axis if a.axis is not None else 1 if a.version < 20 else -2
    d = t.axis(x, where)
    if d == t.rank(x) - 1:
        raise TypeFault("the axis is that of the real and imaginary parts")
    values = _complex(t, x)
    if a.inverse and a.onesided:
        have = t.shape(values)[d]
        n = 2 * (have - 1) if length is None else t.single(length, "the length")
        made: Node = t.by_torch(c2r, values, [d], BY_N, n)
        return t.convert(t.reshape(made, (*t.shape(made), 1)), t.dtype(x))
    n = t.shape(values)[d] if length is None else t.single(length, "the length")
    if n < 1:
        raise TypeFault(f"a transform of {n} points")
    made = t.by_torch(c2c, _resized(t, values, d, n), [d], BY_N if a.inverse else NONE, not a.inverse)
    if a.onesided:
        made = t.slice_dim(made, d, 0, n // 2 + 1)
    return _pairs(t, made, x)


@operator("STFT(signal: float[2-3], frame_step: int[0-1], window?: float[1], frame_length?: int[0-1]; onesided=1)")
def stft(t: Onnx, a: Attributes, x: Node, step: Node, window: Node | None, length: Node | None) -> Node:
    """The transforms of overlapping frames (batch, frames, frequencies, 2)."""
    hop = t.single(step, "the step")
    if window is None and length is None:
        raise TypeFault("a window or the length of the frames is needed")
    n = t.single(length, "the length") if length is not None else t.shape(_given(window))[0]
    samples = t.shape(x)[1]
    if hop < 1 or not 1 <= n <= samples:
        raise TypeFault(f"frames of {n} in steps of {hop} for {samples} samples")
    values = _complex(t, x if t.rank(x) == 3 else t.reshape(x, (*t.shape(x), 1)))
    count = (samples - n) // hop + 1
    bounded(count * n, "the frames of a Fourier transform")
    frames = t.take(values, t.array([[i * hop + j for j in range(n)] for i in range(count)], S64), 1)
    if window is not None:
        weights = t.convert(_resized(t, window, 0, n), F64 if t.dtype(values) is C128 else F32)
        frames = t.mul(frames, t.convert(weights, t.dtype(frames)))
    made: Node = t.by_torch(c2c, frames, [2], NONE, True)
    return _pairs(t, t.slice_dim(made, 2, 0, n // 2 + 1) if a.onesided else made, x)


def _given(x: Any) -> Node:
    assert isinstance(x, Node)
    return x
