"""Quantised types (``tensor<2x!quant.uniform<i8:f32, 2.0:15>>``), which are kept as text: HLO has no operations on them."""
from __future__ import annotations

from irscope.formats.stablehlo.building.work import Unsupported
from irscope.formats.stablehlo.operations import Operation
from irscope.graph import NamedType, Type

CARRIERS = frozenset(("func.call",))
"""Operations that pass values on, whatever their types."""
LOWER = "stablehlo-opt --stablehlo-legalize-quant-to-math prints the same program over integers, which irscope runs"


def check_not_quantised(operation: Operation) -> None:
    """Raise Unsupported for an operation on values of quantised types."""
    if operation.name in CARRIERS:
        return
    for value in (*operation.operands, *operation.results):
        if _is_quantised(value.type):
            raise Unsupported(f"'{operation.name}' is over a quantised type, which irscope does not compute with: {value.type}", LOWER)


def _is_quantised(type: Type) -> bool:
    """Whether the elements of a tensor are of a type of another dialect, or of an alias for one."""
    return isinstance(type, NamedType) and str(type).startswith("tensor<") and "!" in str(type)
