"""The instructions that XLA's Triton emitter supports: opcodes by element type (``xla/backends/gpu/codegen/triton/support.cc``).

The table is that of jaxlib 0.10.2, determined for each operation and type by compiling 641 dots with the operation as their operand.
"""
from __future__ import annotations

from collections.abc import Sequence

from irscope.fusion.xla.instructions import Instruction
from irscope.fusion.xla.opcodes import ELEMENTWISE
from irscope.graph import Graph, Op, TensorType, Type
from irscope.ops import hlo
from irscope.ops.attributes import Reduce

TYPES = frozenset("pred s4 s8 s16 s32 s64 f16 bf16 f32 f64 f8e5m2 f8e4m3fn".split())
"""``IsTritonSupportedDataType`` on NVIDIA's devices."""
EIGHT = frozenset(("f8e5m2", "f8e4m3fn"))
NARROW = frozenset(("f16", "bf16", "f32"))
"""The types to and from which an 8-bit float is converted."""
FLOATS = frozenset(("f16", "bf16", "f32", "f64"))
SIGNED = frozenset(("s8", "s16", "s32", "s64"))
FOUR_BITS_INTO = frozenset(("s8", "f16", "bf16", "f32", "f64"))
"""The types to which a 4-bit integer is converted; nothing is converted to it."""
OF_FLOATS = hlo.named(
    "abs copy negate reduce-precision acos acosh asin asinh atanh cbrt ceil cosh cosine erf exponential exponential-minus-one floor log "
    "log-plus-one round-nearest-even rsqrt sine sinh sqrt tan tanh add atan2 compare divide maximum minimum multiply power remainder "
    "subtract select clamp")
OF_INTEGERS = hlo.named("abs copy negate not add and clamp compare divide maximum minimum multiply or remainder select subtract xor")
OF_PREDICATES = hlo.named("not copy add compare maximum minimum multiply and or xor select clamp")
OF_EIGHT = hlo.named("abs copy reduce-precision select")
MOVED = hlo.named("parameter broadcast bitcast reshape slice transpose")


def lacking(instruction: Instruction) -> str:
    """What Triton does not support in an instruction, in XLA's words; empty if it supports it. Tiles are checked elsewhere."""
    types = [o.type for o in instruction.operands]
    if instruction.op is not hlo.reduce:
        return _lacking(instruction.op, instruction.type, types)
    if words := _of_types(instruction.type, types):
        return words
    if instruction.dtype in EIGHT:
        return "F8E4M3FN and F8E5M2 are not supported for reductions."
    if not all(map(_computes, instruction.bodies)):
        return "Unsupported reduction computation by Triton."
    if len(Reduce.of(instruction).dimensions) != 1 or len(instruction.operands) != 2:
        return "Reduction is not a row-reduction of a single operand."
    return ""


def _computes(reducer: Graph) -> bool:
    return not any(_lacking(n.op, n.type, [o.type for o in n.operands]) for n in reducer.nodes)


def _of_types(type: Type, operands: Sequence[Type]) -> str:
    if _name(type) not in TYPES:
        return "Unsupported output data type."
    return "" if all(_name(o) in TYPES for o in operands) else "Unsupported input data type."


def _lacking(op: Op, type: Type, operands: Sequence[Type]) -> str:
    if op is hlo.convert:
        return _conversion(_name(operands[0]), _name(type))
    if words := _of_types(type, operands):
        return words
    if op is hlo.constant:
        scalar = isinstance(type, TensorType) and all(d == 1 for d in type.shape)
        return "" if scalar else "Only scalar constants are supported in Triton."
    if op in MOVED or op is hlo.iota:
        return "S4 is not supported." if _name(type) == "s4" and op is not hlo.parameter else ""
    if op not in ELEMENTWISE or not operands:
        return f"Unsupported instruction opcode {op}"
    return "" if op in _elementwise(_name(operands[-1])) else "Unsupported elementwise operation."


def _elementwise(dtype: str) -> frozenset[Op]:
    """The elementwise operations of a type; comparisons and selections are classified by their last operand."""
    if dtype in FLOATS:
        return OF_FLOATS
    if dtype in SIGNED:
        return OF_INTEGERS
    if dtype == "pred":
        return OF_PREDICATES
    return OF_EIGHT if dtype in EIGHT else frozenset()


def _conversion(source: str, target: str) -> str:
    eight = source in EIGHT or target in EIGHT
    fits = source in TYPES and target in TYPES and target != "s4" and (source != "s4" or target in FOUR_BITS_INTO) and (
        not eight or source == target or {source, target} == EIGHT or not NARROW.isdisjoint((source, target)))
    return "" if fits else f"Unsupported conversion in Triton: {source} to {target}"


def _name(type: Type) -> str:
    return type.dtype.name if isinstance(type, TensorType) else ""
