"""Attributes of ONNX nodes: numbers, texts, tensors, references to the attributes of a function."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from irscope.formats.onnx.package import Proto
from irscope.formats.onnx.tensors import ModelFolder, literal_of
from irscope.graph.attributes import Attributes, attribute
from irscope.ops.attrs import Literal

FIELDS = {1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings", 9: "tensors", 10: "graphs", 11: "sparse_tensor",
          12: "sparse_tensors", 13: "tp", 14: "type_protos"}
"""AttributeProto.AttributeType, and the field that holds a value of it (onnx.proto)."""
GRAPHS = ("g", "graphs")


@dataclass(frozen=True, slots=True)
class Ref:
    """The value of an attribute of the function around a node."""

    name: str

    def __str__(self) -> str:
        return f"@{self.name}"


@dataclass(frozen=True, slots=True)
class Sparse:
    """A sparse tensor: values at indices, linear ones or one row each, in a dense shape."""

    values: Literal
    indices: Literal
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"sparse{list(self.shape)}"


class Model(Attributes):
    """What a model says of itself. ``opsets`` are the versions of the operators by domain."""

    __slots__ = ()
    opsets = attribute[Mapping[str, int]](MappingProxyType({"": 1}))
    ir_version = attribute[int](0)
    producer = attribute[str]("")


def value_of(proto: Proto, folder: ModelFolder) -> Any:
    """The value of an attribute that is no graph; None where it has a type that is not read. Raises ValueError for a damaged tensor."""
    if proto.ref_attr_name:
        return Ref(str(proto.ref_attr_name))
    field = FIELDS.get(proto.type) or _set_field(proto)
    match field:
        case "f" | "i":
            return getattr(proto, field)
        case "s":
            return proto.s.decode("utf-8", "replace")
        case "floats" | "ints":
            return list(getattr(proto, field))
        case "strings":
            return [text.decode("utf-8", "replace") for text in proto.strings]
        case "t":
            return _tensor(proto.t, folder)
        case "sparse_tensor":
            sparse = proto.sparse_tensor
            return Sparse(_tensor(sparse.values, folder), _tensor(sparse.indices, folder), tuple(int(d) for d in sparse.dims))
    return None


def _set_field(proto: Proto) -> str:
    """The field of an attribute of a model so old that it states no type."""
    return next((name for name in FIELDS.values() if name in {f.name for f, _ in proto.ListFields()}), "")


def _tensor(proto: Proto, folder: ModelFolder) -> Literal:
    made = literal_of(proto, folder)
    if isinstance(made, str):
        raise ValueError(made)
    return made
