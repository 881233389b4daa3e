"""Loops: constants move in, what does not change moves out, what nobody needs goes (XLA's ``WhileLoop*`` passes)."""
from __future__ import annotations

from irscope.fusion.canonicalise.calls import move_in
from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction, has_effect
from irscope.fusion.canonicalise.values import scalar_of
from irscope.graph import TupleType
from irscope.ops import hlo
from irscope.ops.attributes import Compare, GetTupleElement

LIGHT = hlo.named("bitcast broadcast constant get-tuple-element iota reshape reverse slice transpose tuple")
"""What is not worth moving out of a loop by itself (``NotWorthHoistingIndividually``)."""


def simplify_loop(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Simplify a loop over a tuple."""
    if len(instr.calls) != 2 or not _is_regular(instr):
        return False
    changed = _merge_repeated(rewriter, instr)
    changed = _sink_constants(instr) or changed
    changed = (not rewriter.on_gpu and _move_out(rewriter, instr)) or changed
    changed = _drop_unused(rewriter, instr) or changed
    trips = trip_count(instr)
    if trips == 0 and not has_effect(instr):
        return rewriter.replace(instr, instr.operands[0])
    if trips == 1 and not has_effect(instr):
        move_in(rewriter, instr, instr.calls[1], instr.operands)
        return True
    return changed


def _is_regular(instr: HloInstruction) -> bool:
    """Whether a loop is over a tuple that its computations only take apart, and that the body puts together."""
    condition, loop = instr.calls
    return isinstance(instr.type, TupleType) and len(condition.params) == len(loop.params) == 1 and loop.root.op is hlo.tuple \
        and instr.operands[0].op is hlo.tuple and len(loop.root.operands) == len(instr.type.elements) \
        and all(u.op is hlo.get_tuple_element for b in instr.calls for u in b.params[0].users) \
        and not loop.root.users and loop.root is not loop.params[0]


def _unchanged(instr: HloInstruction) -> list[int]:
    """The places whose values pass through the loop as they are."""
    loop = instr.calls[1]
    param = loop.params[0]
    return [i for i, o in enumerate(loop.root.operands)
            if o.op is hlo.get_tuple_element and o.operands[0] is param and GetTupleElement.of(o).index == i]


def _merge_repeated(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Two values that begin alike and change alike are one."""
    if not rewriter.reads_elements(instr):
        return False
    loop = instr.calls[1]
    start = instr.operands[0]
    first: dict[object, int] = {}
    same: dict[int, int] = {}
    for place, (begin, output) in enumerate(zip(start.operands, loop.root.operands, strict=True)):
        mine = first.setdefault((_identity(begin), _change(loop, place, output)), place)
        if mine != place:
            same[place] = mine
    if not same:
        return False
    for reader in [*instr.users, *(u for inner in instr.calls for u in inner.params[0].users)]:
        place = GetTupleElement.of(reader).index
        reader.attrs = {"index": same.get(place, place)}
    assert isinstance(instr.type, TupleType)
    _keep(rewriter, instr, [i for i in range(len(instr.type.elements)) if i not in same])
    return True


def _identity(instr: HloInstruction) -> object:
    value = scalar_of(instr)
    return id(instr) if value is None else (instr.dtype, repr(value))


def _change(loop: HloComputation, place: int, output: HloInstruction, depth: int = 3) -> object:
    """How one value of a loop changes, in a form that is equal for values that change alike: what is computed of itself and what else."""
    param = loop.params[0]
    if output.op is hlo.get_tuple_element and output.operands[0] is param and GetTupleElement.of(output).index == place:
        return "itself"
    if not depth or not output.operands or output.calls or output.bodies or not _reads_itself(output, param, place, depth):
        return _identity(output)
    attrs = tuple(sorted((k, str(v)) for k, v in output.attrs.items()))
    return (output.op, output.type, attrs, *(_change(loop, place, o, depth - 1) for o in output.operands))


def _reads_itself(instr: HloInstruction, param: HloInstruction, place: int, depth: int) -> bool:
    if instr.op is hlo.get_tuple_element and instr.operands[0] is param:
        return GetTupleElement.of(instr).index == place
    return depth > 0 and any(_reads_itself(o, param, place, depth - 1) for o in instr.operands)


def _sink_constants(instr: HloInstruction) -> bool:
    """A constant that passes through a loop is written inside."""
    changed = False
    start = instr.operands[0]
    for place in _unchanged(instr):
        source = start.operands[place]
        if source.op is not hlo.constant:
            continue
        for rewriter in instr.calls:
            for part in list(rewriter.params[0].users):
                users = [u for u in part.users if u is not rewriter.root]
                if GetTupleElement.of(part).index != place or not users:
                    continue
                inside = rewriter.make(hlo.constant, source.type, (), source.attrs, at=source)
                for user in users:
                    user.replace_operand(part, inside)
                rewriter.erase_dead(part)
                changed = True
    return changed


def _move_out(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """What depends on unchanged values alone is computed before the loop."""
    loop = instr.calls[1]
    start = instr.operands[0]
    outside: dict[HloInstruction, HloInstruction] = {}
    light: dict[HloInstruction, None] = {}
    for place in _unchanged(instr):
        for part in loop.params[0].users:
            if GetTupleElement.of(part).index == place:
                outside[part] = start.operands[place]
    if not outside:
        return False
    moved: list[HloInstruction] = []
    for inner in loop.post_order():
        if inner in outside or inner.op in (hlo.parameter, hlo.tuple) or inner.calls or has_effect(inner) or inner is loop.root:
            continue
        if inner.op is hlo.constant:
            light[inner] = None
            continue
        if not all(o in outside or o in light for o in inner.operands):
            continue
        if inner.op in LIGHT:
            light[inner] = None
            continue
        _copy_out(rewriter, inner, outside)
        moved.append(inner)
    if not moved:
        return False
    for inner in moved:
        if any(u not in moved for u in inner.users):
            _pass_in(rewriter, instr, inner, outside[inner])
    loop.erase_all_dead()
    return True


def _copy_out(rewriter: HloComputation, inner: HloInstruction, outside: dict[HloInstruction, HloInstruction]) -> None:
    """Copy an instruction, and the light instructions that only it needs, before the loop."""
    stack = [inner]
    while stack:
        top = stack[-1]
        todo = [o for o in top.operands if o not in outside]
        if todo:
            stack += todo
            continue
        stack.pop()
        if top not in outside:
            copy = rewriter.make(top.op, top.type, [outside[o] for o in top.operands], top.attrs, top.bodies, top)
            copy.take_label(top)
            outside[top] = copy


def _pass_in(rewriter: HloComputation, instr: HloInstruction, inner: HloInstruction, value: HloInstruction) -> None:
    """Give a loop one more value that passes through, and let it stand for an instruction inside."""
    condition, loop = instr.calls
    assert isinstance(instr.type, TupleType)
    place = len(instr.type.elements)
    wide = TupleType((*instr.type.elements, inner.type))
    start = instr.operands[0]
    instr.set_operand(0, rewriter.tuple((*start.operands, value), start))
    rewriter.erase_dead(start)
    for computation in (condition, loop):
        computation.params[0].set_type(wide)
    instr.set_type(wide)
    part = loop.element(loop.params[0], place, inner)
    for user in list(inner.users):
        user.replace_operand(inner, part)
    root = loop.root
    loop.root = loop.tuple((*root.operands, part), root)
    inner.replacement = value
    loop.erase_dead(root)


def _drop_unused(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Values of a loop go when neither they nor any value that they are computed with or from is read (``TryRemoveDeadWhileParams``)."""
    condition, loop = instr.calls
    assert isinstance(instr.type, TupleType)
    count = len(instr.type.elements)
    if not rewriter.reads_elements(instr):
        return False
    reads = _Reads(loop, loop.params[0])
    used = {GetTupleElement.of(u).index for u in instr.users}
    used |= {GetTupleElement.of(u).index for u in condition.params[0].users if u.users or u is condition.root}
    for inner in loop.instructions:
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
    _keep(rewriter, instr, sorted(needed))
    return True


def _keep(rewriter: HloComputation, instr: HloInstruction, kept: list[int]) -> None:
    """Leave only some values in the tuple of a loop; nobody reads the others."""
    condition, loop = instr.calls
    assert isinstance(instr.type, TupleType)
    places = {old: new for new, old in enumerate(kept)}
    narrow = TupleType(tuple(instr.type.elements[i] for i in kept))
    start = instr.operands[0]
    instr.set_operand(0, rewriter.elements(start, kept))
    rewriter.erase_dead(start)
    root = loop.root
    loop.root = loop.elements(root, kept)
    loop.erase_dead(root)
    instr.set_type(narrow)
    for user in instr.users:
        user.attrs = {"index": places[GetTupleElement.of(user).index]}
    for computation in (condition, loop):
        top = computation.params[0]
        for user in list(top.users):
            if GetTupleElement.of(user).index not in places:
                computation.erase_dead(user)
        top.set_type(narrow)
        for user in top.users:
            user.attrs = {"index": places[GetTupleElement.of(user).index]}


class _Reads:
    """Which places of the tuple an instruction of the loop depends on."""

    def __init__(self, loop: HloComputation, param: HloInstruction) -> None:
        self.known: dict[HloInstruction, frozenset[int]] = {}
        for instr in loop.post_order():
            if instr.op is hlo.get_tuple_element and instr.operands[0] is param:
                self.known[instr] = frozenset((GetTupleElement.of(instr).index,))
            else:
                parts = [self.known[o] for o in instr.operands]
                self.known[instr] = parts[0] if len(parts) == 1 else frozenset().union(*parts)

    def of(self, instr: HloInstruction) -> frozenset[int]:
        return self.known.get(instr, frozenset())


def trip_count(instr: HloInstruction) -> int | None:
    """How often a loop runs that counts up by a constant and ends below another; None for any other."""
    condition, loop = instr.calls
    root = condition.root
    if root.op is not hlo.compare or Compare.of(root).direction != "LT":
        return None
    counter, limit = root.operands
    bound = scalar_of(limit)
    if counter.op is not hlo.get_tuple_element or not isinstance(bound, int):
        return None
    place = GetTupleElement.of(counter).index
    first = scalar_of(instr.operands[0].operands[place])
    step = loop.root.operands[place]
    if not isinstance(first, int) or step.op is not hlo.add:
        return None
    part, by = step.operands
    size = scalar_of(by)
    if part.op is not hlo.get_tuple_element or GetTupleElement.of(part).index != place or not isinstance(size, int) or size <= 0:
        return None
    return max(0, -(-(bound - first) // size))
