"""Elementwise logic: bits, comparisons, selections and limits."""
from __future__ import annotations

from irscope.formats.torchscript.abstract import Scalar
from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import F32, PRED
from irscope.ops.faults import TypeFault


def _bitwise(name: str, hlo: str) -> None:
    @operator(f"bitwise_{name}.Tensor(Tensor self, Tensor other)", f"bitwise_{name}.Scalar(Tensor self, Scalar other)",
              f"__{name}__.Tensor(Tensor self, Tensor other)", f"__{name}__.Scalar(Tensor self, Scalar other)")
    def bitwise(t: Torch, x: Node, y: object) -> Node:
        return t.binary(hlo, *t.promote(x, y))


for _name in ("and", "or", "xor"):
    _bitwise(_name, _name)


def _shift(name: str, other: str, hlo: str) -> None:
    @operator(f"bitwise_{name}_shift.Tensor(Tensor self, Tensor other)", f"bitwise_{name}_shift.Tensor_Scalar(Tensor self, Scalar other)",
              f"{other}.Tensor(Tensor self, Tensor other)", f"{other}.Scalar(Tensor self, Scalar other)")
    def shift(t: Torch, x: Node, y: object) -> Node:
        x, y = t.promote(x, y)
        logical = hlo == "shift-right-arithmetic" and t.dtype(x).kind == "uint"
        return t.binary("shift-right-logical" if logical else hlo, x, y)


_shift("left", "__lshift__", "shift-left")
_shift("right", "__rshift__", "shift-right-arithmetic")


def _logical(name: str, hlo: str) -> None:
    @operator(f"logical_{name}(Tensor self, Tensor other)")
    def logical(t: Torch, x: Node, y: Node) -> Node:
        return t.binary(hlo, truth(t, x), truth(t, y))


for _name in ("and", "or", "xor"):
    _logical(_name, _name)


def truth(t: Torch, x: Node) -> Node:
    """``x != 0``."""
    return x if t.dtype(x) is PRED else t.compare("NE", x, t.like(x, 0))


def _comparison(names: tuple[str, ...], direction: str) -> None:
    schemas = [f"{n}.{o}" for n in names for o in ("Tensor(Tensor self, Tensor other)", "Scalar(Tensor self, Scalar other)")]

    @operator(*schemas)
    def comparison(t: Torch, x: Node, y: object) -> Node:
        return t.compare(direction, *t.promote(x, y))


for _names, _direction in ((("eq",), "EQ"), (("ne", "not_equal"), "NE"), (("lt", "less"), "LT"), (("le", "less_equal"), "LE"),
                           (("gt", "greater"), "GT"), (("ge", "greater_equal"), "GE")):
    _comparison(_names, _direction)


@operator("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False)")
def isclose(t: Torch, x: Node, y: Node, rtol: float, atol: float, equal_nan: bool) -> Node:
    x, y = t.together(*t.promote(x, y))
    same = t.compare("EQ", x, y)
    if t.dtype(x) is PRED:
        x, y = t.convert(x, F32), t.convert(y, F32)
    # The difference of integers is exact: float32 would make neighbours above 2**24 equal.
    away, size = (v if t.dtype(v).kind == "uint" else t.unary("abs", v) for v in (t.sub(x, y), y))
    if not t.dtype(away).is_float:
        away, size = t.convert(away, F32), t.convert(size, F32)
    near = t.compare("LE", away, t.plus(t.scale(size, rtol), atol))
    near = t.binary("or", same, t.binary("and", near, t.unary("is-finite", away)))
    if equal_nan:
        near = t.binary("or", near, t.binary("and", t.compare("NE", x, x), t.compare("NE", y, y)))
    return near


@operator("allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False)")
def allclose(t: Torch, x: Node, y: Node, relative: float, absolute: float, nan: bool) -> Scalar:
    near = isclose(t, x, y, relative, absolute, nan)
    return Scalar(t.all(near, list(range(t.rank(near)))), "bool")


@operator("_is_all_true(Tensor self)")
def is_all_true(t: Torch, x: Node) -> Node:
    return t.all(x, list(range(t.rank(x))))


@operator("_is_any_true(Tensor self)")
def is_any_true(t: Torch, x: Node) -> Node:
    return t.any(x, list(range(t.rank(x))))


@operator("bitwise_not(Tensor self)")
def bitwise_not(t: Torch, x: Node) -> Node:
    return t.unary("not", x)


@operator("logical_not(Tensor self)")
def logical_not(t: Torch, x: Node) -> Node:
    return t.unary("not", truth(t, x))


@operator("where.self(Tensor condition, Tensor self, Tensor other)", "where.ScalarSelf(Tensor condition, Scalar self, Tensor other)",
          "where.ScalarOther(Tensor condition, Tensor self, Scalar other)", "where.Scalar(Tensor condition, Scalar self, Scalar other)")
def where(t: Torch, condition: Node, x: object, y: object) -> Node:
    return t.select(truth(t, condition), *t.promote(x, y))


@operator("masked_fill.Scalar(Tensor self, Tensor mask, Scalar value)", "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value)",
          work="movement")
def masked_fill(t: Torch, x: Node, mask: Node, value: object) -> Node:
    if t.dtype(mask) is not PRED:
        raise TypeFault(f"a mask has bools, not {t.dtype(mask).name}")
    if isinstance(value, Node):
        t.shape_of(value, 0, 0)
    return t.select(mask, t.as_tensor(value, t.dtype(x)), x)


@operator("clamp(Tensor self, Scalar? min=None, Scalar? max=None)", "clip(Tensor self, Scalar? min=None, Scalar? max=None)",
          "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None)", "clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None)")
def clamp(t: Torch, x: Node, low: object, high: object) -> Node:
    dtype = t.result_type(x, low, high)
    x = t.convert(x, dtype)
    if low is not None:
        x = t.maximum(x, t.as_tensor(low, dtype))
    return t.minimum(x, t.as_tensor(high, dtype)) if high is not None else x


@operator("clamp_min(Tensor self, Scalar min)", "clamp_min.Tensor(Tensor self, Tensor min)")
def clamp_min(t: Torch, x: Node, low: object) -> Node:
    return clamp(t, x, low, None)


@operator("clamp_max(Tensor self, Scalar max)", "clamp_max.Tensor(Tensor self, Tensor max)")
def clamp_max(t: Torch, x: Node, high: object) -> Node:
    return clamp(t, x, None, high)


@operator("threshold(Tensor self, Scalar threshold, Scalar value)")
def threshold(t: Torch, x: Node, limit: object, value: object) -> Node:
    return t.select(t.compare("LE", x, t.like(x, limit)), t.like(x, value), x)
