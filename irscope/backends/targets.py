"""The machines that code is generated for: instruction sets, default processors and features, and the properties that schedules use."""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from irscope.backends.llvm_types import Target
from irscope.lower.schedule import AVX2, AVX512, NEON, SSE2, VectorMachine


@dataclass(frozen=True, slots=True)
class Architecture:
    """An instruction set.

    ``names`` are its names in triples. ``cpu`` and ``features`` are the defaults where no processor is named. ``probes`` maps a feature
    to a pattern that the assembly of :data:`PROBE` matches where a processor has the feature. ``vectors`` has a row for each kind of
    vectors, the best first: the feature that provides them (empty: always there), and their properties.
    """

    names: tuple[str, ...]
    cpu: str
    features: str
    probes: Mapping[str, str]
    vectors: tuple[tuple[str, VectorMachine], ...]

    def features_in(self, assembly: str) -> str:
        """The features that the assembly of :data:`PROBE` shows, as LLVM spells them."""
        return ",".join(f"+{name}" for name, pattern in self.probes.items() if re.search(pattern, assembly))


PROBE = """define <16 x float> @vectors(<16 x float> %x, <16 x float> %y) #0 {
  %z = fadd <16 x float> %x, %y
  ret <16 x float> %z
}
define <8 x i32> @integers(<8 x i32> %x, <8 x i32> %y) {
  %z = add <8 x i32> %x, %y
  ret <8 x i32> %z
}
declare float @llvm.fma.f32(float, float, float)
define float @fused(float %x, float %y) {
  %z = call float @llvm.fma.f32(float %x, float %y, float %x)
  ret float %z
}
define <4 x float> @halves(<4 x half> %x) {
  %z = fpext <4 x half> %x to <4 x float>
  ret <4 x float> %z
}
attributes #0 = { "min-legal-vector-width"="512" "prefer-vector-width"="512" }
"""
"""Operations for which LLVM selects another instruction where a processor has a feature; llvmlite cannot ask for features by name."""

SCALARS = VectorMachine(vector_bytes=16, registers=8)
"""A processor without vectors: four of its 32 scalar registers take the place of a vector of four f32."""

ARCHITECTURES = (
    Architecture(("x86_64", "amd64"), "x86-64", "", {"avx512f": "zmm", "avx2": "vpaddd.*ymm", "fma": "vfmadd", "f16c": "vcvtph2ps"},
                 (("avx512f", AVX512), ("avx2", AVX2), ("", SSE2))),
    Architecture(("aarch64", "arm64"), "generic", "+neon", {"neon": r"fadd(\.4s)?\s+v"}, (("", NEON),)),
    # An RVV register has at least 128 bits where V is implemented, as in RVA23 and rv64gcv.
    Architecture(("riscv64",), "generic-rv64", "+m,+a,+f,+d,+c,+v", {"v": "vfadd"}, (("v", NEON), ("", SCALARS))),
    Architecture(("armv7", "armv7a", "armv7l", "arm"), "generic", "+v7,+neon,+vfp4", {"neon": r"vadd\.f32\s+q", "vfp4": "vfma"},
                 (("neon", SSE2), ("", SCALARS))),
)
EXAMPLES = "x86_64-unknown-linux-gnu, aarch64-linux-gnu, riscv64-linux-gnu, armv7-linux-gnueabihf"


SYSTEMS = ("linux", "none", "windows", "darwin", "macos", "ios", "freebsd", "netbsd", "openbsd", "android", "elf")


def normalised(triple: str) -> str:
    """A triple with its vendor, ``aarch64-unknown-linux-gnu`` for ``aarch64-linux-gnu``: LLVM's code generator reads its parts by place."""
    architecture, *rest = triple.split("-")
    return "-".join([architecture, "unknown", *rest]) if rest and rest[0].startswith(SYSTEMS) else triple


def architecture_of(triple: str) -> Architecture | None:
    """The instruction set of a triple; None for one that irscope generates no code for."""
    name = triple.partition("-")[0]
    return next((each for each in ARCHITECTURES if name in each.names), None)


@dataclass(frozen=True, slots=True)
class Machine:
    """The target machine of code. ``jit`` code runs in this process; other code is position independent and goes to a file.

    ``features`` are LLVM's, with signs; those of a named processor are only those that irscope asks for.
    """

    triple: str
    cpu: str
    features: str
    jit: bool

    def for_files(self) -> Machine:
        """The same machine, for code that is linked and loaded by others."""
        return replace(self, jit=False)

    @property
    def target(self) -> Target:
        """The properties that the text depends on."""
        return Target(self.triple, frozenset(f[1:] for f in self.features.split(",") if f.startswith("+")))

    @property
    def vectors(self) -> VectorMachine:
        """The properties that schedules depend on; those of NEON for a host of an unknown instruction set."""
        architecture, features = architecture_of(self.triple), self.target.features
        rows = architecture.vectors if architecture is not None else (("", NEON),)
        return next(vectors for feature, vectors in rows if not feature or feature in features)
