"""The interface to LLVM, through llvmlite: targets, text to object code or assembly, loading. The only file that imports llvmlite."""
from __future__ import annotations

import itertools
import re
import subprocess
import sys
import threading
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

from irscope.backends.targets import PROBE, Machine, architecture_of, normalised
from irscope.lazy import LazyModule


class CompileFailed(Exception):
    """LLVM rejected generated text, which is a defect of irscope, or a target that it does not know."""


llvmlite: Any = LazyModule("llvmlite")
binding: Any = LazyModule("llvmlite.binding")


@lru_cache(maxsize=1)
def _llvm() -> Any:
    """The llvmlite binding, initialised for this machine."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    binding.initialize_native_asmparser()
    return binding


@lru_cache(maxsize=1)
def _every_target() -> None:
    llvm = _llvm()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@lru_cache(maxsize=1)
def version() -> str:
    """LLVM's version, as part of cache keys."""
    return ".".join(map(str, _llvm().llvm_version_info)) + "/" + str(llvmlite.__version__)


@lru_cache(maxsize=8)
def host(cpu: str = "") -> Machine:
    """This machine, or one of its instruction set with another ``cpu`` (``generic``, ``haswell``, ...)."""
    llvm = _llvm()
    triple = llvm.get_process_triple()
    cpu = _spelled(cpu, triple)
    if not cpu or cpu == "native":
        return Machine(triple, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), True)
    return Machine(triple, cpu, features_of(triple, cpu), True)


def cross(triple: str, cpu: str = "") -> Machine:
    """Another machine; without ``cpu`` the one that all processors of its kind can run. Raises CompileFailed for a triple that LLVM does
    not know, and for one that irscope generates no code for."""
    _every_target()
    triple = normalised(triple)
    try:
        _llvm().Target.from_triple(triple)
    except RuntimeError as error:
        raise CompileFailed(f"LLVM has no target {triple}: {error}") from None
    architecture = architecture_of(triple)
    if architecture is None:
        raise CompileFailed(f"irscope generates no code for {triple}")
    if not cpu:
        return Machine(triple, architecture.cpu, architecture.features, False)
    if cpu == "native":
        here = host()
        if architecture_of(here.triple) is not architecture:
            raise CompileFailed(f"native is the processor of this machine, {here.cpu}, which {triple} does not describe")
        return Machine(triple, here.cpu, here.features, False)
    cpu = _spelled(cpu, triple)
    return Machine(triple, cpu, features_of(triple, cpu), False)


def _spelled(cpu: str, triple: str) -> str:
    """LLVM's name of a processor: ``v3`` is short for ``x86-64-v3``."""
    return f"x86-64-{cpu}" if cpu in ("v2", "v3", "v4") and triple.startswith("x86_64") else cpu


_TRIAL = """
import sys, llvmlite.binding as llvm
llvm.initialize_all_targets(); llvm.initialize_all_asmprinters()
machine = llvm.Target.from_triple(sys.argv[1] or llvm.get_process_triple()).create_target_machine(cpu=sys.argv[2])
machine.emit_object(llvm.parse_assembly("define i64 @f(i64 %x) { ret i64 %x }"))
"""


def cpus(triple: str = "") -> tuple[str, ...]:
    """The processors that LLVM knows for a triple (default: the host's); empty where it prints none."""
    lines = _tried(triple, "help").stderr.partition("Available CPUs")[2].partition("Available features")[0].splitlines()
    return tuple(line.split()[0] for line in lines if " - Select the" in line)


@lru_cache(maxsize=16)
def accepts(cpu: str, triple: str = "") -> bool:
    """Whether LLVM generates code for a processor. It warns about an unknown one and aborts on a 32-bit one, so a child process tries."""
    if "\0" in cpu + triple:  # no argument of a process
        return False
    done = _tried(triple, _spelled(cpu, triple or str(_llvm().get_process_triple())))
    return done.returncode == 0 and "not a recognized processor" not in done.stderr


def _tried(triple: str, cpu: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", _TRIAL, triple, cpu], capture_output=True, text=True, check=False)


@lru_cache(maxsize=64)
def features_of(triple: str, cpu: str) -> str:
    """The features of a named processor that irscope asks for; LLVM derives the others from the name."""
    architecture = architecture_of(triple)
    return architecture.features_in(assembly(PROBE, Machine(triple, cpu, "", False))) if architecture is not None else ""


@lru_cache(maxsize=16)
def _target_machine(machine: Machine, speed: int) -> Any:
    return _new_target_machine(machine, speed)


def _new_target_machine(machine: Machine, speed: int) -> Any:
    llvm = _llvm()
    how = {"jit": True} if machine.jit else {"jit": False, "reloc": "pic", "codemodel": "small"}
    return llvm.Target.from_triple(machine.triple).create_target_machine(cpu=machine.cpu, features=machine.features, opt=speed, **how)


def _module(text: str, machine: Machine) -> Any:
    llvm = _llvm()
    try:
        module = llvm.parse_assembly(text)
    except RuntimeError as error:
        raise CompileFailed(str(error)) from None
    module.triple = machine.triple
    return module


def can_assemble(machine: Machine) -> bool:
    """Whether modules for a machine may contain assembly: llvmlite initialises LLVM's assembler for the host's instruction set only."""
    return architecture_of(machine.triple) is architecture_of(host().triple)


def object_code(text: str, machine: Machine, speed: int = 2) -> bytes:
    """Compile a module of text: code generation only. LLVM's own passes are not run: hand-vectorised kernels gain nothing from them, and
    generic ones (sort, scatter, fft, scans) ran within 3 % of the same time at twice the time to compile. Raises CompileFailed for a target
    that has no object files."""
    try:
        return bytes(_target_machine(machine, speed).emit_object(_module(text, machine)))
    except RuntimeError as error:
        raise CompileFailed(f"LLVM writes no object files for {machine.triple}: {error}") from None


SHORT = 1 << 16
"""The most characters of a text whose object code is kept."""


def recent_object_code(text: str, machine: Machine, speed: int = 2) -> bytes:
    """The same; the object code of the last few short texts is kept. A program before and after a pass, and one that is run again, share
    most of their kernels, and the cache on disk may be disabled."""
    return (_kept_object_code if len(text) <= SHORT else object_code)(text, machine, speed)


@lru_cache(maxsize=64)
def _kept_object_code(text: str, machine: Machine, speed: int) -> bytes:
    return object_code(text, machine, speed)


def assembly(text: str, machine: Machine, speed: int = 2) -> str:
    """The same as assembly text."""
    return str(_target_machine(machine, speed).emit_assembly(_module(text, machine)))


def annotated_assembly(text: str, machine: Machine, speed: int = 2) -> str:
    """The same with LLVM's comments: loops, spills."""
    made = _new_target_machine(machine, speed)
    made.set_asm_verbosity(True)
    return str(made.emit_assembly(_module(text, machine)))


def linked_object(texts: Sequence[str], exports: Collection[str], machine: Machine) -> bytes:
    """One object of several modules, which needs no linker; only ``exports`` can be seen from outside. Raises CompileFailed."""
    return bytes(_target_machine(machine, 2).emit_object(_linked(texts, exports, machine)))


def linked_assembly(texts: Sequence[str], exports: Collection[str], machine: Machine) -> str:
    """The same as one assembly text, which the assembler of the target accepts."""
    made = str(_target_machine(machine, 2).emit_assembly(_linked(texts, exports, machine)))
    return _RISCV_EXTENSIONS.sub(lambda line: _IMPLIED.sub("", line[0]), made, count=1)


_RISCV_EXTENSIONS = re.compile(r"^\t\.attribute\t5, .*$", re.MULTILINE)
_IMPLIED = re.compile(r"_(?:zaamo|zalrsc|zca|zcd)\d+p\d+")
"""Extensions that ``a`` and ``c`` imply. The GNU assembler before 2.42 does not know their names."""


def _linked(texts: Sequence[str], exports: Collection[str], machine: Machine) -> Any:
    """One module, in which only ``exports`` are visible to a linker."""
    whole, *others = (_module(text, machine) for text in texts)
    for other in others:
        whole.link_in(other)
    for value in (*whole.functions, *whole.global_variables):
        if not value.is_declaration and value.name not in exports:
            value.linkage = "internal"
    return whole


def check(text: str) -> None:
    """Verify a module with LLVM. Raises CompileFailed."""
    llvm = _llvm()
    try:
        llvm.parse_assembly(text).verify()
    except RuntimeError as error:
        raise CompileFailed(str(error)) from None


# ---- loading

_numbers = itertools.count()
_lock = threading.Lock()


@lru_cache(maxsize=1)
def _jit() -> Any:
    return _llvm().create_lljit_compiler(_target_machine(host(), 2))


class LoadedCode:
    """Machine code in this process; it lives as long as this object."""

    def __init__(self, objects: list[bytes], exports: list[str], imports: dict[str, int] | None = None) -> None:
        llvm = _llvm()
        builder = llvm.JITLibraryBuilder()
        for image in objects:
            builder.add_object_img(image)
        builder.add_current_process()
        for name, address in (imports or {}).items():
            builder.import_symbol(name, address)
        for name in exports:
            builder.export_symbol(name)
        with _lock:
            try:
                self._tracker = builder.link(_jit(), f"irscope{next(_numbers)}")
            except RuntimeError as error:
                raise CompileFailed(str(error)) from None
        self.addresses = {name: int(self._tracker[name]) for name in exports}
