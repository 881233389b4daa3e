"""``irscope.emit``: emits a stage of the compiler as text or as binary code, without running it."""
from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from irscope.analysis.summary import source_line
from irscope.api.arrays import NO_ARRAYS
from irscope.api.binding import lowering_options
from irscope.api.loading import Source
from irscope.api.options import RunOptions
from irscope.api.running import prepared
from irscope.api.watching import SILENT, Watcher
from irscope.backends import llvm_compile
from irscope.backends.compile import units
from irscope.backends.llvm_compile import Machine
from irscope.backends.model import lowered
from irscope.backends.standalone import library_units
from irscope.graph import Module, Node
from irscope.lower.printer import print_program
from irscope.lower.program import Program
from irscope.source import UserError

NODES_TOLD = 6
"""Of the nodes that one line of the user's program makes in a kernel so many are named."""


def emit(what: Source, stage: str, options: RunOptions | None = None, *, watch: Watcher = SILENT) -> str | bytes:
    """A stage of the compiler: ``loops``, ``llvm`` and ``asm`` are texts, ``obj`` and ``so`` are bytes for C to call.

    ``options.target`` names another machine (an LLVM triple). Raises :class:`irscope.UserError` as :func:`irscope.run` does, and
    if the target is unknown or there is no linker.

    >>> text = emit("ENTRY main { p = f32[3] parameter(0)\\n ROOT n = f32[3] negate(p) }", "llvm")
    >>> "define" in text
    True
    """
    options = options or RunOptions()
    module, arrays = prepared(what, options, NO_ARRAYS, watch)
    program = lowered(module, arrays.weights, lowering_options(options), options.cpu, not options.no_cache).program
    if stage == "loops":
        nodes = {node.name: node for graph in module.graphs.values() for node in graph.nodes}
        return print_program(program, lambda kernel: _lines_of(module, [nodes[n] for n in kernel.origin if n in nodes]))
    try:
        machine = llvm_compile.cross(options.target, options.cpu) if options.target else llvm_compile.host(options.cpu)
    except llvm_compile.CompileFailed as error:
        raise UserError(str(error), "triples look like x86_64-unknown-linux-gnu, aarch64-linux-gnu, riscv64-linux-gnu") from None
    texts, _ = units(program, machine)
    if stage == "llvm":
        return "\n".join(f"; {unit.name}: {unit.kernel.name if unit.kernel else 'main'}\n{unit.text}" for unit in texts)
    if stage == "asm":
        return "\n".join(llvm_compile.assembly(unit.text, machine, unit.speed) for unit in texts)
    if stage not in ("obj", "so"):
        raise UserError(f"there is no stage {stage!r}", "the stages are loops, llvm, asm, obj and so")
    return _library(stage, program, machine.for_files())


def _lines_of(module: Module, nodes: list[Node]) -> list[str]:
    """The source lines that a kernel computes, each with the nodes that come from it and the scope of the first."""
    lines: dict[str, list[Node]] = {}
    for node in nodes:
        line = source_line(module, node)
        if line or module.scope(node):
            lines.setdefault(line, []).append(node)
    rows = []
    for line, here in lines.items():
        names = " ".join(f"%{node.name}" for node in here[:NODES_TOLD]) + (f" +{len(here) - NODES_TOLD}" if len(here) > NODES_TOLD else "")
        scope = next(filter(None, map(module.scope, here)), "")
        rows.append("  ".join(part for part in (line, names, scope) if part))
    return rows


def _library(stage: str, program: Program, machine: Machine) -> bytes:
    """The program with its dependencies, linked by the system's linker; irscope.backends.standalone documents the C interface."""
    linker = shutil.which("ld") or shutil.which("ld.lld")
    if linker is None:
        raise UserError("there is no linker (ld) on this machine to join the kernels", "--emit asm needs none")
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for unit in library_units(program, machine, Path(folder)):
            path = Path(folder) / f"{unit.name}.o"
            try:
                path.write_bytes(llvm_compile.object_code(unit.text, machine, unit.speed))
            except llvm_compile.CompileFailed as error:
                raise UserError(str(error), "--emit asm writes its text, where the target has one") from None
            paths.append(str(path))
        how = ["-r"] if stage == "obj" else ["-shared"]
        joined = Path(folder) / "joined"
        done = subprocess.run([linker, *how, "-o", str(joined), *paths], capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise UserError(f"the kernels could not be joined: {said}", "another machine needs its own linker; --emit asm needs none")
        return joined.read_bytes()
