"""Hoists bitcasts out of the kernels of dots, to their operands and users: XLA's ``HoistFusedBitcasts``, right after GemmFusion.

A bitcast after the dot is undone by one at the kernel's end, so that all of them move the same way: up, through the instructions
above them, to the parameters. One that cannot pass stays.
"""
from __future__ import annotations

from dataclasses import dataclass

from benchmarks.xla_gemm.bitcasts import ABOVE_BITCAST, BITCAST_ABOVE, Moved
from benchmarks.xla_gemm.shepherd import BITCASTS
from irscope.fusion.xla.gemm.bitcasts import ArrayForm, bitcast_of, form_of, reform
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.graph.walk import post_order
from irscope.ops import hlo

PRODUCTS = hlo.named("dot scaled-dot")
ENDS = hlo.named("parameter constant") | BITCASTS
"""Where a bitcast on its way up ends: at what has no operands, and at another bitcast, which moves by itself."""


@dataclass(frozen=True, slots=True)
class _Step:
    """An instruction that gets another form and, if it is a broadcast or transpose, other dimensions."""

    instruction: Instruction
    form: ArrayForm
    moved: Moved | None = None


def hoist_bitcasts(computation: Computation) -> bool:
    """Move bitcasts out of every dot kernel in a computation; returns whether anything moved."""
    changed = False
    for kernel in [i for i in computation.instructions if i.body is not None]:
        body = kernel.fused_body
        dot = next((i for i in body.instructions if i.op in PRODUCTS), None)
        if dot is not None:
            changed |= _end_with_bitcast(computation, kernel, dot)
            for bitcast in _alone(body):
                changed |= _hoist(computation, kernel, bitcast)
    return changed


def _end_with_bitcast(computation: Computation, kernel: Instruction, dot: Instruction) -> bool:
    """Give the kernel the form that its result has without the bitcasts after its dot, and undo that outside."""
    body = kernel.fused_body
    form = _form_at_root(dot, body.root)
    if form is None or form == form_of(body.root):
        return False
    outside = form_of(kernel)
    body.root = body.add(bitcast_of(body.root, form))
    undone = computation.add(bitcast_of(reform(kernel, form), outside))
    for user in list(kernel.users):
        if user is not undone:
            user.replace_operand(kernel, undone)
    if computation.root is kernel:
        computation.root = undone
    return True


def _form_at_root(dot: Instruction, root: Instruction) -> ArrayForm | None:
    """The form of a kernel's result without the bitcasts after the dot; None if one cannot move past what follows."""
    forms: dict[Instruction, ArrayForm] = {}
    pending, form = [dot], form_of(dot)
    for instruction in pending:
        if instruction is not dot:
            found = _below(instruction, forms[instruction])
            if found is None:
                return None
            form = found
        if instruction is root:
            return form
        for user in instruction.users:
            if user not in forms:
                pending.append(user)
            if forms.setdefault(user, form) != form:
                return None
    return None


def _below(instruction: Instruction, form: ArrayForm) -> ArrayForm | None:
    """The form of an instruction whose operand gets a form."""
    if instruction.op in ABOVE_BITCAST:
        found = ABOVE_BITCAST[instruction.op](instruction, form)
        return form_of(instruction) if found is None else found[0]
    return form if instruction.op in BITCASTS or instruction.is_elementwise else None


def _hoist(computation: Computation, kernel: Instruction, bitcast: Instruction) -> bool:
    """Hoist one bitcast out of a kernel; returns whether that was possible."""
    body, source = kernel.fused_body, bitcast.operands[0]
    steps = _plan(bitcast) if source.dtype == bitcast.dtype else None
    if steps is None:
        return False
    for step in steps:
        instruction = step.instruction
        if instruction.op is hlo.parameter:
            _feed(computation, kernel, body.params.index(instruction), step.form)
        if step.moved is not None:
            instruction.attrs = {**instruction.attrs, "dimensions": step.moved[1]}
        reform(instruction, step.form)
    body.replace_uses(bitcast, source)
    body.remove(bitcast)
    return True


def _alone(body: Computation) -> list[Instruction]:
    """The bitcasts that are the only path from everything above them to the result, users first.

    Everything above such a bitcast is next to it in post-order, before it, and has no users after it. Moving
    another bitcast does not change that.
    """
    order = body.post_order()
    places = {instruction: n for n, instruction in enumerate(order)}
    first: list[int] = []
    last: list[int] = []
    for number, instruction in enumerate(order):
        begins, read = number, -1
        at = number - 1
        while at >= 0 and at >= min((places[o] for o in instruction.operands), default=number):
            begins, read = min(begins, first[at]), max(read, last[at])
            at = first[at] - 1
        first.append(begins)
        last.append(max([read, *(places[user] for user in instruction.users if user in places)]))
    alone = []
    for number, instruction in enumerate(order):
        if instruction.op in BITCASTS:
            at, read = number - 1, -1
            while at >= first[number]:
                read = max(read, last[at])
                at = first[at] - 1
            if read <= number and all(places[o] >= first[number] for o in instruction.operands):
                alone.append(instruction)
    return alone[::-1]


def _plan(bitcast: Instruction) -> list[_Step] | None:
    """The instructions that get another form if a bitcast is hoisted, users first; None if it meets one that it cannot pass."""
    forms = {bitcast.operands[0]: form_of(bitcast)}
    steps: list[_Step] = []
    above = post_order(bitcast.operands, lambda i: () if i.op in ENDS else i.operands)
    for instruction in reversed(above):
        form = forms.get(instruction)
        if form is None or form == form_of(instruction):
            continue
        moved: Moved | None = None
        if instruction.op in BITCAST_ABOVE:
            moved = BITCAST_ABOVE[instruction.op](instruction, form)
            if moved is None:
                return None
        elif instruction.op not in ENDS and not instruction.is_elementwise:
            return None
        steps.append(_Step(instruction, form, moved))
        above_it = form if moved is None else moved[0]
        if instruction.op not in ENDS and any(forms.setdefault(operand, above_it) != above_it for operand in instruction.operands):
            return None
    return steps


def _feed(computation: Computation, kernel: Instruction, number: int, form: ArrayForm) -> None:
    """Let a kernel read one operand through a bitcast."""
    old = kernel.operands[number]
    kernel.set_operand(number, computation.add(bitcast_of(old, form)))
