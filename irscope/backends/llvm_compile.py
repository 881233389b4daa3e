"""The interface to LLVM, through llvmlite: targets, text to object code or assembly, loading. The only file that imports llvmlite."""
from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from irscope.backends.llvm_types import Target
from irscope.lazy import LazyModule


class CompileFailed(Exception):
    """LLVM rejected generated text, which is a defect of irscope, or a target that it does not know."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The target machine of code. ``jit`` code runs in this process; other code is position independent and goes to a file."""

    triple: str
    cpu: str
    features: str
    jit: bool

    def for_files(self) -> Machine:
        """The same machine, for code that is linked and loaded by others."""
        return replace(self, jit=False)

    @property
    def lanes(self) -> int:
        """The number of f32 in one of its vectors."""
        features = self.target.features
        return 16 if "avx512f" in features else 8 if "avx2" in features else 4

    @property
    def target(self) -> Target:
        """The properties of the target that the text depends on."""
        names = frozenset(f[1:] for f in self.features.split(",") if f.startswith("+"))
        return Target(self.triple, self.cpu, names)


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
    """Another machine. Raises CompileFailed for a triple that LLVM does not know."""
    _every_target()
    try:
        _llvm().Target.from_triple(triple)
    except RuntimeError as error:
        raise CompileFailed(f"LLVM has no target {triple}: {error}") from None
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


def accepts(cpu: str, triple: str = "") -> bool:
    """Whether LLVM generates code for a processor. It warns about an unknown one and aborts on a 32-bit one, so a child process tries."""
    done = _tried(triple, _spelled(cpu, triple or str(_llvm().get_process_triple())))
    return done.returncode == 0 and "not a recognized processor" not in done.stderr


def _tried(triple: str, cpu: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", _TRIAL, triple, cpu], capture_output=True, text=True, check=False)


_X86_LEVELS = {
    2: "sse3 ssse3 sse4.1 sse4.2 popcnt cx16",
    3: "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave",
    4: "avx512f avx512bw avx512cd avx512dq avx512vl",
}
_X86_CPUS = {"generic": 1, "x86-64": 1, "x86-64-v2": 2, "nehalem": 2, "westmere": 2, "sandybridge": 2, "x86-64-v3": 3, "haswell": 3,
             "broadwell": 3, "skylake": 3, "alderlake": 3, "znver1": 3, "znver2": 3, "znver3": 3, "x86-64-v4": 4, "skylake-avx512": 4,
             "cascadelake": 4, "icelake-server": 4, "sapphirerapids": 4, "znver4": 4, "znver5": 4}


def features_of(triple: str, cpu: str) -> str:
    """The features that text generation queries, for a named CPU; LLVM itself knows the rest by the name."""
    if not triple.startswith("x86_64"):
        return ""
    level = _X86_CPUS.get(cpu, 1)
    return ",".join(f"+{f}" for n in range(2, level + 1) for f in _X86_LEVELS[n].split())


@lru_cache(maxsize=16)
def _target_machine(machine: Machine, speed: int) -> Any:
    llvm = _llvm()
    target = llvm.Target.from_triple(machine.triple)
    how = {"jit": True} if machine.jit else {"jit": False, "reloc": "pic", "codemodel": "small"}
    return target.create_target_machine(cpu=machine.cpu, features=machine.features, opt=speed, **how)


def _module(text: str, machine: Machine) -> Any:
    llvm = _llvm()
    try:
        module = llvm.parse_assembly(text)
    except RuntimeError as error:
        raise CompileFailed(str(error)) from None
    module.triple = machine.triple
    return module


def object_code(text: str, machine: Machine, speed: int = 2) -> bytes:
    """Compile a module of text: code generation only. LLVM's own passes are not run: hand-vectorised kernels gain nothing from them, and
    generic ones (sort, scatter, fft, scans) ran within 3 % of the same time at twice the time to compile. Raises CompileFailed for a target
    that has no object files."""
    try:
        return bytes(_target_machine(machine, speed).emit_object(_module(text, machine)))
    except RuntimeError as error:
        raise CompileFailed(f"LLVM writes no object files for {machine.triple}: {error}") from None


def assembly(text: str, machine: Machine, speed: int = 2) -> str:
    """The same as assembly text."""
    return str(_target_machine(machine, speed).emit_assembly(_module(text, machine)))


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
