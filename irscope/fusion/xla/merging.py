"""The kernel of a producer becomes part of the kernel that reads it."""
from __future__ import annotations

from irscope.fusion.xla.instructions import Instruction, parameter_of, take_parameter


def merge_into(fusion: Instruction, producer: Instruction) -> None:
    """Put the body of ``producer``, a fusion that is an operand of ``fusion``, into the body of ``fusion``.

    It is copied while somebody else reads the producer, and moved for its last reader.
    """
    fusion.traits = None
    body, source = fusion.body, producer.body
    assert body is not None and source is not None
    fusion.absorbed += producer.absorbed if producer.node is None else (*producer.absorbed, producer.node)
    root = _copied(fusion, producer) if len(producer.users) > 1 else _moved(fusion, producer)
    parameter = take_parameter(fusion, producer)
    assert parameter is not None
    parameter.replace_uses(root)


def _copied(fusion: Instruction, producer: Instruction) -> Instruction:
    """Copy what a producer computes; the copy of its result."""
    body, source = fusion.body, producer.body
    assert body is not None and source is not None
    copies = {inner: parameter_of(fusion, outer) for inner, outer in zip(source.params, producer.operands, strict=True)}
    for instruction in source.post_order():
        if instruction not in copies:
            copies[instruction] = body.add_copy(instruction, [copies[o] for o in instruction.operands])
    return copies[source.root]


def _moved(fusion: Instruction, producer: Instruction) -> Instruction:
    """Move what a producer computes, the smaller of the two bodies into the larger one; its result."""
    body, source = fusion.body, producer.body
    assert body is not None and source is not None
    for inner, outer in zip(source.params, producer.operands, strict=True):
        inner.node = None
        number = fusion.operands.index(outer) if outer in fusion.operands else len(fusion.operands)
        if number == len(fusion.operands):
            fusion.operands.append(outer)
            outer.users.add(fusion)
            body.params.append(inner)
        else:
            mine = body.params[number]
            kept, other, home = (mine, inner, source) if len(mine.users) >= len(inner.users) else (inner, mine, body)
            kept.node = mine.node
            other.replace_uses(kept)
            home.instructions.pop(other)
            body.params[number] = kept
        if fusion.inside is not None:
            fusion.inside[outer] = body.params[number]
            body.params[number].outside = outer
    less, more = sorted((source.instructions, body.instructions), key=len)
    more.update(less)
    body.instructions, source.instructions = more, {}
    return source.root
