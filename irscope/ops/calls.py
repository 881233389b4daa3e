"""A custom call that is being expanded: its operands and options, and shorthand for building its expansion."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from irscope.graph import NO_ATTRS, Builder, DType, Node, TensorType, TupleType, Type
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attributes import Constant
from irscope.ops.attrs import Literal
from irscope.ops.building import type_of
from irscope.ops.faults import TypeFault
from irscope.ops.registry import get
from irscope.ops.shapes import fits
from irscope.source.data_text import json_value


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """``node`` is the call as written, ``operands`` its operands in the new graph, ``raw`` the attributes kept as text."""

    builder: Builder
    node: Node
    operands: Sequence[Node]
    raw: Mapping[str, str]

    def options(self) -> dict[str, int]:
        """The whole numbers of an MLIR dictionary: ``{uplo = 76 : ui8}`` is ``{"uplo": 76}``."""
        return {name: int(value) for name, value in re.findall(r"([A-Za-z_]\w*)\s*=\s*(-?\d+)", self.raw.get("backend_config", ""))}

    def config(self) -> dict[str, Any]:
        """The backend's JSON, written literally or as a string; empty when there is none that can be parsed."""
        text = self.raw.get("backend_config", "").strip()
        try:
            found = json_value(text)
            if isinstance(found, str):
                found = json_value(found)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def types(self) -> list[TensorType]:
        """The types of the results."""
        return [t for t in self.node.type.leaves() if isinstance(t, TensorType)]

    def number(self, i: int) -> int | None:
        """The value of operand ``i`` where it is a constant number."""
        operand = self.operands[i] if i < len(self.operands) else None
        if operand is None or operand.op is not hlo.constant or Constant.of(operand).literal.elided:
            return None
        value = np.asarray(Constant.of(operand).literal.value())
        return int(value) if value.size == 1 and value.dtype.kind in "iub" else None

    def add(self, name: str, operands: Sequence[Node], attrs: Mapping[str, object] = NO_ATTRS, type: Type | None = None,
            dialect: str = "hlo") -> Node:
        """Append a node; without a type it is inferred. Raises TypeFault where operands or type do not fit: XLA checks none of a call."""
        op = get(name, dialect)
        if type is not None and op.infer is not None and not fits(type, op.infer(Node(op, name, type, tuple(operands), attrs))):
            raise TypeFault(f"{name} does not give {type}")
        return self.builder.add(op, operands, attrs, type, name=f"{self.node.name}.{name}")

    def constant(self, value: float, t: TensorType) -> Node:
        """A number, everywhere in an array. Raises TypeFault for a fraction of an integer type, and OverflowError for infinity."""
        if t.dtype.is_integer and int(value) != value:
            raise TypeFault(f"{value} is not a number of the type {t.dtype}")
        scalar = TensorType(t.dtype, ())
        one = self.add("constant", (), {"literal": Literal.of(np.asarray(value).astype(t.dtype.numpy()), scalar)}, scalar)
        return one if not t.rank else self.add("broadcast", (one,), {"dimensions": ()}, TensorType(t.dtype, t.shape))

    def element(self, whole: Node, index: int) -> Node:
        """One result of a multi-result operator."""
        assert isinstance(whole.type, TupleType)
        return self.builder.add(get("get-tuple-element"), (whole,), {"index": index}, whole.type.elements[index])

    def convert(self, x: Node, dtype: DType) -> Node:
        """The same values as another element type."""
        t = type_of(x)
        return x if t.dtype is dtype else self.add("convert", (x,), {}, TensorType(dtype, t.shape))

    def result(self, made: Sequence[Node]) -> Node:
        """The value of the call: the computed results, and zeros for the others (workspace, status)."""
        types = self.types()
        if not isinstance(self.node.type, TupleType):
            return made[0]
        rest = [self.constant(0, t) for t in types[len(made):]]
        return self.add("tuple", [*made[:len(types)], *rest])
