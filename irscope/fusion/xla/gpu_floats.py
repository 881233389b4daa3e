"""Float normalisation on a GPU: computes in a wider type what the device cannot compute in bf16 or 8-bit floats.

XLA's ``FloatNormalization`` with ``GpuFloatSupport`` (gpu_float_support.cc of jaxlib 0.10.2), after the rewriters of dots and
normalisations, inside their kernels too; then ``SimplifyFPConversions`` merges consecutive conversions.
"""
from __future__ import annotations

from irscope.fusion.canonicalise.floats import PASSES
from irscope.fusion.canonicalise.values import is_floating
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.graph import DTYPES, Layout, Op, TensorType
from irscope.ops import hlo

WIDER = {"bf16": "f32", "f8e5m2": "f16", "f8e4m3": "f16", "f8e4m3fn": "f16", "f8e4m3b11fnuz": "f16", "f8e5m2fnuz": "f16",
         "f8e4m3fnuz": "f16", "f8e3m4": "f16"}
"""The type in which each narrow type is computed if the device does not support it."""
MOVES = PASSES | hlo.named(
    "broadcast concatenate copy dynamic-slice dynamic-update-slice gather pad reshape reverse scatter select select-and-scatter slice "
    "transpose bitcast compare reduce-precision xor convolution sort")
"""Operators that move or compare values of any type."""
SINCE = {hlo.exponential: 0, hlo.log: 0, hlo.dot: 0, hlo.abs: 80, hlo.maximum: 80, hlo.minimum: 80, hlo.negate: 80, hlo.add: 90,
         hlo.multiply: 90, hlo.subtract: 90}
"""The compute capability from which on bf16 is native, by operator."""


def widen_floats(computation: Computation, device: Device) -> None:
    """Float normalisation: compute in a wider type what the device does not support in a narrow one."""
    number = device.capability.removeprefix("sm_")
    capability = int(number) if number.isdecimal() else 0
    wide: dict[tuple[Instruction, str], Instruction] = {}
    for instruction in computation.post_order():
        narrow = next((i.dtype for i in (instruction, *instruction.operands) if i.dtype in WIDER), None)
        if narrow is None or not instruction.is_array or is_native(instruction, narrow, capability):
            continue
        operands = [_converted(computation, o, WIDER[narrow], wide) if o.dtype == narrow else o for o in instruction.operands]
        type = _typed(instruction, WIDER[narrow]) if instruction.dtype == narrow else instruction.type
        made = Instruction(instruction.op, type, operands, instruction.node, instruction.attrs)
        made.bodies = instruction.bodies
        computation.add(made)
        computation.replace_uses(instruction, made if instruction.dtype != narrow else _convert(computation, made, narrow))
        computation.remove(instruction)
    _join(computation)


def is_native(instruction: Instruction, narrow: str, capability: int) -> bool:
    """Whether a device of a compute capability supports an instruction in a narrow type (``GpuFloatSupport::IsSupported``)."""
    if instruction.op in MOVES:
        return True
    if instruction.op is hlo.reduce:
        return all(node.op is hlo.parameter or node.op in MOVES or _is_computed(node.op, narrow, capability)
                   for body in instruction.bodies for node in body.nodes)
    return _is_computed(instruction.op, narrow, capability)


def _is_computed(op: Op, narrow: str, capability: int) -> bool:
    return narrow == "bf16" and capability >= SINCE.get(op, capability + 1)


def _converted(computation: Computation, source: Instruction, dtype: str, wide: dict[tuple[Instruction, str], Instruction]) -> Instruction:
    """A converted copy of a value; one for all its users."""
    if source.op is hlo.convert and source.operands[0].dtype == dtype:
        return source.operands[0]
    found = wide.get((source, dtype))
    if found is None:
        found = wide[source, dtype] = _convert(computation, source, dtype)
    return found


def _convert(computation: Computation, source: Instruction, dtype: str) -> Instruction:
    return computation.add(Instruction(hlo.convert, _typed(source, dtype), (source,)))


def _typed(like: Instruction, dtype: str) -> TensorType:
    return TensorType(DTYPES[dtype], like.dims, Layout(like.minor))


def _join(computation: Computation) -> None:
    """Merge or cancel consecutive conversions between floats, and remove those without users."""
    for instruction in computation.post_order():
        if instruction.op is not hlo.convert or not is_floating(instruction.dtype):
            continue
        source = instruction
        while source.op is hlo.convert and is_floating(source.operands[0].dtype):
            source = source.operands[0]
        first = instruction.operands[0]
        if source is first or source is instruction:
            continue
        if source.dtype == instruction.dtype:
            computation.replace_uses(instruction, source)
        else:
            instruction.replace_operand(first, source)
    for instruction in reversed(computation.post_order()):
        if instruction.op is hlo.convert and not instruction.users and instruction is not computation.root:
            computation.remove(instruction)
