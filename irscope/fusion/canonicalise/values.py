"""What terms are known to hold: constants, broadcasts of constants, signs, the small computations that reductions apply."""
from __future__ import annotations

from typing import Any

from irscope.fusion.canonicalise.terms import Term
from irscope.graph import DTYPES, Graph, Op
from irscope.ops import hlo
from irscope.ops.attributes import Constant

COMPLEX = frozenset(("c64", "c128"))
MAX_LOOKED_AT = 1 << 20
"""Elements of a constant up to which it is looked whether all are equal."""


def is_integral(dtype: str) -> bool:
    """Whether an element type is one of whole numbers; truth values are not."""
    return dtype in DTYPES and DTYPES[dtype].is_integer


def is_unsigned(dtype: str) -> bool:
    return dtype in DTYPES and DTYPES[dtype].kind == "uint"


def is_floating(dtype: str) -> bool:
    return dtype in DTYPES and DTYPES[dtype].is_float


def bits(dtype: str) -> int:
    return DTYPES[dtype].bits if dtype in DTYPES else 0


def array_of(term: Term) -> Any:
    """The array of a constant; None for anything else, and where the text elides it or it is too large to be looked at."""
    if term.op is not hlo.constant or not term.is_array or term.elements > MAX_LOOKED_AT:
        return None
    literal = Constant.of(term).known
    try:
        return None if literal is None else literal.value()
    except (ValueError, AttributeError):
        return None


def scalar_of(term: Term) -> Any:
    """The number that a constant of one element holds; None for anything else."""
    if term.op is not hlo.constant or term.elements != 1:
        return None
    array = array_of(term)
    return None if array is None else array.reshape(-1)[0].item()


def unwrapped(term: Term) -> Term:
    """What broadcasts repeat."""
    while term.op is hlo.broadcast:
        term = term.operands[0]
    return term


def is_all(term: Term, value: float) -> bool:
    """Whether every element is known to be ``value``, broadcasts looked through."""
    term = unwrapped(term)
    if term.op is not hlo.constant:
        return False
    if term.elements == 1:
        return bool(scalar_of(term) == value)
    array = array_of(term)
    return array is not None and bool(array.size) and bool((array == value).all())


def broadcast_scalar_constant(term: Term) -> Term | None:
    """The scalar constant that a broadcast repeats; None for anything else."""
    if term.op is hlo.broadcast and term.operands[0].op is hlo.constant and not term.operands[0].dims:
        return term.operands[0]
    return None


def is_non_negative(term: Term) -> bool:
    """Whether no element can be negative, as far as XLA looks (``IsNonNegative``)."""
    if any(o.dtype in COMPLEX for o in term.operands):
        return False
    match term.op:
        case hlo.multiply:
            return term.operands[0] is term.operands[1]
        case hlo.abs | hlo.exponential:
            return True
        case hlo.sqrt | hlo.rsqrt | hlo.broadcast | hlo.copy | hlo.reshape | hlo.transpose | hlo.slice | hlo.reverse | hlo.cbrt:
            return is_non_negative(term.operands[0]) if term.op is not hlo.rsqrt else is_positive(term.operands[0])
        case hlo.maximum:
            return is_non_negative(term.operands[0]) or is_non_negative(term.operands[1])
        case hlo.minimum:
            return is_non_negative(term.operands[0]) and is_non_negative(term.operands[1])
        case hlo.power:
            return is_non_negative(term.operands[0])
        case hlo.select:
            return is_non_negative(term.operands[1]) and is_non_negative(term.operands[2])
        case hlo.constant:
            value = scalar_of(term)
            return value is not None and term.dtype not in COMPLEX and value >= 0
        case hlo.iota:
            return True
    return False


def is_positive(term: Term) -> bool:
    """Whether every element is above zero, as far as XLA looks (``IsPositive``)."""
    match term.op:
        case hlo.power | hlo.abs | hlo.rsqrt | hlo.sqrt:
            return not (term.op is hlo.power and term.dtype[:1] == "s") and is_positive(term.operands[0])
        case hlo.multiply:
            return term.operands[0] is term.operands[1] and term.dtype[:1] != "s" and is_positive(term.operands[0])
    return False


def combiner(graph: Graph | None) -> Op | None:
    """The operator of a computation that combines its two parameters by one instruction; None for any other."""
    if graph is None or graph.root is None or len(graph.params) != 2:
        return None
    root = graph.root
    if len(root.operands) == 2 and {id(o) for o in root.operands} == {id(p) for p in graph.params}:
        return root.op
    return None


def is_power_of_two(value: Any) -> bool:
    """Whether a number is one, two, four and so on."""
    return isinstance(value, int) and value > 0 and not value & (value - 1)
