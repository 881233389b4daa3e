"""Complex numbers: parts, conjugates, angles."""
from __future__ import annotations

from dataclasses import replace
from math import pi

from irscope.formats.torchscript.abstract import ITSELF, Copied, Decision, TensorView, Unsure
from irscope.formats.torchscript.operators import alias, operator, view
from irscope.formats.torchscript.strides import Strided, preserved
from irscope.formats.torchscript.torch import Torch
from irscope.graph import DType, Node
from irscope.graph.dtypes import C64, C128, F32, F64, PRED
from irscope.ops.faults import TypeFault


def real_type(t: Torch, x: Node) -> DType:
    """The element type of the parts of complex numbers, else that of the tensor."""
    return {C64: F32, C128: F64}.get(t.dtype(x), t.dtype(x))


def conjugate(t: Torch, x: Node) -> Node:
    """The complex conjugate; real numbers are their own."""
    if not t.dtype(x).is_complex:
        return x
    return t.emit("complex", (t.unary("real", x), t.unary("negate", t.unary("imag", x))))


def conjugated(t: Torch) -> TensorView:
    """The conjugate as a view: torch sets a flag, and conjugates when the numbers are read."""
    return TensorView(lambda b: conjugate(t, b), lambda b, new: conjugate(t, new), lambda at: replace(at, conjugated=not at.conjugated))


@alias("conj(Tensor(a) self)", "_conj(Tensor(a) self)", traits="view")
def conj(t: Torch, x: Node, at: Strided | None) -> Decision:
    return conjugated(t) if t.dtype(x).is_complex else ITSELF


@alias("conj_physical(Tensor self)")
def conj_physical(t: Torch, x: Node, at: Strided | None) -> Decision:
    if not t.dtype(x).is_complex:
        return ITSELF
    return Copied(conjugate(t, x), preserved(at) if at is not None else None)


@operator("_conj_physical(Tensor self)", "_conj_copy(Tensor self)")
def conj_copy(t: Torch, x: Node) -> Node:
    return conjugate(t, x) if t.dtype(x).is_complex else x


@view("_neg_view(Tensor(a) self)")
def neg_view(t: Torch, x: Node) -> TensorView:
    return TensorView(lambda b: t.unary("negate", b), lambda b, new: t.unary("negate", new), lambda at: replace(at, negated=not at.negated))


@alias("resolve_conj(Tensor(a) self)")
def resolve_conj(t: Torch, x: Node, at: Strided | None) -> Decision:
    """A copy of a tensor with the conjugate flag, else the tensor itself."""
    if at is None:
        return Unsure(x) if t.dtype(x).is_complex else ITSELF
    return Copied(x, replace(preserved(at), negated=at.negated)) if at.conjugated else ITSELF


@alias("resolve_neg(Tensor(a) self)")
def resolve_neg(t: Torch, x: Node, at: Strided | None) -> Decision:
    if at is None:
        return Unsure(x)
    return Copied(x, replace(preserved(at), conjugated=at.conjugated)) if at.negated else ITSELF


def _parts(at: Strided) -> Strided:
    """The layout of the real parts."""
    return replace(at, strides=tuple(2 * s for s in at.strides), offset=None if at.offset is None else 2 * at.offset, conjugated=False)


def _require_complex(t: Torch, x: Node) -> None:
    if not t.dtype(x).is_complex:
        raise TypeFault(f"it takes complex numbers, not {t.dtype(x).name}")


@view("imag(Tensor(a) self)")
def imag(t: Torch, x: Node) -> TensorView:
    _require_complex(t, x)

    def place(at: Strided) -> Strided:
        first = _parts(at)
        return replace(first, offset=None if first.offset is None else first.offset + 1, negated=at.negated != at.conjugated)
    return TensorView(lambda b: t.unary("imag", b), lambda b, new: t.emit("complex", (t.unary("real", b), new)), place)


@alias("real(Tensor(a) self)", traits="view")
def real(t: Torch, x: Node, at: Strided | None) -> Decision:
    if not t.dtype(x).is_complex:
        return ITSELF
    return TensorView(lambda b: t.unary("real", b), lambda b, new: t.emit("complex", (new, t.unary("imag", b))), _parts)


@view("view_as_real(Tensor(a) self)")
def view_as_real(t: Torch, x: Node) -> TensorView:
    """The real and imaginary parts in a new last dimension."""
    _require_complex(t, x)

    def place(at: Strided) -> Strided:
        if at.conjugated:
            raise TypeFault("view_as_real of a tensor that is conjugated but not resolved: call resolve_conj() first, as torch requires")
        parts = _parts(at)
        return replace(parts, sizes=(*at.sizes, 2), strides=(*parts.strides, 1))
    return TensorView(lambda b: _split(t, b), lambda b, new: _joined(t, new), place)


@view("view_as_complex(Tensor(a) self)")
def view_as_complex(t: Torch, x: Node) -> TensorView:
    if t.shape_of(x, 1)[-1] != 2:
        raise TypeFault(f"a complex number is made of 2 parts, and the last dimension has {t.shape(x)[-1]}")

    def place(at: Strided) -> Strided | None:
        if at.strides[-1] != 1 or any(s % 2 for s in at.strides[:-1]) or (at.offset or 0) % 2:
            return None
        return replace(at, sizes=at.sizes[:-1], strides=tuple(s // 2 for s in at.strides[:-1]),
                       offset=None if at.offset is None else at.offset // 2)
    return TensorView(lambda b: _joined(t, b), lambda b, new: _split(t, new), place)


def _split(t: Torch, x: Node) -> Node:
    return t.concat([t.unsqueeze(t.unary(part, x), -1) for part in ("real", "imag")], t.rank(x))


def _joined(t: Torch, x: Node) -> Node:
    d = t.rank(x) - 1
    return t.emit("complex", [t.reshape(t.slice_dim(x, d, i, i + 1), t.shape(x)[:-1]) for i in range(2)])


@operator("complex(Tensor real, Tensor imag)")
def complex_(t: Torch, x: Node, y: Node) -> Node:
    return t.emit("complex", t.together(x, y))


@operator("polar(Tensor abs, Tensor angle)")
def polar(t: Torch, size: Node, angle: Node) -> Node:
    size, angle = t.together(size, angle)
    return t.emit("complex", (t.mul(size, t.unary("cosine", angle)), t.mul(size, t.unary("sine", angle))))


@operator("angle(Tensor self)")
def angle(t: Torch, x: Node) -> Node:
    """The angle in the complex plane: of real numbers 0, or pi for negative ones."""
    if t.dtype(x).is_complex:
        return t.binary("atan2", t.unary("imag", x), t.unary("real", x))
    if t.dtype(x) is PRED:
        return t.full(t.shape(x), 0, F32)
    y = t.floating(x)
    flat = t.select(t.compare("LT", y, t.like(y, 0)), t.like(y, pi), t.like(y, 0))
    return t.select(t.compare("NE", y, y), y, flat)


@operator("isreal(Tensor self)")
def isreal(t: Torch, x: Node) -> Node:
    if not t.dtype(x).is_complex:
        return t.full(t.shape(x), True, PRED)
    part = t.unary("imag", x)
    return t.compare("EQ", part, t.like(part, 0))
