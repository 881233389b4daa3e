"""Links an object file to a shared library, with a linker that is installed for its target."""
from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from irscope.backends import llvm_compile
from irscope.backends.standalone import is_elf
from irscope.backends.targets import architecture_of
from irscope.source import UserError


def linker_of(triple: str) -> str:
    """The path of a linker for a target. Raises UserError where none is installed, or the target has no ELF files."""
    by_hand = "--emit obj needs no linker; a compiler for the target links the object: cc -shared model.o -o model.so -lm"
    if not is_elf(triple):
        raise UserError(f"--emit so links shared libraries of ELF, which {triple} does not use", by_hand)
    names = _names(triple)
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise UserError(f"there is no linker for {triple} on this machine: none of {', '.join(names)}", by_hand)
    return found


def _names(triple: str) -> list[str]:
    """Names of linkers for a target, the best first: the host's own, GNU's as Debian and as cross toolchains call it, and LLVM's."""
    architecture, *rest = triple.split("-")
    here, target = architecture_of(llvm_compile.host().triple), architecture_of(triple)
    system = "-".join(word for word in rest if word not in ("unknown", "pc", "none"))
    prefix = "arm" if architecture.startswith("armv7") else architecture
    own = ["ld"] if here is target and is_elf(llvm_compile.host().triple) else []
    return [*own, *dict.fromkeys([f"{triple}-ld", f"{prefix}-{system}-ld"]), "ld.lld"]


def shared_library(image: bytes, triple: str) -> bytes:
    """A shared library of one object file. Raises UserError where there is no linker, or it fails."""
    linker = linker_of(triple)
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "model.o", Path(folder) / "model.so"
        given.write_bytes(image)
        done = subprocess.run([linker, "-shared", "-o", str(made), str(given)], capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise UserError(f"{linker} could not link the library: {said}", "--emit obj needs no linker")
        return made.read_bytes()
