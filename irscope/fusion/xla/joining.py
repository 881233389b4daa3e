"""Joins two kernels into one: a producer with its user, or two into one with the results of both."""
from __future__ import annotations

from irscope.fusion.xla.instructions import Computation, Instruction, copy_into, parameter_of, take_parameter
from irscope.graph import TupleType, Type
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement


def join_outputs(computation: Computation, kept: Instruction, other: Instruction, kind: str) -> Instruction:
    """Create one fusion with the results of ``kept`` and of ``other``, which it may read; returns it.

    Users of either read an element of its tuple.
    """
    fusion = kept if kept.body is not None else computation.wrap(kept, kind)
    fusion.kind, fusion.traits = kind, None
    body = fusion.fused_body
    outputs = body.outputs
    own = [fusion.type] if fusion.is_array else list(fusion.type.leaves())
    first = len(outputs)
    outside = list(other.users)
    made = copy_into(fusion, other)
    if other in fusion.operands:
        parameter_of_other = take_parameter(fusion, other)
        assert parameter_of_other is not None and len(made) == 1
        body.replace_uses(parameter_of_other, made[0])
        outputs = [made[0] if output is parameter_of_other else output for output in outputs]
    if computation.root is other or any(user is not fusion for user in outside):
        set_outputs(computation, fusion, [*outputs, *made], [*own, *([other.type] if other.is_array else other.type.leaves())])
    for user in outside:
        if user is fusion:
            continue
        if len(made) > 1:
            user.attrs = {**user.attrs, "index": first + GetTupleElement.of(user).index}
            user.replace_operand(other, fusion)
        else:
            user.replace_operand(other, part_of(computation, fusion, first, made[0]))
    if computation.root is other:
        computation.root = fusion
    computation.remove(other)
    return fusion


def set_outputs(computation: Computation, fusion: Instruction, outputs: list[Instruction], types: list[Type]) -> None:
    """Set the results of a fusion; users of a single result read a tuple element from now on."""
    body = fusion.fused_body
    if body.root.op is hlo.tuple:
        body.root.detach()
        body.instructions.pop(body.root)
    else:
        users = list(fusion.users)
        alone = body.root
        for user in users:
            user.replace_operand(fusion, part_of(computation, fusion, 0, alone))
    body.root = body.add(Instruction(hlo.tuple, TupleType(tuple(types)), outputs))
    fusion.set_type(body.root.type)


def part_of(computation: Computation, fusion: Instruction, number: int, like: Instruction) -> Instruction:
    """The tuple element with one result of a fusion; creates it if there is none."""
    for user in fusion.users:
        if user.op is hlo.get_tuple_element and GetTupleElement.of(user).index == number and user.node is None:
            return user
    part = like.clone(hlo.get_tuple_element)
    part.attrs = {"index": number}
    part.operands = [fusion]
    fusion.users.add(part)
    return computation.add(part)


def merge_into(fusion: Instruction, producer: Instruction) -> None:
    """Merge the body of ``producer``, a fusion that is an operand of ``fusion``, into the body of ``fusion``.

    Copies the body while the producer has other users, and moves it for the last one.
    """
    fusion.traits = None
    fusion.absorbed += producer.absorbed if producer.node is None else (*producer.absorbed, producer.node)
    root = _copy_body(fusion, producer) if len(producer.users) > 1 else _move_body(fusion, producer)
    parameter = take_parameter(fusion, producer)
    assert parameter is not None
    fusion.fused_body.replace_uses(parameter, root)


def _copy_body(fusion: Instruction, producer: Instruction) -> Instruction:
    """Copy the body of a producer; returns the copy of its result."""
    body, source = fusion.fused_body, producer.fused_body
    copies = {inner: parameter_of(fusion, outer) for inner, outer in zip(source.params, producer.operands, strict=True)}
    for instruction in source.post_order():
        if instruction not in copies:
            copies[instruction] = body.add_copy(instruction, [copies[o] for o in instruction.operands])
    return copies[source.root]


def _move_body(fusion: Instruction, producer: Instruction) -> Instruction:
    """Move the body of a producer, the smaller of the two bodies into the larger one; returns its result."""
    body, source = fusion.fused_body, producer.fused_body
    root = source.root
    for inner, outer in zip(source.params, producer.operands, strict=True):
        inner.node = None
        number = fusion.operands.index(outer) if outer in fusion.operands else len(fusion.operands)
        if number == len(fusion.operands):
            fusion.operands.append(outer)
            fusion.places = None
            outer.users.add(fusion)
            body.params.append(inner)
        else:
            mine = body.params[number]
            kept, other, home = (mine, inner, source) if len(mine.users) >= len(inner.users) else (inner, mine, body)
            kept.node = mine.node
            other.replace_uses(kept)
            root = kept if other is root else root
            home.instructions.pop(other)
            body.params[number] = kept
        if fusion.inside is not None:
            fusion.inside[outer] = body.params[number]
            body.params[number].outside = outer
    less, more = sorted((source.instructions, body.instructions), key=len)
    more.update(less)
    body.instructions, source.instructions = more, {}
    return root
