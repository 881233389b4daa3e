"""Algebraic simplification: applies every rule, by operator, to a fixpoint."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from irscope.analysis.identities import IDENTITIES, Identity, Predicates
from irscope.fusion.canonicalise import arithmetic, broadcasts, calls, choices, convolutions, dots, movement, reductions, slices, sorts
from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction, Rule
from irscope.fusion.canonicalise.values import COMPLEX, is_all, is_non_negative
from irscope.graph import Op, TensorType
from irscope.graph.walk import post_order
from irscope.ops import get

PREDICATES: Predicates = {
    "non_negative": is_non_negative,
    "pred": lambda x: x.dtype == "pred",
    "real": lambda x: x.dtype not in COMPLEX,
    "ones": choices.is_ones,
    "lowest": lambda x: choices.is_least(x, of_maximum=True),
    "highest": lambda x: choices.is_least(x, of_maximum=False),
    "same_dims": lambda x, y: x.dims == y.dims,
    "same_dtype": lambda x, y: x.dtype == y.dtype,
    "round_trip": lambda x, wide, y: x.dtype == y.dtype and choices.preserves(x.dtype, wide.dtype),
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
    "real": ("real-of-complex", "real-of-real"),
    "imag": ("imag-of-complex", "imag-of-real"),
    "broadcast": (broadcasts.broadcast,),
    "iota": (broadcasts.iota,),
    "constant": (broadcasts.constant,),
    "reshape": (movement.reshape,),
    "transpose": (movement.transpose,),
    "copy": ("copy",),
    "slice": (slices.slice_,),
    "dynamic-slice": (slices.dynamic_slice,),
    "dynamic-update-slice": (slices.dynamic_update_slice,),
    "pad": (slices.pad,),
    "concatenate": (slices.concatenate,),
    "reverse": (slices.reverse,),
    "compare": (choices.compare, "not-equal-zero", "zero-not-equal", "equal-one", "one-equal", "selected-not-zero",
                "greater-than-maximum", "greater-than-minimum"),
    "select": ("select-same", "select-true", "select-false", "select-not", "select-true-false", "select-false-true",
               "select-gt", "select-ge", "select-lt", "select-le", "select-eq", "select-ne", choices.select_of_update),
    "and": ("and-ones", "and-zero", choices.bounds),
    "or": ("or-ones", "or-zero"),
    "xor": ("xor-same", "xor-zero"),
    "maximum": ("extreme-same", "maximum-lowest", choices.extreme, "maximum-cbrt", "maximum-erf", "maximum-logistic", "maximum-tanh"),
    "minimum": ("extreme-same", "minimum-highest", choices.extreme),
    "clamp": ("clamp-twice",),
    "convert": ("convert-same", "convert-back", choices.narrow_binary),
    "bitcast-convert": ("bitcast-convert-back", "bitcast-convert-same"),
    "reduce": (reductions.reduce,),
    "reduce-window": (reductions.reduce_window,),
    "sort": (sorts.sort,),
    "scatter": (reductions.scatter,),
    "dot": (dots.dot,),
    "convolution": (convolutions.convolution,),
    "get-tuple-element": (calls.get_tuple_element,),
    "tuple": (calls.tuple_,),
}
"""The rules for each operator, in this order: rows of the table of identities, by name, and functions."""

RULES: Mapping[Op, tuple[Identity | Rule, ...]] = {
    get(op): tuple(IDENTITIES[rule] if isinstance(rule, str) else rule for rule in rules) for op, rules in _SEQUENCES.items()
}

IDENTICAL = frozenset(op for op, rules in RULES.items() if any(isinstance(rule, Identity) for rule in rules))
"""Operators that have rows of the table among their rules."""
_index: dict[tuple[Op | str, ...], tuple[Identity | Rule, ...]] = {}


def rules_of(instr: HloInstruction) -> tuple[Identity | Rule, ...]:
    """The rules for an instruction, without rows that its element type or its operands' operators exclude."""
    op = instr.op
    if op not in IDENTICAL:
        return RULES.get(op, ())
    operands = [operand.op for operand in instr.operands]
    kind = instr.type.dtype.kind if isinstance(instr.type, TensorType) else ""
    key: tuple[Op | str, ...] = (op, kind, *operands)
    found = _index.get(key)
    if found is None:
        found = _index[key] = tuple(rule for rule in RULES[op] if not isinstance(rule, Identity)
                                    or (kind in rule.kinds and rule.pattern.may_match(operands)))
    return found


MAX_ROUNDS = 64
"""The limit on rounds, in case two rules undo each other."""


def simplify(rewriter: HloComputation) -> bool:
    """Algebraic simplification: apply the rules to every instruction, operands first, until nothing changes.

    Rounds after the first visit only the worklist: the instructions that a change may affect.
    """
    changed = False
    worklist = rewriter.post_order()
    for _ in range(MAX_ROUNDS):
        rewriter.worklist.clear()
        for instr in worklist:
            if not instr.erased and simplify_instruction(rewriter, instr):
                changed = True
        if not rewriter.worklist:
            break
        worklist = _concerned(rewriter)
    return changed


class _Maker:
    """Builds the replacement of an instruction; new instructions have its type."""

    __slots__ = ("instr", "rewriter")

    def __init__(self, rewriter: HloComputation, instr: HloInstruction) -> None:
        self.rewriter = rewriter
        self.instr = instr

    def build(self, op: str, operands: Sequence[HloInstruction]) -> HloInstruction:
        """Create an instruction; ``like`` creates one with the operator and attributes of the instruction."""
        return self.rewriter.like(self.instr, operands) if op == "like" else self.rewriter.make(get(op), self.instr.type, operands)

    def full(self, value: float) -> HloInstruction:
        """An array filled with one value."""
        return self.rewriter.full(value, self.instr)


def simplify_instruction(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Apply the first rule that matches an instruction; returns whether there was one."""
    rewriter.at = instr
    for rule in rules_of(instr):
        if isinstance(rule, Identity):
            if rule.name in rewriter.rewriting.without:
                continue
            found = rule.match(instr, is_all, PREDICATES)
            if found is not None:
                return rewriter.replace(instr, rule.build(found, _Maker(rewriter, instr)))
        elif rule(rewriter, instr):
            return True
    return False


def _concerned(rewriter: HloComputation) -> list[HloInstruction]:
    """The worklist after a change: what was changed, its users and theirs, its operands and their users; operands first."""
    marked: dict[HloInstruction, None] = {}
    for instr in rewriter.worklist:
        if instr.erased:
            continue
        marked[instr] = None
        for user in instr.users:
            marked[user] = None
            marked.update(dict.fromkeys(user.users))
        for operand in instr.operands:
            marked[operand] = None
            marked.update(dict.fromkeys(operand.users))
    if len(marked) * 4 > len(rewriter.instructions):
        return rewriter.post_order()
    return post_order(marked, lambda instr: [o for o in instr.operands if o in marked])
