"""Elementwise operators: of one operand, of two with broadcasting, and selections."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan as isnan_
from math import log

from irscope.formats.relay.algebra import Relay, shape_text, word_of
from irscope.formats.relay.operators import Attributes, operator
from irscope.formats.relay.operators.broadcasting import arithmetic_type, comparison_type
from irscope.graph import Kind, Node
from irscope.graph.dtypes import PRED, S32, S64
from irscope.ops.faults import TypeFault
from irscope.ops.registry import get

E, B = Kind.ELEMENTWISE, Kind.BROADCAST

UNARY = {
    "abs": "abs", "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan", "atanh": "atanh", "ceil": "ceil",
    "cos": "cosine", "cosh": "cosh", "erf": "erf", "exp": "exponential", "floor": "floor", "log": "log", "negative": "negate",
    "round": "round-nearest-afz", "rsqrt": "rsqrt", "sigmoid": "logistic", "sign": "sign", "sin": "sine", "sinh": "sinh", "sqrt": "sqrt",
    "tan": "tan", "tanh": "tanh", "logical_not": "not", "bitwise_not": "not", "fast_erf": "erf", "fast_exp": "exponential",
    "fast_tanh": "tanh",
}  # fmt: skip
"""Relay's name and the primitive's. The fast ones are the exact ones: they may not be worse."""

FLOATS = frozenset("""
acos acosh asin asinh atan atanh cos cosh erf exp fast_erf fast_exp fast_tanh log rsqrt sigmoid sin sinh sqrt tan tanh
""".split())
"""Operators that take only floats."""
ROUNDING = ("ceil", "floor", "round")


def _unary(name: str, primitive: str) -> None:
    def build(t: Relay, a: Attributes, x: Node) -> Node:
        dtype = t.dtype(x)
        if name in ROUNDING and not dtype.is_float:
            return x
        if name == "bitwise_not" and dtype is PRED:
            return t.unary("not", x)
        return t.unary(primitive, x)

    build.__doc__ = f"The primitive ``{primitive}`` of each element."
    takes = ": float" if name in FLOATS else {"logical_not": ": bool", "bitwise_not": ": bits"}.get(name, "")
    operator(f"{name}(data{takes})", kind=E, weight=get(primitive).weight)(build)


for _name, _primitive_name in UNARY.items():
    _unary(_name, _primitive_name)


@operator("copy(data)", kind=E, work="movement")
def copy(t: Relay, a: Attributes, x: Node) -> Node:
    """The operand."""
    return x


@operator("trunc(data)", kind=E)
def trunc(t: Relay, a: Attributes, x: Node) -> Node:
    """The value rounded towards zero."""
    if not t.dtype(x).is_float:
        return x
    return t.select(t.compare("LT", x, t.like(x, 0)), t.unary("ceil", x), t.unary("floor", x))


@operator("log2(data: float)", kind=E, weight=12)
def log2(t: Relay, a: Attributes, x: Node) -> Node:
    """The logarithm of base 2."""
    return t.scale(t.unary("log", x), 1 / log(2))


@operator("log10(data: float)", kind=E, weight=12)
def log10(t: Relay, a: Attributes, x: Node) -> Node:
    """The logarithm of base 10."""
    return t.scale(t.unary("log", x), 1 / log(10))


@operator("nn.relu(data)", kind=E)
def relu(t: Relay, a: Attributes, x: Node) -> Node:
    """``max(x, 0)``. NaN stays NaN."""
    return t.maximum(x, t.like(x, 0))


@operator("nn.leaky_relu(data; alpha=0.25)", kind=E)
def leaky_relu(t: Relay, a: Attributes, x: Node) -> Node:
    """``x`` where it is positive, else ``alpha x``."""
    return t.select(t.compare("GT", x, t.like(x, 0)), x, t.scale(x, float(a.alpha)))


@operator("nn.prelu(data, alpha; axis=1)", kind=B)
def prelu(t: Relay, a: Attributes, x: Node, alpha: Node) -> Node:
    """``x`` where it is positive, else ``x`` times the factor of its channel."""
    return t.select(t.compare("GT", x, t.like(x, 0)), x, t.mul(x, t.along(alpha, x, a.axis)))


@operator("nn.fast_gelu(data)", kind=E)
def gelu(t: Relay, a: Attributes, x: Node) -> Node:
    """``x`` times the cumulative normal distribution at ``x``."""
    half = t.plus(t.unary("erf", t.scale(x, 2**-0.5)), 1)
    return t.mul(t.scale(x, 0.5), half)


@operator("isnan(data)", kind=E)
def isnan(t: Relay, a: Attributes, x: Node) -> Node:
    """Whether it is NaN."""
    return t.compare("NE", x, x)


@operator("isfinite(data)", kind=E)
def isfinite(t: Relay, a: Attributes, x: Node) -> Node:
    """Whether it is neither infinite nor NaN."""
    return t.unary("is-finite", x) if t.dtype(x).is_float else t.full(t.shape(x), True, PRED)


@operator("isinf(data)", kind=E)
def isinf(t: Relay, a: Attributes, x: Node) -> Node:
    """Whether it is plus or minus infinity."""
    if not t.dtype(x).is_float:
        return t.full(t.shape(x), False, PRED)
    return t.compare("EQ", t.unary("abs", x), t.like(x, float("inf")))


@operator("cast(data; dtype!)", kind=E)
def cast(t: Relay, a: Attributes, x: Node) -> Node:
    """The value in another element type."""
    return t.convert(x, t.dtype_word(a.dtype))


@operator("cast_like(data, dtype_like)", kind=E)
def cast_like(t: Relay, a: Attributes, x: Node, like: Node) -> Node:
    """The value in the element type of another."""
    return t.convert(x, t.dtype(like))


@operator("reinterpret(data; dtype!)", kind=E)
def reinterpret(t: Relay, a: Attributes, x: Node) -> Node:
    """The bits as another element type of the same width."""
    dtype = t.dtype_word(a.dtype)
    if dtype.bits != t.dtype(x).bits:
        raise TypeFault(f"{word_of(t.dtype(x))} and {word_of(dtype)} have different widths")
    return t.bitcast_convert(x, dtype)


@operator("clip(data; a_min!, a_max!)", kind=E)
def clip(t: Relay, a: Attributes, x: Node) -> Node:
    """Nothing below ``a_min`` and above ``a_max``."""
    dtype = t.dtype(x)
    low, high = float(a.a_min), float(a.a_max)
    if dtype.is_integer:
        least, most = (0, (1 << dtype.bits) - 1) if dtype.kind == "uint" else (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1)
        if isnan_(low) or isnan_(high):
            raise TypeFault(f"{low} and {high} are not bounds of {word_of(dtype)}")
        bounds = [int(min(max(bound, least), most)) for bound in (low, high)]
        return t.minimum(t.maximum(x, t.like(x, bounds[0])), t.like(x, bounds[1]))
    return t.minimum(t.maximum(x, t.like(x, low)), t.like(x, high))


@operator("where(condition: mask, x, y)", kind=B)
def where(t: Relay, a: Attributes, condition: Node, x: Node, y: Node) -> Node:
    """``x`` where the condition holds, else ``y``."""
    t.same_dtype(x, y)
    if t.dtype(condition) is not PRED:
        condition = t.compare("NE", condition, t.like(condition, 0))
    return t.select(condition, x, y)


# ---------------------------------------------------------------------- two operands


def _binary(name: str, rule: Callable[[Relay, Node, Node], Node], weight: int = 1) -> None:
    def build(t: Relay, a: Attributes, x: Node, y: Node) -> Node:
        t.same_dtype(x, y)
        x, y = t.together(x, y)
        return rule(t, x, y)

    build.__doc__ = rule.__doc__ or f"``{name}`` of two tensors with broadcasting."
    classes = {"logical": ": bool", "bitwise": ": bits", "left": ": int", "right": ": int"}
    takes = classes.get(name.partition("_")[0], "")
    operator(f"{name}(lhs{takes}, rhs{takes})", kind=B, infer=arithmetic_type(name), weight=weight)(build)


def _primitive(name: str) -> Callable[[Relay, Node, Node], Node]:
    return lambda t, x, y: t.binary(name, x, y)


for _name, _primitive_name in (
    ("add", "add"), ("subtract", "subtract"), ("multiply", "multiply"), ("divide", "divide"), ("maximum", "maximum"),
    ("minimum", "minimum"), ("power", "power"), ("mod", "remainder"), ("bitwise_and", "and"), ("bitwise_or", "or"),
    ("bitwise_xor", "xor"), ("logical_and", "and"), ("logical_or", "or"), ("logical_xor", "xor"),
    ("left_shift", "shift-left"), ("trunc_mod", "remainder"),
):  # fmt: skip
    _binary(_name, _primitive(_primitive_name), get(_primitive_name).weight)


def right_shift(t: Relay, x: Node, y: Node) -> Node:
    """A shift to the right that keeps the sign of signed integers."""
    return t.binary("shift-right-arithmetic" if t.dtype(x).kind == "int" else "shift-right-logical", x, y)


def floor_divide(t: Relay, x: Node, y: Node) -> Node:
    """The quotient, rounded towards minus infinity."""
    if t.dtype(x).is_float:
        return t.unary("floor", t.div(x, y))
    quotient = t.div(x, y)
    if t.dtype(x).kind == "uint":
        return quotient
    rest = t.binary("remainder", x, y)
    down = t.binary("and", t.compare("NE", rest, t.like(rest, 0)), t.compare("NE", _negative(t, rest), _negative(t, y)))
    return t.select(down, t.plus(quotient, -1), quotient)


def floor_mod(t: Relay, x: Node, y: Node) -> Node:
    """The remainder of a division that rounds towards minus infinity: it has the sign of the divisor."""
    rest = t.binary("remainder", x, y)
    if t.dtype(x).kind == "uint":
        return rest
    wrong = t.binary("and", t.compare("NE", rest, t.like(rest, 0)), t.compare("NE", _negative(t, rest), _negative(t, y)))
    return t.select(wrong, t.add(rest, y), rest)


def trunc_divide(t: Relay, x: Node, y: Node) -> Node:
    """The quotient, rounded towards zero."""
    quotient = t.div(x, y)
    return trunc(t, Attributes(), quotient)


def _negative(t: Relay, x: Node) -> Node:
    return t.compare("LT", x, t.like(x, 0))


_binary("right_shift", right_shift)
_binary("floor_divide", floor_divide)
_binary("floor_mod", floor_mod)
_binary("trunc_divide", trunc_divide)


def _comparison(name: str, direction: str) -> None:
    def build(t: Relay, a: Attributes, x: Node, y: Node) -> Node:
        t.same_dtype(x, y)
        return t.compare(direction, x, y)

    build.__doc__ = f"Whether ``{direction}`` holds for two elements."
    operator(f"{name}(lhs, rhs)", kind=B, infer=comparison_type(name))(build)


for _name, _direction in (("equal", "EQ"), ("not_equal", "NE"), ("less", "LT"), ("less_equal", "LE"), ("greater", "GT"),
                          ("greater_equal", "GE")):
    _comparison(_name, _direction)


# ---------------------------------------------------------------------- fixed point


@operator("fixed_point_multiply(data; multiplier!, shift!)", kind=E)
def fixed_point_multiply(t: Relay, a: Attributes, x: Node) -> Node:
    """``x`` times ``multiplier * 2^(shift-31)``, halves rounded up, in integer arithmetic."""
    return fixed_point(t, x, int(a.multiplier), int(a.shift))


def fixed_point(t: Relay, x: Node, multiplier: int, shift: int) -> Node:
    """The product in 64 bits, rounded and shifted back."""
    right = 31 - min(shift, 0)
    if max(shift, right) > 63:
        raise TypeFault(f"a shift by {shift} leaves no bit of an integer of 64 bits")
    wide = t.convert(x, S64)
    if shift > 0:
        wide = t.binary("shift-left", wide, t.like(wide, shift))
    product = t.plus(t.mul(wide, t.like(wide, multiplier)), 1 << (right - 1))
    return t.convert(t.binary("shift-right-arithmetic", product, t.like(product, right)), S32)


@operator("fixed_point_multiply_per_axis(data, multiplier, left_shift, right_shift; "
          "is_lshift_required=False, is_rshift_required=False, axes!)", kind=B)
def fixed_point_per_axis(t: Relay, a: Attributes, x: Node, multiplier: Node, left: Node, right: Node) -> Node:
    """Fixed-point multiplication with a multiplier and shifts per channel."""
    if len(a.axes) != 1:
        raise TypeFault(f"axes is one axis, got {shape_text(a.axes)}")
    axis = a.axes[0]
    wide = t.convert(x, S64)
    if a.is_lshift_required:
        wide = t.binary("shift-left", wide, t.along(t.convert(left, S64), x, axis))
    product = t.mul(wide, t.along(t.convert(multiplier, S64), x, axis))
    total = t.plus(t.along(t.convert(right, S64), x, axis), 31) if a.is_rshift_required else t.like(wide, 31)
    half = t.binary("shift-left", t.like(wide, 1), t.plus(total, -1))
    return t.convert(t.binary("shift-right-arithmetic", t.add(product, half), total), S32)
