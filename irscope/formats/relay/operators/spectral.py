"""Discrete Fourier transforms of whole signals and of sliding windows."""

from __future__ import annotations

from math import sqrt

from irscope.formats.relay.algebra import Relay, table_of
from irscope.formats.relay.operators import Attributes, operator
from irscope.graph import Node
from irscope.graph.dtypes import S64
from irscope.lazy import np
from irscope.ops.faults import TypeFault


@operator("dft(re_data: 1d+, im_data: 1d+; inverse=False)")
def dft(t: Relay, a: Attributes, re: Node, im: Node) -> list[Node]:
    """The transform of the last axis, as real and imaginary part; the inverse one is divided by its length."""
    whole = t.emit("complex", (re, im))
    attrs = {"fft_type": "IFFT" if a.inverse else "FFT", "fft_length": (t.shape(re)[-1],)}
    made = t.emit("fft", (whole,), attrs)
    return [t.unary("real", made), t.unary("imag", made)]


@operator("stft(data: 1-2d, window: 1d; n_fft=-1, hop_length=-1, win_length=-1, normalized=False, onesided=True)")
def stft(t: Relay, a: Attributes, x: Node, window: Node) -> Node:
    """The transforms of windows that move by ``hop_length``: (frequencies, windows, 2), for each batch where there is one."""
    length, hop = int(a.n_fft), int(a.hop_length)
    wide = int(a.win_length) if int(a.win_length) > 0 else t.shape(window)[0]
    if length < 1 or hop < 1:
        raise TypeFault(f"n_fft and hop_length are from 1, got {length} and {hop}")
    batched = t.rank(x) == 2
    signal = x if batched else t.reshape(x, (1, t.shape(x)[0]))
    frequencies = length // 2 + 1 if a.onesided else length
    count = (t.shape(signal)[1] - length) // hop + 1
    if count <= 0:
        raise TypeFault(f"the signal has {t.shape(signal)[1]} samples, a window {length}")
    table_of(max(count, frequencies) * wide)
    places = np.arange(count)[:, None] * hop + np.arange(wide)
    frames = t.mul(t.take(signal, t.array(places, S64), 1), window)  # batch, windows, samples
    turn = 2 * np.pi * np.arange(frequencies)[:, None] * np.arange(wide) / wide
    parts = []
    for matrix in (np.cos(turn), -np.sin(turn)):
        made = t.dot(frames, t.array(matrix / sqrt(length) if a.normalized else matrix, t.dtype(x)), ([2], [1]))
        parts.append(t.reshape(t.transpose(made, (0, 2, 1)), (t.shape(signal)[0], frequencies, count, 1)))
    whole = t.concat(parts, 3)
    return whole if batched else t.reshape(whole, (frequencies, count, 2))
