"""A program as a library that does not depend on irscope: without a thread pool, with its constants inside, and a C entry point.

    extern const int64_t irscope_arena_bytes;
    void irscope_run(void **inputs, void **outputs, void *arena);

The caller aligns ``arena`` and every output to 64 bytes, and fills ``arena`` with zeros before the first run. One run at a time uses it.
"""
from __future__ import annotations

from pathlib import Path

from irscope.backends.compile import MAIN, CompilationUnit, units
from irscope.backends.llvm_compile import Machine
from irscope.lazy import np
from irscope.lower.program import Program

ENTRY = "irscope_run"
SIZE = "irscope_arena_bytes"
LARGE = 1 << 16
"""From this many bytes on, the assembler reads constants from a file, where the object format allows it, instead of from the text."""


def library_units(program: Program, machine: Machine, folder: Path | None = None) -> list[CompilationUnit]:
    """All modules of the library. Large constants are written to ``folder``, and read from there when the modules are compiled."""
    found, scratch = units(program, machine)
    return [*found, CompilationUnit("irscope_library", library_text(program, scratch, machine, folder))]


def library_text(program: Program, scratch: int, machine: Machine, folder: Path | None = None) -> str:
    """The module around the main function."""
    pieces, names = [], []
    for number, slot in enumerate(program.constants):
        data = np.ascontiguousarray(np.asarray(slot.data)).tobytes()
        name = f"@irscope.constant{number}"
        names.append(f"ptr {name}")
        if folder is not None and len(data) >= LARGE and _is_elf(machine.triple):
            path = folder / f"constant{number}.bin"
            path.write_bytes(data)
            pieces += [f'module asm "{line}"' for line in _included(name[1:], path)] + [f"{name} = external hidden constant i8, align 64"]
        else:
            pieces.append(f"{name} = internal constant {_bytes(data)}, align 64")
    arena = (program.arena_bytes + 63) // 64 * 64
    table = f"[{max(1, len(names))} x ptr] [{', '.join(names) or 'ptr null'}]"
    return "\n".join([
        *pieces,
        f"@irscope.table = internal constant {table}, align 64",
        f"@{SIZE} = constant i64 {arena + scratch}",
        f"declare void @{MAIN}(ptr, ptr, ptr, ptr)",
        _TEXT.format(entry=ENTRY, main=MAIN, arena=arena),
    ])


def _bytes(data: bytes) -> str:
    return f'[{len(data)} x i8] c"' + "".join(f"\\{byte:02X}" for byte in data) + '"' if data else "[1 x i8] zeroinitializer"


def _is_elf(triple: str) -> bool:
    return not any(word in triple for word in ("windows", "darwin", "macos", "ios", "wasm"))


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
define void @{entry}(ptr %inputs, ptr %outputs, ptr %arena) nounwind {{
  %context = alloca [4 x i64], align 16
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
