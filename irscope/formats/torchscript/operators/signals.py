"""Signals: windows, and Fourier transforms of overlapping frames (stft) and back (istft)."""
from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.creation import OPTIONS
from irscope.formats.torchscript.operators.fourier import BY_N, BY_ROOT, NONE, c2c, c2r, r2c
from irscope.formats.torchscript.operators.interpolation import pad
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import C64, C128, F32, F64, S64
from irscope.lazy import Array, np
from irscope.ops.checked import at_least, table
from irscope.ops.faults import TypeFault

# ---------------------------------------------------------------------- windows


def _window(t: Torch, n: int, periodic: bool, dtype: int | None, shape: Callable[[Array, int], Array]) -> Node:
    """A window of ``n`` elements: ``shape(i, last)`` is its value at i, from 0 to last. A periodic one is a window of n + 1 elements
    without the last."""
    if n < 2:
        return t.full((n,), 1, t.dtype_number(dtype, F32))
    last = n if periodic else n - 1
    table("a window", n)
    return t.array(shape(np.arange(n, dtype=np.float64), last), t.dtype_number(dtype, F32))


def _bartlett(i: Array, last: int) -> Array:
    return 1 - np.abs(2 * i / last - 1)


def _cosines(*factors: float) -> Callable[[Array, int], Array]:
    """The sum of factors[k] cos(2 pi k i / last)."""
    def shape(i: Array, last: int) -> Array:
        return np.asarray(sum(f * np.cos(2 * np.pi * k * i / last) for k, f in enumerate(factors)))
    return shape


def _kaiser(beta: float) -> Callable[[Array, int], Array]:
    def shape(i: Array, last: int) -> Array:
        return np.i0(beta * np.sqrt(np.maximum(1 - (2 * i / last - 1) ** 2, 0))) / np.i0(beta)
    return shape


def _declare_window(name: str, shape: Callable[[Array, int], Array]) -> None:
    @operator(f"{name}_window.periodic(int window_length, bool periodic, {OPTIONS})", f"{name}_window(int window_length, {OPTIONS})")
    def of(t: Torch, n: int, *, periodic: bool = True, dtype: int | None) -> Node:
        return _window(t, n, periodic, dtype, shape)


for _name, _shape in (("bartlett", _bartlett), ("blackman", _cosines(0.42, -0.5, 0.08)), ("hann", _cosines(0.5, -0.5)),
                      ("hamming", _cosines(0.54, -0.46)), ("kaiser", _kaiser(12.0))):
    _declare_window(_name, _shape)


@operator(f"hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, {OPTIONS})",
          f"hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, {OPTIONS})")
def hamming_window(t: Torch, n: int, periodic: bool, alpha: float, *, beta: float = 0.46, dtype: int | None) -> Node:
    return _window(t, n, periodic, dtype, _cosines(alpha, -beta))


@operator(f"kaiser_window.beta(int window_length, bool periodic, float beta, {OPTIONS})")
def kaiser_window(t: Torch, n: int, periodic: bool, beta: float, *, dtype: int | None) -> Node:
    return _window(t, n, periodic, dtype, _kaiser(beta))


# ---------------------------------------------------------------------- short-time transforms


def _centred(t: Torch, window: Node | None, length: int | None, n: int) -> Node | None:
    """The window in the middle of a frame of ``n``; without one, ``length`` ones, and None where they fill the frame."""
    length = n if length is None else length
    if not 0 < length <= n:
        raise TypeFault(f"win_length is {length}, and a frame has {n} elements (n_fft)")
    if window is None:
        if length == n:
            return None
        window = t.full((length,), 1, F32)
    if t.shape(window) != (length,):
        raise TypeFault(f"the window has the sizes {list(t.shape(window))}, and win_length is {length}")
    left = (n - length) // 2
    return t.pad(window, t.array(0, t.dtype(window)), [left], [n - length - left])


@operator("stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool normalized=False, "
          "bool? onesided=None, bool? return_complex=None, bool? align_to_window=None)",
          "stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, "
          "str pad_mode=\"reflect\", bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None)")
def stft(t: Torch, x: Node, n: int, hop: int | None, length: int | None, window: Node | None, *, center: bool = False,
         pad_mode: str = "", normalized: bool, onesided: bool | None, return_complex: bool | None, align_to_window: bool | None) -> Node:
    """Frames of ``n`` elements, ``hop`` apart, times the window: [..., frequencies, frames]."""
    if center:
        x = pad(t, x, [n // 2, n // 2], pad_mode, None)
    if align_to_window:
        raise TypeFault("stft with align_to_window is not supported: use win_length = n_fft, or center=True")
    single = t.rank(x) == 1
    x = t.floating(t.unsqueeze(x, 0) if single else x)
    hop = n // 4 if hop is None else hop
    size = t.shape(x)[1]
    if not 0 < n <= size or hop < 1:
        raise TypeFault(f"stft of a signal of {size} elements in frames of {n}, {hop} apart")
    wide = _centred(t, window, length, n)
    frames = (size - n) // hop + 1
    at = t.add(t.scale(t.iota((frames, n), 0, S64), hop), t.iota((frames, n), 1, S64))
    y = t.take(x, at, 1)
    if wide is not None:
        y = t.mul(*t.promote(y, wide))
    mode = BY_ROOT if normalized else NONE
    if t.dtype(y).is_complex:
        if onesided:
            raise TypeFault("stft of complex numbers has no half spectrum: onesided must be False")
        y = c2c(t, y, [2], mode, True)
    else:
        y = r2c(t, y, [2], mode, onesided is None or onesided)
    y = t.swap(y, 1, 2)
    y = t.reshape(y, t.shape(y)[1:]) if single else y
    return y if return_complex else t.concat([t.unsqueeze(t.unary(part, y), -1) for part in ("real", "imag")], t.rank(y))


def _overlapped(t: Torch, frames: Node, hop: int) -> Node:
    """The sum of frames [batch, count, n] that begin ``hop`` apart: [batch, hop * (count - 1) + n]."""
    batch, count, n = t.shape(frames)
    parts = -(-n // hop)
    zero = t.array(0, t.dtype(frames))
    wide = t.reshape(t.pad(frames, zero, [0, 0, 0], [0, 0, parts * hop - n]), (batch, count, parts, hop))

    def part(k: int) -> Node:
        return t.pad(t.reshape(t.slice_dim(wide, 2, k, k + 1), (batch, count, hop)), zero, [0, k, 0], [0, parts - 1 - k, 0])
    total = reduce(t.add, map(part, range(parts)))
    return t.slice_dim(t.reshape(total, (batch, (count + parts - 1) * hop)), 1, 0, hop * (count - 1) + n)


@operator("istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, "
          "bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False)")
def istft(t: Torch, x: Node, n: int, hop: int | None, win_length: int | None, window: Node | None, center: bool, normalized: bool,
          onesided: bool | None, length: int | None, as_complex: bool) -> Node:
    """The signal whose frames have these spectra, by least squares: overlapping frames add up, divided by the squared windows."""
    if not t.dtype(x).is_complex:
        raise TypeFault("istft takes complex numbers: torch.view_as_complex makes them")
    single = t.rank(x) == 2
    x = t.swap(t.unsqueeze(x, 0) if single else x, 1, 2)
    win_length = n if win_length is None else win_length
    hop = win_length // 4 if hop is None else hop
    at_least(1, "hop_length", hop)
    _, count, found = t.shape_of(x, 3, 3)
    if onesided is None:
        onesided = found != n
    if found != (n // 2 + 1 if onesided else n):
        raise TypeFault(f"istft with n_fft={n} takes {n // 2 + 1 if onesided else n} frequencies, not {found}")
    wide = _centred(t, window, win_length, n)
    kind = F64 if t.dtype(x) is C128 else F32
    wide = t.full((n,), 1, kind) if wide is None else wide
    mode = BY_ROOT if normalized else BY_N
    if as_complex:
        y = c2c(t, x, [2], mode, False)
        y = t.mul(y, t.convert(wide, C128 if kind is F64 else C64))
    else:
        y = c2r(t, t.slice_dim(x, 2, 0, n // 2 + 1), [2], mode, n)
        y = t.mul(y, t.convert(wide, kind))
    power = t.broadcast_to(t.mul(wide, wide), (1, count, n))
    y, envelope = _overlapped(t, y, hop), _overlapped(t, power, hop)
    whole = t.shape(y)[1]
    start = n // 2 if center else 0
    end = start + length if length is not None else whole - n // 2 if center else whole
    inside = min(end, whole)
    y, envelope = t.slice_dim(y, 1, start, inside), t.slice_dim(envelope, 1, start, inside)
    y = t.div(*t.promote(y, envelope))
    if end > whole:
        y = t.pad(y, t.array(0, t.dtype(y)), [0, 0], [0, end - whole])
    return t.reshape(y, t.shape(y)[1:]) if single else y
