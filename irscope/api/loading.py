"""Reading dumps: ``irscope.load``, and checks for functions that need a whole module."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from irscope.api.live import Arguments, Live, dump_of
from irscope.api.watching import SILENT, Watcher
from irscope.formats.detect import called, read, read_data
from irscope.graph import Module, Reading
from irscope.query.origins import with_origins
from irscope.source import Finding, Severity, SourceText, UserError
from irscope.source.budget import concerning
from irscope.source.files import map_large_archive, read_bytes, read_large_text

Source = Reading | str | bytes | os.PathLike[str]
"""What functions read: a reading, a path (``-`` is standard input), a text of several lines, or its bytes."""

MODULES_NAMED = 4
"""The most modules of a text that :func:`first_module` names in its note."""


def load(path_or_text: str | bytes | os.PathLike[str] | Live, *, format: str | None = None, name: str | None = None,
         args: Sequence[object] = (), kwargs: Mapping[str, object] | None = None) -> Reading:
    """Read a dump: a path (``-`` is standard input, .gz is unpacked), the text itself (a str of several lines), or its bytes.

    Or a program of jax: a Lowered, Compiled, Traced or Exported object, a jitted function with its ``args`` and ``kwargs`` (arrays, or
    ``jax.ShapeDtypeStruct``), or a Keras model on jax. Or one of torch: an ExportedProgram, a GraphModule, a ScriptModule; with ``args``
    also a module, which is exported for them, and a function of torch.compile, which is called once while its compilation is traced.
    ``format`` (``hlo``, ``relay``, ``torchscript``) overrides the detection, ``name`` is the name in messages.

    Raises :class:`irscope.UserError` if there is nothing to read. Errors inside a dump do not raise: they are findings of the Reading, and
    its ``ok`` is False if the format's own parser would reject the text.

    >>> reading = load('''ENTRY main { p = f32[2] parameter(0)
    ... ROOT n = f32[2] negate(p) }''')
    >>> [node.op.name for node in reading.module().main().nodes]
    ['parameter', 'negate']
    """
    if name is not None:
        concerning(name)
    if isinstance(path_or_text, str) and "\n" in path_or_text:
        return with_origins(read(SourceText(name or "<text>", path_or_text), format))
    if isinstance(path_or_text, bytes):
        return with_origins(read_data(path_or_text, name or "<bytes>", format))
    if not isinstance(path_or_text, str | os.PathLike):
        return _load_live(path_or_text, Arguments(args, kwargs or {}), format, name or f"<{type(path_or_text).__name__}>")
    path = os.fspath(path_or_text)
    if name is None:
        concerning(called(path))
    large = read_large_text(path)
    if large is not None:
        return with_origins(read(SourceText(name or path, large), format))
    archive = map_large_archive(path)
    return with_origins(read_data(read_bytes(path) if archive is None else archive, name or path, format))


def _load_live(what: Live, arguments: Arguments, format: str | None, name: str) -> Reading:
    dump = dump_of(what, arguments)
    reading = load(dump.data, format=format, name=name)
    if dump.values is not None:
        for module in reading.modules:
            module.stored = dump.values
    return reading


def read_source(what: Source, source_format: str | None = None) -> Reading:
    """The reading of an argument: the argument itself, or what :func:`load` reads."""
    return what if isinstance(what, Reading) else load(what, format=source_format)


def name_of(what: Source) -> str:
    """The name of an argument in messages and reports."""
    if isinstance(what, Reading):
        return what.source.name
    return "<bytes>" if isinstance(what, bytes) else "<text>" if isinstance(what, str) and "\n" in what else os.fspath(what)


def whole(what: Source, source_format: str | None = None) -> Reading:
    """The reading of a dump that must be whole. Raises :class:`irscope.UserError` with every error that the format's parser would report.

    >>> whole("ENTRY main { ROOT n = f32[2] negate(p) }\\n")
    Traceback (most recent call last):
    ...
    irscope.source.errors.UserError: <text>: 1 error in the text
    """
    reading = read_source(what, source_format)
    if reading.ok and reading.modules:
        return reading
    errors = errors_of(reading)
    name = called(reading.source.name)
    if not errors:
        raise UserError(f"{name}: there is no module in it")
    raise UserError(f"{name}: {len(errors)} {'error' if len(errors) == 1 else 'errors'} in the text", findings=errors)


def errors_of(reading: Reading) -> list[Finding]:
    """The findings of a reading that are errors."""
    return [finding for finding in reading.findings if finding.severity is Severity.ERROR]


def first_module(reading: Reading, watch: Watcher = SILENT) -> Module:
    """The first module of a reading. A note reports the lines of the others."""
    if len(reading.modules) > 1:
        first, *more = [f"{module.name} (line {_line(reading, module)})" for module in reading.modules[:MODULES_NAMED]]
        others = ", ".join(more) + (", ..." if len(reading.modules) > MODULES_NAMED else "")
        watch.note(f"{called(reading.source.name)} holds {len(reading.modules)} modules; the first, {first}, is taken, and not {others}")
    return reading.module()


def _line(reading: Reading, module: Module) -> int:
    """The line at which the first graph of a module begins."""
    return reading.source.place(max(0, min((graph.loc for graph in module.graphs.values()), default=0))).line
