"""Values of ONNX tensors: TensorProto to literals, which are decoded when something reads them; data in files beside the model.

A tensor may lie in another file of the model's folder (``external_data``). Such files are mapped into memory, not read. A path that leaves
the folder, by ``..``, as an absolute path or through a link, is refused.
"""
from __future__ import annotations

import os
from dataclasses import dataclass
from math import prod
from typing import Any

from irscope.formats.onnx.package import Proto
from irscope.formats.onnx.types import NUMBERS, STRING
from irscope.graph import UNKNOWN, DType, TensorType, without_array
from irscope.lazy import Array, np
from irscope.ops.attrs import Literal
from irscope.source import UserError
from irscope.source.budget import require
from irscope.source.reads import note_read

EXTERNAL = 1
"""TensorProto.DataLocation."""
LARGE = 4096
"""Tensors from this many bytes on are not passed to shape inference: no shape is that long."""
SMALL = 32
"""Tensors of up to this many bytes are shown in numbers."""
FIELDS = {"f32": "float_data", "c64": "float_data", "f64": "double_data", "c128": "double_data", "s64": "int64_data", "u32": "uint64_data",
          "u64": "uint64_data"}
"""The field that holds the elements of a type where there is no raw data; ``int32_data`` for other types (onnx.proto)."""


@dataclass(slots=True)
class ModelFolder:
    """The folder of a model; empty where it was not read from a file. ``is_used``: a tensor lies in another file of it."""

    path: str
    is_used: bool = False


def literal_of(tensor: Proto, folder: ModelFolder) -> Literal | str:
    """The value of a tensor, or what is wrong with it. ``folder`` is that of the model. The value is decoded on first use.

    Raises UserError on use where the data are missing or in a file that may not be read.
    """
    dtype, shape = NUMBERS.get(tensor.data_type), tuple(int(d) for d in tensor.dims)
    if any(d < 0 for d in shape):
        return f"the tensor {tensor.name!r} has a negative size"
    if tensor.data_type == STRING:
        return _strings(tensor, shape)
    if dtype is None:
        return f"the element type {tensor.data_type} of the tensor {tensor.name!r} is not known"
    type = TensorType(dtype, shape)
    if why := without_array(type):
        return f"the tensor {tensor.name!r} {why}"
    if tensor.data_location == EXTERNAL:
        entries = {str(entry.key): str(entry.value) for entry in tensor.external_data}
        name = str(tensor.name)
        folder.is_used = True
        note_read(os.path.join(folder.path, entries.get("location", "")))
        return Literal(type, None, False, lambda _: _external(entries, name, type, folder.path))
    data = tensor.raw_data if tensor.HasField("raw_data") else None
    field = FIELDS.get(dtype.name, "int32_data")
    have = len(data) if data is not None else len(getattr(tensor, field))
    want = _bytes(type) if data is not None else _entries(type)
    if have != want:
        unit = "bytes" if data is not None else "entries"
        return f"the tensor {tensor.name!r} is {type} and takes {want} {unit}, but has {have}"
    if data is None:
        return Literal(type, None, False, lambda _: _listed(getattr(tensor, field), type))
    if len(data) >= LARGE:
        tensor.ClearField("raw_data")
    return Literal(type, _spelled(data, type), False, lambda _: decoded(data, type))


def _spelled(data: bytes, type: TensorType) -> str | None:
    """A small tensor in numbers; none for others: literals of one text and type count as equal."""
    return str(decoded(data, type).tolist()) if len(data) <= SMALL and type.dtype.bits >= 8 else None


def _strings(tensor: Proto, shape: tuple[int, ...]) -> Literal | str:
    texts = [text.decode("utf-8", "replace") for text in tensor.string_data]
    if len(texts) != prod(shape):
        return f"the tensor {tensor.name!r} has {len(texts)} strings for the shape {list(shape)}"
    return Literal(UNKNOWN, None, False, lambda _: np.array(texts, dtype=object).reshape(shape))


def _bytes(type: TensorType) -> int:
    return (prod(type.dims()) * _packed_bits(type.dtype) + 7) // 8


def _packed_bits(dtype: DType) -> int:
    return dtype.bits if dtype.bits < 8 else 8 * dtype.storage


def _entries(type: TensorType) -> int:
    count = prod(type.dims())
    if type.dtype.is_complex:
        return 2 * count
    per = 8 // type.dtype.bits if type.dtype.bits in (2, 4) else 1
    return -(-count // per)


def decoded(data: bytes | memoryview | Array, type: TensorType) -> Array:
    """The array of little-endian bytes; elements narrower than a byte are packed, the first in the low bits."""
    dtype, shape = type.dtype, type.dims()
    if dtype.bits >= 8:
        return np.frombuffer(data, dtype.numpy()).reshape(shape)
    require(8 * type.bytes, "unpacking a tensor")
    bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
    rows = bits[:prod(shape) * dtype.bits].reshape(-1, dtype.bits)
    return _narrow((rows << np.arange(dtype.bits, dtype=np.uint8)).sum(1, dtype=np.uint8), dtype).reshape(shape)


def _narrow(patterns: Array, dtype: DType) -> Array:
    """Bit patterns in bytes as elements of a type of less than 8 bits."""
    if dtype.is_float:
        return patterns.view(dtype.numpy())
    values = patterns.astype(np.int8)
    if dtype.kind == "int":
        values = np.where(values >= 1 << (dtype.bits - 1), values - (1 << dtype.bits), values)
    return values.astype(dtype.numpy())


def _listed(values: Any, type: TensorType) -> Array:
    """The array of a field of numbers."""
    dtype, shape = type.dtype, type.dims()
    if dtype.is_complex:
        return np.array(values, np.float32 if dtype.bits == 64 else np.float64).view(dtype.numpy()).reshape(shape)
    if dtype.bits in (2, 4):
        return decoded(np.array(values, np.int64).astype(np.uint8).tobytes(), type)
    if dtype.is_float and dtype.bits < 32:
        patterns = np.array(values, np.int64).astype(np.uint16 if dtype.bits == 16 else np.uint8)
        return (_narrow(np.bitwise_and(patterns, 63), dtype) if dtype.bits == 6 else patterns.view(dtype.numpy())).reshape(shape)
    return np.array(values).astype(dtype.numpy()).reshape(shape)


# ---------------------------------------------------------------------- data in other files


def _external(entries: dict[str, str], name: str, type: TensorType, folder: str) -> Array:
    """The array of external data, mapped into memory."""
    path = _inside(entries.get("location", ""), name, folder)
    offset, length = (_number(entries.get(key, "0"), key, name) for key in ("offset", "length"))
    want = _bytes(type)
    if "length" in entries and length != want:
        raise UserError(f"the external data of {name} are {length} bytes, but {type} takes {want}", "export the model again")
    try:
        size = os.path.getsize(path)
        if offset + want > size:
            raise UserError(f"the external data of {name} end at byte {offset + want}, but {path} has {size} bytes",
                            "the file is cut off, or belongs to another model: copy it again")
        if not want:
            return np.zeros(type.dims(), type.dtype.numpy())
        return decoded(np.memmap(path, np.uint8, "r", offset, (want,)), type)
    except FileNotFoundError:
        raise UserError(f"the external data of {name} are in {path}, which does not exist",
                        f"put {os.path.basename(path)} beside the model: external data are read from there") from None
    except OSError as error:
        raise UserError(f"the external data of {name}: {path} cannot be read: {error.strerror}") from None


def _inside(location: str, name: str, folder: str) -> str:
    """The path of a data file. Raises UserError where it is not inside the model's folder."""
    if not folder:
        raise UserError(f"the external data of {name} are in {location!r}, but the model was not read from a file",
                        "give the path of the model: its data lie beside it")
    parts = location.replace("\\", "/").split("/")
    path = os.path.join(folder, *parts)
    if not location or "\0" in location or os.path.isabs(location) or ".." in parts or ":" in parts[0] or not _below(path, folder):
        raise UserError(f"the external data of {name} are in {location!r}: the path leads outside the folder of the model",
                        "external data are read from the folder of the model alone: move the file there and export again")
    return path


def _below(path: str, folder: str) -> bool:
    """Whether a path stays in a folder when links are followed."""
    root = os.path.realpath(folder)
    return os.path.commonpath([root, os.path.realpath(path)]) == root


def _number(text: str, key: str, name: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise UserError(f"the external data of {name} state {key} {text!r}, which is not a number of bytes")
    return int(text)
