"""The second version of XLA's GemmFusion (``xla_gpu_experimental_gemm_fusion_v2``, off by default in jaxlib 0.10.2).

It first finds everything around a dot that Triton supports, moves the bitcasts in there away from the dot, and then fuses
what can be computed tile by tile: operands breadth first, then users. It does not test for a gain.
"""
from __future__ import annotations

from collections import deque

from benchmarks.xla_gemm.shepherd import Origins, Shepherd
from benchmarks.xla_gemm.tiles import untiled
from irscope.fusion.memo import Memo
from irscope.fusion.xla.gemm.bitcasts import ArrayForm, bitcast_of, form_of
from irscope.fusion.xla.gemm.grow import Asked, Kernel
from irscope.fusion.xla.gemm.rules import UNTILED, No
from irscope.fusion.xla.instructions import Computation, Instruction, fuse_into
from irscope.fusion.xla.joining import merge_into
from irscope.fusion.xla.triton import lacking
from irscope.graph.walk import post_order
from irscope.ops import hlo
from irscope.ops.attributes import Pad

OUTSIDE = hlo.named("fusion dot parameter reduce dynamic-slice scaled-dot")
"""Operators that are never part of the kernel, whatever Triton supports (``AllowedInGemmFusion``; dynamic slices are not enabled yet)."""


def searched(dot: Instruction, computation: Computation) -> Kernel:
    """The kernel found around a dot that Triton supports. Adds the bitcasts that it leaves outside to ``computation``."""
    space, origins, inner = _space(dot)
    Shepherd(space, inner, origins).move()
    asked: list[Asked] = []
    fusion = space.wrap(inner, "triton")
    _take_operands(space, fusion, list(fusion.operands), asked)
    output = dot
    while fusion is not space.root:
        user = next(iter(fusion.users))
        if words := untiled(user):
            asked.append(Asked(output, origins.get(user, user), No(UNTILED, words), True))
            break
        reads = len(fusion.operands)
        output = origins[user]
        fusion = _take_user(space, fusion, user)
        if len(fusion.operands) > reads:
            _take_operands(space, fusion, list(fusion.operands), asked)
    body = fusion.fused_body
    Shepherd(body, next(i for i in body.instructions if i.op is hlo.dot), {}).move()
    inputs = [_outside(operand, form_of(parameter), origins, computation)
              for operand, parameter in zip(fusion.operands, body.params, strict=True)]
    return Kernel(dot, body, inputs, output, asked)


def _is_included(instruction: Instruction) -> bool:
    if instruction.op in OUTSIDE or not instruction.is_fusible or not instruction.is_array:
        return False
    if instruction.op in (hlo.concatenate, hlo.pad):
        high = all(low == 0 and inside == 0 for low, _, inside in Pad.padding.given(instruction) or ())
        return instruction.dtype != "s4" and high
    return not lacking(instruction)


def _space(dot: Instruction) -> tuple[Computation, Origins, Instruction]:
    """A copy of everything around a dot that Triton supports; the original of each copy, and the dot in it."""
    output = dot
    while len(output.users) == 1 and _is_included(next(iter(output.users))):
        output = next(iter(output.users))
    space = Computation(f"{dot.name}_fusion_search_space")
    copies: dict[Instruction, Instruction] = {}
    inside: Memo[Instruction, bool] = Memo(lambda instruction: instruction is dot or _is_included(instruction))
    for old in post_order([output], lambda instruction: instruction.operands if inside[instruction] else ()):
        if inside[old]:
            copies[old] = space.add_copy(old, [copies[o] for o in old.operands])
        else:
            copies[old] = space.add(old.clone(hlo.parameter))
            space.params.append(copies[old])
    space.root = copies[output]
    return space, {new: old for old, new in copies.items()}, copies[dot]


def _take_operands(space: Computation, fusion: Instruction, candidates: list[Instruction], asked: list[Asked]) -> None:
    """Fuse the operands of a kernel, breadth first, whatever the number of arrays that it then reads."""
    queue = deque(candidates)
    while queue:
        candidate = queue.popleft()
        if fusion not in candidate.users or candidate.op is hlo.parameter:
            continue
        if words := untiled(candidate):
            asked.append(Asked(candidate, fusion, No(UNTILED, words)))
            continue
        fuse_into(fusion, candidate)
        queue.extend(candidate.operands)
        if not candidate.users:
            space.remove(candidate)


def _take_user(space: Computation, fusion: Instruction, user: Instruction) -> Instruction:
    """The kernel of a user and its operands; it replaces the user."""
    made = space.wrap(user, "triton")
    merge_into(made, fusion)
    fusion.detach()
    space.instructions.pop(fusion, None)
    return made


def _outside(operand: Instruction, form: ArrayForm, origins: Origins, computation: Computation) -> Instruction:
    """The operand of a kernel in the text: the original instruction, through a bitcast if the kernel reads another form."""
    added = 0
    while operand not in origins:
        operand = operand.operands[0]
        added += 1
    outside = origins[operand]
    added += form_of(outside) != form
    for _ in range(added):
        outside = computation.add(bitcast_of(outside, form))
    return outside
