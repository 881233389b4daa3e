"""Recognises an ONNX model by the outermost fields of its protobuf message; the package ``onnx`` is not needed for that."""
from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
FIELDS = {1: VARINT, 2: BYTES, 3: BYTES, 4: BYTES, 5: VARINT, 6: BYTES, 7: BYTES, 8: BYTES, 14: BYTES, 20: BYTES, 25: BYTES, 26: BYTES}
"""The fields of ModelProto and their wire types (onnx.proto): ir_version, producer name and version, domain, model_version, doc_string,
graph, opset_import, metadata_props, training_info, functions, configuration."""
IR_VERSION, GRAPH, OPSETS = 1, 7, 8
MAX_FIELDS = 10_000
"""More functions and properties than any model has; the rest is not looked at."""


def sniff_bytes(data: bytes) -> float:
    """The confidence that bytes are an ONNX model. A file whose end is missing still counts."""
    seen: set[int] = set()
    for number, wire in fields(data):
        if FIELDS.get(number) != wire:
            return 0.0
        seen.add(number)
        if IR_VERSION in seen and GRAPH in seen:
            return 0.9
    return 0.8 if {IR_VERSION, OPSETS} <= seen or {GRAPH, OPSETS} <= seen else 0.0


def fields(data: bytes) -> Iterator[tuple[int, int]]:
    """Number and wire type of each outermost field of a message, up to the first byte that fits no field."""
    at = 0
    for _ in range(MAX_FIELDS):
        tag, at = _varint(data, at)
        if tag < 0:
            return
        wire = tag & 7
        yield tag >> 3, wire
        if wire == VARINT:
            _, at = _varint(data, at)
        elif wire == BYTES:
            size, at = _varint(data, at)
            at += size
        elif wire in (FIXED64, FIXED32):
            at += 8 if wire == FIXED64 else 4
        else:
            return


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A variable-length integer and the place after it; -1 where the data ends in it or it is too long."""
    value = 0
    for k in range(10):
        if at + k >= len(data):
            break
        value |= (data[at + k] & 127) << (7 * k)
        if data[at + k] < 128:
            return value, at + k + 1
    return -1, len(data)
