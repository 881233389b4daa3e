"""Complex numbers: parts, conjugates, angles."""
from __future__ import annotations

from math import pi

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.torch import Torch
from irscope.graph import DType, Node
from irscope.graph.dtypes import C64, C128, F32, F64, PRED


def real_type(t: Torch, x: Node) -> DType:
    """The element type of the parts of complex numbers, else that of the tensor."""
    return {C64: F32, C128: F64}.get(t.dtype(x), t.dtype(x))


def conjugate(t: Torch, x: Node) -> Node:
    """The complex conjugate; real numbers are their own."""
    if not t.dtype(x).is_complex:
        return x
    return t.emit("complex", (t.unary("real", x), t.unary("negate", t.unary("imag", x))))


@operator("conj(Tensor self)", "_conj(Tensor self)", "conj_physical(Tensor self)")
def conj(t: Torch, x: Node) -> Node:
    return conjugate(t, x)


@operator("resolve_conj(Tensor self)", "resolve_neg(Tensor self)")
def resolved(t: Torch, x: Node) -> Node:
    """What torch puts off is done at once here."""
    return x


@operator("imag(Tensor self)")
def imag(t: Torch, x: Node) -> Node:
    return t.unary("imag", x)


@operator("real(Tensor self)")
def real(t: Torch, x: Node) -> Node:
    return t.unary("real", x) if t.dtype(x).is_complex else x


@operator("view_as_real(Tensor self)")
def view_as_real(t: Torch, x: Node) -> Node:
    """The parts side by side in a new last dimension."""
    return t.concat([t.unsqueeze(t.unary(part, x), -1) for part in ("real", "imag")], t.rank(x))


@operator("view_as_complex(Tensor self)")
def view_as_complex(t: Torch, x: Node) -> Node:
    d = t.rank(x) - 1
    parts = [t.reshape(t.slice_dim(x, d, i, i + 1), t.shape(x)[:-1]) for i in range(2)]
    return t.emit("complex", parts)


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
