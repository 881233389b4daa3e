"""Elementwise operators: one result element from one element of each operand.

Operands have equal shapes: HLO never broadcasts by itself. Only the bounds of ``clamp`` and the predicate of ``select`` may be scalars.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypedDict, Unpack

from irscope.graph import DTYPES, DType, Kind, Node, Op, TensorType, Type
from irscope.graph.node import Emitter, Reference, ScalarMeaning, Value
from irscope.lazy import np
from irscope.ops import numerics
from irscope.ops.faults import TypeFault
from irscope.ops.infer import Infer, agree, arity, array, arrays, kind_of, plain
from irscope.ops.numerics import Function, bitwise, numeric, sized
from irscope.ops.registry import declare
from irscope.ops.shapes import higher_precision
from irscope.ops.vocabulary import UNARY

FLOATS = ("float",)
ANALYTIC = ("float", "complex")
INTEGERS = ("int", "uint")
BITS = ("pred", "int", "uint")
NUMBERS = ("int", "uint", "float", "complex")
ORDERED = ("pred", "int", "uint", "float")
ALL = ("pred", "int", "uint", "float", "complex")


def operands_alike(k: Emitter, values: Sequence[Value], result: DType | None = None) -> list[Value]:
    """Operands of one element type: floats of mixed precision, that of the result included, are converted to the highest."""
    dtype = values[0].dtype
    for other in [*(value.dtype for value in values[1:]), *([result] if result is not None else [])]:
        dtype = higher_precision(dtype, other)
    return [k.convert(v, dtype) for v in values]


def word(name: str) -> ScalarMeaning:
    """The scalar meaning that is one operation of the vocabulary."""
    def scalar(k: Emitter, node: Node, *values: Value) -> Value:
        same = operands_alike(k, values, numerics.dtype_of_result(node))
        result = k.unary(name, *same) if name in UNARY else k.binary(name, *same)
        return k.convert(result, numerics.dtype_of_result(node))
    return scalar


class Declared(TypedDict, total=False):
    """What few elementwise operators declare: traits, weight, and what makes the reference of the function.

    ``reference`` is :func:`numeric` by default, :func:`bitwise` for those that touch bits alone, and so keep denormals.
    """

    traits: str
    weight: int
    reference: Callable[[Function], Reference]


def unary(name: str, meaning: str, kinds: Sequence[str], function: Function, doc: str,
          result: Callable[[TensorType], Type] = plain, **declared: Unpack[Declared]) -> Op:
    """Declare an elementwise operator of one operand; ``result`` says where its type differs from the operand's."""
    def infer(node: Node) -> Type:
        arity(node, 1)
        t = array(node, 0)
        kind_of(node, t, kinds)
        return result(t)
    return _elementwise(name, meaning, function, doc, infer, declared)


def binary(name: str, meaning: str, kinds: Sequence[str], function: Function, doc: str, **declared: Unpack[Declared]) -> Op:
    """Declare an elementwise operator of two operands of one type."""
    def infer(node: Node) -> Type:
        arity(node, 2)
        types = arrays(node)
        for t in types:
            kind_of(node, t, kinds)
        return agree(node, types)
    return _elementwise(name, meaning, function, doc, infer, declared)


def _elementwise(name: str, meaning: str, function: Function, doc: str, infer: Infer, declared: Declared) -> Op:
    reference = declared.get("reference", numeric)(function)
    return declare(Op(name, doc=doc, kind=Kind.ELEMENTWISE, infer=infer, reference=reference, scalar=word(meaning),
                      traits=frozenset(declared.get("traits", "").split()), weight=declared.get("weight", 1)))


def component(t: TensorType) -> TensorType:
    """The type of the real part."""
    parts = {"c64": "f32", "c128": "f64"}
    return TensorType(DTYPES[parts.get(t.dtype.name, t.dtype.name)], t.shape)


def as_pred(t: TensorType) -> TensorType:
    """The same shape of pred."""
    return TensorType(DTYPES["pred"], t.shape)


# ---- arithmetic

add = binary("add", "add", ALL, lambda x, y: np.add(x, y), "``x + y``; ints wrap, pred: or.", traits="commutative associative")
subtract = binary("subtract", "sub", NUMBERS, lambda x, y: np.subtract(x, y), "``x - y``; ints wrap.")
multiply = binary("multiply", "mul", ALL, lambda x, y: np.multiply(x, y), "``x * y``; ints wrap, pred: and.",
                  traits="commutative associative")
divide = binary("divide", "div", NUMBERS, numerics.divide,
                "``x / y``; ints truncate, x/0 is -1 (all ones unsigned), INT_MIN/-1 is INT_MIN.", weight=4)
remainder = binary("remainder", "rem", ("int", "uint", "float"), numerics.remainder,
                   "The rest of the truncated division: it has the sign of x; ints: x rem 0 is x.", weight=12)
maximum = binary("maximum", "max", ORDERED, numerics.maximum, "The larger; NaN when either is NaN, 0 above -0.",
                 traits="commutative associative idempotent")
minimum = binary("minimum", "min", ORDERED, numerics.minimum, "The smaller; NaN when either is NaN, -0 below 0.",
                 traits="commutative associative idempotent")
power = binary("power", "pow", NUMBERS, numerics.power, "``x ** y``; 1 for y = 0 and for x = 1; ints: 0 for negative y unless x is 1.",
               weight=12)
atan2 = binary("atan2", "atan2", ANALYTIC, numerics.atan2, "The angle of the point (y, x), with signed zeros as in C.", weight=12)
mulhi = binary("mulhi", "mulhi", INTEGERS, numerics.multiply_high, "The upper half of the product.", traits="commutative", reference=sized)
negate = unary("negate", "neg", NUMBERS, lambda x: np.negative(x), "``-x``; ints wrap.", traits="involution", reference=bitwise)
abs_ = unary("abs", "abs", ("int", "float", "complex"), lambda x: np.abs(x), "``|x|``; real for complex x.", component, reference=bitwise)
sign = unary("sign", "sign", ("int", "float", "complex"), numerics.sign, "-1, 0 or 1; zeros keep their sign, NaN stays; complex: z/abs(z).")

# ---- bits

and_ = binary("and", "and", BITS, lambda x, y: np.bitwise_and(x, y), "Bitwise; logical on pred.",
              traits="commutative associative idempotent")
or_ = binary("or", "or", BITS, lambda x, y: np.bitwise_or(x, y), "Bitwise; logical on pred.", traits="commutative associative idempotent")
xor = binary("xor", "xor", BITS, lambda x, y: np.bitwise_xor(x, y), "Bitwise; logical on pred.", traits="commutative associative")
not_ = unary("not", "not", BITS, numerics.bitwise_not, "All bits inverted; logical on pred.", traits="involution")
shift_left = binary("shift-left", "shl", INTEGERS, numerics.shift_left, "``x << y``; 0 when y is out of range.")
shift_right_logical = binary("shift-right-logical", "shr_logical", INTEGERS, numerics.shift_right_logical,
                             "Shifts in zeros; 0 when y is out of range.", reference=sized)
shift_right_arithmetic = binary("shift-right-arithmetic", "shr_arithmetic", INTEGERS, numerics.shift_right_arithmetic,
                                "Shifts in the sign bit; all sign bits when y is out of range.")
popcnt = unary("popcnt", "popcnt", INTEGERS, numerics.count_ones, "The number of set bits.", reference=sized)
count_leading_zeros = unary("count-leading-zeros", "clz", INTEGERS, numerics.count_leading_zeros,
                            "The number of zeros above the highest set bit; the width for 0.", reference=sized)

# ---- exponentials and roots

exponential = unary("exponential", "exp", ANALYTIC, lambda x: np.exp(x), "``e ** x``.", weight=12)
exponential_minus_one = unary("exponential-minus-one", "expm1", ANALYTIC, lambda x: np.expm1(x), "``e ** x - 1``, exact near 0.", weight=12)
log = unary("log", "log", ANALYTIC, lambda x: np.log(x), "The natural logarithm.", weight=12)
log_plus_one = unary("log-plus-one", "log1p", ANALYTIC, lambda x: np.log1p(x), "``log(1 + x)``, exact near 0.", weight=12)
sqrt = unary("sqrt", "sqrt", ANALYTIC, lambda x: np.sqrt(x), "The square root.", weight=4)
rsqrt = unary("rsqrt", "rsqrt", ANALYTIC, numerics.rsqrt, "``1 / sqrt(x)``.", weight=4)
cbrt = unary("cbrt", "cbrt", ANALYTIC, numerics.cbrt, "The cube root; real for negative x.", weight=12)
logistic = unary("logistic", "logistic", ANALYTIC, numerics.logistic, "``1 / (1 + exp(-x))``.", weight=12)
erf = unary("erf", "erf", FLOATS, numerics.erf, "The error function.", weight=12)

# ---- trigonometry

sine = unary("sine", "sin", ANALYTIC, lambda x: np.sin(x), "The sine.", weight=12)
cosine = unary("cosine", "cos", ANALYTIC, lambda x: np.cos(x), "The cosine.", weight=12)
tan = unary("tan", "tan", ANALYTIC, lambda x: np.tan(x), "The tangent.", weight=12)
sinh = unary("sinh", "sinh", ANALYTIC, lambda x: np.sinh(x), "The hyperbolic sine.", weight=12)
cosh = unary("cosh", "cosh", ANALYTIC, lambda x: np.cosh(x), "The hyperbolic cosine.", weight=12)
tanh = unary("tanh", "tanh", ANALYTIC, lambda x: np.tanh(x), "The hyperbolic tangent.", weight=12)
asin = unary("asin", "asin", ANALYTIC, lambda x: np.arcsin(x), "The inverse of the sine.", weight=12)
acos = unary("acos", "acos", ANALYTIC, lambda x: np.arccos(x), "The inverse of the cosine.", weight=12)
atan = unary("atan", "atan", ANALYTIC, lambda x: np.arctan(x), "The inverse of the tangent.", weight=12)
asinh = unary("asinh", "asinh", ANALYTIC, lambda x: np.arcsinh(x), "The inverse of the hyperbolic sine.", weight=12)
acosh = unary("acosh", "acosh", ANALYTIC, lambda x: np.arccosh(x), "The inverse of the hyperbolic cosine.", weight=12)
atanh = unary("atanh", "atanh", ANALYTIC, lambda x: np.arctanh(x), "The inverse of the hyperbolic tangent.", weight=12)

# ---- rounding and parts

floor = unary("floor", "floor", FLOATS, lambda x: np.floor(x), "Down to a whole number.", traits="idempotent")
ceil = unary("ceil", "ceil", FLOATS, lambda x: np.ceil(x), "Up to a whole number.", traits="idempotent")
round_nearest_afz = unary("round-nearest-afz", "round_away", FLOATS, numerics.round_away,
                          "To the nearest whole number, halves away from zero.", traits="idempotent")
round_nearest_even = unary("round-nearest-even", "round_even", FLOATS, lambda x: np.rint(x),
                           "To the nearest whole number, halves to the even one.", traits="idempotent")
is_finite = unary("is-finite", "is_finite", FLOATS, lambda x: np.isfinite(x), "Neither infinite nor NaN.", as_pred)
real = unary("real", "real", ANALYTIC, lambda x: np.real(x), "The real part.", component, reference=bitwise)
imag = unary("imag", "imag", ANALYTIC, lambda x: np.imag(x), "The imaginary part.", component, reference=bitwise)


def _infer_complex(node: Node) -> Type:
    arity(node, 2)
    t = agree(node, arrays(node))
    pairs = {"f32": "c64", "f64": "c128"}
    if t.dtype.name not in pairs:
        raise TypeFault(f"complex is made of f32 or f64 parts, but got {plain(t)}", "convert the parts first")
    return TensorType(DTYPES[pairs[t.dtype.name]], t.shape)


complex_ = declare(Op(
    "complex", doc="A complex number from its real and imaginary part.", kind=Kind.ELEMENTWISE, infer=_infer_complex,
    reference=bitwise(numerics.complex_of), scalar=lambda k, node, re, im: k.complex(*operands_alike(k, (re, im)))))
