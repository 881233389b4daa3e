"""Branches: of a known choice, cheap enough to run all, and of results that nobody reads (XLA's ``ConditionalSimplifier``)."""
from __future__ import annotations

from irscope.fusion.canonicalise.calls import move_in
from irscope.fusion.canonicalise.terms import Body, Term, has_effect
from irscope.fusion.canonicalise.values import scalar_of
from irscope.fusion.xla.opcodes import ELEMENTWISE
from irscope.graph import TupleType
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement

CHEAP = hlo.named("broadcast concatenate dynamic-slice get-tuple-element reduce reshape pad parameter slice tuple constant")
"""What a branch may hold, besides elementwise arithmetic, that is run whether it is chosen or not."""
EMPTY = hlo.named("tuple get-tuple-element parameter")
"""What does nothing: a branch of these alone is faster to jump over than to select from."""


def simplify_branches(body: Body) -> bool:
    """Simplify every choice of one body."""
    changed = False
    for term in [t for t in body.terms if t.op is hlo.conditional]:
        if term.gone or not term.inner or len(term.operands) != len(term.inner) + 1 or has_effect(term) \
                or any(len(b.params) != 1 for b in term.inner):
            continue
        if body.on_gpu and _by_truth(body, term):
            changed = True
            continue
        changed = _merge_results(body, term) or changed
        changed = _drop_results(body, term) or changed
        if _choose(body, term) or _select(body, term):
            changed = True
            continue
        for number in range(len(term.inner)):
            changed = _drop_operands(body, term, number) or changed
    return changed


def wrap_branches(body: Body) -> None:
    """Branches take and give tuples: XLA's ``ConditionalCanonicalizer``."""
    for term in [t for t in body.terms if t.op is hlo.conditional]:
        for number, branch in enumerate(term.inner):
            param = branch.params[0]
            if param.is_array:
                wide = TupleType((param.type,))
                term.set_operand(number + 1, body.make(hlo.tuple, wide, (term.operands[number + 1],), {}, term))
                _read_part(branch, param, wide)
            if branch.root.is_array:
                branch.root = branch.make(hlo.tuple, TupleType((branch.root.type,)), (branch.root,), {}, branch.root)
        if term.is_array and term.inner:
            made = body.like(term, term.operands)
            made.set_type(TupleType((term.type,)))
            made.name, term.name = term.name, ""
            body.replace(term, body.make(hlo.get_tuple_element, term.type, (made,), {"index": 0}, term))


def _read_part(branch: Body, param: Term, wide: TupleType) -> None:
    """A parameter becomes a tuple of one; who read it reads its part."""
    users = list(param.users)
    part = branch.make(hlo.get_tuple_element, param.type, (param,), {"index": 0}, param)
    for user in users:
        user.replace_operand(param, part)
    if branch.root is param:
        branch.root = part
    param.set_type(wide)


def _by_truth(body: Body, term: Term) -> bool:
    """A choice by a number that is made of a truth value is one by that value, the branches in the other order."""
    number = term.operands[0]
    if len(term.inner) != 2 or number.op is not hlo.convert or number.operands[0].dtype != "pred":
        return False
    made = body.like(term, (number.operands[0], term.operands[2], term.operands[1]))
    made.inner = term.inner[::-1]
    return body.replace(term, made)


def _only_parts_read(body: Body, term: Term) -> bool:
    """Whether a choice gives a tuple of which only parts are read, and each branch puts it together."""
    return body.root is not term and bool(term.users) and isinstance(term.type, TupleType) \
        and all(u.op is hlo.get_tuple_element for u in term.users)


def _merge_results(body: Body, term: Term) -> bool:
    """Two results that are the same in every branch are one."""
    if not _only_parts_read(body, term) or any(b.root.op is not hlo.tuple for b in term.inner):
        return False
    first: dict[tuple[Term, ...], int] = {}
    same: dict[int, int] = {}
    for place in range(len(term.inner[0].root.operands)):
        mine = first.setdefault(tuple(b.root.operands[place] for b in term.inner), place)
        if mine != place:
            same[place] = mine
    changed = False
    for user in list(term.users):
        if (mine := same.get(GetTupleElement.of(user).index, -1)) >= 0:
            changed = body.replace(user, body.make(hlo.get_tuple_element, user.type, (term,), {"index": mine}, user))
    return changed


def _drop_results(body: Body, term: Term) -> bool:
    """Results that nobody reads are not given."""
    if not _only_parts_read(body, term):
        return False
    assert isinstance(term.type, TupleType)
    wanted = sorted({GetTupleElement.of(u).index for u in term.users})
    elements = term.type.elements
    if len(wanted) == len(elements):
        return False
    type = TupleType(tuple(elements[place] for place in wanted))
    for branch in term.inner:
        root = branch.root
        parts = [root.operands[place] if root.op is hlo.tuple else
                 branch.make(hlo.get_tuple_element, elements[place], (root,), {"index": place}, root) for place in wanted]
        branch.root = branch.make(hlo.tuple, type, parts, {}, root)
        branch.drop(root)
    term.set_type(type)
    for user in list(term.users):
        place = wanted.index(GetTupleElement.of(user).index)
        body.replace(user, body.make(hlo.get_tuple_element, user.type, (term,), {"index": place}, user))
    return True


def _choose(body: Body, term: Term) -> bool:
    """The one branch, or the one that a constant chooses, stands where the choice stood."""
    number = 0
    if len(term.inner) > 1:
        chosen = scalar_of(term.operands[0])
        if chosen is None:
            return False
        if term.operands[0].dtype == "pred":
            number = 0 if chosen else 1
        else:
            number = int(chosen) if 0 <= chosen < len(term.inner) else len(term.inner) - 1
    move_in(body, term, term.inner[number], [term.operands[number + 1]])
    return True


def _select(body: Body, term: Term) -> bool:
    """Two cheap branches are both run, and what they give is selected."""
    if len(term.inner) != 2 or term.operands[0].dtype != "pred":
        return False
    if any(t.op not in CHEAP and t.op not in ELEMENTWISE for b in term.inner for t in b.terms):
        return False
    if any(all(t.op in EMPTY for t in b.terms) for b in term.inner):
        return False
    choice = term.operands[0]

    def select(a: Term, b: Term) -> Term:
        if not a.is_array:
            parts = [select(*(body.make(hlo.get_tuple_element, e, (side,), {"index": i}, term) for side in (a, b)))
                     for i, e in enumerate(getattr(a.type, "elements", ()))]
            return body.make(hlo.tuple, a.type, parts, {}, term)
        spread = choice if not a.dims else body.broadcast(choice, a.dims, (), term)
        return body.elementwise(hlo.select, (spread, a, b), term, a.dtype)

    sides = [body.make(hlo.call, term.type, (operand,), {}, term) for operand in term.operands[1:]]
    body.replace(term, select(*sides))
    for side, branch in zip(sides, term.inner, strict=True):
        move_in(body, side, branch, side.operands)
    return True


def _drop_operands(body: Body, term: Term, number: int) -> bool:
    """What a branch takes and does not read is not given to it."""
    branch = term.inner[number]
    param, operand = branch.params[0], term.operands[number + 1]
    if branch.root is param or not isinstance(param.type, TupleType) or any(u.op is not hlo.get_tuple_element for u in param.users):
        return False
    wanted = sorted({GetTupleElement.of(u).index for u in param.users})
    elements = param.type.elements
    if len(wanted) == len(elements):
        return False
    type = TupleType(tuple(elements[place] for place in wanted))
    parts = [operand.operands[place] if operand.op is hlo.tuple else
             body.make(hlo.get_tuple_element, elements[place], (operand,), {"index": place}, term) for place in wanted]
    term.set_operand(number + 1, body.make(hlo.tuple, type, parts, {}, term))
    body.drop(operand)
    param.set_type(type)
    for user in list(param.users):
        place = wanted.index(GetTupleElement.of(user).index)
        branch.replace(user, branch.make(hlo.get_tuple_element, user.type, (param,), {"index": place}, user))
    return True
