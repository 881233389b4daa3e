"""The instructions that a Triton kernel of a dot supports, and the dots (support_legacy.cc, support.cc of jaxlib 0.10.2)."""
from __future__ import annotations

from irscope.fusion.xla.gemm.rules import ELEMENTWISE, FORM, INPUT_TYPE, OPCODE, OUTPUT_TYPE, RETYPED, SECOND_KERNEL, UNSUPPORTED, No
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.instructions import Instruction
from irscope.fusion.xla.triton import TYPES as TRITON_TYPES
from irscope.graph import Op
from irscope.ops import hlo
from irscope.ops.attributes import Dot

TYPES = frozenset("f16 bf16 f32 f8e5m2 f8e4m3fn pred s8 s16 s32".split())
"""``legacy_triton::IsTritonSupportedDataType``; only a conversion reads four bits."""
HOPPER = 90
"""The compute capability from which on floats with four exponent bits are supported."""
FLOATS = frozenset(("f16", "bf16", "f32", "f64"))
ANY_UNARY = hlo.named("convert abs negate")
FLOAT_UNARY = hlo.named("acos acosh asin asinh atanh cbrt ceil cosh cosine erf exponential exponential-minus-one floor log log-plus-one "
                         "round-nearest-even rsqrt sine sinh sqrt tan tanh")
ANY_BINARY = hlo.named("add compare maximum minimum multiply subtract select clamp")
FLOAT_BINARY = hlo.named("atan2 power")
OF_PREDICATES = hlo.named("convert not and or xor compare select clamp")
MOVED = hlo.named("transpose slice reshape pad concatenate parameter broadcast")
MULTIPLIED = frozenset("bf16 f16 f32 f64 f8e4m3fn f8e5m2".split())
SIGNED = frozenset("s8 s16 s32 s64".split())
ALGORITHMS = frozenset("dot_f16_f16_f16 dot_f32_f32_f32 dot_f64_f64_f64 dot_f16_f16_f32 dot_bf16_bf16_f32 dot_bf16_bf16_f32_x3 "
                       "dot_bf16_bf16_f32_x6 dot_bf16_bf16_f32_x9 dot_tf32_tf32_f32 dot_tf32_tf32_f32_x3".split())
"""``IsSupportedDotAlgorithm`` on NVIDIA's devices, besides the default."""


def number(device: Device) -> int:
    """The compute capability as a number: 90 of ``sm_90``; that of the newest device if a text has none."""
    digits = device.capability.removeprefix("sm_")
    return int(digits) if digits.isdecimal() else 10 ** 6


def computes(op: Op, dtype: str) -> bool:
    """Whether a dot's kernel supports an elementwise operation on operands of a type, with narrow floats computed wide."""
    if dtype == "pred":
        return op in OF_PREDICATES
    if op in ANY_UNARY or op in ANY_BINARY:
        return True
    return dtype in FLOATS and (op in FLOAT_UNARY or op in FLOAT_BINARY or (op is hlo.divide and dtype != "f16"))


def lacking(instruction: Instruction, device: Device) -> No | None:
    """What a dot's kernel does not support in an instruction; None if it supports it."""
    op = instruction.op
    if instruction.is_elementwise:
        if not _reads(instruction.dtype, device):
            return No(OUTPUT_TYPE, type=instruction.dtype)
        for operand in instruction.operands:
            if not _reads(operand.dtype, device) and not (op is hlo.convert and operand.dtype == "s4"):
                return No(INPUT_TYPE, type=operand.dtype)
        if op is not hlo.constant and not computes(op, instruction.operands[0].dtype):
            return No(ELEMENTWISE, op=op.name, type=instruction.operands[0].dtype)
        return None
    if op is hlo.bitcast:
        return No(RETYPED) if instruction.dtype != instruction.operands[0].dtype else None
    if instruction.body is not None and any(i.op is hlo.dot for i in instruction.body.instructions):
        return No(SECOND_KERNEL)
    return None if op in MOVED or op is hlo.dynamic_slice or op is hlo.dot else No(OPCODE, op=op.name)


def _reads(dtype: str, device: Device) -> bool:
    return dtype in TYPES and (dtype != "f8e4m3fn" or number(device) >= HOPPER)


def unsupported(dot: Instruction, device: Device) -> No | None:
    """Why Triton does not support a dot; None if it does."""
    left, right = (o.dtype for o in dot.operands[:2])
    for what, dtypes in (("output", (dot.dtype,)), ("input", (left, right))):
        for dtype in dtypes:
            if dtype not in TRITON_TYPES:
                return No(UNSUPPORTED, f"Unsupported {what} data type: Unsupported data type: {dtype}")
    if left != right and {left, right} != {"f8e5m2", "f8e4m3fn"}:
        return No(UNSUPPORTED, "Dot operation only supports same types for lhs and rhs.", f"{left} and {right}")
    if dot.dtype == "s4":
        return No(UNSUPPORTED, "S4 is not supported.")
    contracted = Dot.of(dot).lhs_contracting_dims
    if len(contracted) != 1:
        return No(FORM, ",".join(map(str, contracted)))
    algorithm = Dot.of(dot).algorithm.lower()
    if algorithm not in ("", "dot_unset", "unset", *ALGORITHMS):
        return No(UNSUPPORTED, f"Unsupported dot algorithm: ALG_{algorithm.upper()}")
    if algorithm in ALGORITHMS:
        return None
    if left == "f64" and dot.dtype != "f64":
        return No(UNSUPPORTED, "Dot operation only supports F64 result type for F64 input type.")
    if "f8e4m3fn" in (left, dot.dtype) and number(device) < HOPPER:
        return No(UNSUPPORTED, "Dot operation for F8E4M3FN is not supported before Hopper.")
    if left in MULTIPLIED or (left == "s8" and dot.dtype == "s32"):
        return None
    if left in SIGNED and dot.dtype in SIGNED:
        return No(UNSUPPORTED, "Dot operation does not support these signed integer types.", f"{left} into {dot.dtype}")
    if left in SIGNED and dot.dtype in FLOATS:
        return No(UNSUPPORTED, "Dot operation does not support floating point input and signed integer result types.",
                  f"{left} into {dot.dtype}")
    return None if left in SIGNED else No(UNSUPPORTED, f"Unsupported types: input={left}, result={dot.dtype}")
