"""Two kernels made one that gives the results of both."""
from __future__ import annotations

from irscope.fusion.xla.instructions import Computation, Instruction, copy_into, take_parameter
from irscope.graph import TupleType, Type
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement


def join_outputs(computation: Computation, kept: Instruction, other: Instruction, kind: str) -> Instruction:
    """One fusion that gives the results of ``kept`` and those of ``other``, which it may read; it is returned.

    Who read either reads a part of its tuple.
    """
    fusion = kept if kept.body is not None else computation.wrap(kept, kind)
    fusion.kind, fusion.traits = kind, None
    body = fusion.body
    assert body is not None
    outputs = body.outputs
    own = [fusion.type] if fusion.is_array else list(fusion.type.leaves())
    first = len(outputs)
    outside = list(other.users)
    made = copy_into(fusion, other)
    if other in fusion.operands:
        parameter_of_other = take_parameter(fusion, other)
        assert parameter_of_other is not None and len(made) == 1
        parameter_of_other.replace_uses(made[0])
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
    """Give a fusion these results; who read its only one before reads a part now."""
    body = fusion.body
    assert body is not None
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
    """The instruction that takes one result out of a fusion, made where there is none."""
    for user in fusion.users:
        if user.op is hlo.get_tuple_element and GetTupleElement.of(user).index == number and user.node is None:
            return user
    part = like.clone(hlo.get_tuple_element)
    part.attrs = {"index": number}
    part.operands = [fusion]
    fusion.users.add(part)
    return computation.add(part)
