"""XLA's pass that joined small independent kernels into one (``HorizontalLoopFusion``).

It ran after the other fusion passes, to save launches (horizontal_loop_fusion.cc, gpu_fusible.cc). Kernels of one shape become one loop
with several results; the others become one kernel that writes all results into one array, of which slices are read.
"""
from __future__ import annotations

from collections import Counter
from itertools import islice

from irscope.fusion.closure import closure
from irscope.fusion.xla.gpu_kinds import members
from irscope.fusion.xla.gpu_outputs import is_nested_variadic
from irscope.fusion.xla.instructions import Computation, Instruction, copy_into
from irscope.fusion.xla.joining import part_of
from irscope.fusion.xla.releases import SideBySide
from irscope.graph import Layout, Op, TensorType, TupleType
from irscope.graph.walk import behind
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement, Slice

MAX_ELEMENTS = 8192 * 8192
"""Elements of a result, and instructions of a kernel, from which on the launch does not dominate the cost (``kShapeThreshold``,
``kInstrCountThreshold``): in a loop ..."""
MAX_INSTRUCTIONS = 128
MAX_ELEMENTS_SLICED = 128 * 2048
"""... and if results are slices of one array."""
MAX_INSTRUCTIONS_SLICED = 30
MAX_RESULTS_SLICED = 32
"""A kernel has fewer results than this (``kMaxFusionBatchSize``): slices of one array, ..."""
MAX_RESULTS_PLAIN = 64
"""... or results of a loop whose first part is a single instruction; if it is a kernel, each release has its own limit."""
MAX_PARAMETERS = 4000
"""Bytes that the pointers of a kernel may take (``kMaxCudaParamSize``)."""
POINTER = 8
PARTS = frozenset((hlo.get_tuple_element,))
"""Operators that may be between a kernel and its user (``LatestNonGteAncestor``) ..."""
SHAPES = PARTS | {hlo.bitcast}
"""... and in later releases (``LatestNonTrivialAncestor``)."""


def join_side_by_side(computation: Computation, release: SideBySide) -> list[tuple[str, str]]:
    """Join kernels with one common user, in place; returns the joined pairs (a kernel, the first of those that it was joined with)."""
    joined: list[tuple[str, str]] = []
    pending = computation.post_order()
    while pending:
        consumer = pending.pop()
        for sliced in (False, True):
            if consumer in computation.instructions:
                for group in _groups(consumer, computation.root, sliced, release):
                    joined += [(kernel.name, group[0].name) for kernel in group[1:]]
                    pending.append(_join(computation, group, sliced))
    return joined


def _groups(consumer: Instruction, root: Instruction, sliced: bool, release: SideBySide) -> list[list[Instruction]]:
    """The kernels that ``consumer`` reads and that become one, in groups."""
    trivial = SHAPES if release.later else PARTS
    found = [kernel for kernel in dict.fromkeys(behind(operand, trivial) for operand in consumer.operands)
             if _is_candidate(kernel) or (release.later and _concatenates(kernel))]
    readers = Counter(operand for kernel in found for operand in set(kernel.operands))
    chosen = [kernel for kernel in found if only_read_by(kernel, consumer, root, trivial) and _is_small(kernel, sliced)
              and (release.later or _is_row_major(kernel)) and not _shares(kernel, readers, sliced, release)]
    chosen.sort(key=lambda k: (k.results[0].dtype, len(k.results), count_of(k), k.results[0].elements))
    groups: list[list[Instruction]] = []
    start = 0
    while start < len(chosen):
        count = _together(chosen, start, sliced, release)
        if count > 1:
            groups.append(chosen[start:start + count])
        start += count
    return groups


def _together(kernels: list[Instruction], start: int, sliced: bool, release: SideBySide) -> int:
    """How many kernels, from the one at ``start`` on, fit together; at least one."""
    first = kernels[start]
    like = first.results
    limit = MAX_RESULTS_SLICED if sliced else release.results if first.op is hlo.fusion else MAX_RESULTS_PLAIN
    results = pointers = count = 0
    for count, kernel in enumerate(islice(kernels, start, None)):
        outputs = kernel.results
        results += len(outputs)
        if outputs[0].dtype != like[0].dtype or len(outputs) != len(like) or results >= limit \
                or (not release.later and count_of(kernel) != count_of(first)) \
                or not (sliced or outputs[0].same_dims_and_layout(like[0])):
            return max(1, count)
        pointers += len(kernel.operands) + len(outputs)
        if pointers * POINTER >= MAX_PARAMETERS:
            return max(1, count)
    return count + 1


def only_read_by(kernel: Instruction, consumer: Instruction, root: Instruction, trivial: frozenset[Op] = PARTS) -> bool:
    """``IsConsumerTheOnlyNonRootUser``: whether only ``consumer`` and the root use a kernel, directly or through ``trivial`` operators."""
    def passed_on(value: Instruction) -> list[Instruction]:
        return [user for user in value.users if user.op in trivial and user is not consumer]

    return all(user in (consumer, root) or user.op in trivial for value in closure([kernel], passed_on) for user in value.users)


def count_of(kernel: Instruction) -> int:
    """``GetInstrCountOfFusible``, parameters counted."""
    return 1 if kernel.body is None else len(kernel.body.instructions)


def _is_candidate(kernel: Instruction) -> bool:
    """``IsFusibleCandidate``."""
    if kernel.predecessors or is_nested_variadic(kernel):
        return False
    if kernel.is_elementwise and kernel.operands:
        return True
    return kernel.kind == "kLoop" and len({output.dtype for output in kernel.results}) == 1


def _is_small(kernel: Instruction, sliced: bool) -> bool:
    """``IsProfitableFusionCandidate``: whether a kernel takes no longer than its launch."""
    count = MAX_INSTRUCTIONS_SLICED if sliced else MAX_INSTRUCTIONS
    elements = MAX_ELEMENTS_SLICED if sliced or _concatenates(kernel) else MAX_ELEMENTS
    return kernel.results[0].elements <= elements and (kernel.body is None or count_of(kernel) <= count)


def _shares(kernel: Instruction, readers: Counter[Instruction], sliced: bool, release: SideBySide) -> bool:
    """Whether another of the kernels reads the same parameter (in later releases, or the same tuple element), where that matters."""
    if release.later and not sliced and kernel.results[0].op is not hlo.dynamic_update_slice:
        return False
    return any(readers[operand] > 1 and (operand.op is hlo.parameter or (release.later and operand.op in PARTS))
               for operand in kernel.operands)


def _concatenates(kernel: Instruction) -> bool:
    """``IsConcatenationInputFusion``."""
    return kernel.kind == "kInput" and kernel.root.op is hlo.concatenate


def _is_row_major(kernel: Instruction) -> bool:
    """``HasOnlyRowMajorLayout``."""
    return all(not part.is_array or list(part.minor) == sorted(part.minor, reverse=True) for part in members(kernel))


def _join(computation: Computation, kernels: list[Instruction], sliced: bool) -> Instruction:
    """Replace several kernels by one; their users read elements of its result."""
    body = Computation("")
    fusion = Instruction(hlo.fusion, TupleType(()), ())
    fusion.kind, fusion.body, fusion.inside = ("kInput" if sliced else "kLoop"), body, {}
    computation.instructions[fusion] = None
    results = [copy_into(fusion, kernel) for kernel in kernels]
    made = _sliced(body, results) if sliced else [output for outputs in results for output in outputs]
    body.root = body.add(Instruction(hlo.tuple, TupleType(tuple(m.type for m in made)), made))
    fusion.set_type(body.root.type)
    number = 0
    for kernel, outputs in zip(kernels, results, strict=True):
        parts = []
        for output in outputs:
            part = part_of(computation, fusion, number, made[number])
            number += 1
            parts.append(part if len(output.dims) == 1 else computation.add(Instruction(hlo.bitcast, output.type, [part])))
        _replace(computation, kernel, parts)
    return fusion


def _sliced(body: Computation, results: list[list[Instruction]]) -> list[Instruction]:
    """Write the results number i of all kernels into one array, and slice it; in the order of kernels, then results."""
    slices: dict[tuple[int, int], Instruction] = {}
    for place in range(len(results[0])):
        flat = []
        for outputs in results:
            output = outputs[place]
            flat.append(output if len(output.dims) == 1 else body.add(Instruction(hlo.reshape, _flat(output, output.elements), [output])))
        type = _flat(flat[0], sum(f.elements for f in flat))
        whole = body.add(Instruction(hlo.concatenate, type, flat, attrs={"dimensions": (0,)}))
        start = 0
        for kernel, part in enumerate(flat):
            attrs = {"slice": ((start, start + part.elements, 1),)}
            start += part.elements
            slices[kernel, place] = body.add(Instruction(hlo.slice, _flat(part, part.elements), [whole], attrs=attrs))
    return [slices[key] for key in sorted(slices)]


def sliced_out(output: Instruction) -> Instruction:
    """The result behind a slice that this pass made; anything else is itself."""
    if output.op is not hlo.slice or output.node is not None or output.operands[0].op is not hlo.concatenate:
        return output
    start, at = Slice.of(output).slice[0][0], 0
    for part in output.operands[0].operands:
        if at == start:
            return part.operands[0] if part.op is hlo.reshape and part.node is None else part
        at += part.elements
    return output


def _flat(like: Instruction, elements: int) -> TensorType:
    assert isinstance(like.type, TensorType)
    return TensorType(like.type.dtype, (elements,), Layout((0,)))


def _replace(computation: Computation, kernel: Instruction, parts: list[Instruction]) -> None:
    """Replace a kernel, or its tuple elements, by other values."""
    if kernel.is_array:
        computation.replace_uses(kernel, parts[0])
    else:
        for user in [u for u in kernel.users if u.op is hlo.get_tuple_element]:
            computation.replace_uses(user, parts[GetTupleElement.of(user).index])
            computation.remove(user)
        if kernel.users or computation.root is kernel:
            computation.replace_uses(kernel, computation.add(Instruction(hlo.tuple, kernel.type, parts)))
    computation.remove(kernel)
