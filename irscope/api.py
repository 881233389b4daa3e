"""What notebooks and scripts use: ``irscope.load`` and ``irscope.compile``."""
from __future__ import annotations

import os

from irscope.formats.detect import decode, read
from irscope.graph import Reading
from irscope.source import SourceText
from irscope.source.files import read_bytes


def load(path_or_text: str | bytes | os.PathLike[str], *, format: str | None = None, name: str | None = None) -> Reading:
    """Read a dump: a path (``-`` is standard input, .gz is unpacked), the text itself (a str of several lines), or its bytes.

    ``format`` overrides the detection. Raises :class:`irscope.UserError` where there is nothing to read; faults inside a dump
    are findings of the Reading.

    >>> reading = load('''ENTRY main { p = f32[2] parameter(0)
    ... ROOT n = f32[2] negate(p) }''')
    >>> [node.op.name for node in reading.module().main().nodes]
    ['parameter', 'negate']
    """
    if isinstance(path_or_text, str) and "\n" in path_or_text:
        return read(SourceText(name or "<text>", path_or_text), format)
    if isinstance(path_or_text, bytes):
        return read(decode(path_or_text, name or "<bytes>"), format)
    return read(decode(read_bytes(path_or_text), name or os.fspath(path_or_text)), format)
