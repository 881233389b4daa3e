"""``irscope.emit`` and ``irscope.write_library``: a stage of the compiler as text or as binary code, without running it."""
from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from irscope.analysis.summary import source_line
from irscope.api.array_files import NO_ARRAYS
from irscope.api.binding import lowering_options
from irscope.api.loading import Source, name_of
from irscope.api.options import RunOptions
from irscope.api.preparing import prepared
from irscope.api.targeting import host_cpu, machine_for
from irscope.api.watching import SILENT, Watcher
from irscope.backends.c_header import MARK, c_header
from irscope.backends.compile import units
from irscope.backends.linking import linker_of, shared_library
from irscope.backends.llvm_compile import annotated_assembly
from irscope.backends.loaded_model import LoweredModel
from irscope.backends.model import lowered, ports_of
from irscope.backends.standalone import CompiledLibrary
from irscope.backends.stopping import may_take_long
from irscope.backends.targets import Machine
from irscope.graph import Module, Node
from irscope.lower.printer import print_kernel, print_program
from irscope.render.units import some
from irscope.source import UserError, did_you_mean
from irscope.source.writing import is_written_through, writing

MOST_NAMED = 6
"""The most nodes of a source line, and the most kernels, that a text names."""
LIBRARIES = ("asm", "obj", "so")
"""The stages that are a library for C: with the constants and the entry point, and for one thread."""


def emit(what: Source, stage: str, options: RunOptions | None = None, *, watch: Watcher = SILENT) -> str | bytes:
    """A stage of the compiler: ``loops``, ``llvm`` and ``asm`` are texts, ``obj`` and ``so`` are bytes. The last three are a library for C,
    with the constants of the program inside; :func:`write_library` also writes its header. With ``options.kernel``, only the text of
    that kernel is returned; its assembly is that of a run, with LLVM's comments.

    ``options.target`` names another machine (an LLVM triple). Raises :class:`irscope.UserError` as :func:`irscope.run` does, and
    if the target is unknown or there is no linker.

    >>> text = emit("ENTRY main { p = f32[3] parameter(0)\\n ROOT n = f32[3] negate(p) }", "llvm")
    >>> "define" in text
    True
    """
    if stage not in ("loops", "llvm", *LIBRARIES):
        raise UserError(f"there is no stage {stage!r}", "the stages are loops, llvm, asm, obj and so")
    options = options or RunOptions()
    _refuse_one_kernel(options, stage)
    emitted = _lowered(what, "llvm" if options.kernel and stage == "asm" else stage, options, watch)
    if options.kernel:
        return _of_kernel(emitted, stage, options.kernel)
    if stage in LIBRARIES:
        return _library(emitted, stage)[0]
    program = emitted.model.program
    if stage == "loops":
        nodes = {node.name: node for graph in emitted.module.graphs.values() for node in graph.nodes}
        return print_program(program, lambda kernel: _lines_of(emitted.module, [nodes[n] for n in kernel.origin if n in nodes]))
    texts, _ = units(program, emitted.machine)
    return "\n".join(f"; {unit.name}: {unit.kernel.name if unit.kernel else 'main'}\n{unit.text}" for unit in texts)


def _refuse_one_kernel(options: RunOptions, stage: str) -> None:
    """Raise UserError where a library of one kernel is requested."""
    if options.kernel and stage in ("obj", "so"):
        raise UserError(f"a library ({stage}) has all kernels of its program", "--emit loops, llvm or asm prints one")


def _of_kernel(emitted: _Emitted, stage: str, name: str) -> str:
    """The text of the kernels of that name, usually a single one. Raises UserError where there is none."""
    program, machine = emitted.model.program, emitted.machine
    found = [kernel for kernel in program.kernels() if kernel.name == name]
    if not found:
        known = list(dict.fromkeys(kernel.name for kernel in program.kernels()))
        raise UserError(f"there is no kernel {name!r}", did_you_mean(name, known) or f"the kernels are {some(known, MOST_NAMED)}")
    if stage == "loops":
        return "\n".join(print_kernel(kernel) for kernel in found)
    texts = [unit for unit in units(program, machine, may_take_long(program))[0] if any(k in found for k in (unit.kernel, *unit.others))]
    if stage == "asm":
        return "\n".join(annotated_assembly(unit.text, machine, unit.speed) for unit in texts)
    return "\n".join(f"; {unit.name}: {name}\n{unit.text}" for unit in texts)


def write_library(what: Source, stage: str, path: str, options: RunOptions | None = None, *, watch: Watcher = SILENT) -> str:
    """Write a library for C, as ``obj`` or ``so``, and its header beside it. Returns the header's path; it is empty, and none is written,
    where ``path`` is a device or a pipe.

    Raises :class:`irscope.UserError` as :func:`emit` does, and if the header would replace a file that irscope did not write.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     header = write_library("ENTRY e { p = f32[3] parameter(0)\\n ROOT n = f32[3] negate(p) }", "obj", f"{folder}/model.o")
    ...     print(Path(header).name, "inputs[0]  p: float[3]" in Path(header).read_text())
    model.h True
    """
    if stage not in ("obj", "so"):
        raise UserError(f"{stage!r} is no kind of library", "the kinds are obj and so")
    options = options or RunOptions()
    _refuse_one_kernel(options, stage)
    if not is_written_through(path) and (not Path(path).name or "\0" in path):
        raise UserError(f"{path!r} is no name of a file", "give the name of the library")
    header = "" if is_written_through(path) else str(Path(path).with_suffix(".h"))
    if header:
        _refuse_to_replace(header, path)
    code, text = _library(_lowered(what, stage, options, watch), stage)
    inputs = [name_of(what), *options.files]
    for name, content in ((path, code), (header, text)):
        if name:
            with writing(name, inputs) as stream:
                stream.write(content if isinstance(content, bytes) else content.encode())
    return header


def _refuse_to_replace(header: str, path: str) -> None:
    """Raise UserError where the header would replace the library itself, or a file that irscope did not write."""
    if os.path.realpath(header) == os.path.realpath(path):
        raise UserError(f"{path} is the name of the library's header", "-o model.so writes model.so and model.h")
    try:
        with open(header, encoding="utf-8", errors="replace") as file:
            begin = file.read(len(MARK))
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(f"{header}: cannot be read: {error.strerror or error}") from None
    if begin != MARK:
        raise UserError(f"{header}, the name of the library's header, is a file that irscope did not write", "give another name to -o")


@dataclass(frozen=True, slots=True)
class _Emitted:
    """A module, and the program that it is lowered to for a machine."""

    module: Module
    model: LoweredModel
    machine: Machine


def _lowered(what: Source, stage: str, options: RunOptions, watch: Watcher) -> _Emitted:
    """The program for the machine that the options name."""
    machine = machine_for(options)
    if stage == "so":
        linker_of(machine.triple)  # raises before any work is done
    ready = prepared(what, options, NO_ARRAYS, watch)
    lowering = replace(lowering_options(options), machine=machine.vectors)
    if stage in LIBRARIES:
        lowering = replace(lowering, threads=1)
    return _Emitted(ready.module, lowered(ready.module, ready.arrays.weights, lowering, host_cpu(options), not options.no_cache), machine)


def _library(emitted: _Emitted, stage: str) -> tuple[str | bytes, str]:
    """The program as a library, and its C header."""
    module, machine = emitted.model.module, emitted.machine.for_files()
    with tempfile.TemporaryDirectory() as folder:
        library = CompiledLibrary.of(emitted.model.program, machine, Path(folder) if stage != "asm" else None)
        header = c_header(library, module.name, *ports_of(module))
        if stage == "asm":
            return library.assembly(), header
        code = library.object_code()
    return shared_library(code, machine.triple) if stage == "so" else code, header


def _lines_of(module: Module, nodes: list[Node]) -> list[str]:
    """The source lines that a kernel computes, each with the nodes that come from it and the scope of the first."""
    lines: dict[str, list[Node]] = {}
    for node in nodes:
        line = source_line(module, node)
        if line or module.scope(node):
            lines.setdefault(line, []).append(node)
    rows = []
    for line, here in lines.items():
        names = " ".join(f"%{node.name}" for node in here[:MOST_NAMED]) + (f" +{len(here) - MOST_NAMED}" if len(here) > MOST_NAMED else "")
        scope = next(filter(None, map(module.scope, here)), "")
        rows.append("  ".join(part for part in (line, names, scope) if part))
    return rows
