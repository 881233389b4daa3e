"""While loops: sinks constants, hoists invariants, removes unused values (XLA's ``WhileLoop*`` passes)."""
from __future__ import annotations

from irscope.fusion.canonicalise.calls import move_in
from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction, has_effect
from irscope.fusion.canonicalise.values import scalar_of
from irscope.graph import TupleType
from irscope.graph.walk import post_order
from irscope.ops import hlo
from irscope.ops.attributes import Compare, GetTupleElement

LIGHT = hlo.named("bitcast broadcast constant get-tuple-element iota reshape reverse slice transpose tuple")
"""Operators that are not worth hoisting by themselves (``NotWorthHoistingIndividually``)."""
MAX_OPERANDS = 6
"""The most operands of an instruction whose changes are compared, three levels deep; an update of an array of rank 4 has six."""


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
    """Whether a loop carries a tuple that its computations only take apart, and that the body builds."""
    condition, loop = instr.calls
    return isinstance(instr.type, TupleType) and len(condition.params) == len(loop.params) == 1 and loop.root.op is hlo.tuple \
        and instr.operands[0].op is hlo.tuple and len(loop.root.operands) == len(instr.type.elements) \
        and all(u.op is hlo.get_tuple_element for b in instr.calls for u in b.params[0].users) \
        and not loop.root.users and loop.root is not loop.params[0]


def _place(loop: HloComputation, instr: HloInstruction) -> int:
    """The index of the carried value that an instruction inside reads; -1 for anything else."""
    return GetTupleElement.of(instr).index if instr.op is hlo.get_tuple_element and instr.operands[0] is loop.params[0] else -1


def _unchanged(instr: HloInstruction) -> dict[int, HloInstruction]:
    """The carried values that no iteration changes, by index."""
    loop = instr.calls[1]
    return {place: begin for place, (begin, output) in enumerate(zip(instr.operands[0].operands, loop.root.operands, strict=True))
            if _place(loop, output) == place}


def _merge_repeated(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Merge carried values that start equal and change equally."""
    if not rewriter.reads_elements(instr):
        return False
    loop = instr.calls[1]
    first: dict[object, int] = {}
    same: dict[int, int] = {}
    for place, (begin, output) in enumerate(zip(instr.operands[0].operands, loop.root.operands, strict=True)):
        mine = first.setdefault((_identity(begin), _change(loop, place, output)), place)
        if mine != place:
            same[place] = mine
    if not same:
        return False
    for reader in [*instr.users, *(u for inner in instr.calls for u in inner.params[0].users)]:
        place = GetTupleElement.of(reader).index
        reader.attrs = {"index": same.get(place, place)}
    _keep(rewriter, instr, [i for i in range(len(loop.root.operands)) if i not in same])
    return True


def _identity(instr: HloInstruction) -> object:
    value = scalar_of(instr)
    return id(instr) if value is None else (instr.dtype, repr(value))


def _change(loop: HloComputation, place: int, output: HloInstruction, depth: int = 3) -> object:
    """How one carried value changes, as a key that is equal for values that change alike."""
    if _place(loop, output) == place:
        return "itself"
    if not depth or not 0 < len(output.operands) <= MAX_OPERANDS or output.calls or output.bodies \
            or not _reads_itself(loop, output, place, depth):
        return _identity(output)
    attrs = tuple(sorted((k, str(v)) for k, v in output.attrs.items()))
    return (output.op, output.type, attrs, *(_change(loop, place, o, depth - 1) for o in output.operands))


def _reads_itself(loop: HloComputation, instr: HloInstruction, place: int, depth: int) -> bool:
    read = _place(loop, instr)
    if read >= 0:
        return read == place
    return depth > 0 and len(instr.operands) <= MAX_OPERANDS and any(_reads_itself(loop, o, place, depth - 1) for o in instr.operands)


def _sink_constants(instr: HloInstruction) -> bool:
    """Sink a constant that passes through a loop into its computations, but for the tuple that carries it to the next trip."""
    changed, body = False, instr.calls[1]
    constants = {place: source for place, source in _unchanged(instr).items() if source.op is hlo.constant}
    for place, source in constants.items():
        for computation in instr.calls:
            for part in list(computation.params[0].users):
                users = [u for u in part.users if computation is not body or u is not body.root]
                if GetTupleElement.of(part).index == place and users:
                    inside = computation.make(hlo.constant, source.type, (), source.attrs, at=source)
                    for user in users:
                        user.replace_operand(part, inside)
                    computation.erase_dead(part)
                    changed = True
    return changed


def _move_out(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Loop-invariant code motion: compute before the loop what depends on unchanged values alone."""
    loop = instr.calls[1]
    unchanged = _unchanged(instr)
    outside = {part: unchanged[place] for part in loop.params[0].users if (place := GetTupleElement.of(part).index) in unchanged}
    if not outside:
        return False
    light: set[HloInstruction] = set()
    moved: list[HloInstruction] = []
    for inner in loop.post_order():
        if inner in outside or inner.op in (hlo.parameter, hlo.tuple) or inner.calls or has_effect(inner) or inner is loop.root:
            continue
        if not all(o in outside or o in light for o in inner.operands):
            continue
        if inner.op in LIGHT:
            light.add(inner)
            continue
        # Copy the cheap instructions that it depends on with it.
        for each in post_order([inner], lambda top: [o for o in reversed(top.operands) if o not in outside]):
            copy = outside[each] = rewriter.make(each.op, each.type, [outside[o] for o in each.operands], each.attrs, each.bodies, each)
            copy.take_label(each)
        moved.append(inner)
    for inner in moved:
        if any(u not in moved for u in inner.users):
            _pass_in(rewriter, instr, inner, outside[inner])
    loop.erase_all_dead()
    return bool(moved)


def _pass_in(rewriter: HloComputation, instr: HloInstruction, inner: HloInstruction, value: HloInstruction) -> None:
    """Pass one more value through a loop, and replace an instruction inside by it."""
    loop = instr.calls[1]
    start, root = instr.operands[0], loop.root
    part = loop.make(hlo.get_tuple_element, inner.type, (loop.params[0],), {"index": len(root.operands)}, at=inner)
    for user in list(inner.users):
        user.replace_operand(inner, part)
    inner.replacement = value
    _carry(rewriter, instr, rewriter.tuple((*start.operands, value), start), loop.tuple((*root.operands, part), root))


def _carry(rewriter: HloComputation, instr: HloInstruction, start: HloInstruction, result: HloInstruction) -> None:
    """Replace the initial tuple and the result tuple of a loop."""
    condition, loop = instr.calls
    old_start, old_result = instr.operands[0], loop.root
    instr.set_operand(0, start)
    rewriter.erase_dead(old_start)
    loop.root = result
    loop.erase_dead(old_result)
    for each in (instr, condition.params[0], loop.params[0]):
        each.set_type(start.type)


def _drop_unused(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Remove carried values that neither a user of the loop nor any value computed with them reads (``TryRemoveDeadWhileParams``)."""
    condition, loop = instr.calls
    if not rewriter.reads_elements(instr):
        return False
    reads = _reads(loop)
    used = {GetTupleElement.of(u).index for u in instr.users}
    used |= {GetTupleElement.of(u).index for u in condition.params[0].users if u.users or u is condition.root}
    used = used.union(*(reads[inner] for inner in loop.instructions if has_effect(inner)))
    together = list(range(len(loop.root.operands)))

    def group(place: int) -> int:
        while together[place] != place:
            together[place] = together[together[place]]
            place = together[place]
        return place

    for place, output in enumerate(loop.root.operands):
        for read in reads[output]:
            together[group(read)] = group(place)
    alive = {group(place) for place in used}
    needed = [place for place in range(len(together)) if group(place) in alive]
    if len(needed) == len(together):
        return False
    _keep(rewriter, instr, needed)
    return True


def _reads(loop: HloComputation) -> dict[HloInstruction, frozenset[int]]:
    """The carried values that each instruction inside depends on."""
    known: dict[HloInstruction, frozenset[int]] = {}
    for instr in loop.post_order():
        place = _place(loop, instr)
        parts = [known[o] for o in instr.operands]
        known[instr] = frozenset((place,)) if place >= 0 else parts[0] if len(parts) == 1 else frozenset().union(*parts)
    return known


def _keep(rewriter: HloComputation, instr: HloInstruction, kept: list[int]) -> None:
    """Keep only some values in the tuple of a loop; the others have no users."""
    loop = instr.calls[1]
    _carry(rewriter, instr, rewriter.elements(instr.operands[0], kept), loop.elements(loop.root, kept))
    for computation, source in ((rewriter, instr), *((inner, inner.params[0]) for inner in instr.calls)):
        for user in list(source.users):
            place = GetTupleElement.of(user).index
            if place in kept:
                user.attrs = {"index": kept.index(place)}
            else:
                computation.erase_dead(user)


def trip_count(instr: HloInstruction) -> int | None:
    """The trip count of a loop that counts up by a constant to a constant limit; None for any other loop."""
    condition, loop = instr.calls
    root = condition.root
    if root.op is not hlo.compare or Compare.of(root).direction != "LT":
        return None
    counter, limit = root.operands
    bound, place = scalar_of(limit), _place(condition, counter)
    if place < 0 or not isinstance(bound, int):
        return None
    first = scalar_of(instr.operands[0].operands[place])
    step = loop.root.operands[place]
    if not isinstance(first, int) or step.op is not hlo.add:
        return None
    part, by = step.operands
    size = scalar_of(by)
    if _place(loop, part) != place or not isinstance(size, int) or size <= 0:
        return None
    return max(0, -(-(bound - first) // size))
