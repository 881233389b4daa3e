"""Complex functions by real ones, as XLA expands them: exp, log, log1p and sqrt without avoidable overflow and cancellation.

The algorithms are those of stablehlo/transforms/StablehloComplexMathExpanderPatterns.td (P. Peterson, functional_algorithms), so that a
text and its translation to HLO are the same graph.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from irscope.formats.stablehlo.composites.terms import Term
from irscope.graph import Builder, Node, Op, TensorType
from irscope.graph.dtypes import F64
from irscope.ops import hlo
from irscope.ops.tensors import Tensors

SQRT_2 = 1.4142135623730951


def expand_complex(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
    """The expansion of a function of complex numbers; None for any other node."""
    formula = FORMULAS.get(node.op)
    if formula is None or not isinstance(node.type, TensorType) or not node.type.dtype.is_complex or node.attrs:
        return None
    z = Term(Tensors(builder), operands[0])
    re, im = formula(z.unary("real"), z.unary("imag"))
    return re.binary("complex", im).node


def exp(x: Term, y: Term) -> tuple[Term, Term]:
    """e ** (x + iy); where e ** x overflows, by two factors of e ** (x / 2)."""
    e, half = x.unary("exponential"), (x * 0.5).unary("exponential")
    overflows = e.compare("EQ", inf)
    cosine, sine = y.unary("cosine"), y.unary("sine")
    im = overflows.where(half * sine * half, e * sine)
    return overflows.where(half * cosine * half, e * cosine), y.compare("EQ", 0).where(x.like(0), im)


def log(x: Term, y: Term) -> tuple[Term, Term]:
    """log |z| and the angle; near |z| = 1 by the exact sum of the squares less one."""
    (xx, xx_low), (yy, yy_low) = _square(x), _square(y)
    larger = yy.compare("GT", xx)
    terms = [larger.where(yy, xx), larger.where(xx, yy), yy_low, xx_low]
    total = _sum(x.like(-1), terms, lambda a, b, s: b - (s - a))
    ax, ay = abs(x), abs(y)
    most, least = ax.binary("maximum", ay), ax.binary("minimum", ay)
    ratio = least.compare("EQ", most).where(x.like(1), least / most)
    far = most.unary("log") + 0.5 * (ratio * ratio).unary("log-plus-one")
    return abs(total).compare("LT", 0.5).where(0.5 * total.unary("log-plus-one"), far), y.binary("atan2", x)


def log_plus_one(x: Term, y: Term) -> tuple[Term, Term]:
    """log |1 + z| and its angle."""
    (xx, xx_low), (yy, yy_low) = _square(x), _square(y)

    def rest(a: Term, b: Term, s: Term) -> Term:
        part = s - a
        return (a - (s - part)) + (b - part)
    near = 0.5 * _sum(x + x, [yy, xx, yy_low, xx_low], rest).unary("log-plus-one")
    ax, ay = abs(x), abs(y)
    most, least = ax.binary("maximum", ay), ax.binary("minimum", ay)
    ratio = least / most
    squared = least.compare("EQ", most).where(x.like(1), ratio * ratio)
    large = most.unary("log") + 0.5 * squared.unary("log-plus-one")
    after = x + 1
    small = (abs(after) + ay).compare("LT", 0.2)
    middle = small.where(0.5 * (after * after + yy).unary("log"), near)
    limit = x.like(x.dtype.largest).unary("sqrt") * 0.01
    return most.compare("GT", limit).where(large, middle), y.binary("atan2", after)


def sqrt(x: Term, y: Term) -> tuple[Term, Term]:
    """The root with a real part that is not negative."""
    ax, ay, one = abs(x), abs(y), x.like(1)
    equal, less, more = (ax.compare(direction, ay) for direction in ("EQ", "LT", "GT"))
    root_x, root_y = ax.unary("sqrt"), ay.unary("sqrt")
    u = (_hypotenuse(ax.binary("maximum", ay), ax.binary("minimum", ay)) / 2 + ax / 2).unary("sqrt")
    ratio = equal.where(one, less.where(ax / ay, ay / ax))
    a_ratio = abs(ratio)
    h = _hypotenuse(one.binary("maximum", a_ratio), one.binary("minimum", a_ratio))
    one_h, ratio_h = (one + h).unary("sqrt"), (ratio + h).unary("sqrt")
    ends = u.compare("EQ", 0) | u.compare("EQ", inf)
    scaled = more.where(root_x * (one_h / SQRT_2), root_y * (ratio_h / SQRT_2))
    major = equal.where(root_x * 1.5537739740300374 / SQRT_2, ends.where(scaled, u))
    roots = equal.where(one, less.where(root_x / root_y, root_y / root_x))
    scaled = more.where(root_y * roots / (one_h * SQRT_2), root_y / (ratio_h * SQRT_2))
    minor = equal.where(root_y / 2.19736822693562, ends.where(scaled, ay / (u * 2)))
    below = y.compare("LT", 0)
    im = x.compare("LT", 0).where(below.where(-major, major), below.where(-minor, minor))
    return x.compare("GE", 0).where(major, minor), im


def _hypotenuse(most: Term, least: Term) -> Term:
    """sqrt(most ** 2 + least ** 2) of numbers that are not negative."""
    ratio = least / most
    r = ratio * ratio
    root = (1 + r).unary("sqrt")
    tiny = root.compare("EQ", 1) & r.compare("GT", 0)
    return most.compare("EQ", least).where(SQRT_2 * most, tiny.where(most + most * r / 2, most * root))


def _square(x: Term) -> tuple[Term, Term]:
    """x * x as the sum of two floats (T. J. Dekker, 1971)."""
    high = x * x
    split = (134217729.0 if x.dtype is F64 else 4097.0) * x
    upper = split + (x - split)
    lower = x - upper
    cross = upper * lower
    return high, -high + upper * upper + cross + cross + lower * lower


def _sum(first: Term, terms: Sequence[Term], error: Callable[[Term, Term, Term], Term]) -> Term:
    """The sum of several terms and of the errors of its steps: ``error(a, b, a + b)``."""
    total, errors = first, None
    for term in terms:
        after = total + term
        rest = error(total, term, after)
        errors = rest if errors is None else errors + rest
        total = after
    return total if errors is None else total + errors


ComplexFormula = Callable[[Term, Term], tuple[Term, Term]]
FORMULAS: dict[Op, ComplexFormula] = {hlo.exponential: exp, hlo.log: log, hlo.log_plus_one: log_plus_one, hlo.sqrt: sqrt}
