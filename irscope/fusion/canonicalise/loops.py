"""Loops: constants move in, what does not change moves out, what nobody needs goes (XLA's ``WhileLoop*`` passes)."""
from __future__ import annotations

from irscope.fusion.canonicalise.calls import move_in
from irscope.fusion.canonicalise.terms import Body, Term, has_effect
from irscope.fusion.canonicalise.values import scalar_of
from irscope.graph import TupleType
from irscope.ops import hlo
from irscope.ops.attributes import Compare, GetTupleElement

LIGHT = hlo.named("bitcast broadcast constant get-tuple-element iota reshape reverse slice transpose tuple")
"""What is not worth moving out of a loop by itself (``NotWorthHoistingIndividually``)."""


def simplify_loops(body: Body) -> bool:
    """Simplify every loop of one body."""
    changed = False
    for term in [t for t in body.terms if t.op is hlo.while_]:
        if term.gone or len(term.inner) != 2 or not _is_regular(term):
            continue
        changed = _merge_repeated(body, term) or changed
        changed = _sink_constants(term) or changed
        changed = (not body.on_gpu and _move_out(body, term)) or changed
        changed = _drop_unused(body, term) or changed
        trips = trip_count(term)
        if trips == 0 and not has_effect(term):
            changed = body.replace(term, term.operands[0])
        elif trips == 1 and not has_effect(term):
            changed = True
            move_in(body, term, term.inner[1], term.operands)
    return changed


def _is_regular(term: Term) -> bool:
    """Whether a loop is over a tuple that its computations only take apart, and that the body puts together."""
    condition, loop = term.inner
    return isinstance(term.type, TupleType) and len(condition.params) == len(loop.params) == 1 and loop.root.op is hlo.tuple \
        and term.operands[0].op is hlo.tuple and len(loop.root.operands) == len(term.type.elements) \
        and all(u.op is hlo.get_tuple_element for b in term.inner for u in b.params[0].users) \
        and not loop.root.users and loop.root is not loop.params[0]


def _unchanged(term: Term) -> list[int]:
    """The places whose values pass through the loop as they are."""
    loop = term.inner[1]
    param = loop.params[0]
    return [i for i, o in enumerate(loop.root.operands)
            if o.op is hlo.get_tuple_element and o.operands[0] is param and GetTupleElement.of(o).index == i]


def _merge_repeated(body: Body, term: Term) -> bool:
    """Two values that begin alike and change alike are one."""
    if body.root is term or any(u.op is not hlo.get_tuple_element for u in term.users):
        return False
    loop = term.inner[1]
    start = term.operands[0]
    first: dict[object, int] = {}
    same: dict[int, int] = {}
    for place, (begin, output) in enumerate(zip(start.operands, loop.root.operands, strict=True)):
        mine = first.setdefault((_identity(begin), _change(loop, place, output)), place)
        if mine != place:
            same[place] = mine
    if not same:
        return False
    for reader in [*term.users, *(u for inner in term.inner for u in inner.params[0].users)]:
        place = GetTupleElement.of(reader).index
        reader.attrs = {"index": same.get(place, place)}
    assert isinstance(term.type, TupleType)
    _keep(body, term, [i for i in range(len(term.type.elements)) if i not in same])
    return True


def _identity(term: Term) -> object:
    value = scalar_of(term)
    return id(term) if value is None else (term.dtype, repr(value))


def _change(loop: Body, place: int, output: Term, depth: int = 3) -> object:
    """How one value of a loop changes, in a form that is equal for values that change alike: what is computed of itself and what else."""
    param = loop.params[0]
    if output.op is hlo.get_tuple_element and output.operands[0] is param and GetTupleElement.of(output).index == place:
        return "itself"
    if not depth or not output.operands or output.inner or output.bodies or not _reads_itself(output, param, place, depth):
        return _identity(output)
    attrs = tuple(sorted((k, str(v)) for k, v in output.attrs.items()))
    return (output.op, output.type, attrs, *(_change(loop, place, o, depth - 1) for o in output.operands))


def _reads_itself(term: Term, param: Term, place: int, depth: int) -> bool:
    if term.op is hlo.get_tuple_element and term.operands[0] is param:
        return GetTupleElement.of(term).index == place
    return depth > 0 and any(_reads_itself(o, param, place, depth - 1) for o in term.operands)


def _sink_constants(term: Term) -> bool:
    """A constant that passes through a loop is written inside."""
    changed = False
    start = term.operands[0]
    for place in _unchanged(term):
        source = start.operands[place]
        if source.op is not hlo.constant:
            continue
        for body in term.inner:
            for part in list(body.params[0].users):
                users = [u for u in part.users if u is not body.root]
                if GetTupleElement.of(part).index != place or not users:
                    continue
                inside = body.make(hlo.constant, source.type, (), source.attrs, source)
                for user in users:
                    user.replace_operand(part, inside)
                body.drop(part)
                changed = True
    return changed


def _move_out(body: Body, term: Term) -> bool:
    """What depends on unchanged values alone is computed before the loop."""
    loop = term.inner[1]
    start = term.operands[0]
    outside: dict[Term, Term] = {}
    light: dict[Term, None] = {}
    for place in _unchanged(term):
        for part in loop.params[0].users:
            if GetTupleElement.of(part).index == place:
                outside[part] = start.operands[place]
    if not outside:
        return False
    moved: list[Term] = []
    for inner in loop.post_order():
        if inner in outside or inner.op in (hlo.parameter, hlo.tuple) or inner.inner or has_effect(inner) or inner is loop.root:
            continue
        if inner.op is hlo.constant:
            light[inner] = None
            continue
        if not all(o in outside or o in light for o in inner.operands):
            continue
        if inner.op in LIGHT:
            light[inner] = None
            continue
        _copy_out(body, inner, outside)
        moved.append(inner)
    if not moved:
        return False
    for inner in moved:
        if any(u not in moved for u in inner.users):
            _pass_in(body, term, inner, outside[inner])
    loop.sweep()
    return True


def _copy_out(body: Body, inner: Term, outside: dict[Term, Term]) -> None:
    """Copy a term, and the light terms that only it needs, before the loop."""
    stack = [inner]
    while stack:
        top = stack[-1]
        todo = [o for o in top.operands if o not in outside]
        if todo:
            stack += todo
            continue
        stack.pop()
        if top not in outside:
            copy = body.make(top.op, top.type, [outside[o] for o in top.operands], top.attrs, top, top.bodies)
            copy.name, top.name = top.name, ""
            outside[top] = copy


def _pass_in(body: Body, term: Term, inner: Term, value: Term) -> None:
    """Give a loop one more value that passes through, and let it stand for a term inside."""
    condition, loop = term.inner
    assert isinstance(term.type, TupleType)
    place = len(term.type.elements)
    wide = TupleType((*term.type.elements, inner.type))
    start = term.operands[0]
    term.set_operand(0, body.make(hlo.tuple, wide, (*start.operands, value), {}, start))
    body.drop(start)
    for computation in (condition, loop):
        computation.params[0].set_type(wide)
    term.set_type(wide)
    part = loop.make(hlo.get_tuple_element, inner.type, (loop.params[0],), {"index": place}, inner)
    for user in list(inner.users):
        user.replace_operand(inner, part)
    root = loop.root
    loop.root = loop.make(hlo.tuple, wide, (*root.operands, part), {}, root)
    inner.into = value
    loop.drop(root)


def _drop_unused(body: Body, term: Term) -> bool:
    """Values of a loop go when neither they nor any value that they are computed with or from is read (``TryRemoveDeadWhileParams``)."""
    condition, loop = term.inner
    assert isinstance(term.type, TupleType)
    count = len(term.type.elements)
    if body.root is term or any(u.op is not hlo.get_tuple_element for u in term.users):
        return False
    reads = _Reads(loop, loop.params[0])
    used = {GetTupleElement.of(u).index for u in term.users}
    used |= {GetTupleElement.of(u).index for u in condition.params[0].users if u.users or u is condition.root}
    for inner in loop.terms:
        if has_effect(inner):
            used |= reads.of(inner)
    together = list(range(count))

    def group(place: int) -> int:
        while together[place] != place:
            place = together[place]
        return place

    for place, output in enumerate(loop.root.operands):
        for read in reads.of(output):
            together[group(read)] = group(place)
    alive = {group(place) for place in used}
    needed = {place for place in range(count) if group(place) in alive}
    if len(needed) == count:
        return False
    _keep(body, term, sorted(needed))
    return True


def _keep(body: Body, term: Term, kept: list[int]) -> None:
    """Leave only some values in the tuple of a loop; nobody reads the others."""
    condition, loop = term.inner
    assert isinstance(term.type, TupleType)
    places = {old: new for new, old in enumerate(kept)}
    narrow = TupleType(tuple(term.type.elements[i] for i in kept))
    start = term.operands[0]
    term.set_operand(0, body.make(hlo.tuple, narrow, [start.operands[i] for i in kept], {}, start))
    body.drop(start)
    root = loop.root
    loop.root = loop.make(hlo.tuple, narrow, [root.operands[i] for i in kept], {}, root)
    loop.drop(root)
    term.set_type(narrow)
    for user in term.users:
        user.attrs = {"index": places[GetTupleElement.of(user).index]}
    for computation in (condition, loop):
        top = computation.params[0]
        for user in list(top.users):
            if GetTupleElement.of(user).index not in places:
                computation.drop(user)
        top.set_type(narrow)
        for user in top.users:
            user.attrs = {"index": places[GetTupleElement.of(user).index]}


class _Reads:
    """Which places of the tuple a term of the loop depends on."""

    def __init__(self, loop: Body, param: Term) -> None:
        self.known: dict[Term, frozenset[int]] = {}
        for term in loop.post_order():
            if term.op is hlo.get_tuple_element and term.operands[0] is param:
                self.known[term] = frozenset((GetTupleElement.of(term).index,))
            else:
                parts = [self.known[o] for o in term.operands]
                self.known[term] = parts[0] if len(parts) == 1 else frozenset().union(*parts)

    def of(self, term: Term) -> frozenset[int]:
        return self.known.get(term, frozenset())


def trip_count(term: Term) -> int | None:
    """How often a loop runs that counts up by a constant and ends below another; None for any other."""
    condition, loop = term.inner
    root = condition.root
    if root.op is not hlo.compare or Compare.of(root).direction != "LT":
        return None
    counter, limit = root.operands
    bound = scalar_of(limit)
    if counter.op is not hlo.get_tuple_element or not isinstance(bound, int):
        return None
    place = GetTupleElement.of(counter).index
    first = scalar_of(term.operands[0].operands[place])
    step = loop.root.operands[place]
    if not isinstance(first, int) or step.op is not hlo.add:
        return None
    part, by = step.operands
    size = scalar_of(by)
    if part.op is not hlo.get_tuple_element or GetTupleElement.of(part).index != place or not isinstance(size, int) or size <= 0:
        return None
    return max(0, -(-(bound - first) // size))
