"""The one door to the package ``onnx``: parsing, shape inference and the bodies of function operators (docs/why/onnx.md)."""
from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from irscope.formats.onnx.isolation import Failed, in_child
from irscope.source import UserError

INSTALL = "pip install 'irscope[onnx]'"
Proto = Any
"""A message of onnx.proto. The package has no types for them."""


def required(name: str) -> None:
    """Raise UserError with the line that installs the package where it is missing. ``name`` is the file that needs it."""
    if find_spec("onnx") is None:
        raise UserError(f"{name} is an ONNX model: reading it takes the package onnx, which is not installed", INSTALL)


def parsed(data: bytes, name: str) -> Proto:
    """The model of a file. Raises UserError where the bytes are no model, or end too soon."""
    required(name)
    model = import_module("onnx").ModelProto()
    try:
        model.ParseFromString(data)
    except import_module("google.protobuf.message").DecodeError:
        raise UserError(f"{name}: the ONNX model cannot be decoded: its protobuf message is cut off, damaged, or nested too deep",
                        "copy or export the model again; git-lfs pull fetches a file that is only a pointer") from None
    return model


def with_types(model: Proto) -> tuple[Proto, str]:
    """The model with the types that ONNX's shape inference finds, and why it found none (empty where it did)."""
    onnx = import_module("onnx")
    inference = import_module("onnx.shape_inference")
    _build_schemas()
    try:
        data = in_child(lambda: inference.infer_shapes(model, data_prop=True).SerializeToString(), model.ByteSize())
    except Failed as fault:
        return model, str(fault)
    made = onnx.ModelProto()
    made.ParseFromString(data)
    return made, ""


@lru_cache(1)
def _build_schemas() -> None:
    """Have onnx build its table of operators in this process: each child that is forked before does so for itself, in 10 ms."""
    import_module("onnx.defs").has("Identity")


@lru_cache(4096)
def body_of(name: str, version: int, node: bytes, types: tuple[bytes, ...]) -> Proto | None:
    """The function that defines an operator of the standard in terms of others, for operands of these types; None: it has none."""
    defs = import_module("onnx.defs")
    if not defs.has(name, max_inclusive_version=version):
        return None
    schema = defs.get_schema(name, max_inclusive_version=version)
    made = import_module("onnx").FunctionProto()
    if schema.has_function:
        made.CopyFrom(schema.function_body)
        return made
    if not schema.has_context_dependent_function:
        return None
    try:
        made.ParseFromString(in_child(lambda: schema.get_context_dependent_function(node, list(types))))
    except Failed:
        return None
    return made


def node_bytes(name: str, operands: list[str], results: list[str], attributes: dict[str, Any]) -> bytes:
    """A node as a message."""
    data: bytes = import_module("onnx.helper").make_node(name, operands, results, **attributes).SerializeToString()
    return data


def type_bytes(number: int, shape: tuple[int, ...]) -> bytes:
    """The type of a tensor as a message; ``number`` is that of the element type."""
    data: bytes = import_module("onnx.helper").make_tensor_type_proto(number, shape).SerializeToString()
    return data
