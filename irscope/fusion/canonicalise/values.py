"""Known values of instructions: constants, broadcast constants, signs, the scalar computations of reductions."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.fusion.canonicalise.computation import HloInstruction
from irscope.graph import DTYPES, Graph, Op
from irscope.graph.walk import post_order
from irscope.ops import hlo
from irscope.ops.attributes import Constant
from irscope.ops.faults import TypeFault

COMPLEX = frozenset(("c64", "c128"))
MAX_LOOKED_AT = 1 << 20
"""Elements of the largest constant that is checked for equal elements."""
MAX_SIGNS = 64
"""Values whose signs may decide the sign of one; long chains of maxima would else be walked for each comparison."""


def is_integral(dtype: str) -> bool:
    """Whether an element type is an integer type; pred is not."""
    return dtype in DTYPES and DTYPES[dtype].is_integer


def is_unsigned(dtype: str) -> bool:
    return dtype in DTYPES and DTYPES[dtype].kind == "uint"


def is_floating(dtype: str) -> bool:
    return dtype in DTYPES and DTYPES[dtype].is_float


def bits(dtype: str) -> int:
    return DTYPES[dtype].bits if dtype in DTYPES else 0


def array_of(instr: HloInstruction) -> Any:
    """The array of a constant; None for anything else, and if the text elides it or it is too large to check."""
    if instr.op is not hlo.constant or not instr.is_array or instr.elements > MAX_LOOKED_AT:
        return None
    literal = Constant.of(instr).known
    try:
        return None if literal is None else literal.value()
    except TypeFault:  # the text elides it
        return None


def scalar_of(instr: HloInstruction) -> Any:
    """The number in a constant of one element; None for anything else."""
    if instr.op is not hlo.constant or instr.elements != 1:
        return None
    array = array_of(instr)
    return None if array is None else array.reshape(-1)[0].item()


def unwrapped(instr: HloInstruction) -> HloInstruction:
    """The operand below all broadcasts."""
    while instr.op is hlo.broadcast:
        instr = instr.operands[0]
    return instr


def is_all(instr: HloInstruction, value: float) -> bool:
    """Whether every element is known to be ``value``, looking through broadcasts."""
    instr = unwrapped(instr)
    if instr.op is not hlo.constant:
        return False
    if instr.elements == 1:
        return bool(scalar_of(instr) == value)
    array = array_of(instr)
    return array is not None and bool(array.size) and bool((array == value).all())


def broadcast_scalar_constant(instr: HloInstruction) -> HloInstruction | None:
    """The scalar constant of a broadcast; None for anything else."""
    if instr.op is hlo.broadcast and instr.operands[0].op is hlo.constant and not instr.operands[0].dims:
        return instr.operands[0]
    return None


def is_non_negative(instr: HloInstruction) -> bool:
    """Whether no element can be negative, as far as XLA checks (``IsNonNegative``); not known of more than :data:`MAX_SIGNS` values."""
    near, seen = [instr], {instr}
    for each in near:
        new = [o for o in dict.fromkeys(_sign_sources(each)) if o not in seen]
        near += new
        seen.update(new)
        if len(near) > MAX_SIGNS:
            return False
    known: dict[HloInstruction, bool] = {}
    for each in post_order([instr], _sign_sources):
        signs = [known[o] for o in _sign_sources(each)]
        known[each] = (any if each.op is hlo.maximum else all)(signs) if signs else _is_non_negative_alone(each)
    return known[instr]


def _sign_sources(instr: HloInstruction) -> Sequence[HloInstruction]:
    """The operands whose signs decide that of an instruction."""
    if any(o.dtype in COMPLEX for o in instr.operands):
        return ()
    match instr.op:
        case hlo.broadcast | hlo.copy | hlo.reshape | hlo.transpose | hlo.power:
            return instr.operands[:1]
        case hlo.maximum | hlo.minimum:
            return instr.operands
        case hlo.select:
            return instr.operands[1:]
    return ()


def _is_non_negative_alone(instr: HloInstruction) -> bool:
    """The same of an instruction whose operands' signs decide nothing."""
    if any(o.dtype in COMPLEX for o in instr.operands):
        return False
    match instr.op:
        case hlo.multiply:
            return instr.operands[0] is instr.operands[1]
        case hlo.abs | hlo.exponential | hlo.iota:
            return True
        case hlo.constant:
            value = scalar_of(instr)
            return value is not None and instr.dtype not in COMPLEX and value >= 0
    return False


def combiner(graph: Graph | None) -> Op | None:
    """The operator of a computation that combines its two parameters in one instruction; None for any other."""
    if graph is None or graph.root is None or len(graph.params) != 2:
        return None
    root = graph.root
    if len(root.operands) == 2 and {id(o) for o in root.operands} == {id(p) for p in graph.params}:
        return root.op
    return None


def is_power_of_two(value: object) -> bool:
    """Whether a number is a power of two."""
    return isinstance(value, int) and value > 0 and not value & (value - 1)
