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
        return Denormals(
            ("declare i64 @llvm.aarch64.get.fpcr()", "declare void @llvm.aarch64.set.fpcr(i64)"),
            ("  %fp.before = call i64 @llvm.aarch64.get.fpcr()", f"  %fp.off = or i64 %fp.before, {_ARM_FLUSH}",
             "  call void @llvm.aarch64.set.fpcr(i64 %fp.off)"),
            ("  call void @llvm.aarch64.set.fpcr(i64 %fp.before)",),
        )
    if triple.startswith("arm"):
        return Denormals(
            ("declare i32 @llvm.arm.get.fpscr()", "declare void @llvm.arm.set.fpscr(i32)"),
            ("  %fp.before = call i32 @llvm.arm.get.fpscr()", f"  %fp.off = or i32 %fp.before, {_ARM_FLUSH}",
             "  call void @llvm.arm.set.fpscr(i32 %fp.off)"),
            ("  call void @llvm.arm.set.fpscr(i32 %fp.before)",),
        )
    return Denormals()
