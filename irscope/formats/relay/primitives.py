"""Primitives as Relay text: any graph can be printed, and read back as the same graph.

    %2 = hlo.dot(%0, %1, lhs_contracting_dims=[1], rhs_contracting_dims=[0]) /* ty=Tensor[(2, 4), float32] */;
    %3 = hlo.reduce(%2, 0f, dimensions=[1], bodies=[@add]) /* ty=Tensor[(2), float32] */;

Dashes in names are underscores here. Called computations are functions of the module, named by ``bodies``. Constants that are not plain
scalars are ``hlo.constant(value=[...])``, or ``data=`` with the bytes in base64 where they are many or have no plain spelling.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from irscope.formats.relay.cursor import Raw
from irscope.graph import DType, Node, Op, TensorType, Type
from irscope.lazy import np
from irscope.ops import lookup
from irscope.ops.attrs import ConvDims, Literal, Window

DIALECTS = ("hlo", "library")
"""The dialects of primitives; the name of a primitive begins with that of its dialect."""
FEW = 32
"""A constant with no more elements than this is written in numbers."""
LEFT_OUT = frozenset(("number", "control_predecessors", "operand_layout_constraints", "literal"))
PLAIN_SCALARS = frozenset(("pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"))
WINDOW = ("size", "stride", "pad_low", "pad_high", "lhs_dilate", "rhs_dilate", "rhs_reversal")


def spelled(op: Op) -> str:
    """``hlo.reduce_window``."""
    return f"{op.dialect}.{op.name.replace('-', '_')}"


def primitive_named(word: str) -> Op | None:
    """The primitive of a name in the text, or None."""
    dialect, _, name = word.partition(".")
    return lookup(name, dialect) or lookup(name.replace("_", "-"), dialect)


def is_primitive(word: str) -> bool:
    """Whether a name is in the namespace of primitives."""
    return word.partition(".")[0] in DIALECTS


# ---------------------------------------------------------------------- writing


def written(node: Node) -> dict[str, Any]:
    """The attributes of a primitive in Relay's form."""
    if node.op.name == "constant":
        return _constant(node)
    return {key: _plain(value) for key, value in node.attrs.items() if key not in LEFT_OUT}


def _plain(value: object) -> object:
    if isinstance(value, Window):
        return {name: list(getattr(value, name)) for name in WINDOW}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def _constant(node: Node) -> dict[str, object]:
    literal = node.attrs["literal"]
    if literal.elided:
        return {"elided": True}
    array = np.ascontiguousarray(literal.value())
    assert isinstance(node.type, TensorType)
    if array.size <= FEW and node.type.dtype.name in PLAIN_SCALARS and (array.dtype.kind != "f" or bool(np.isfinite(array).all())):
        return {"value": array.tolist()}
    return {"data": base64.b64encode(array.tobytes()).decode()}


# ---------------------------------------------------------------------- reading


def read_attributes(op: Op, attrs: Mapping[str, object], type: Type) -> dict[str, object]:
    """The attributes of a text in the graph's form. Raises ValueError for one that cannot be read."""
    if not isinstance(attrs.get("bodies", ()), list | tuple):
        raise ValueError("bodies is a list of functions")
    if op.name == "constant":
        return {"literal": _literal(attrs, type)}
    return {key: _parsed(key, value) for key, value in attrs.items() if key != "bodies"}


def body_names(attrs: Mapping[str, Any]) -> list[str]:
    """The functions that ``bodies=[@f, @g]`` names."""
    return [str(name)[1:].strip('"') for name in attrs.get("bodies", ()) if isinstance(name, Raw)]


def _parsed(key: str, value: object) -> object:
    if key == "window" and isinstance(value, dict):
        if not all(isinstance(value.get(name), list | tuple) for name in WINDOW):
            raise ValueError(f"a window has the lists {', '.join(WINDOW)}")
        parts = {name: tuple(value[name]) for name in WINDOW}
        return Window(**parts)
    if key == "dim_labels":
        return ConvDims.parse(str(value))
    return _tuples(value)


def _tuples(value: object) -> object:
    return tuple(_tuples(v) for v in value) if isinstance(value, list | tuple) else value


def _literal(attrs: Mapping[str, object], type: Type) -> Literal:
    if not isinstance(type, TensorType) or "elided" in attrs:
        return Literal(type, None, True)
    return Literal(type, None, False, lambda literal: _array(attrs, type.dtype, type.dims()))


def _array(attrs: Mapping[str, Any], dtype: DType, shape: tuple[int, ...]) -> object:
    if "data" in attrs:
        return np.frombuffer(base64.b64decode(attrs["data"]), dtype.numpy()).reshape(shape)
    return np.asarray(attrs["value"], dtype.numpy()).reshape(shape)
