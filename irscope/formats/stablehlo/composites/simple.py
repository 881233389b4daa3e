"""Short operators of CHLO: squares, conjugates, infinities, neighbours of floats."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, nan

from irscope.formats.stablehlo.composites.gamma import is_infinite
from irscope.formats.stablehlo.composites.terms import FLOAT, FLOAT_OR_COMPLEX, Formula, Term, by_expansion, declare_formula
from irscope.graph import DTYPES, Builder, Kind, Node, Op, TensorType, Type
from irscope.graph.dtypes import PRED
from irscope.ops.infer import arity, array, kind_of
from irscope.ops.registry import declare
from irscope.ops.tensors import Tensors


def square(x: Term) -> Term:
    """x * x; of a complex number by its parts."""
    if not x.dtype.is_complex:
        return x * x
    re, im = x.unary("real"), x.unary("imag")
    alike = re.unary("is-finite") & abs(re).compare("EQ", abs(im))
    return alike.where(re.like(0), (re - im) * (re + im)).binary("complex", 2 * (re * im))


def conjugate(x: Term) -> Term:
    """The complex conjugate; a real number is its own."""
    return x.unary("real").binary("complex", -x.unary("imag")) if x.dtype.is_complex else x


def next_after(x: Term, y: Term) -> Term:
    """The float that follows x in the direction of y."""
    bits = DTYPES[f"s{x.dtype.bits}"]
    sign = -(1 << (x.dtype.bits - 1))

    def as_bits(value: Term) -> Term:
        return Term(value.t, value.t.bitcast_convert(value.node, bits))
    a, b = as_bits(x), as_bits(y)
    mask = a.like(~sign)
    size_a, size_b = a & mask, b & mask
    sign_a, sign_b = a & a.like(sign), b & b.like(sign)
    smaller = size_a.compare("GT", size_b) | sign_a.compare("NE", sign_b)
    result = a + smaller.where(a.like(-1), 1)
    result = size_a.compare("EQ", 0).where(size_b.compare("EQ", 0).where(b, sign_b | a.like(1)), result)
    result = x.compare("EQ", y).where(b, result)
    result = (x.compare("NE", x) | y.compare("NE", y)).where(as_bits(x.like(nan)), result)
    return Term(x.t, x.t.bitcast_convert(result.node, x.dtype))


def _predicate(name: str, doc: str, formula: Callable[[Term], Term]) -> Op:
    def infer(node: Node) -> Type:
        arity(node, 1)
        t = array(node, 0)
        kind_of(node, t, FLOAT)
        return TensorType(PRED, t.shape)

    def expand(builder: Builder, node: Node, operands: Sequence[Node], raw: Mapping[str, str]) -> Node:
        return formula(Term(Tensors(builder), operands[0])).node
    return declare(Op(name, "stablehlo", doc, Kind.ELEMENTWISE, infer=infer, expand=expand, reference=by_expansion(expand)))


SQUARE = declare_formula("square", "x * x.", Formula(square, kinds=FLOAT_OR_COMPLEX, widen=False), weight=1)
CONJ = declare_formula("conj", "The complex conjugate.", Formula(conjugate, kinds=FLOAT_OR_COMPLEX, widen=False), weight=1)
NEXT_AFTER = declare_formula("next-after", "The float that follows x in the direction of y.",
                             Formula(next_after, 2, widen=False, has_bits=True))
IS_INF = _predicate("is-inf", "Whether x is an infinity.", is_infinite)
IS_POS_INF = _predicate("is-pos-inf", "Whether x is the positive infinity.", lambda x: x.compare("EQ", inf))
IS_NEG_INF = _predicate("is-neg-inf", "Whether x is the negative infinity.", lambda x: x.compare("EQ", -inf))
