"""Element types: the 36 of HLO, which every other format maps onto."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """An element type. ``kind`` is one of ``pred int uint float complex token opaque``; ``bits`` its logical width.

    ``storage`` is the number of bytes of one element in irscope's buffers: sub-byte types take a whole byte.
    ``numpy_name`` names a type of numpy, or of ml_dtypes where numpy has none.
    Instances are unique, so they compare by identity.
    """

    name: str
    kind: str
    bits: int
    numpy_name: str

    @property
    def storage(self) -> int:
        return max(1, (self.bits + 7) // 8)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def is_complex(self) -> bool:
        return self.kind == "complex"

    @property
    def is_signed(self) -> bool:
        return self.kind in ("int", "float", "complex")

    @property
    def has_negation(self) -> bool:
        """Whether ``-(-x)`` is x: integers wrap; f8e8m0fnu has powers of two alone, whose negatives are NaN."""
        return self.kind != "pred" and self.name != "f8e8m0fnu"

    @property
    def lowest(self) -> float | int | bool:
        """The least value, which a maximum leaves others unchanged with: minus infinity, for floating types that have one."""
        if self.is_float:
            return float("-inf") if self.has_infinity else self._finite("min")
        return False if self.kind == "pred" else -(1 << (self.bits - 1)) if self.kind == "int" else 0

    @property
    def highest(self) -> float | int | bool:
        """The greatest value, which a minimum leaves others unchanged with: infinity, for floating types that have one."""
        if self.is_float:
            return float("inf") if self.has_infinity else self._finite("max")
        return True if self.kind == "pred" else (1 << (self.bits - 1)) - 1 if self.kind == "int" else (1 << self.bits) - 1

    @property
    def has_infinity(self) -> bool:
        """Whether a floating type has infinities; those whose names say ``fn`` are finite."""
        return self.is_float and "fn" not in self.name

    def _finite(self, which: str) -> float:
        import ml_dtypes
        library: Any = ml_dtypes  # its limits have no types
        return float(getattr(library.finfo(self.numpy()), which))

    def numpy(self) -> np.dtype[Any]:
        """The numpy dtype that holds it (imports numpy, and ml_dtypes for what numpy lacks)."""
        import numpy as np
        if self.numpy_name in _NUMPY_OWN:
            return np.dtype(self.numpy_name)
        import ml_dtypes
        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, self.numpy_name))
        return found

    def __repr__(self) -> str:
        return self.name


_NUMPY_OWN = frozenset("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split())

DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        DType("pred", "pred", 8, "bool"),
        DType("s1", "int", 1, "int1"), DType("s2", "int", 2, "int2"), DType("s4", "int", 4, "int4"),
        DType("s8", "int", 8, "int8"), DType("s16", "int", 16, "int16"), DType("s32", "int", 32, "int32"), DType("s64", "int", 64, "int64"),
        DType("u1", "uint", 1, "uint1"), DType("u2", "uint", 2, "uint2"), DType("u4", "uint", 4, "uint4"),
        DType("u8", "uint", 8, "uint8"), DType("u16", "uint", 16, "uint16"),
        DType("u32", "uint", 32, "uint32"), DType("u64", "uint", 64, "uint64"),
        DType("f16", "float", 16, "float16"), DType("bf16", "float", 16, "bfloat16"),
        DType("f32", "float", 32, "float32"), DType("f64", "float", 64, "float64"),
        DType("f8e5m2", "float", 8, "float8_e5m2"), DType("f8e4m3", "float", 8, "float8_e4m3"),
        DType("f8e4m3fn", "float", 8, "float8_e4m3fn"),
        DType("f8e4m3b11fnuz", "float", 8, "float8_e4m3b11fnuz"), DType("f8e3m4", "float", 8, "float8_e3m4"),
        DType("f8e5m2fnuz", "float", 8, "float8_e5m2fnuz"), DType("f8e4m3fnuz", "float", 8, "float8_e4m3fnuz"),
        DType("f8e8m0fnu", "float", 8, "float8_e8m0fnu"),
        DType("f4e2m1fn", "float", 4, "float4_e2m1fn"), DType("f6e3m2fn", "float", 6, "float6_e3m2fn"),
        DType("f6e2m3fn", "float", 6, "float6_e2m3fn"),
        DType("c64", "complex", 64, "complex64"), DType("c128", "complex", 128, "complex128"),
        DType("token", "token", 0, ""), DType("opaque", "opaque", 0, ""), DType("buffer", "opaque", 0, ""), DType("tuple", "opaque", 0, ""),
    )
}

PRED, S8, S16, S32, S64 = (DTYPES[n] for n in ("pred", "s8", "s16", "s32", "s64"))
U8, U16, U32, U64 = (DTYPES[n] for n in ("u8", "u16", "u32", "u64"))
F16, BF16, F32, F64, C64, C128 = (DTYPES[n] for n in ("f16", "bf16", "f32", "f64", "c64", "c128"))


def dtype_of(numpy_dtype: Any) -> DType:
    """The element type of a numpy (or ml_dtypes) dtype. Raises KeyError for one that HLO does not have."""
    import numpy as np
    name = np.dtype(numpy_dtype).name
    for dtype in DTYPES.values():
        if dtype.numpy_name == name:
            return dtype
    raise KeyError(name)
