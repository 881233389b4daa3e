"""Where output goes: a stream or a file, with what the terminal can."""
from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO, cast

from irscope.api.paths import files_of
from irscope.cli.errors import wants_colour
from irscope.cli.streams import Guarded, program_text
from irscope.source.links import follows_links
from irscope.source.writing import writing

if TYPE_CHECKING:
    from irscope.render.paint import Paint

# Longer lines are hard to read, however wide the window.
MAX_WIDTH = 160
PIPED_WIDTH = 120


def paint_for(stream: TextIO, width: int | None = None) -> Paint:
    """How to draw on ``stream``: the width of the terminal, colour where it is wanted, line characters where the encoding has them."""
    from irscope.render.paint import Paint

    encoding = (getattr(stream, "encoding", None) or "ascii").lower()
    unicode = encoding.replace("-", "").startswith("utf") and os.environ.get("TERM") != "dumb"
    if width is None:
        terminal = bool(getattr(stream, "isatty", lambda: False)())
        width = shutil.get_terminal_size((80, 24)).columns if terminal or os.environ.get("COLUMNS") else PIPED_WIDTH
    return Paint(max(40, min(width, MAX_WIDTH)), wants_colour(stream), unicode, follows_links(stream))


@contextmanager
def opened(path: str, inputs: Iterable[str] = (), verbatim: bool = False) -> Iterator[TextIO]:
    """The text stream of ``-o``: ``-`` is standard output, anything else is written by :func:`irscope.source.writing.writing`.

    What is for people is guarded (:mod:`irscope.cli.streams`), in files too; a program's own text (``verbatim``) on a terminal only.
    """
    if path == "-":
        yield program_text() if verbatim else sys.stdout
        sys.stdout.flush()  # what is said on standard error next stands behind it
        return
    with writing(path, files_of(inputs)) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        try:
            yield text if verbatim else cast(TextIO, Guarded(text, colour=False))
            text.flush()
        finally:
            text.detach()


def write_bytes(path: str, data: bytes, inputs: Iterable[str] = ()) -> None:
    """Write a file whole, or to standard output."""
    if path == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    with writing(path, files_of(inputs)) as stream:
        stream.write(data)
