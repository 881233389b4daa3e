"""What the assembly of a kernel shows: vector width, fused multiply-adds, loads, spills."""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter


@dataclass(frozen=True, slots=True)
class CodeFacts:
    """Counts of instructions. ``vector_bits`` is the width of the widest registers that vector instructions use, 0 in scalar code.

    ``fmas`` and ``loads`` are those of the block with the most fused multiply-adds, normally the innermost loop: loads into vector
    registers, operands in memory included. ``spills`` are stores to the stack and loads from it that LLVM added for want of registers, in
    the whole kernel.
    """

    vector_bits: int
    fmas: int
    loads: int
    spills: int

    @property
    def loads_per_fma(self) -> float | None:
        """None without fused multiply-adds."""
        return self.loads / self.fmas if self.fmas else None

    def __str__(self) -> str:
        """``512-bit, 24 FMAs, 0.42 loads per FMA, 3 spills``."""
        parts = [f"{self.vector_bits}-bit" if self.vector_bits else "scalar"]
        if self.loads_per_fma is not None:
            parts += [f"{self.fmas} FMA{'s' * (self.fmas != 1)}", f"{self.loads_per_fma:.2f} loads per FMA"]
        return ", ".join([*parts, f"{self.spills or 'no'} spill{'s' * (self.spills != 1)}"])


@dataclass(frozen=True, slots=True)
class _Syntax:
    """The assembly of an instruction set. ``widths`` has the bits of vector registers by pattern, the widest first; ``loads`` matches a
    load into a vector register, ``pairs`` one of two registers; ``scalar`` matches the names of instructions on one element in such a
    register."""

    comment: str
    fma: re.Pattern[str]
    widths: tuple[tuple[int, re.Pattern[str]], ...]
    loads: re.Pattern[str]
    pairs: re.Pattern[str]
    scalar: re.Pattern[str]


_NOTHING = re.compile(r"(?!)")
_X86 = _Syntax(
    "#",
    re.compile(r"vf(?:n?m(?:add|sub)|maddsub|msubadd)(?:\d+)?[ps][sdh]|vp?dp\w+|tdp\w+"),
    ((512, re.compile(r"%zmm|\bzmm")), (256, re.compile(r"%ymm")), (128, re.compile(r"%xmm"))),
    re.compile(r"(?!prefetch|lea|nop)\w+\s+(?:[^()]*,\s*)?[^(),]*\([^)]*\)(?:\{[^}]*\})?\s*,.*%[xyz]mm"),
    _NOTHING,
    re.compile(r"\w+(?:ss|sd|sh|si)$|v?mov[dq]$|vcvt\w*2(?:ss|sd|si)\w*"),
)
_ARM64 = _Syntax(
    "//",
    re.compile(r"fml[as]l?2?|fn?m(?:add|sub)|bfdot|[su]dot|bfml\w+"),
    ((128, re.compile(r"\bv\d+\.(?:16b|8h|4s|2d)|\bq\d+")), (64, re.compile(r"\bv\d+\.(?:8b|4h|2s|1d)"))),
    re.compile(r"(?:ldr|ldp|ldur|ldnp|ld[1-4]r?)\s+\{?\s*[vqds]\d+"),
    re.compile(r"(?:ldp|ldnp)\s"),
    re.compile(r"(?!)"),
)
_LABEL = re.compile(r"[.\w$]+:")
_FALLS_INTO = re.compile(r"\s*%bb\.\d+:")
"""The comment in place of the label of a block that nothing jumps to."""
_SPILL = re.compile(r"Spill|Reload")


def code_facts(assembly: str, triple: str) -> CodeFacts | None:
    """The facts of a kernel's assembly with LLVM's comments; None for an instruction set whose assembly irscope does not read."""
    syntax = _X86 if triple.startswith(("x86_64", "amd64")) else _ARM64 if triple.startswith(("aarch64", "arm64")) else None
    if syntax is None:
        return None
    fmas_of: Callable[[tuple[int, int]], int] = itemgetter(0)
    bits, spills, best, here = 0, 0, (0, 0), (0, 0)
    for line in assembly.splitlines():
        code, _, comment = line.partition(syntax.comment)
        code = code.strip()
        if _LABEL.match(code) or _FALLS_INTO.match(comment):
            best, here = max(best, here, key=fmas_of), (0, 0)
            continue
        if not code or code.startswith("."):
            continue
        name = code.split(None, 1)[0]
        spills += bool(_SPILL.search(comment))
        if not syntax.scalar.fullmatch(name):
            bits = max(bits, next((width for width, pattern in syntax.widths if pattern.search(code)), 0))
        loads = bool(syntax.loads.match(code)) + bool(syntax.loads.match(code) and syntax.pairs.match(code))
        here = here[0] + bool(syntax.fma.fullmatch(name)), here[1] + loads
    return CodeFacts(bits, *max(best, here, key=fmas_of), spills)
