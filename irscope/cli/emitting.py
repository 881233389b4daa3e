"""``--emit``: a stage of the compiler written instead of run."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from irscope.analysis.summary import source_line
from irscope.cli.output import opened, write_bytes
from irscope.graph import Module, Node
from irscope.source import UserError

if TYPE_CHECKING:
    from irscope.backends.llvm_compile import Machine
    from irscope.cli.run_request import Request
    from irscope.lower.program import Program


NODES_TOLD = 6
"""Of the nodes that one line of the user's program makes in a kernel so many are named."""


def emit(request: Request, module: Module, weights: dict[int, Any]) -> int:
    """Write the stage that was asked for to ``-o``."""
    from irscope.backends import llvm_compile
    from irscope.backends.compile import units
    from irscope.backends.model import lowered

    program = lowered(module, weights, request.options(), request.cpu, not request.no_cache).program
    stage = request.emit
    if stage == "loops":
        from irscope.lower.printer import print_program

        nodes = {node.name: node for graph in module.graphs.values() for node in graph.nodes}
        return _text(request, print_program(program, lambda kernel: _lines_of(module, [nodes[n] for n in kernel.origin if n in nodes])))
    try:
        machine = llvm_compile.cross(request.target, request.cpu) if request.target else llvm_compile.host(request.cpu)
    except llvm_compile.CompileFailed as error:
        raise UserError(str(error), "triples look like x86_64-unknown-linux-gnu, aarch64-linux-gnu, riscv64-linux-gnu") from None
    texts, _ = units(program, machine)
    if stage == "llvm":
        return _text(request, "\n".join(f"; {unit.name}: {unit.kernel.name if unit.kernel else 'main'}\n{unit.text}" for unit in texts))
    if stage == "asm":
        return _text(request, "\n".join(llvm_compile.assembly(unit.text, machine, unit.speed) for unit in texts))
    return _library(request, program, machine.for_files())


def _lines_of(module: Module, nodes: list[Node]) -> list[str]:
    """The user's own lines that a kernel computes, each with the nodes that come from it and the scope of the first."""
    lines: dict[str, list[Node]] = {}
    for node in nodes:
        line = source_line(module, node)
        if line or module.scope(node):
            lines.setdefault(line, []).append(node)
    told = []
    for line, here in lines.items():
        names = " ".join(f"%{node.name}" for node in here[:NODES_TOLD]) + (f" +{len(here) - NODES_TOLD}" if len(here) > NODES_TOLD else "")
        scope = next(filter(None, map(module.scope, here)), "")
        told.append("  ".join(part for part in (line, names, scope) if part))
    return told


def _text(request: Request, text: str) -> int:
    with opened(request.output, (request.file,), verbatim=True) as stream:
        stream.write(text)
    return 0


def _library(request: Request, program: Program, machine: Machine) -> int:
    """The program and all it needs, joined into one file by the system's linker; irscope.backends.standalone says how C calls it."""
    import shutil
    import subprocess
    import tempfile

    from irscope.backends import llvm_compile
    from irscope.backends.standalone import library_units

    if request.output == "-":
        raise UserError(f"--emit {request.emit} writes binary code", "-o FILE says where to")
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
        how = ["-r"] if request.emit == "obj" else ["-shared"]
        joined = Path(folder) / "joined"
        done = subprocess.run([linker, *how, "-o", str(joined), *paths], capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise UserError(f"the kernels could not be joined: {said}", "another machine needs its own linker; --emit asm needs none")
        write_bytes(request.output, joined.read_bytes(), (request.file,))
    return 0
