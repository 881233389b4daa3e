"""Compiles a program to machine code: kernels to text, equal texts once, objects from the cache or from LLVM."""
from __future__ import annotations

import re
from collections.abc import Callable

from irscope.backends import cache, llvm_compile
from irscope.backends.llvm_kernel import KernelText, kernel_text
from irscope.backends.llvm_main import Records, main_text
from irscope.backends.object_code import MAIN, CompilationUnit, ObjectCode
from irscope.backends.stopping import may_take_long
from irscope.backends.targets import Machine
from irscope.lower.program import Program, Slot
from irscope.lower.tile import Kernel

External = Callable[[Slot], int]
"""The alignment in bytes that the caller guarantees for the memory of an input or output."""


def natural(slot: Slot) -> int:
    """The alignment that C and numpy guarantee for an array of a type: complex numbers are aligned as their parts are."""
    return slot.dtype.storage // 2 if slot.dtype.is_complex else slot.dtype.storage


def of_arrays(slot: Slot) -> int:
    """For calls from Python: inputs are the caller's arrays, outputs are allocated by :mod:`irscope.backends.executable`."""
    return natural(slot) if slot.scope == "input" else 64


def units(program: Program, machine: Machine, stops: bool = False, external: External = of_arrays,
          records: Records | None = None) -> tuple[list[CompilationUnit], int]:
    """The texts of a program, main last, and the scratch memory that its kernels need. ``stops``: a run can be interrupted. ``records``:
    it is profiled (:func:`irscope.backends.llvm_main.main_text`)."""
    found: dict[str, CompilationUnit] = {}
    names: dict[Kernel, str] = {}
    texts: dict[Kernel, KernelText] = {}
    aligned = alignments(program, external)
    for kernel in program.kernels():
        text = kernel_text(kernel, machine.target, aligned[kernel], stops)
        name = "k_" + cache.key(text.text)[:20]
        names[kernel], texts[kernel] = name, text
        if name not in found:
            found[name] = CompilationUnit(name, renamed(text.text, name), kernel)
        else:
            found[name].others.append(kernel)
    main = main_text(program, names, texts, machine.triple, stops, records)
    scratch = max((t.scratch for t in texts.values()), default=0)
    return [*found.values(), CompilationUnit(MAIN, main)], scratch


def alignments(program: Program, external: External = of_arrays) -> dict[Kernel, list[int]]:
    """The alignment in bytes that every launch of a kernel guarantees for each of its parameters."""
    found: dict[Kernel, list[int]] = {}
    for launch in program.launches():
        here = []
        for slot, place in launch.args:
            bytes_in = place * slot.dtype.storage + (slot.offset if slot.scope == "temp" else 0)
            base = external(slot) if slot.scope in ("input", "output") else 64
            here.append(min(base, bytes_in & -bytes_in) if bytes_in else base)
        known = found.get(launch.kernel)
        found[launch.kernel] = here if known is None else [min(a, b) for a, b in zip(known, here)]
    return found


def renamed(text: str, name: str) -> str:
    """A kernel's text under its own name."""
    return re.sub(r"@K(?=[.(])", "@" + name, text)


def compile_program(program: Program, machine: Machine, use_cache: bool = True, profiled: bool = False) -> ObjectCode:
    """Compile object code for ``machine``, to run in this process. ``profiled``: it times its launches."""
    stops = may_take_long(program)
    records: Records | None = [] if profiled else None
    todo, scratch = units(program, machine, stops, records=records)
    out = ObjectCode([], scratch, todo, stops=stops, records=records or [])
    for unit in todo:
        how = f"{unit.speed}{machine.jit}"
        name = cache.key(unit.text, machine.triple, machine.cpu, machine.features, llvm_compile.version(), how)
        image = cache.read(name) if use_cache else None
        if image is None:
            make = llvm_compile.recent_object_code if use_cache else llvm_compile.object_code
            image = make(unit.text, machine, unit.speed)
            if use_cache:
                cache.write(name, image)
        else:
            out.from_cache += 1
        out.objects.append(image)
    return out
