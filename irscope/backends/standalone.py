"""A program as a library that does not depend on irscope: without a thread pool, with its constants inside, and a C entry point.

    extern const int64_t irscope_arena_bytes;
    void irscope_run(const void *const *inputs, void *const *outputs, void *arena);

Arrays begin at any address that is aligned for their element type, on x86-64 and 64-bit ARM at any address. ``arena`` begins anywhere and
may hold anything. Concurrent runs need an arena each.
"""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from irscope.backends import llvm_compile
from irscope.backends.compile import External, natural, units
from irscope.backends.object_code import MAIN
from irscope.backends.targets import Machine
from irscope.lazy import np
from irscope.lower.program import Program

ENTRY = "irscope_run"
SIZE = "irscope_arena_bytes"
EXPORTS = (ENTRY, SIZE)
LARGE = 1 << 16
"""From this many bytes on, the assembler reads constants from a file, where it can, instead of from the text."""
UNALIGNED = ("x86_64", "amd64", "aarch64", "arm64")
"""Architectures whose vector loads and stores take any address."""
ALIGNMENT = 64
"""The alignment of the arena in bytes, as kernels expect it: a cache line."""


@dataclass(slots=True)
class CompiledLibrary:
    """The modules of a library, and how many bytes its caller provides as the arena."""

    texts: list[str]
    arena_bytes: int
    machine: Machine

    @staticmethod
    def of(program: Program, machine: Machine, folder: Path | None = None) -> CompiledLibrary:
        """The library of a program. Where llvmlite has an assembler for the machine (it has only the host's), large constants are written
        to ``folder``, and read from there when the modules are compiled."""
        found, scratch = units(program, machine, external=_of_callers(machine.triple))
        size = _rounded(program.arena_bytes) + scratch + ALIGNMENT - 1
        if not llvm_compile.can_assemble(machine):
            folder = None
        return CompiledLibrary([*(unit.text for unit in found), _library_text(program, size, machine, folder)], size, machine)

    def object_code(self) -> bytes:
        """One object file."""
        return llvm_compile.linked_object(self.texts, EXPORTS, self.machine)

    def assembly(self) -> str:
        """One assembly text."""
        return llvm_compile.linked_assembly(self.texts, EXPORTS, self.machine)


def _of_callers(triple: str) -> External:
    """The alignment of the arrays that a caller in C passes."""
    return (lambda slot: 1) if triple.startswith(UNALIGNED) else natural


def _library_text(program: Program, size: int, machine: Machine, folder: Path | None) -> str:
    """The module around the main function."""
    pieces, names = [], []
    for number, slot in enumerate(program.constants):
        data = np.ascontiguousarray(np.asarray(slot.data)).tobytes()
        name = f"@irscope.constant{number}"
        names.append(f"ptr {name}")
        if folder is not None and len(data) >= LARGE and is_elf(machine.triple):
            path = folder / f"constant{number}.bin"
            path.write_bytes(data)
            pieces += [f'module asm "{line}"' for line in _included(name[1:], path)] + [f"{name} = external hidden constant i8, align 64"]
        else:
            pieces.append(f"{name} = internal constant {_bytes(data)}, align 64")
    table = f"[{max(1, len(names))} x ptr] [{', '.join(names) or 'ptr null'}]"
    return "\n".join([
        *pieces,
        f"@irscope.table = internal constant {table}, align 64",
        f"@{SIZE} = constant i64 {size}",
        f"declare void @{MAIN}(ptr, ptr, ptr, ptr)",
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        _TEXT.format(entry=ENTRY, main=MAIN, arena=_rounded(program.arena_bytes), mask=ALIGNMENT - 1, clear=_clear(program)),
    ])


def _rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _clear(program: Program) -> str:
    """Fills the buffers that must hold zeros before a run. They come first in the arena, and no buffer keeps a value between runs."""
    zeros = max((slot.offset + slot.bytes for slot in program.temps if slot.zeroed), default=0)
    return f"call void @llvm.memset.p0.i64(ptr %arena, i8 0, i64 {zeros}, i1 false)" if zeros else ""


def _bytes(data: bytes) -> str:
    return f'[{len(data)} x i8] c"\\' + data.hex("\\") + '"' if data else "[1 x i8] zeroinitializer"


def is_elf(triple: str) -> bool:
    """Whether a target's object files are ELF."""
    return not any(word in triple for word in ("windows", "darwin", "macos", "ios"))


def _included(name: str, path: Path) -> list[str]:
    place = str(path).replace("\\", "\\5C").replace('"', "\\22")
    return [".section .rodata", ".balign 64", f"{name}:", f".incbin \\22{place}\\22", ".text"]


_TEXT = """define void @irscope_share(ptr %pool, ptr %chunk, ptr %args, i64 %n, ptr %scratch) nounwind {{
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %after, %next ]
  call void %chunk(ptr %args, i64 %i, i64 %n, ptr %scratch)
  %after = add i64 %i, 1
  %more = icmp ult i64 %after, %n
  br i1 %more, label %next, label %done
done:
  ret void
}}
define void @{entry}(ptr %inputs, ptr %outputs, ptr %given) nounwind {{
  %context = alloca [4 x i64], align 16
  %address = ptrtoint ptr %given to i64
  %below = sub i64 0, %address
  %skipped = and i64 %below, {mask}
  %arena = getelementptr i8, ptr %given, i64 %skipped
  {clear}
  store i64 0, ptr %context
  %scratch = getelementptr i8, ptr %arena, i64 {arena}
  %at1 = getelementptr i64, ptr %context, i64 1
  store ptr %scratch, ptr %at1
  %at2 = getelementptr i64, ptr %context, i64 2
  store ptr @irscope.table, ptr %at2
  %at3 = getelementptr i64, ptr %context, i64 3
  store i64 1, ptr %at3
  call void @{main}(ptr %inputs, ptr %outputs, ptr %arena, ptr %context)
  ret void
}}
"""
