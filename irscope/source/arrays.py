"""Files of named arrays: ``.npz``, ``.safetensors`` and torch's ``.pt``, read with errors in words of the user."""
from __future__ import annotations

import json
import os
import struct
import zipfile
from typing import TYPE_CHECKING, Any

from irscope.source.checkpoints import is_checkpoint, read_checkpoint
from irscope.source.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

MAKE_NPZ = "np.savez('inputs.npz', arg0=x, arg1=y) writes one"
_SAFETENSORS = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "I32": "int32", "U32": "uint32", "I64": "int64",
    "U64": "uint64", "F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16", "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
}


def read_arrays(path: str) -> dict[str, Array]:
    """The arrays of a file by name. A key ``dtypes`` (JSON {name: ml_dtypes name}) re-types unsigned views and is no array itself."""
    if not os.path.exists(path):
        raise UserError(f"{path}: there is no such file")
    if os.path.isdir(path):
        raise UserError(f"{path} is a folder, not a file of arrays")
    with open(path, "rb") as file:
        head = file.read(8)
    if is_checkpoint(path):
        return read_checkpoint(path)
    if head[:2] == b"PK":
        return _npz(path)
    if head[:6] == b"\x93NUMPY":
        raise UserError(f"{path} is one array (.npy), not named arrays", MAKE_NPZ)
    if len(head) == 8 and 2 <= struct.unpack("<Q", head)[0] < os.path.getsize(path):
        return _safetensors(path)
    raise UserError(f"{path} is no file of arrays (.npz, .safetensors or .pt)", MAKE_NPZ)


def write_arrays(path: str, arrays: dict[str, Array]) -> None:
    """Write an .npz. Element types that numpy does not have are stored as their bits, in an unsigned type."""
    import numpy as np
    stored = {name: bits(array) for name, array in arrays.items()}
    try:
        with open(path, "wb") as file:
            np.savez(file, **stored)  # type: ignore[arg-type]
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}") from None


def bits(array: Array) -> Array:
    """The array, or its bits in an unsigned view where its element type is not numpy's own."""
    import numpy as np
    array = np.asarray(array)
    if array.dtype.kind in "biufc" and array.dtype.isbuiltin == 1:
        return array
    return array.view(f"u{array.dtype.itemsize}")


def _npz(path: str) -> dict[str, Array]:
    import numpy as np
    try:
        # numpy leaves a file open whose archive it refuses; this one is closed by us.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        if "pickle" in str(error):
            raise UserError(f"{path} holds Python objects, which irscope does not load", "store plain arrays: " + MAKE_NPZ) from None
        raise UserError(f"{path} is no .npz, or a damaged one: {error}", MAKE_NPZ) from None
    names = arrays.pop("dtypes", None)
    if names is not None and names.dtype.kind in "US":
        for name, dtype in _json(path, str(names)).items():
            if name in arrays:
                arrays[name] = _retyped(path, name, arrays[name], str(dtype))
    elif names is not None:
        arrays["dtypes"] = names
    return arrays


def _json(path: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UserError(f"{path}: the key 'dtypes' is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise UserError(f"{path}: the key 'dtypes' must be a JSON object of name: dtype")
    return found


def _retyped(path: str, name: str, array: Array, dtype: str) -> Array:
    import ml_dtypes
    import numpy as np
    wanted = getattr(ml_dtypes, dtype, None)
    if wanted is None:
        raise UserError(f"{path}: {name} is said to be {dtype}, which ml_dtypes does not have")
    if np.dtype(wanted).itemsize != array.dtype.itemsize:
        raise UserError(f"{path}: {name} is said to be {dtype}, but its elements have {array.dtype.itemsize} bytes")
    return np.ascontiguousarray(array).view(wanted)


def _safetensors(path: str) -> dict[str, Array]:
    """The format: the length of a JSON header, the header, the data; arrays are mapped, not read."""
    import ml_dtypes
    import numpy as np
    data = np.memmap(path, dtype=np.uint8, mode="r")
    size = struct.unpack("<Q", data[:8].tobytes())[0]
    try:
        header = json.loads(data[8:8 + size].tobytes())
        arrays: dict[str, Array] = {}
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            kind = _SAFETENSORS[entry["dtype"]]
            dtype = np.dtype(getattr(ml_dtypes, kind) if kind.startswith(("bf", "float8")) else kind)
            begin, end = entry["data_offsets"]
            # A copy: tensors stand at any offset in the file, and code wants them aligned.
            arrays[name] = data[8 + size + begin:8 + size + end].copy().view(dtype).reshape(entry["shape"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is no .safetensors, or a damaged one: {error}") from None
    return arrays
