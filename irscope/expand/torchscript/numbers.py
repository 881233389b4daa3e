"""Arithmetic on Python numbers that depend on data: done as 0-dimensional tensors, with Python's kinds of results."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.expand.torchscript.constants import number_tensor
from irscope.expand.torchscript.program import TorchProgram
from irscope.formats.torchscript.abstract import Scalar, Tensor
from irscope.formats.torchscript.schema import Schema
from irscope.graph import DType, Node
from irscope.graph.dtypes import F64, PRED, S64

DTYPES: dict[str, DType] = {"int": S64, "float": F64, "bool": PRED}
IN_FLOAT = frozenset(("aten::div", "aten::pow", "aten::sqrt", "aten::exp", "aten::log", "aten::sin", "aten::cos", "aten::tan"))
"""Operators that always return a float."""
TENSOR_NAMES = {"aten::floordiv": "aten::floor_divide", "aten::__not__": "aten::logical_not", "prim::max": "aten::maximum",
                "prim::min": "aten::minimum", "prim::abs": "aten::abs", "aten::__round_to_zero_floordiv": "aten::div"}
TO_INT = frozenset(("aten::floor", "aten::ceil"))
"""Operators that return an int for a float."""


def are_numbers(values: Sequence[object]) -> bool:
    """Whether all are numbers, at least one of which depends on data."""
    return any(isinstance(v, Scalar) for v in values) and all(isinstance(v, Scalar | int | float) for v in values)


def arithmetic(program: TorchProgram, node: Node, name: str, values: Sequence[object]) -> Any:
    """The result of an operator on them: a number that depends on data."""
    t = program.t
    tensors: list[object] = []
    for value in values:
        x = value.node if isinstance(value, Scalar) else t.array(value, DTYPES[type(value).__name__])
        tensors.append(Tensor(t.convert(x, F64) if name in IN_FLOAT else x))
    if name == "aten::__round_to_zero_floordiv":
        tensors.append("trunc")
    result = program.operator(node, TENSOR_NAMES.get(name, name), tensors)
    if not isinstance(result, Tensor):
        return result
    made = result.get()
    dtype = t.dtype(made)
    kind = "bool" if dtype is PRED else "int" if dtype.is_integer or name in TO_INT else "float"
    return Scalar(t.convert(made, DTYPES[kind]), kind)


def as_tensors(program: TorchProgram, schema: Schema, values: Sequence[object]) -> list[Any]:
    """Operands as FX calls operators: numbers where the schema has tensors are tensors that stand for them."""
    return [number_tensor(program, v) if declared.type == "Tensor" and not declared.is_list and isinstance(v, bool | int | float) else v
            for declared, v in zip(schema.arguments, values, strict=False)] + list(values[len(schema.arguments):])
