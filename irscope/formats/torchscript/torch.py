"""Tensor algebra with torch's rules: promotion of element types, default types, negative dimensions."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.formats.torchscript.abstract import Scalar
from irscope.graph import Builder, DType, Node
from irscope.graph.dtypes import BF16, C64, C128, DTYPES, F16, F32, F64, PRED, S8, S16, S32, S64, U8
from irscope.ops.faults import TypeFault
from irscope.ops.tensors import Tensors
from irscope.source import UserError

SCALAR_TYPES: dict[int, DType] = {
    0: U8, 1: S8, 2: S16, 3: S32, 4: S64, 5: F16, 6: F32, 7: F64, 8: C64, 9: C64, 10: C128, 11: PRED, 12: S8, 13: U8, 14: S32, 15: BF16,
    23: DTYPES["f8e5m2"], 24: DTYPES["f8e4m3fn"], 27: DTYPES["u16"], 28: DTYPES["u32"], 29: DTYPES["u64"],
}
"""torch's numbers for element types (c10/core/ScalarType.h), as in a text."""

NUMBERS = {dtype.name: number for number, dtype in reversed(SCALAR_TYPES.items())}
END = 9223372036854775807
"""The int that represents the end in a slice."""


class Torch(Tensors):
    """The builder that operators use. Operands are nodes; numbers are weak 0-dimensional tensors (see :meth:`promote`)."""

    def __init__(self, builder: Builder) -> None:
        super().__init__(builder)
        self.numbers: set[Node] = set()
        """Constants that represent Python numbers: a trace writes them as 0-dimensional tensors."""
        self.quantized: dict[Node, tuple[Node, Node, DType]] = {}
        """Scale, zero point and element type of what was quantised per tensor."""

    # ------------------------------------------------------------------ element types

    def dtype_number(self, number: int | None, default: DType) -> DType:
        """The element type that an int of the text means; ``default`` for None. Raises UserError for one that irscope does not have."""
        if number is None:
            return default
        if number not in SCALAR_TYPES:
            raise UserError(f"element type number {number} of torch is not supported", "convert the model to float32 or int64")
        return SCALAR_TYPES[number]

    def result_type(self, *values: Any) -> DType:
        """torch.result_type: tensors with dimensions, then 0-dimensional ones, then numbers; a later class matters only by its kind."""
        classes: list[DType | None] = [None, None, None]
        for value in values:
            if value is None:
                continue
            if isinstance(value, Node) and value in self.numbers:
                dtype = self.dtype(value)
                place, dtype = 2, F32 if dtype.is_float else dtype
            elif isinstance(value, Node):
                place, dtype = (0 if self.rank(value) else 1), self.dtype(value)
            elif isinstance(value, Scalar):
                place, dtype = 2, {"int": S64, "float": F32, "bool": PRED}.get(value.kind, C64)
            else:
                place, dtype = 2, _number_type(value)
            before = classes[place]
            classes[place] = dtype if before is None else promote_types(before, dtype)
        result = classes[0]
        for lower in classes[1:]:
            result = _combine(result, lower)
        return result or F32

    def promote(self, *values: object, to: DType | None = None) -> list[Node]:
        """The values as tensors of their common type (or of ``to``)."""
        dtype = to or self.result_type(*values)
        return [self.as_tensor(value, dtype) for value in values]

    def promote_floating(self, *values: object) -> list[Node]:
        """The values in their common type, or in float32 where that is not a floating type (never through a narrow integer)."""
        dtype = self.result_type(*values)
        return self.promote(*values, to=dtype if dtype.is_float or dtype.is_complex else F32)

    def as_tensor(self, value: object, dtype: DType | None = None) -> Node:
        """A node for a tensor or a number."""
        if isinstance(value, Scalar):
            value = value.node
        if isinstance(value, Node):
            return self.convert(value, dtype) if dtype is not None else value
        return self.array(value, dtype or self.result_type(value))

    def array(self, value: object, dtype: DType) -> Node:
        """A constant from anything that numpy takes, or the node of a number that depends on data."""
        if isinstance(value, Scalar):
            return self.convert(value.node, dtype)
        if isinstance(value, int) and value > END and dtype.is_signed:
            raise TypeFault("an int does not fit into int64, the type of an int of torch")
        if isinstance(value, float) and dtype.is_integer and not -2.0 ** 63 <= value < 2.0 ** 64:  # also NaN
            raise TypeFault(f"{value} does not fit into {dtype.name}")
        if isinstance(value, complex) and value.imag and not dtype.is_complex:
            raise TypeFault(f"{value} is complex, and {dtype.name} is not")
        return super().array(value, dtype)

    def alike(self, *xs: Node | None) -> None:
        """Check that the operands of a product have equal element types, which torch does not promote. Raises TypeFault."""
        found = list(dict.fromkeys(self.dtype(x) for x in xs if x is not None))
        if len(found) > 1:
            raise TypeFault(f"operands have different element types: {' and '.join(d.name for d in found)}")

    def floating(self, x: Node) -> Node:
        """``x``, integers and bools as float32."""
        dtype = self.dtype(x)
        return x if dtype.is_float or dtype.is_complex else self.convert(x, F32)

    def size_from_data(self, node: Node) -> int:
        """The value of an integer scalar that determines a size. A graph of fixed shapes has none."""
        raise TypeFault("the size of the result depends on data: give the inputs (--inputs), for which it is then compiled; "
                         "torch.where with three operands or a mask keeps the size")

    # ------------------------------------------------------------------ dimensions

    def dim(self, x: Node | int, dimension: int, extra: int = 0) -> int:
        """A dimension counted from the front. ``x`` is the tensor or its rank; ``extra`` counts dimensions to be added."""
        rank = (x if isinstance(x, int) else self.rank(x)) + extra
        limit = max(rank, 1)
        if not -limit <= dimension < limit:
            raise TypeFault(f"dimension {dimension} is out of range for {rank} dimensions")
        return dimension % limit

    def dims(self, x: Node, dimensions: Sequence[int] | int | None) -> list[int]:
        """Dimensions counted from the front; None or an empty list means all."""
        if dimensions is None or (not isinstance(dimensions, int) and not dimensions):
            return list(range(self.rank(x)))
        given = [self.dim(x, d) for d in ([dimensions] if isinstance(dimensions, int) else dimensions)]
        return given if self.rank(x) else []

    def unsqueeze(self, x: Node, dimension: int) -> Node:
        shape = list(self.shape(x))
        shape.insert(self.dim(x, dimension, 1), 1)
        return self.reshape(x, tuple(shape))

    def swap(self, x: Node, a: int, b: int) -> Node:
        """``x`` with two dimensions exchanged."""
        a, b = self.dim(x, a), self.dim(x, b)
        if self.rank(x) == 0:
            return x
        order = list(range(self.rank(x)))
        order[a], order[b] = order[b], order[a]
        return self.transpose(x, order)


def promote_types(a: DType, b: DType) -> DType:
    """torch.promote_types."""
    if a is b:
        return a
    if a.is_complex or b.is_complex:
        other = b if a.is_complex else a
        both = a.is_complex and b.is_complex
        return C128 if C128 in (a, b) or (not both and other is F64) else C64
    if a.is_float and b.is_float:
        if a.bits == b.bits:
            return F32 if a.bits == 16 else a
        return a if a.bits > b.bits else b
    if a.is_float or b.is_float:
        return a if a.is_float else b
    if a is PRED or b is PRED:
        return b if a is PRED else a
    if a.kind == b.kind:
        return a if a.bits >= b.bits else b
    signed, unsigned = (a, b) if a.kind == "int" else (b, a)
    if signed.bits > unsigned.bits:
        return signed
    return {8: S16, 16: S32, 32: S64}.get(unsigned.bits, S64)


def _number_type(value: complex) -> DType:
    """The element type that a Python number stands for."""
    if isinstance(value, bool):
        return PRED
    return S64 if isinstance(value, int) else F32 if isinstance(value, float) else C64


def _combine(higher: DType | None, lower: DType | None) -> DType | None:
    """torch's combine_categories: the lower class only raises the kind."""
    if higher is None or lower is None:
        return higher or lower
    if higher.is_complex:
        return higher
    if higher.is_float:
        return (C128 if higher is F64 else C64) if lower.is_complex else higher
    if higher is PRED or lower.is_float or lower.is_complex:
        return promote_types(higher, lower)
    return higher
