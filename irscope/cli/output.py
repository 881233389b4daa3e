"""Where output goes: a stream or a file, with what the terminal can."""
from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from irscope.cli.errors import wants_colour
from irscope.source import UserError

if TYPE_CHECKING:
    from irscope.render.paint import Paint

# Nobody reads lines longer than this, whatever the window.
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
    return Paint(max(40, min(width, MAX_WIDTH)), wants_colour(stream), unicode)


@contextmanager
def opened(path: str, inputs: Iterable[str] = ()) -> Iterator[TextIO]:
    """The text stream of ``-o``: ``-`` is standard output; a file appears whole or not at all. ``inputs`` must not be overwritten."""
    if path == "-":
        yield sys.stdout
        return
    with _whole(path, inputs) as temporary, open(temporary, "w", encoding="utf-8") as stream:
        yield stream


def write_bytes(path: str, data: bytes, inputs: Iterable[str] = ()) -> None:
    """Write a file whole, or to standard output."""
    if path == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    with _whole(path, inputs) as temporary, open(temporary, "wb") as stream:
        stream.write(data)


@contextmanager
def _whole(path: str, inputs: Iterable[str]) -> Iterator[str]:
    for given in inputs:
        if given != "-" and os.path.exists(path) and os.path.exists(given) and os.path.samefile(path, given):
            raise UserError(f"{path} is an input; it is not overwritten", "give another name with -o")
    folder = os.path.dirname(path) or "."
    try:
        handle, temporary = tempfile.mkstemp(prefix=".irscope-", dir=folder)
        os.close(handle)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}", "does its folder exist, and may you write there?") from None
    try:
        yield temporary
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
