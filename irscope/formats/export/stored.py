"""The weights, buffers and constants of an archive: raw bytes in entries of their own, read where they lie.

    data/weights/model_weights_config.json     {"config": {"l.weight": {"path_name": "weight_0", "use_pickle": false, "tensor_meta": ...}}}
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from irscope.formats.export.archive import CONSTANTS, WEIGHTS, Archive
from irscope.formats.export.arguments import tensor_meta
from irscope.formats.export.records import BadRecord, Record, parse
from irscope.formats.export.signature import STATE, Signature
from irscope.formats.torchscript.strides import Strided
from irscope.graph import without_array
from irscope.lazy import Array, np
from irscope.source.budget import require

ALIGNED = 64
"""In bytes: what compiled code loads at once."""
INDICES = {WEIGHTS: "weights_config.json", CONSTANTS: "constants_config.json"}
"""How the name of the index of a folder ends, after that of the program."""


class StoredValues(Mapping[str, Array]):
    """The arrays of an archive by the names of the inputs that they are; each is read at its first use.

    Looking one up raises UserError where the archive lacks it, its bytes do not fit its type, or it is a pickle.
    """

    def __init__(self, archive: Archive, signature: Signature) -> None:
        self._archive = archive
        self._paths = {port.name: port for port in signature.inputs if port.kind in STATE}
        self._indices: dict[str, Record | None] = {}
        self._arrays: dict[str, Array] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __contains__(self, name: object) -> bool:
        return name in self._paths

    def __getitem__(self, name: str) -> Array:
        port = self._paths[name]
        found = self._arrays.get(port.target)
        if found is None:
            folders = (CONSTANTS, WEIGHTS) if port.kind == "CONSTANT_TENSOR" or not port.persistent else (WEIGHTS, CONSTANTS)
            found = self._arrays[port.target] = self._read(port.target, folders)
        return found

    def _index_name(self, folder: str) -> str:
        return f"{folder}{self._archive.program}_{INDICES[folder]}"

    def _index(self, folder: str) -> Record | None:
        """The index of a folder; None where the archive has none."""
        if folder not in self._indices:
            name = self._index_name(folder)
            self._indices[folder] = parse(self._archive.text(name), name).record("config") if name in self._archive.entries else None
        return self._indices[folder]

    def _read(self, path: str, folders: tuple[str, ...]) -> Array:
        try:
            for folder in folders:
                index = self._index(folder)
                if index is not None and index.has(path):
                    return self._array(folder, index.record(path), path)
        except BadRecord as error:
            raise self._archive.fault(str(error)) from None
        missing = [self._index_name(folder) for folder in folders if self._index(folder) is None]
        raise self._archive.fault(f"the archive has no value of {path!r}" + (f": {missing[0]} is missing" if missing else ""),
                                  "give it by --weights under its placeholder name")

    def _array(self, folder: str, record: Record, path: str) -> Array:
        name = folder + record.text("path_name")
        if record.flag("use_pickle"):
            raise self._archive.fault(f"{path!r} ({name}) is stored as a pickle, which irscope does not open because that runs code",
                                      "irscope opens no pickle: save the program with plain tensors, or give the value by --weights")
        meta = record.record("tensor_meta")
        type = tensor_meta(meta)
        offset = meta.record("storage_offset").number("as_int") if meta.has("storage_offset") else 0
        if not type.is_static or (type.strides is None and type.rank):
            raise self._archive.fault(f"{path!r} ({name}) has a size or stride that is no number: {type}")
        if why := without_array(type):
            raise self._archive.fault(f"{path!r} ({name}) is {type}, which {why}")
        shape, strides = type.dims(), type.strides or ()
        data, dtype = self._archive.stored(name), type.dtype.numpy()
        last = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1 if prod(shape) else 0
        if len(data) < last * dtype.itemsize or offset < 0:
            raise self._archive.fault(f"{name} has {len(data):,} bytes, too short for {path!r}: {type} reaches to byte "
                                      f"{last * dtype.itemsize:,}")
        return self._placed(data, dtype, Strided(shape, strides, offset))

    def _placed(self, data: memoryview, dtype: np.dtype[Any], layout: Strided) -> Array:
        """The array over the bytes of a storage, which other tensors may share; a copy where it is not as compiled code needs it."""
        if not layout.elements:
            return np.empty(layout.sizes, dtype)
        flat = np.frombuffer(data, dtype, len(data) // dtype.itemsize)
        strides = [stride * dtype.itemsize for stride in layout.strides]
        found = np.lib.stride_tricks.as_strided(flat[layout.offset:], layout.sizes, strides, writeable=False)
        if not found.flags.c_contiguous or found.ctypes.data % ALIGNED:
            require(found.nbytes, self._archive.name)
            found = np.array(found, order="C")
        return found
