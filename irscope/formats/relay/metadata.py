"""The table of constants after a Relay text: JSON with arrays in base64."""

from __future__ import annotations

import base64
import json
import re
import struct
from typing import Any

from irscope.graph import DTYPES, DType, Module, TensorType, Type
from irscope.lazy import np
from irscope.ops.attrs import Literal
from irscope.source.data_text import first_json_value, whole_number

MAGIC = 0xDD5E40F096B4A13F
KINDS = {0: "s", 1: "u", 2: "f", 4: "bf"}
"""DLPack's codes of element types."""
CODES = {f"{word}{bits}": (code, bits) for code, word in KINDS.items() for bits in (8, 16, 32, 64)} | {"pred": (1, 1)}
REFERENCE = re.compile(r"meta\[(.+)\]\[(\d{1,18})\]$")
KEY = "relay.Constant"


class ConstantTable:
    """The constants that a printed text refers to by ``meta[relay.Constant][i]``. Existing references of the graph keep their number."""

    def __init__(self, module: Module) -> None:
        self._arrays: dict[str, dict[int, Literal]] = {}
        self._places: dict[int, str] = {}
        self._next = 0
        for graph in module.graphs.values():
            for node in graph.nodes:
                found = REFERENCE.match(str(node.attrs.get("meta", ""))) if node.op.name == "constant" else None
                if found is not None:
                    self._next = max(self._next, int(found[2]) + 1)
                    if not node.attrs["literal"].elided and encodable(node.attrs["literal"].type):
                        self._arrays.setdefault(found[1], {})[int(found[2])] = node.attrs["literal"]

    def reference(self, literal: Literal) -> str:
        """The reference to a constant; a literal that is used twice is stored once."""
        if id(literal) not in self._places:
            self._arrays.setdefault(KEY, {})[self._next] = literal
            self._places[id(literal)] = f"meta[{KEY}][{self._next}]"
            self._next += 1
        return self._places[id(literal)]

    def text(self) -> str:
        """The section after the functions; empty when nothing refers to it."""
        if not self._arrays:
            return ""
        nodes: list[dict[str, Any]] = [{"type_key": ""}, {"type_key": "Map", "keys": list(self._arrays), "data": []}]
        arrays: list[str] = []
        for key, literals in self._arrays.items():
            items: list[int] = []
            nodes[1]["data"].append(len(nodes))
            nodes.append({"type_key": "Array", "data": items})
            for number in range(max(literals) + 1):
                if number in literals:
                    items.append(len(nodes))
                    nodes.append({"type_key": key, "attrs": {"data": str(len(arrays))}})
                    arrays.append(base64.b64encode(encode(literals[number])).decode())
                else:
                    items.append(0)
        rows = ",\n".join("    " + json.dumps(node) for node in nodes)
        data = ",\n".join("    " + json.dumps(array) for array in arrays)
        return f'#[metadata]\n{{\n  "root": 1,\n  "nodes": [\n{rows}\n  ],\n  "b64ndarrays": [\n{data}\n  ]\n}}\n'


def encodable(type: Type) -> bool:
    """Whether TVM's tables support arrays of a type."""
    return isinstance(type, TensorType) and type.is_static and type.dtype.name in CODES


def encode(literal: Literal) -> bytes:
    """The inverse of :func:`decode`."""
    type = literal.type
    assert isinstance(type, TensorType)
    code, bits = CODES[type.dtype.name]
    shape = type.dims()
    data: bytes = literal.value().tobytes()
    head = struct.pack("<QQiiiBBH", MAGIC, 0, 1, 0, len(shape), code, bits, 1)
    return head + struct.pack(f"<{len(shape)}q", *shape) + struct.pack("<q", len(data)) + data


def constants_of(text: str) -> dict[str, Literal]:
    """The values of ``meta[relay.Constant][i]``; empty when the table has an unknown form."""
    begin = text.find("{")
    if begin < 0:
        return {}
    try:
        table: dict[str, Any] = first_json_value(text[begin:])
        arrays = [decode(base64.b64decode(word)) for word in table.get("b64ndarrays", [])]
        nodes = table["nodes"]
        root = nodes[table["root"]]
        found: dict[str, Literal] = {}
        for key, at in zip(root.get("keys", []), root.get("data", []), strict=False):
            for number, item in enumerate(nodes[at].get("data", [])):
                data = nodes[item].get("attrs", {}).get("data")
                if key.endswith("Constant") and data is not None and whole_number(data) < len(arrays):
                    found[f"meta[{key}][{number}]"] = arrays[whole_number(data)]
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, struct.error):  # JSON and arrays from outside
        return {}
    return found


def decode(raw: bytes) -> Literal:
    """An array as TVM's NDArray::Save writes it: magic, reserved, device, rank and type, shape, length, data."""
    _, _, _, _, rank, code, bits, _ = struct.unpack_from("<QQiiiBBH", raw)
    at = struct.calcsize("<QQiiiBBH")
    shape = struct.unpack_from(f"<{rank}q", raw, at)
    at += 8 * rank
    (length,) = struct.unpack_from("<q", raw, at)
    data = raw[at + 8 : at + 8 + length]
    dtype: DType = DTYPES["pred" if (code, bits) == (1, 1) else f"{KINDS[code]}{bits}"]
    type = TensorType(dtype, tuple(shape))
    if len(data) != type.elements * dtype.numpy().itemsize:
        raise ValueError(f"{len(data)} bytes are no array {type}")

    def parse(literal: Literal) -> object:
        return np.frombuffer(data, dtype.numpy()).reshape(shape)

    return Literal(type, None, False, parse)
