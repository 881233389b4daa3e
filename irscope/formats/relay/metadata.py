"""The table of constants behind a Relay text: JSON with arrays in base64."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

from irscope.graph import DTYPES, DType, TensorType
from irscope.ops.attrs import Literal

MAGIC = 0xDD5E40F096B4A13F
KINDS = {0: "s", 1: "u", 2: "f", 4: "bf"}
"""DLPack's codes of element types."""


def constants_of(text: str) -> dict[str, Literal]:
    """``meta[relay.Constant][i]``: its value; empty when the table is none that is understood."""
    begin = text.find("{")
    if begin < 0:
        return {}
    try:
        table: dict[str, Any] = json.JSONDecoder().raw_decode(text[begin:])[0]
        arrays = [decode(base64.b64decode(word)) for word in table.get("b64ndarrays", [])]
        nodes = table["nodes"]
        root = nodes[table["root"]]
        found: dict[str, Literal] = {}
        for key, at in zip(root.get("keys", []), root.get("data", []), strict=False):
            for number, item in enumerate(nodes[at].get("data", [])):
                data = nodes[item].get("attrs", {}).get("data")
                if key.endswith("Constant") and data is not None and int(data) < len(arrays):
                    found[f"meta[{key}][{number}]"] = arrays[int(data)]
    except (ValueError, KeyError, IndexError, TypeError, struct.error):
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

    def parse(literal: Literal) -> Any:
        import numpy as np

        return np.frombuffer(data, dtype.numpy()).reshape(shape)

    return Literal(type, None, False, parse)
