"""Conditionals: folds a known choice, runs cheap branches speculatively, removes unused results (XLA's ``ConditionalSimplifier``)."""
from __future__ import annotations

from irscope.fusion.canonicalise.calls import move_in
from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction, has_effect
from irscope.fusion.canonicalise.values import scalar_of
from irscope.fusion.xla.opcodes import ELEMENTWISE
from irscope.graph import TupleType
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement

CHEAP = hlo.named("broadcast concatenate dynamic-slice get-tuple-element reduce reshape pad parameter slice tuple constant")
"""Besides elementwise arithmetic, the instructions of a branch that is cheap enough to run whether it is chosen or not."""
EMPTY = hlo.named("tuple get-tuple-element parameter")
"""Instructions that compute nothing: a branch of these alone is faster to jump over than to select from."""


def simplify_branches(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Simplify a conditional whose branches each take one value."""
    if len(instr.operands) != len(instr.calls) + 1 or not instr.calls or has_effect(instr) or any(len(b.params) != 1 for b in instr.calls):
        return False
    if rewriter.on_gpu and _by_truth(rewriter, instr):
        return True
    changed = _merge_results(rewriter, instr)
    changed = _drop_results(rewriter, instr) or changed
    if _choose(rewriter, instr) or _select(rewriter, instr):
        return True
    for number in range(len(instr.calls)):
        changed = _drop_operands(rewriter, instr, number) or changed
    return changed


def wrap_branches(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Give every branch a tuple as parameter and as result: XLA's ``ConditionalCanonicalizer``."""
    for number, branch in enumerate(instr.calls):
        param = branch.params[0]
        if param.is_array:
            instr.set_operand(number + 1, rewriter.tuple((instr.operands[number + 1],)))
            users, is_root, wide = list(param.users), branch.root is param, TupleType((param.type,))
            part = branch.make(hlo.get_tuple_element, param.type, (param,), {"index": 0}, at=param)
            for user in users:
                user.replace_operand(param, part)
            if is_root:
                branch.root = part
            param.set_type(wide)
        if branch.root.is_array:
            branch.root = branch.tuple((branch.root,), branch.root)
    if instr.is_array and instr.calls:
        made = rewriter.like(instr, instr.operands)
        made.set_type(TupleType((instr.type,)))
        made.take_label(instr)
        rewriter.replace(instr, rewriter.element(made, 0))
    return True


def _by_truth(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Replace a branch index that is converted from a predicate by the predicate, with the branches in reverse order."""
    number = instr.operands[0]
    if len(instr.calls) != 2 or number.op is not hlo.convert or number.operands[0].dtype != "pred":
        return False
    made = rewriter.like(instr, (number.operands[0], instr.operands[2], instr.operands[1]))
    made.calls = instr.calls[::-1]
    return rewriter.replace(instr, made)


def _merge_results(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Merge results that are the same value in every branch."""
    if not _only_parts_read(rewriter, instr) or any(b.root.op is not hlo.tuple for b in instr.calls):
        return False
    first: dict[tuple[HloInstruction, ...], int] = {}
    same: dict[int, int] = {}
    for place in range(len(instr.calls[0].root.operands)):
        mine = first.setdefault(tuple(b.root.operands[place] for b in instr.calls), place)
        if mine != place:
            same[place] = mine
    changed = False
    for user in list(instr.users):
        if (mine := same.get(GetTupleElement.of(user).index, -1)) >= 0:
            changed = rewriter.replace(user, rewriter.element(instr, mine, user))
    return changed


def _only_parts_read(rewriter: HloComputation, instr: HloInstruction) -> bool:
    return bool(instr.users) and isinstance(instr.type, TupleType) and rewriter.reads_elements(instr)


def _drop_results(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Remove results without users."""
    if not _only_parts_read(rewriter, instr):
        return False
    assert isinstance(instr.type, TupleType)
    wanted = sorted({GetTupleElement.of(u).index for u in instr.users})
    if len(wanted) == len(instr.type.elements):
        return False
    for branch in instr.calls:
        root = branch.root
        branch.root = branch.elements(root, wanted)
        branch.erase_dead(root)
    rewriter.renumber(instr, wanted)
    return True


def _choose(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Inline the branch of a conditional that has only one, or that a constant selects."""
    number = 0
    if len(instr.calls) > 1:
        chosen = scalar_of(instr.operands[0])
        if chosen is None:
            return False
        if instr.operands[0].dtype == "pred":
            number = 0 if chosen else 1
        else:
            number = int(chosen) if 0 <= chosen < len(instr.calls) else len(instr.calls) - 1
    move_in(rewriter, instr, instr.calls[number], [instr.operands[number + 1]])
    return True


def _select(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Inline two cheap branches, and select between their results."""
    if len(instr.calls) != 2 or instr.operands[0].dtype != "pred":
        return False
    if any(t.op not in CHEAP and t.op not in ELEMENTWISE for b in instr.calls for t in b.instructions):
        return False
    if any(all(t.op in EMPTY for t in b.instructions) for b in instr.calls):
        return False
    choice = instr.operands[0]

    def select(a: HloInstruction, b: HloInstruction) -> HloInstruction:
        if not a.is_array:
            count = len(a.type.elements) if isinstance(a.type, TupleType) else 0
            return rewriter.tuple([select(rewriter.element(a, i), rewriter.element(b, i)) for i in range(count)])
        return rewriter.elementwise(hlo.select, (rewriter.spread(choice, a.dims), a, b), a.dtype)

    sides = [rewriter.make(hlo.call, instr.type, (operand,)) for operand in instr.operands[1:]]
    rewriter.replace(instr, select(*sides))
    for side, branch in zip(sides, instr.calls, strict=True):
        move_in(rewriter, side, branch, side.operands)
    return True


def _drop_operands(rewriter: HloComputation, instr: HloInstruction, number: int) -> bool:
    """Remove operands that a branch does not use."""
    branch = instr.calls[number]
    param, operand = branch.params[0], instr.operands[number + 1]
    if not isinstance(param.type, TupleType) or not branch.reads_elements(param):
        return False
    wanted = sorted({GetTupleElement.of(u).index for u in param.users})
    if len(wanted) == len(param.type.elements):
        return False
    instr.set_operand(number + 1, rewriter.elements(operand, wanted, instr))
    rewriter.erase_dead(operand)
    branch.renumber(param, wanted)
    return True
