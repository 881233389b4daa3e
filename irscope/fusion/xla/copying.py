"""XLA's pass that duplicates the results of kernels: a kernel also writes the copies of its results (``CopyFusion``).

It runs late, on the entry only, after XLA has inserted copies so that results do not share a buffer. (copy_fusion.cc)
"""
from __future__ import annotations

from irscope.fusion.closure import closure
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.gpu_rules import MAX_BUFFERS, fits_budget
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.joining import part_of, set_outputs
from irscope.fusion.xla.shapes import is_unnested_reduction
from irscope.graph import TensorType
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement


def fuse_copies(computation: Computation, device: Device) -> list[tuple[str, str]]:
    """Fuse copies into the kernels whose results they copy, in place; returns the pairs (copy, kernel)."""
    fused: list[tuple[str, str]] = []
    for fusion in computation.post_order():
        if fusion.op is not hlo.fusion or fusion.body is None or fusion.kind in ("kCustom", "triton") or not _computes_alike(fusion.body):
            continue
        root, outputs = fusion.body.root, fusion.body.outputs
        if is_unnested_reduction(root) or root.op is hlo.scatter or (root.op is hlo.tuple and all(o.op is hlo.slice for o in outputs)):
            continue
        chains = [chain for user in fusion.users if (chain := _copy_behind(fusion, user, outputs, device))]
        updates = sum(o.op is hlo.dynamic_update_slice for o in outputs)
        if not chains or (updates and updates == len(outputs)) or len(outputs) + len(chains) > MAX_BUFFERS:
            continue
        fused += [(chain[-1].name, fusion.name) for chain in chains]
        _write_twice(computation, fusion, chains)
    return fused


def _computes_alike(body: Computation) -> bool:
    """Whether all that depends on a kernel's parameters is elementwise (but no copy), a bitcast or a tuple: it may write where it reads."""
    return all((i.is_elementwise and i.op is not hlo.copy) or i.op in (hlo.parameter, hlo.bitcast, hlo.tuple)
               for i in closure(body.params, lambda i: i.users))


def _copy_behind(fusion: Instruction, user: Instruction, outputs: list[Instruction], device: Device) -> list[Instruction]:
    """The path from a user of a kernel to a copy of its result; empty if there is none that the kernel could write."""
    chain = [user]
    if user.op is hlo.get_tuple_element and len(user.users) == 1:
        if fusion.body is None or fusion.body.root.op is not hlo.tuple:
            return []  # the root is one operator with several results, which has no operand for each of them
        if is_unnested_reduction(outputs[GetTupleElement.of(user).index]):
            return []
        chain.append(next(iter(user.users)))
    if chain[-1].op is hlo.bitcast and len(chain[-1].users) == 1:
        chain.append(next(iter(chain[-1].users)))
    copy = chain[-1]
    if copy.op is not hlo.copy or not isinstance(copy.type, TensorType) or copy.predecessors:
        return []
    source = copy.operands[0]
    alike = copy.same_dims_and_layout(source) and copy.dtype == source.dtype
    return chain if alike and fits_budget(fusion, copy, device) else []


def _write_twice(computation: Computation, fusion: Instruction, chains: list[list[Instruction]]) -> None:
    """Compute the copies inside the kernel; users of a copy read an element of the kernel's results instead."""
    body = fusion.fused_body
    fusion.traits = None
    outputs = body.outputs
    first = len(outputs)
    made = []
    for chain in chains:
        inner = outputs[GetTupleElement.of(chain[0]).index] if chain[0].op is hlo.get_tuple_element else body.root
        for step in chain[chain[0].op is hlo.get_tuple_element:]:
            inner = body.add_copy(step, (inner,))
        made.append(inner)
    own = [fusion.type] if fusion.is_array else list(fusion.type.leaves())
    gone = [(chain[-1], list(reversed(chain))) for chain in chains]
    set_outputs(computation, fusion, [*outputs, *made], [*own, *(m.type for m in made)])
    for number, (copy, steps) in enumerate(gone):
        part = part_of(computation, fusion, first + number, made[number])
        computation.replace_uses(copy, part)
        for step in steps:
            if not step.users:
                computation.remove(step)
    for step in [user for user in fusion.users if user.op is hlo.get_tuple_element and not user.users and user is not computation.root]:
        computation.remove(step)
