"""Two kernels made one that gives the results of both."""
from __future__ import annotations

from irscope.fusion.xla.instructions import Computation, Instruction, parameter_of, take_parameter
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
    outputs = list(body.root.operands) if body.root.op is hlo.tuple else [body.root]
    own = [fusion.type] if fusion.is_array else list(fusion.type.leaves())
    first = len(outputs)
    outside = list(other.users)
    theirs = other.body
    copies: dict[Instruction, Instruction] = {}
    if theirs is None:
        inner = other.clone()
        for operand in other.operands:
            parameter = parameter_of(fusion, operand)
            inner.operands.append(parameter)
            parameter.users.add(inner)
        body.instructions[inner] = None
        made = [inner]
    else:
        fusion.absorbed += other.absorbed if other.node is None else (*other.absorbed, other.node)
        for param, operand in zip(theirs.params, other.operands, strict=True):
            copies[param] = parameter_of(fusion, operand)
        for instruction in theirs.post_order():
            if instruction in copies or (instruction is theirs.root and instruction.op is hlo.tuple):
                continue
            copy = copies[instruction] = instruction.clone()
            for operand in instruction.operands:
                copy.operands.append(copies[operand])
                copies[operand].users.add(copy)
            body.instructions[copy] = None
        made = [copies[o] for o in theirs.root.operands] if theirs.root.op is hlo.tuple else [copies[theirs.root]]
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
    body.root = Instruction(hlo.tuple, TupleType(tuple(types)), outputs)
    body.instructions[body.root] = None
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
    computation.instructions[part] = None
    return part
