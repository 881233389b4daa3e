"""The LLVM types of element types: in registers and in memory.

pred is ``i1`` in registers and a byte in memory; sub-byte integers are bytes; floats narrower than f32 are stored as their bits, and all
arithmetic on them has been lowered to f32 before; a complex value is two names, and interleaved pairs in memory.
"""
from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any

from irscope.graph import DType
from irscope.lazy import np


@dataclass(frozen=True, slots=True)
class Target:
    """The properties of a target that the text depends on. ``features`` are LLVM's names without the sign."""

    triple: str
    features: frozenset[str]

    @property
    def fma(self) -> bool:
        if self.triple.startswith("arm") and not self.triple.startswith("arm64"):
            return "vfp4" in self.features
        return "fma" in self.features or not self.triple.startswith(("x86", "i686", "wasm"))

    @property
    def f16c(self) -> bool:
        return "f16c" in self.features

    @property
    def avx512(self) -> bool:
        return "avx512f" in self.features


def scalar(dtype: DType) -> str:
    """The type of one element in a register."""
    return _SCALARS.get(dtype.name) or f"i{8 * dtype.storage}"


_SCALARS = {"pred": "i1", "f32": "float", "c64": "float", "f64": "double", "c128": "double"}


def register(dtype: DType, lanes: int) -> str:
    """The type of a value."""
    return vector(scalar(dtype), lanes)


def vector(element: str, lanes: int) -> str:
    return element if lanes == 1 else f"<{lanes} x {element}>"


def suffix(element: str, lanes: int) -> str:
    """A type's suffix in names of intrinsics: ``v16f32``."""
    short = {"float": "f32", "double": "f64", "half": "f16"}.get(element, element)
    return short if lanes == 1 else f"v{lanes}{short}"


def float_text(value: float, element: str) -> str:
    """A float constant; LLVM wants the bits of the double, whatever the type."""
    if element == "float" and math.isfinite(value):
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = math.copysign(math.inf, value)
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def element_text(value: Any, dtype: DType) -> str:
    """A constant of a type, without the type."""
    if dtype.kind == "pred":
        return "true" if value else "false"
    if dtype.is_integer:
        return str(value)
    if dtype.bits >= 32:
        return float_text(value, scalar(dtype))
    with np.errstate(all="ignore"):
        narrow = np.asarray(value, dtype=np.float64).astype(dtype.numpy())
    return str(int(narrow.view(np.uint8 if dtype.storage == 1 else np.uint16)))


def constant_text(value: Any, dtype: DType, lanes: int) -> str:
    """A constant; a vector constant lane by lane."""
    if lanes == 1:
        return element_text(value, dtype)
    element = scalar(dtype)
    return "<" + ", ".join(f"{element} {element_text(v, dtype)}" for v in value) + ">"


def splat_text(text: str, element: str, lanes: int) -> str:
    """One constant in every lane."""
    return text if lanes == 1 else f"splat ({element} {text})"
