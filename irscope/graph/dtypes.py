"""Element types: the 36 of HLO, which every other format maps onto."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from irscope.lazy import ml_dtypes, np


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """An element type. ``kind`` is one of ``pred int uint float complex token opaque``; ``bits`` its logical width.

    ``storage`` is the number of bytes of one element in irscope's buffers: sub-byte types take a whole byte.
    ``numpy_name`` names a type of numpy, or of ml_dtypes where numpy has none.
    Of a float, and of the parts of a complex number: ``significand`` and ``exponent`` are the bits of both, the leading bit of the
    significand included, which is not stored; ``largest`` is the greatest finite value, ``min_exponent`` the exponent of the least
    normal one (IEEE 754-2019, 3.4; OCP 8-bit floating point 1.0; OCP microscaling formats 1.0; bfloat16 as in Intel's white paper).
    0 for other types.
    Instances are unique, so they compare by identity.
    """

    name: str
    kind: str
    bits: int
    numpy_name: str
    significand: int = 0
    exponent: int = 0
    min_exponent: int = 0
    largest: float = 0.0

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
        """The least value, the identity of a maximum: minus infinity, for floating types that have one."""
        if self.is_float:
            return float("-inf") if self.has_infinity else -self.largest if self.has_negation else 2.0 ** self.min_exponent
        return False if self.kind == "pred" else -(1 << (self.bits - 1)) if self.kind == "int" else 0

    @property
    def highest(self) -> float | int | bool:
        """The greatest value, the identity of a minimum: infinity, for floating types that have one."""
        if self.is_float:
            return float("inf") if self.has_infinity else self.largest
        return True if self.kind == "pred" else (1 << (self.bits - 1)) - 1 if self.kind == "int" else (1 << self.bits) - 1

    @property
    def has_infinity(self) -> bool:
        """Whether a floating type has infinities; those whose names say ``fn`` are finite."""
        return self.is_float and "fn" not in self.name

    @property
    def fraction(self) -> int:
        """The stored bits of a float's significand; 0 of other types."""
        return max(0, self.significand - 1)

    @property
    def has_nan(self) -> bool:
        """Whether a floating type has NaN; the four- and six-bit types have none."""
        return self.is_float and self.bits > 6

    @property
    def has_negative_zero(self) -> bool:
        """Whether a floating type distinguishes -0 from 0; those whose names say ``uz`` or ``nu`` do not."""
        return self.is_float and not self.name.endswith(("uz", "nu"))

    def holds(self, other: DType) -> bool:
        """Whether every value of ``other`` is a value of this type, infinities and NaN among them, also where denormal floats count as
        zeros (XLA's ``CastPreservesValues``).
        """
        if self is other:
            return True
        if self.kind == "complex":
            part = other if other.kind != "complex" else F32 if other is C64 else F64
            return (F32 if self is C64 else F64).holds(part)
        if other.kind == "pred":
            return self.name not in ("s1", "f8e8m0fnu") and (self.is_integer or self.is_float)
        if other.is_integer:
            magnitude = other.bits - (other.kind == "int")
            if self.is_float:
                return magnitude <= self.significand and max(-other.lowest, other.highest) <= self.largest and self.has_negation
            return self.is_integer and magnitude <= self.bits - (self.kind == "int") and (self.kind == "int" or other.kind == "uint")
        return self.is_float and other.is_float and other.significand <= self.significand \
            and other.min_exponent >= self.min_exponent and other.largest <= self.largest \
            and (self.has_infinity or not other.has_infinity) and (self.has_nan or not other.has_nan) \
            and (self.has_negative_zero or not other.has_negative_zero)

    def numpy(self) -> np.dtype[Any]:
        """The numpy dtype of its arrays (imports numpy, and ml_dtypes for what numpy lacks)."""
        if self.numpy_name in _NUMPY_OWN:
            return np.dtype(self.numpy_name)
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
        DType("f16", "float", 16, "float16", 11, 5, -14, 65504.0),
        DType("bf16", "float", 16, "bfloat16", 8, 8, -126, 3.3895313892515355e38),
        DType("f32", "float", 32, "float32", 24, 8, -126, 3.4028234663852886e38),
        DType("f64", "float", 64, "float64", 53, 11, -1022, 1.7976931348623157e308),
        DType("f8e5m2", "float", 8, "float8_e5m2", 3, 5, -14, 57344.0), DType("f8e4m3", "float", 8, "float8_e4m3", 4, 4, -6, 240.0),
        DType("f8e4m3fn", "float", 8, "float8_e4m3fn", 4, 4, -6, 448.0),
        DType("f8e4m3b11fnuz", "float", 8, "float8_e4m3b11fnuz", 4, 4, -10, 30.0),
        DType("f8e3m4", "float", 8, "float8_e3m4", 5, 3, -2, 15.5),
        DType("f8e5m2fnuz", "float", 8, "float8_e5m2fnuz", 3, 5, -15, 57344.0),
        DType("f8e4m3fnuz", "float", 8, "float8_e4m3fnuz", 4, 4, -7, 240.0),
        DType("f8e8m0fnu", "float", 8, "float8_e8m0fnu", 1, 8, -127, 2.0 ** 127),
        DType("f4e2m1fn", "float", 4, "float4_e2m1fn", 2, 2, 0, 6.0), DType("f6e3m2fn", "float", 6, "float6_e3m2fn", 3, 3, -2, 28.0),
        DType("f6e2m3fn", "float", 6, "float6_e2m3fn", 4, 2, 0, 7.5),
        DType("c64", "complex", 64, "complex64", 24, 8, -126, 3.4028234663852886e38),
        DType("c128", "complex", 128, "complex128", 53, 11, -1022, 1.7976931348623157e308),
        DType("token", "token", 0, ""), DType("opaque", "opaque", 0, ""), DType("buffer", "opaque", 0, ""), DType("tuple", "opaque", 0, ""),
    )
}

PRED, S8, S16, S32, S64 = (DTYPES[n] for n in ("pred", "s8", "s16", "s32", "s64"))
U8, U16, U32, U64 = (DTYPES[n] for n in ("u8", "u16", "u32", "u64"))
F16, BF16, F32, F64, C64, C128 = (DTYPES[n] for n in ("f16", "bf16", "f32", "f64", "c64", "c128"))


_OF_NUMPY = {d.numpy_name: d for d in DTYPES.values() if d.numpy_name}


def dtype_of(numpy_dtype: Any) -> DType:
    """The element type of a numpy (or ml_dtypes) dtype. Raises KeyError for one that HLO does not have."""
    return _OF_NUMPY[np.dtype(numpy_dtype).name]
