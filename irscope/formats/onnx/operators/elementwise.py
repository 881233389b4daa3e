"""Arithmetic, comparisons and logic, element by element, with numpy's broadcasting."""
from __future__ import annotations

from functools import reduce

from irscope.formats.onnx.algebra import Onnx
from irscope.formats.onnx.declarations import Attributes
from irscope.formats.onnx.operators import operator
from irscope.graph import Node
from irscope.graph.dtypes import F32, F64, PRED
from irscope.ops.faults import TypeFault

UNARY = {
    "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan", "Atanh": "atanh", "Cos": "cosine", "Cosh": "cosh",
    "Erf": "erf", "Exp": "exponential", "Log": "log", "Neg": "negate", "Sigmoid": "logistic", "Sin": "sine", "Sinh": "sinh",
    "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh",
}
"""Operators that are one primitive."""
ROUNDING = {"Ceil": "ceil", "Floor": "floor", "Round": "round-nearest-even"}
BINARY = {"Add": "add", "Sub": "subtract", "Mul": "multiply", "And": "and", "Or": "or", "Xor": "xor"}
COMPARISONS = {"Equal": "EQ", "Greater": "GT", "GreaterOrEqual": "GE", "Less": "LT", "LessOrEqual": "LE"}


def together(t: Onnx, a: Attributes, x: Node, y: Node) -> tuple[Node, Node]:
    """Both operands in one shape. Up to version 6 the second broadcasts by attributes: it stands at ``axis`` of the first."""
    t.alike(x, y)
    if a.version < 7 and a.broadcast and t.rank(y) < t.rank(x):
        axis = t.axis(x, a.axis) if a.axis is not None else t.rank(x) - t.rank(y)
        y = t.reshape(y, (*t.shape(y), *(1,) * (t.rank(x) - axis - t.rank(y))))
    x, y = t.together(x, y)
    return x, y


def _unary(name: str, primitive: str) -> None:
    @operator(f"{name}(X)")
    def unary(t: Onnx, a: Attributes, x: Node) -> Node:
        if name in ROUNDING and not t.dtype(x).is_float:
            return x
        if name == "Erf" and not t.dtype(x).is_float:
            return t.convert(t.unary(primitive, t.convert(x, F32)), t.dtype(x))
        return t.unary(primitive, x)


def _binary(name: str, primitive: str) -> None:
    @operator(f"{name}(A, B; axis: int=None, broadcast=0)")
    def binary(t: Onnx, a: Attributes, x: Node, y: Node) -> Node:
        return t.binary(primitive, *together(t, a, x, y))


def _comparison(name: str, direction: str) -> None:
    @operator(f"{name}(A, B; axis: int=None, broadcast=0)")
    def comparison(t: Onnx, a: Attributes, x: Node, y: Node) -> Node:
        return t.compare(direction, *together(t, a, x, y))


for _name, _primitive in {**UNARY, **ROUNDING}.items():
    _unary(_name, _primitive)
for _name, _primitive in BINARY.items():
    _binary(_name, _primitive)
for _name, _primitive in COMPARISONS.items():
    _comparison(_name, _primitive)


@operator("Abs(X)")
def absolute(t: Onnx, a: Attributes, x: Node) -> Node:
    """``|x|``."""
    return x if t.dtype(x).kind in ("uint", "pred") else t.unary("abs", x)


@operator("Sign(input)")
def sign(t: Onnx, a: Attributes, x: Node) -> Node:
    """-1, 0 or 1."""
    return t.minimum(x, t.like(x, 1)) if t.dtype(x).kind == "uint" else t.unary("sign", x)


@operator("Reciprocal(X)")
def reciprocal(t: Onnx, a: Attributes, x: Node) -> Node:
    """``1 / x``."""
    return t.div(t.like(x, 1), x)


@operator("Div(A, B; axis: int=None, broadcast=0)")
def div(t: Onnx, a: Attributes, x: Node, y: Node) -> Node:
    """The quotient; of integers truncated."""
    return t.div(*together(t, a, x, y))


@operator("Pow(X, Y; axis: int=None, broadcast=0)")
def power(t: Onnx, a: Attributes, x: Node, y: Node) -> Node:
    """``x`` to the power ``y``, in the type of ``x``; the types may differ. Small whole exponents become products."""
    dtype, exponent = t.dtype(x), t.known(y)
    if exponent is not None and exponent.size == 1 and t.rank(y) <= t.rank(x):
        product = t.small_power(x, exponent.item())
        if product is not None:
            return product
    if dtype is not t.dtype(y):
        wide = t.dtype(y) if t.dtype(y).is_float and (not dtype.is_float or t.dtype(y).bits > dtype.bits) else dtype
        return t.convert(t.binary("power", t.convert(x, wide), t.convert(y, wide)), dtype)
    return t.binary("power", *together(t, a, x, y))


@operator("Mod(A, B; fmod=0)")
def modulo(t: Onnx, a: Attributes, x: Node, y: Node) -> Node:
    """The remainder with the sign of the divisor; with ``fmod`` that of the dividend."""
    t.alike(x, y)
    x, y = t.together(x, y)
    rest = t.binary("remainder", x, y)
    if a.fmod or t.dtype(x).kind == "uint":
        return rest
    zero = t.like(x, 0)
    other = t.binary("xor", t.compare("LT", rest, zero), t.compare("LT", y, zero))
    return t.select(t.binary("and", other, t.compare("NE", rest, zero)), t.add(rest, y), rest)


@operator("Not(X)")
def logical_not(t: Onnx, a: Attributes, x: Node) -> Node:
    """The negation."""
    if t.dtype(x) is not PRED:
        raise TypeFault("Not takes booleans")
    return t.unary("not", x)


@operator("Where(condition, X, Y)")
def where(t: Onnx, a: Attributes, condition: Node, x: Node, y: Node) -> Node:
    """``X`` where the condition holds, else ``Y``."""
    t.alike(x, y)
    return t.select(condition, x, y)


def _variadic(name: str, primitive: str) -> None:
    @operator(f"{name}(inputs*)")
    def variadic(t: Onnx, a: Attributes, *xs: Node) -> Node:
        if not xs:
            raise TypeFault("at least one operand is needed")
        t.alike(*xs)
        return reduce(lambda x, y: t.binary(primitive, x, y), xs)


for _name, _primitive in {"Max": "maximum", "Min": "minimum", "Sum": "add"}.items():
    _variadic(_name, _primitive)


@operator("Mean(inputs*)")
def mean(t: Onnx, a: Attributes, *xs: Node) -> Node:
    """The mean of all operands."""
    if not xs:
        raise TypeFault("at least one operand is needed")
    t.alike(*xs)
    total = reduce(t.add, xs)
    return t.div(total, t.like(total, len(xs)))


@operator("IsNaN(X)")
def is_nan(t: Onnx, a: Attributes, x: Node) -> Node:
    """Whether it is NaN."""
    return t.compare("NE", x, x)


@operator("IsInf(X; detect_negative=1, detect_positive=1)")
def is_inf(t: Onnx, a: Attributes, x: Node) -> Node:
    """Whether it is infinite, of the signs that are asked for."""
    if not t.dtype(x).has_infinity or not (a.detect_negative or a.detect_positive):
        return t.full(t.shape(x), False, PRED)
    if a.detect_negative and a.detect_positive:
        return t.compare("EQ", t.unary("abs", x), t.like(x, float("inf")))
    return t.compare("EQ", x, t.like(x, float("inf") if a.detect_positive else float("-inf")))


@operator("Clip(input, min?, max?; min: float=None, max: float=None)")
def clip(t: Onnx, a: Attributes, x: Node, low: Node | None, high: Node | None) -> Node:
    """Between two bounds; the upper one wins where they cross. They are attributes up to version 10."""
    if 6 <= a.version < 11 and t.dtype(x) in (F32, F64):  # the attributes have defaults, which infinities exceed
        a.min, a.max = (-F32.largest if a.min is None else a.min), (F32.largest if a.max is None else a.max)
    if low is None and a.min is not None:
        low = t.array(a.min, t.dtype(x))
    if high is None and a.max is not None:
        high = t.array(a.max, t.dtype(x))
    for bound in (low, high):
        if bound is not None and t.type(bound).elements != 1:
            raise TypeFault("the bounds are scalars")
    if low is not None:
        x = t.maximum(x, t.broadcast_to(t.reshape(low, ()), t.shape(x)))
    return x if high is None else t.minimum(x, t.broadcast_to(t.reshape(high, ()), t.shape(x)))
