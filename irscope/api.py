"""What notebooks and scripts use: ``irscope.load`` and ``irscope.compile``."""
from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from irscope.formats.detect import called, decode, read
from irscope.graph import Module, Reading
from irscope.query.origins import with_origins
from irscope.source import SourceText, UserError
from irscope.source.budget import concerning
from irscope.source.files import read_bytes, read_large_text

if TYPE_CHECKING:
    from irscope.backends.model import Model


def load(path_or_text: str | bytes | os.PathLike[str], *, format: str | None = None, name: str | None = None) -> Reading:
    """Read a dump: a path (``-`` is standard input, .gz is unpacked), the text itself (a str of several lines), or its bytes.

    ``format`` overrides the detection. Raises :class:`irscope.UserError` where there is nothing to read; faults inside a dump
    are findings of the Reading.

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
        return with_origins(read(decode(path_or_text, name or "<bytes>"), format))
    path = os.fspath(path_or_text)
    if name is None:
        concerning(called(path))
    large = read_large_text(path)
    if large is not None:
        return with_origins(read(SourceText(name or path, large), format))
    return with_origins(read(decode(read_bytes(path), name or path), format))


def compile(what: Reading | str | bytes | os.PathLike[str], *, weights: Mapping[str, Any] | None = None,
            shapes: Mapping[str, tuple[int, ...]] | None = None, dtypes: Mapping[str, str] | None = None,
            constants: Mapping[str, Any] | None = None, threads: int | None = None, precision: str = "default", cpu: str = "",
            autotune: bool = False) -> Model:
    """Compile a dump to native code: a callable that takes numpy arrays in the entry's order and gives a list of new arrays.

    ``weights`` (by input name or ``argN``) are fixed: they may be packed and folded, and are no inputs any more. ``shapes`` and
    ``dtypes`` bind what the text leaves open, ``constants`` are values that it elides. ``autotune`` measures schedules
    and keeps the fastest, which takes a while the first time. Raises :class:`irscope.UserError`.

    >>> import numpy as np
    >>> model = compile('''ENTRY main { p = f32[3] parameter(0)
    ... ROOT n = f32[3] negate(p) }''')
    >>> model(np.arange(3, dtype=np.float32))[0].tolist()
    [-0.0, -1.0, -2.0]
    """
    from irscope.backends.model import compile_named
    from irscope.backends.pool import available_threads
    from irscope.lower.options import Options

    reading = what if isinstance(what, Reading) else load(what)
    options = Options(threads=threads or available_threads(), precision=precision)
    tuner = None
    if autotune:
        from irscope.backends.tuning import Tuning

        tuner = Tuning(options.threads, cpu)
    return compile_named(reading, weights or {}, shapes or {}, dtypes or {}, constants or {}, options, cpu, tuner)


def scalar_loops(module: Module) -> list[tuple[str, tuple[str, ...], int, bool]]:
    """The kernels that compute without vectors when a module is compiled: name, the user's nodes, steps, whether the end depends on data.

    Empty where the module cannot be compiled (open shapes, operators that do not run here): ``compile-and-run`` says why.
    """
    from irscope.backends.model import primitive
    from irscope.lower.lowering import lower
    from irscope.lower.options import Options
    from irscope.lower.scalar_loops import scalar_loops as found_in

    try:
        program = lower(primitive(module), Options())
    except UserError:
        return []
    return [(loop.kernel, loop.nodes, loop.steps, loop.waits) for loop in found_in(program)]
