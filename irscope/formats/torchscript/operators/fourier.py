"""Discrete Fourier transforms: torch.fft, with its sizes, dimensions and scales."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.complex_numbers import conjugate
from irscope.formats.torchscript.operators.creation import OPTIONS
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import C64, C128, F32, F64
from irscope.lazy import np
from irscope.ops.checked import at_least, nonzero, table
from irscope.ops.faults import TypeFault

NONE, BY_ROOT, BY_N = 0, 1, 2
"""ATen's fft_norm_mode: what a transform is divided by."""
MODES = {None: (NONE, BY_N), "backward": (NONE, BY_N), "ortho": (BY_ROOT, BY_ROOT), "forward": (BY_N, NONE)}
"""The scale of forward and of backward transforms by the name of torch.fft."""
GROUP = 3
"""HLO's ``fft`` transforms up to three dimensions."""


def scale_of(mode: int, n: int) -> float:
    """The factor of a transform of ``n`` points in all."""
    at_least(1, "the number of points", n)
    if mode not in (NONE, BY_ROOT, BY_N):
        raise TypeFault(f"there is no normalization {mode} of a Fourier transform")
    return {NONE: 1.0, BY_ROOT: 1 / sqrt(n), BY_N: 1 / n}[mode]


def _mode(norm: str | None, forward: bool) -> int:
    if norm not in MODES:
        raise TypeFault(f"the norms of a Fourier transform are backward, ortho and forward, not {norm!r}")
    return MODES[norm][0 if forward else 1]


def _scaled(t: Torch, x: Node, factor: float) -> Node:
    """``x`` times a real number, separately for real and imaginary part, so that infinities do not mix."""
    if factor == 1 or not t.dtype(x).is_complex:
        return t.scale(x, factor)
    return t.emit("complex", [t.scale(t.unary(part, x), factor) for part in ("real", "imag")])


def _of_last(t: Torch, kind: str, x: Node, dims: Sequence[int], length: int | None = None) -> Node:
    """HLO's transform of some dimensions, which are moved to the end and back. ``length`` is the last size of a real result."""
    order = [*(d for d in range(t.rank(x)) if d not in dims), *dims]
    moved = t.transpose(x, order)
    lengths = list(t.shape(moved)[-len(dims):])
    if length is not None:
        lengths[-1] = length
    y = t.emit("fft", (moved,), {"fft_type": kind, "fft_length": tuple(lengths)})
    back = [0] * len(order)
    for place, d in enumerate(order):
        back[d] = place
    return t.transpose(y, back)


def c2c(t: Torch, x: Node, dims: Sequence[int], mode: int, forward: bool) -> Node:
    """Complex to complex."""
    if not dims:
        return x
    n = prod(t.shape(x)[d] for d in dims)
    for start in range(0, len(dims), GROUP):
        x = _of_last(t, "FFT" if forward else "IFFT", x, dims[start:start + GROUP])
    return _scaled(t, x, scale_of(mode, n) * (1 if forward else n))


def r2c(t: Torch, x: Node, dims: Sequence[int], mode: int, onesided: bool) -> Node:
    """Real to complex; ``onesided`` keeps the non-redundant half of the last of the dimensions."""
    n = prod(t.shape(x)[d] for d in dims)
    if not onesided:
        return c2c(t, t.convert(x, C128 if t.dtype(x) is F64 else C64), dims, mode, True)
    y = c2c(t, _of_last(t, "RFFT", x, dims[-1:]), dims[:-1], NONE, True)
    return _scaled(t, y, scale_of(mode, n))


def c2r(t: Torch, x: Node, dims: Sequence[int], mode: int, length: int) -> Node:
    """Half of a symmetric spectrum to real numbers, ``length`` of them in the last of the dimensions. Backward."""
    if not dims:
        raise TypeFault("a Fourier transform to real numbers needs one dimension at least")
    x = c2c(t, x, dims[:-1], NONE, False)
    y = _of_last(t, "IRFFT", _resized(t, x, dims[-1], length // 2 + 1), dims[-1:], length)
    return t.scale(y, scale_of(mode, prod(t.shape(y)[d] for d in dims)) * length)


# ---------------------------------------------------------------------- arguments


def _promoted(t: Torch, x: Node, to_complex: bool) -> Node:
    """Integers as float32; all as complex numbers with ``to_complex``. Raises TypeFault for types that torch does not transform."""
    x = t.floating(x)
    if t.dtype(x) not in (F32, F64, C64, C128):
        raise TypeFault(f"torch transforms float32, float64 and complex numbers, not {t.dtype(x)}")
    return t.convert(x, C128 if t.dtype(x) in (F64, C128) else C64) if to_complex else x


def _resized(t: Torch, x: Node, d: int, n: int) -> Node:
    """One dimension truncated or padded with zeros at its end."""
    have = t.shape(x)[d]
    if have >= n:
        return t.slice_dim(x, d, 0, n)
    return t.pad(x, t.array(0, t.dtype(x)), [0] * t.rank(x), [n - have if i == d else 0 for i in range(t.rank(x))])


def _points(t: Torch, x: Node, dims: Sequence[int]) -> None:
    for d in dims:
        if t.shape(x)[d] < 1:
            raise TypeFault(f"a Fourier transform of {t.shape(x)[d]} points: torch requires one or more in dimension {d}")


def _places(t: Torch, x: Node, sizes: list[int] | None, dim: list[int] | None) -> tuple[list[int], list[int]]:
    """The dimensions of a transform in several, and their sizes."""
    if dim is None:
        n = t.rank(x) if sizes is None else len(sizes)
        dims = list(range(t.rank(x) - n, t.rank(x)))
    else:
        dims = [t.dim(x, d) for d in dim]
    if len(set(dims)) != len(dims) or any(d < 0 for d in dims):
        raise TypeFault("the dimensions of a Fourier transform must be different ones of the tensor")
    if sizes is not None and len(sizes) != len(dims):
        raise TypeFault(f"a Fourier transform of {len(dims)} dimensions is given {len(sizes)} sizes")
    return dims, [t.shape(x)[d] if sizes is None or sizes[i] == -1 else sizes[i] for i, d in enumerate(dims)]


def _prepared(t: Torch, x: Node, dims: Sequence[int], sizes: Sequence[int]) -> Node:
    for d, n in zip(dims, sizes, strict=True):
        x = _resized(t, x, d, n)
    _points(t, x, dims)
    return x


def fftn(t: Torch, x: Node, sizes: list[int] | None, dim: list[int] | None, norm: str | None, forward: bool) -> Node:
    x = _promoted(t, x, True)
    dims, want = _places(t, x, sizes, dim)
    return c2c(t, _prepared(t, x, dims, want), dims, _mode(norm, forward), forward)


def rfftn(t: Torch, x: Node, sizes: list[int] | None, dim: list[int] | None, norm: str | None, forward: bool) -> Node:
    """The transform of real numbers; ``ihfft`` where not ``forward``."""
    x = _promoted(t, x, False)
    if t.dtype(x).is_complex:
        raise TypeFault("this Fourier transform takes real numbers: fft takes complex ones")
    dims, want = _places(t, x, sizes, dim)
    if not dims:
        raise TypeFault("a Fourier transform of real numbers needs one dimension at least")
    x, mode = _prepared(t, x, dims, want), _mode(norm, forward)
    y = r2c(t, x, dims if forward else dims[-1:], mode, True)
    return y if forward else c2c(t, conjugate(t, y), dims[:-1], mode, False)


def irfftn(t: Torch, x: Node, sizes: list[int] | None, dim: list[int] | None, norm: str | None, forward: bool) -> Node:
    """The transform to real numbers; ``hfft`` where ``forward``."""
    x = _promoted(t, x, True)
    dims, want = _places(t, x, sizes, dim)
    if not dims:
        raise TypeFault("a Fourier transform to real numbers needs one dimension at least")
    last = want[-1] if sizes is not None and sizes[-1] != -1 else 2 * (want[-1] - 1)
    if last < 1:
        raise TypeFault(f"a Fourier transform to {last} points: torch requires one or more")
    x, mode = _prepared(t, x, dims, [*want[:-1], last // 2 + 1]), _mode(norm, forward)
    if forward:
        x = conjugate(t, c2c(t, x, dims[:-1], mode, True))
    return c2r(t, x, dims[-1:] if forward else dims, mode, last)


# ---------------------------------------------------------------------- torch.fft

FAMILIES = (("fft", fftn, True), ("ifft", fftn, False), ("rfft", rfftn, True), ("ihfft", rfftn, False), ("irfft", irfftn, False),
            ("hfft", irfftn, True))


def _declare(name: str, transform: Any, forward: bool) -> None:
    @operator(f"fft_{name}(Tensor self, SymInt? n=None, int dim=-1, str? norm=None)")
    def one(t: Torch, x: Node, n: int | None, dim: int, norm: str | None) -> Node:
        return transform(t, x, None if n is None else [n], [dim], norm, forward)  # type: ignore[no-any-return]

    @operator(f"fft_{name}2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None)",
              f"fft_{name}n(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None)")
    def several(t: Torch, x: Node, sizes: list[int] | None, dim: list[int] | None, norm: str | None) -> Node:
        return transform(t, x, sizes, dim, norm, forward)  # type: ignore[no-any-return]


for _name, _transform, _forward in FAMILIES:
    _declare(_name, _transform, _forward)


@operator("_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward)")
def fft_c2c(t: Torch, x: Node, dim: list[int], mode: int, forward: bool) -> Node:
    return c2c(t, x, [t.dim(x, d) for d in dim], mode, forward)


@operator("_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided)")
def fft_r2c(t: Torch, x: Node, dim: list[int], mode: int, onesided: bool) -> Node:
    return r2c(t, x, [t.dim(x, d) for d in dim], mode, onesided)


@operator("_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size)")
def fft_c2r(t: Torch, x: Node, dim: list[int], mode: int, length: int) -> Node:
    return c2r(t, x, [t.dim(x, d) for d in dim], mode, length)


# ---------------------------------------------------------------------- order of frequencies


def _rotated(t: Torch, x: Node, dim: list[int] | None, up: bool) -> Node:
    for d in t.dims(x, dim):
        n = t.shape(x)[d]
        cut = (n + 1) // 2 if up else n // 2
        if cut < n:
            x = t.concat([t.slice_dim(x, d, cut, n), t.slice_dim(x, d, 0, cut)], d)
    return x


@operator("fft_fftshift(Tensor self, int[1]? dim=None)")
def fftshift(t: Torch, x: Node, dim: list[int] | None) -> Node:
    """Moves the zero frequency to the middle."""
    return _rotated(t, x, dim, True)


@operator("fft_ifftshift(Tensor self, int[1]? dim=None)")
def ifftshift(t: Torch, x: Node, dim: list[int] | None) -> Node:
    return _rotated(t, x, dim, False)


@operator(f"fft_fftfreq(int n, float d=1., {OPTIONS})")
def fftfreq(t: Torch, n: int, d: float, dtype: int | None, layout: object, device: object, pin: object) -> Node:
    table("the frequencies", n)
    step = 1 / (at_least(1, "n", n) * nonzero("d", d))
    return t.array(np.concatenate([np.arange((n + 1) // 2), np.arange(-(n // 2), 0)]) * step, t.dtype_number(dtype, F32))


@operator(f"fft_rfftfreq(int n, float d=1., {OPTIONS})")
def rfftfreq(t: Torch, n: int, d: float, dtype: int | None, layout: object, device: object, pin: object) -> Node:
    table("the frequencies", n)
    return t.array(np.arange(n // 2 + 1) * (1 / (at_least(1, "n", n) * nonzero("d", d))), t.dtype_number(dtype, F32))
