"""Files of arrays for a text: of the inputs that it declares, by name or number, most of them of the right shape and type."""
from __future__ import annotations

import io
import random
import re

import ml_dtypes
import numpy as np

_INPUT = re.compile(r"(%?[\w.\-]+) = (\w+)\[([\d,]*)\][^=\n]* parameter\((\d+)\)|(%\w+): Tensor\[\(([\d, ]*)\), (\w+)\]|(%[\w.]+) : (\w+)\(([\d, ]*)")
_NUMPY = {"pred": "bool", "bool": "bool", "Bool": "bool", "bf16": "bfloat16", "Float": "float32", "Double": "float64", "Half": "float16",
          "Long": "int64", "Int": "int32", "Char": "int8", "Byte": "uint8"}
_NUMBER = re.compile(r"%([\w.]+) : (?:int|float|bool)\??[,)]")
_SEVERAL = re.compile(r"%([\w.]+) : (?:\(|\w*Tensor\??\[\])")
"""A tuple or list of tensors, whose parts are arrays ``name.0``, ``name.1``..."""
NUMBERS: tuple[object, ...] = (0, 1, 3, 2.5, -1, float("nan"), float("inf"), 1j, "x", [1, 2], [])
MOST = 4096
"""Elements of an array; larger ones are left out."""


def arrays(text: str, rng: random.Random) -> bytes:
    """A ``.npz`` file for the inputs of a text."""
    made = {}
    for number, m in enumerate(_INPUT.finditer(text)):
        name, dtype, dims = (m[1], m[2], m[3]) if m[1] else (m[5], m[7], m[6]) if m[5] else (m[8], m[9], m[10])
        shape = tuple(int(d) for d in dims.replace(",", " ").split())
        if rng.random() < 0.05:
            shape = (*shape, 2)
        if int(np.prod(shape, dtype=object)) > MOST or any(d > MOST for d in shape):
            continue
        key = name.lstrip("%") if rng.random() < 0.5 else f"arg{number}"
        made[key] = np.asarray(np.arange(int(np.prod(shape))).reshape(shape) % 7).astype(_dtype(dtype, rng))
    for m in _NUMBER.finditer(text[:MOST]):
        made[m[1]] = np.asarray(rng.choice(NUMBERS))
    for m in _SEVERAL.finditer(text[:MOST]):
        shape = tuple(rng.choice((1, 2, 3)) for _ in range(rng.randrange(3)))
        made |= {f"{m[1]}.{part}": np.ones(shape, _dtype("float32", rng)) for part in range(rng.randrange(3))}
    file = io.BytesIO()
    np.savez(file, **made)  # type: ignore[arg-type]
    return file.getvalue()


def _dtype(name: str, rng: random.Random) -> np.dtype[np.generic]:
    """The element type that a text means, or now and then another."""
    spelled = re.sub(r"^([sucf])(\d+)$", lambda m: {"s": "int", "u": "uint", "c": "complex", "f": "float"}[m[1]] + m[2], _NUMPY.get(name, name))
    if rng.random() < 0.05:
        spelled = rng.choice(("float64", "int8", "U3", "bfloat16", "V2", "complex64"))
    try:
        return np.dtype(getattr(ml_dtypes, spelled) if spelled == "bfloat16" else spelled)
    except TypeError:
        return np.dtype("float32")
