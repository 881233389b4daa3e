"""The algebraic simplifier: every rule by operator, applied until none applies."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from irscope.analysis.identities import IDENTITIES, Identity, Predicates
from irscope.fusion.canonicalise import arithmetic, broadcasts, calls, choices, convolutions, dots, movement, reductions, slices, sorts
from irscope.fusion.canonicalise.terms import Body, Term
from irscope.fusion.canonicalise.values import COMPLEX, is_all, is_non_negative
from irscope.graph import DTYPES, Op
from irscope.graph.walk import post_order
from irscope.ops import get

Rule = Callable[[Body, Term], bool]
"""A plain function, for what takes a search or arithmetic over dimensions; it says whether it changed something."""

PREDICATES: Predicates = {
    "non_negative": is_non_negative,
    "pred": lambda x: x.dtype == "pred",
    "real": lambda x: x.dtype not in COMPLEX,
    "ones": choices.is_ones,
    "lowest": lambda x: choices.is_least(x, of_maximum=True),
    "highest": lambda x: choices.is_least(x, of_maximum=False),
    "same_dims": lambda x, y: x.dims == y.dims,
}

_SEQUENCES: Mapping[str, tuple[str | Rule, ...]] = {
    "abs": ("abs-non-negative",),
    "add": ("add-zero", arithmetic.add, "add-difference", arithmetic.update_of_zeros, arithmetic.distribute),
    "subtract": ("subtract-same", "subtract-zero", arithmetic.subtract, "subtract-difference", "subtract-sum", "subtract-from-sum"),
    "multiply": ("multiply-one", "multiply-zero", "multiply-negations", "square-of-abs", "multiply-exponentials", "multiply-mask",
                 arithmetic.constant_factors, "square-of-sqrt", "square-of-rsqrt"),
    "divide": ("divide-one", arithmetic.shift, "divide-exponential", "divide-power", "divide-sqrt", "divide-rsqrt", arithmetic.invert,
               "divide-quotients", "divide-quotient", "divide-by-quotient"),
    "remainder": ("remainder-twice", arithmetic.remainder),
    "power": ("power-exponential", "power-zero", "power-one", "power-two", "power-three", "power-inverse", "power-half"),
    "negate": ("negate-negate",),
    "not": ("not-not",),
    "log": ("log-exponential", arithmetic.log_of_power, "log-sqrt", "log-rsqrt"),
    "exponential": ("exponential-zero",),
    "sqrt": ("sqrt-of-square",),
    "rsqrt": ("rsqrt-inverse", "rsqrt-power"),
    "complex": ("complex-of-parts",),
    "real": ("real-of-complex", arithmetic.part_of_real),
    "imag": ("imag-of-complex", arithmetic.part_of_real),
    "broadcast": (broadcasts.broadcast,),
    "iota": (broadcasts.iota,),
    "constant": (broadcasts.constant,),
    "reshape": (movement.reshape,),
    "transpose": (movement.transpose,),
    "copy": (movement.copy,),
    "slice": (slices.slice_,),
    "dynamic-slice": (slices.dynamic_slice,),
    "dynamic-update-slice": (slices.dynamic_update_slice,),
    "pad": (slices.pad,),
    "concatenate": (slices.concatenate,),
    "reverse": (slices.reverse,),
    "compare": (choices.compare, "not-equal-zero", "zero-not-equal", "equal-one", "one-equal", "selected-not-zero",
                "greater-than-maximum", "greater-than-minimum"),
    "select": ("select-same", "select-true", "select-false", "select-not", "select-true-false", "select-false-true", choices.select_of_pred,
               choices.select_of_update),
    "and": ("and-ones", "and-zero", choices.bounds),
    "or": ("or-ones", "or-zero"),
    "xor": ("xor-same", "xor-zero"),
    "maximum": ("extreme-same", "maximum-lowest", choices.extreme, "maximum-cbrt", "maximum-erf", "maximum-logistic", "maximum-tanh"),
    "minimum": ("extreme-same", "minimum-highest", choices.extreme),
    "clamp": ("clamp-twice",),
    "convert": (choices.convert,),
    "bitcast-convert": (choices.bitcast_convert,),
    "reduce": (reductions.reduce,),
    "reduce-window": (reductions.reduce_window,),
    "sort": (sorts.sort,),
    "scatter": (reductions.scatter,),
    "dot": (dots.dot,),
    "convolution": (convolutions.convolution,),
    "get-tuple-element": (calls.get_tuple_element,),
    "tuple": (calls.tuple_,),
}
"""What is tried for an operator, in this order: rows of the table of identities, by name, and functions."""

RULES: Mapping[Op, tuple[Identity | Rule, ...]] = {
    get(op): tuple(IDENTITIES[rule] if isinstance(rule, str) else rule for rule in rules) for op, rules in _SEQUENCES.items()
}

MAX_ROUNDS = 64
"""Rounds after which simplifying ends although rules still apply: two rules that undo each other must not run for ever."""


def simplify(body: Body) -> bool:
    """Apply the rules to every term, operands first, until nothing changes; later rounds look only at what a change may concern."""
    changed = False
    todo = body.post_order()
    for _ in range(MAX_ROUNDS):
        body.worklist.clear()
        for term in todo:
            if not term.erased and simplify_instruction(body, term):
                changed = True
        if not body.worklist:
            break
        todo = _concerned(body)
    return changed


class _Maker:
    """Builds the replacement of a term: instructions of its type."""

    __slots__ = ("body", "term")

    def __init__(self, body: Body, term: Term) -> None:
        self.body = body
        self.term = term

    def build(self, op: str, operands: Sequence[Term]) -> Term:
        """An instruction; ``like`` is one with the operator and attributes of the term."""
        return self.body.like(self.term, operands) if op == "like" else self.body.make(get(op), self.term.type, operands, at=self.term)

    def full(self, value: float) -> Term:
        """An array of one value."""
        return self.body.full(value, self.term, self.term)


def simplify_instruction(body: Body, term: Term) -> bool:
    """Apply the first rule that holds for an instruction; whether there was one."""
    rules = RULES.get(term.op)
    if rules is None:
        return False
    kind = DTYPES[term.dtype].kind if term.dtype in DTYPES else ""
    make = _Maker(body, term)
    for rule in rules:
        if isinstance(rule, Identity):
            found = rule.apply(term, kind, make, is_all, PREDICATES)
            if found is not None:
                return body.replace(term, found)
        elif rule(body, term):
            return True
    return False


def _concerned(body: Body) -> list[Term]:
    """What a change may concern: what was touched, what reads it, and what stands a step further; operands first."""
    marked: dict[Term, None] = {}
    for term in body.worklist:
        if term.erased:
            continue
        marked[term] = None
        for user in term.users:
            marked[user] = None
            for further in user.users:
                marked[further] = None
        for operand in term.operands:
            marked[operand] = None
            for user in operand.users:
                marked[user] = None
    if len(marked) * 4 > len(body.instructions):
        return body.post_order()
    return post_order(marked, lambda term: [o for o in term.operands if o in marked])
