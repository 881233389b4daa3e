"""Flushes denormals to zero while compiled code runs: XLA does so, and HLO's results assume it, unless they must be exact.

Otherwise a single denormal can also make an instruction a hundred times slower. The caller's own setting is restored afterwards.
RISC-V has no such mode.
"""
from __future__ import annotations

from dataclasses import dataclass

_X86_FLUSH_AND_ZERO = 0x8040
_ARM_FLUSH = 1 << 24


@dataclass(frozen=True, slots=True)
class Denormals:
    """LLVM text: the declarations of a module, the first and last lines of a function."""

    declare: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    back: tuple[str, ...] = ()


def denormals(triple: str) -> Denormals:
    """The text for a target; empty where irscope does not support it."""
    if triple.startswith(("x86_64", "i686")):
        return Denormals(
            ("declare void @llvm.x86.sse.stmxcsr(ptr)", "declare void @llvm.x86.sse.ldmxcsr(ptr)"),
            ("  %fp.at = alloca i32, align 4", "  call void @llvm.x86.sse.stmxcsr(ptr %fp.at)", "  %fp.before = load i32, ptr %fp.at",
             f"  %fp.off = or i32 %fp.before, {_X86_FLUSH_AND_ZERO}", "  store i32 %fp.off, ptr %fp.at",
             "  call void @llvm.x86.sse.ldmxcsr(ptr %fp.at)"),
            ("  store i32 %fp.before, ptr %fp.at", "  call void @llvm.x86.sse.ldmxcsr(ptr %fp.at)"),
        )
    if triple.startswith(("aarch64", "arm64")):
        return _arm("i64", "aarch64", "fpcr")
    return _arm("i32", "arm", "fpscr") if triple.startswith("arm") else Denormals()


def _arm(kind: str, family: str, control: str) -> Denormals:
    read, write = f"{kind} @llvm.{family}.get.{control}()", f"void @llvm.{family}.set.{control}"
    return Denormals(
        (f"declare {read}", f"declare {write}({kind})"),
        (f"  %fp.before = call {read}", f"  %fp.off = or {kind} %fp.before, {_ARM_FLUSH}", f"  call {write}({kind} %fp.off)"),
        (f"  call {write}({kind} %fp.before)",),
    )
