"""Files of named arrays: ``.npz``, ``.safetensors`` and torch's ``.pt``, read with errors in the user's terms."""
from __future__ import annotations

import io
import os
import stat
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from tokenize import TokenError
from typing import Any, BinaryIO

from irscope.lazy import Array, ml_dtypes, np
from irscope.source.budget import require
from irscope.source.checkpoints import is_checkpoint, read_checkpoint
from irscope.source.data_text import json_value
from irscope.source.errors import UserError
from irscope.source.reads import note_read
from irscope.source.writing import is_written_through, writing
from irscope.source.zips import damaged

MAKE_NPZ = "np.savez('inputs.npz', arg0=x, arg1=y) writes one"
_SAFETENSORS = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "I32": "int32", "U32": "uint32", "I64": "int64",
    "U64": "uint64", "F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16", "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
}


def read_arrays(path: str) -> Mapping[str, Array]:
    """The arrays of a file by name; those of an ``.npz`` are unpacked on access.

    A key ``dtypes`` (JSON {name: ml_dtypes name}) re-types unsigned views and is not an array itself. Raises UserError for what is
    not a file of arrays, or a damaged one.
    """
    if not os.path.exists(path):
        raise UserError(f"{path}: there is no such file")
    if os.path.isdir(path):
        raise UserError(f"{path} is a folder, not a file of arrays")
    if stat.S_ISFIFO(os.stat(path).st_mode):
        raise UserError(f"{path} is a pipe: arrays are read at several places of a file", "write them into a file first")
    note_read(path)
    try:
        with open(path, "rb") as file:
            head = file.read(8)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    if is_checkpoint(path):
        return read_checkpoint(path)
    if head[:2] == b"PK":
        return Npz(path)
    if head[:6] == b"\x93NUMPY":
        raise UserError(f"{path} is one array (.npy), not named arrays", MAKE_NPZ)
    if len(head) == 8 and 2 <= struct.unpack("<Q", head)[0] < os.path.getsize(path):
        return _safetensors(path)
    raise UserError(f"{path} is not a file of arrays (.npz, .safetensors or .pt)", MAKE_NPZ)


def write_arrays(path: str, arrays: dict[str, Array], inputs: Collection[str] = ()) -> None:
    """Write an .npz, whole or not at all. Element types that numpy does not have are stored as their bits, in an unsigned type.

    Raises UserError when ``path`` is one of ``inputs``, was read, or cannot be written.
    """
    stored = {name: bits(array) for name, array in arrays.items()}
    with writing(path, inputs) as stream:
        # A regular file has the sizes of its members before their bytes, for readers that look at nothing else.
        np.savez(_Forward(stream) if is_written_through(path) else stream, **stored)  # type: ignore[arg-type]


class _Forward(io.RawIOBase):
    """Writes from front to back: zipfile would ask a device such as /dev/null for its position, which is always 0."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self.stream.write(data)


def bits(array: Array) -> Array:
    """The array, or its bits in an unsigned view where its element type is not numpy's own."""
    array = np.asarray(array)
    if array.dtype.kind in "biufc" and array.dtype.isbuiltin == 1:
        return array
    return array.view(f"u{array.dtype.itemsize}")


class NamedArrays(Mapping[str, Any]):
    """A mapping from ``names`` to arrays. Iteration, length and ``in`` use the names alone, and load no array."""

    names: Collection[str]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names


class Npz(NamedArrays):
    """The arrays of an ``.npz``, each unpacked on access: a small archive may contain a large array that nothing uses."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._arrays: dict[str, Array] = {}
        self._dtypes: dict[str, Any] = {}
        with self._opened() as archive:
            self.names = names = list(archive.files)
        if "dtypes" in names and (dtypes := self._unpacked("dtypes")).dtype.kind in "US":
            names.remove("dtypes")
            self._dtypes = _json(path, str(dtypes))

    def __getitem__(self, name: str) -> Array:
        if name not in self.names:
            raise KeyError(name)
        if name not in self._arrays:
            array = self._unpacked(name)
            self._arrays[name] = _retyped(self.path, name, array, str(self._dtypes[name])) if name in self._dtypes else array
        return self._arrays[name]

    def _unpacked(self, name: str) -> Array:
        with self._opened() as archive:
            # An archive returns at most the size in its directory, and an array of a .npz has at most the bytes of its member.
            require(max((info.file_size for info in archive.zip.infolist() if info.filename in (name, f"{name}.npy")), default=0),
                    f"{self.path}: {name}")
            array: Array = archive[name]
        if not isinstance(array, np.ndarray):  # numpy returns the bytes of a member that is no array
            raise UserError(f"{self.path}: {name} is not an array", MAKE_NPZ)
        return array

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """The archive. Turns its errors into UserErrors in the user's terms."""
        try:
            # numpy leaves a file open whose archive it refuses, so we open and close it.
            with open(self.path, "rb") as file, np.load(file, allow_pickle=False) as archive:
                yield archive
        except RuntimeError as error:  # zipfile raises this for encrypted members and unknown compressions
            raise UserError(f"{self.path} cannot be unpacked: {error}", MAKE_NPZ) from None
        except _damage() as error:
            if "pickle" in str(error):
                raise UserError(f"{self.path} contains Python objects, which irscope does not load",
                                "store plain arrays: " + MAKE_NPZ) from None
            raise UserError(f"{self.path} is not an .npz, or a damaged one: {error}", MAKE_NPZ) from None


def _damage() -> tuple[type[Exception], ...]:
    """What numpy raises for damaged archives, and for headers that no array has."""
    return *damaged(), KeyError, TypeError, TokenError


class Joined(NamedArrays):
    """Arrays of several files as one mapping; of equal names, that of the first file counts. An array is loaded on access."""

    def __init__(self, parts: Sequence[Mapping[str, Array]]) -> None:
        self.names = self._owner = {name: part for part in reversed(parts) for name in part}

    def __getitem__(self, name: str) -> Array:
        return self._owner[name][name]


class Renamed(NamedArrays):
    """Arrays under the names to which ``names`` maps theirs; others keep their name. Raises UserError where two get one name."""

    def __init__(self, arrays: Mapping[str, Array], names: Mapping[str, str]) -> None:
        self._arrays = arrays
        self.names = self._own = dict[str, str]()
        for own in arrays:
            name = names.get(own, own)
            if name in self._own:
                raise UserError(f"{name} is given twice: as {self._own[name]} and as {own}", "give it once")
            self._own[name] = own

    def __getitem__(self, name: str) -> Array:
        found: Array = self._arrays[self._own[name]]
        return found


def _json(path: str, text: str) -> dict[str, Any]:
    try:
        found = json_value(text)
    except ValueError as error:
        raise UserError(f"{path}: the key 'dtypes' is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise UserError(f"{path}: the key 'dtypes' must be a JSON object of name: dtype")
    return found


def _retyped(path: str, name: str, array: Array, dtype: str) -> Array:
    wanted = getattr(ml_dtypes, dtype, None)
    if not isinstance(wanted, type) or not issubclass(wanted, np.generic):  # it has functions and modules, too
        raise UserError(f"{path}: {name} is said to be {dtype}, which ml_dtypes does not have")
    if np.dtype(wanted).itemsize != array.dtype.itemsize:
        raise UserError(f"{path}: {name} is said to be {dtype}, but its elements have {array.dtype.itemsize} bytes")
    typed: Array = np.ascontiguousarray(array).view(wanted)
    return typed.reshape(array.shape)  # numpy makes a vector of a single number


def _safetensors(path: str) -> dict[str, Array]:
    """The format: the length of a JSON header, the header, the data; arrays are mapped, not read."""
    data = np.memmap(path, dtype=np.uint8, mode="r")
    size = struct.unpack("<Q", data[:8].tobytes())[0]
    try:
        header = json_value(data[8:8 + size].tobytes())
        arrays: dict[str, Array] = {}
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            kind = _SAFETENSORS[entry["dtype"]]
            dtype = np.dtype(getattr(ml_dtypes, kind) if kind.startswith(("bf", "float8")) else kind)
            (begin, end), shape = entry["data_offsets"], entry["shape"]
            if not all(type(n) is int and n >= 0 for n in (begin, end, *shape)) or end > data.size - 8 - size:
                raise ValueError(f"{name} has the shape {shape} and the bytes {begin} to {end} of {data.size - 8 - size}")
            require(end - begin, f"{path}: {name}")
            # A copy: tensors may be at any offset in the file, and compiled code needs them aligned.
            arrays[name] = data[8 + size + begin:8 + size + end].copy().view(dtype).reshape(shape)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise UserError(f"{path} is not a .safetensors file, or a damaged one: {error}") from None
    return arrays
