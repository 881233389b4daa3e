"""Constants among the arguments of FX's calls: numbers, texts, and torch's element types, layouts, memory formats and devices."""
from __future__ import annotations

from dataclasses import dataclass

DTYPES = {
    "uint8": 0, "int8": 1, "int16": 2, "short": 2, "int32": 3, "int": 3, "int64": 4, "long": 4, "float16": 5, "half": 5, "float32": 6,
    "float": 6, "float64": 7, "double": 7, "complex32": 8, "chalf": 8, "complex64": 9, "cfloat": 9, "complex128": 10, "cdouble": 10,
    "bool": 11, "qint8": 12, "quint8": 13, "qint32": 14, "bfloat16": 15, "float8_e5m2": 23, "float8_e4m3fn": 24,
    "float8_e5m2fnuz": 25, "float8_e4m3fnuz": 26, "uint16": 27, "uint32": 28, "uint64": 29, "float8_e8m0fnu": 44,
}
"""torch's element types by name, as numbers of c10/core/ScalarType.h, which the operators take."""
LAYOUTS = {"strided": 0, "sparse_coo": 1, "sparse_csr": 2, "_mkldnn": 3, "sparse_csc": 4, "sparse_bsr": 5, "sparse_bsc": 6, "jagged": 7}
"""torch's layouts by name, as numbers of c10/core/Layout.h."""
MEMORY_FORMATS = {"contiguous_format": 0, "preserve_format": 1, "channels_last": 2, "channels_last_3d": 3}
"""torch's memory formats by name, as numbers of c10/core/MemoryFormat.h."""


@dataclass(frozen=True, slots=True)
class NamedConstant:
    """A constant that Python does not write as a literal: the number or text that operators take, and its type in a schema."""

    value: int | str
    type: str


def named(name: str) -> NamedConstant | None:
    """The constant ``torch.NAME``; None for a name that is no element type, layout or memory format."""
    for table, type in ((DTYPES, "ScalarType"), (LAYOUTS, "Layout"), (MEMORY_FORMATS, "MemoryFormat")):
        if name in table:
            return NamedConstant(table[name], type)
    return None


def _first(table: dict[str, int]) -> dict[int, str]:
    """The first name of each number."""
    return {number: name for name, number in reversed(table.items())}


NAMES = {"ScalarType": _first(DTYPES) | {2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64"},
         "Layout": _first(LAYOUTS), "MemoryFormat": _first(MEMORY_FORMATS)}
"""torch's name for each number, by the type in a schema."""

EXPORTED = dict(zip(range(1, 14), (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15), strict=True)) | {
    28: 27, 29: 24, 30: 23, 31: 26, 32: 25, 33: 44, 34: 28, 35: 29,
}
"""Element types by their numbers in archives (torch/_export/serde/schema.py), as numbers of c10."""
EXPORTED_LAYOUTS = {1: 1, 2: 2, 3: 4, 4: 5, 5: 6, 6: 3, 7: 0}
EXPORTED_FORMATS = {1: 0, 2: 2, 3: 3, 4: 1}
