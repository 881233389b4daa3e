"""The processor that LLVM sees here: its name and its vector units."""
from __future__ import annotations

from dataclasses import dataclass

import llvmlite.binding as llvm


@dataclass(frozen=True, slots=True)
class Host:
    """A processor as LLVM names it (``znver5``), what it can (``avx2``, ``fma``), and the LLVM that says so."""

    name: str
    features: frozenset[str]
    llvm: str


def host() -> Host:
    """The processor that this process runs on."""
    features = llvm.get_host_cpu_features()
    return Host(str(llvm.get_host_cpu_name()), frozenset(name for name, has in features.items() if has), ".".join(map(str, llvm.llvm_version_info)))
