"""Reads bytes from a path, a .gz or standard input; every failure is a UserError."""
from __future__ import annotations

import codecs
import mmap
import os
import stat
import sys
import zlib
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import BinaryIO

from irscope.source.budget import require, tick
from irscope.source.errors import UserError
from irscope.source.reads import note_read

STDIN = "-"
# Dumps of 500 MB exist; one of 2 GiB is a mistake (a core file, an endless pipe). A .gz may expand a thousandfold.
MAX_BYTES = 2 << 30
MAX_TEXT = 64 << 20
"""The same for a file that people write, or irscope itself: settings, a baseline, a table."""
CHUNK = 1 << 20
LARGE = 32 << 20
"""From this size on, a text should be in memory only once."""
GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGIC = b"PK\x03\x04"


def path_or_empty(what: object) -> str:
    """An argument that is a path, as a string; empty for a text of several lines, and for anything else that is in memory."""
    if isinstance(what, os.PathLike):
        return str(os.fspath(what))
    return what if isinstance(what, str) and "\n" not in what else ""


def read_bytes(path: str | os.PathLike[str], limit: int = MAX_BYTES) -> bytes:
    """The content of a file (``-``: standard input), unpacked when it is gzip. Raises UserError with a help."""
    name = os.fspath(path)
    note_read(name)
    data = _content(name, name, limit, "is it a dump at all? If so, give a part of it")
    if data.startswith(GZIP_MAGIC):
        data = _unzip(data, name, limit)
    if not data.strip():
        what = "standard input" if name == STDIN else name
        raise UserError(f"{what} is empty" if not data else f"{what} contains only blanks",
                        "was the program that wrote it stopped, or its output sent elsewhere (2> instead of >)?")
    return data


def read_plain_text(path: str | os.PathLike[str], name: str = "") -> str:
    """The text of a file (``-``: standard input) that is not a dump, such as settings, with ``\\n`` at the end of each line.

    ``name`` is the path in messages. The text may be empty. Raises UserError for a file that cannot be read, has more than
    :data:`MAX_TEXT` bytes or is not UTF-8.
    """
    name = name or os.fspath(path)
    note_read(path)
    data = _content(os.fspath(path), name, MAX_TEXT, "give a text file")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise UserError(f"{name} is not UTF-8 text", "is it the right file?") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _content(path: str, name: str, limit: int, help: str) -> bytes:
    """The bytes of a file or of standard input. Raises UserError where it cannot be opened or read, or is larger than ``limit``."""
    try:
        if path == STDIN:
            return _read_stdin(limit, help)
        with open(path, "rb") as file:
            return _read_up_to(file, name, limit, help)
    except FileNotFoundError:
        if os.path.islink(name):
            raise UserError(f"{name} is a link to {os.readlink(name)}, which is not there", "give the file itself") from None
        raise UserError(f"{name}: no such file", _near_files(name)) from None
    except IsADirectoryError:
        raise UserError(f"{name} is a folder, not a file", _inside(name)) from None
    except PermissionError:
        raise UserError(f"{name}: permission denied", "give yourself the right to read it: chmod u+r") from None
    except OSError as error:
        raise UserError(f"{name}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise UserError(f"{name!r} is not a file name: it contains a NUL character") from None


def read_large_text(path: str) -> str | None:
    """The text of a large plain file, decoded piece by piece, so that bytes and text are never both in memory.

    None for a file that is small, packed, binary or missing: :func:`read_bytes` reads or reports it.
    """
    try:
        if path == STDIN or os.path.getsize(path) < LARGE or os.path.getsize(path) > MAX_BYTES:
            return None
        note_read(path)
        with open(path, "rb") as file:
            head = file.read(CHUNK)
            if head.startswith((GZIP_MAGIC, codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in head:
                return None
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            # Appending to a string without other references grows it in place; joining pieces would keep it twice.
            # (CPython does so once the loop is warm, and it warms up for loops of this form, not for `while`.)
            text = decoder.decode(head)
            for piece in iter(partial(file.read, CHUNK), b""):
                text += decoder.decode(piece)
                tick(len(piece) >> 10)
            text += decoder.decode(b"", True)
    except (OSError, ValueError):
        return None
    return text


class MappedFile(mmap.mmap):
    """The bytes of a file, read from the disk where they are used. Slices are bytes; a zip archive can be opened over it."""

    def seekable(self) -> bool:
        return True


Bytes = bytes | MappedFile
"""The content of a file, in memory or in place."""


def map_large_archive(path: str) -> MappedFile | None:
    """A large zip archive in place: it may hold more weights than fit into memory.

    None for a file that is small, of another kind or missing: :func:`read_bytes` reads or reports it.
    """
    try:
        if path == STDIN or os.path.getsize(path) < LARGE:
            return None
        note_read(path)
        with open(path, "rb") as file:
            if file.read(len(ZIP_MAGIC)) != ZIP_MAGIC:
                return None
            return MappedFile(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None


def _read_stdin(limit: int, help: str) -> bytes:
    if sys.stdin is None:
        raise UserError("there is no standard input to read", "give the path of a file")
    if sys.stdin.isatty():
        print("reading from the terminal; end with Ctrl-D, or give a file", file=sys.stderr)
    return _read_up_to(sys.stdin.buffer, "standard input", limit, help)


def _read_up_to(file: BinaryIO, name: str, limit: int, help: str) -> bytes:
    """All of a file. Reading ``limit`` bytes at once would reserve them, which fails where address space is limited."""
    pieces: list[bytes] = []
    size = 0
    wanted = max(CHUNK, min(limit, _size(file))) + 1
    while piece := file.read(wanted):
        pieces.append(piece)
        size += len(piece)
        tick(len(piece) >> 10)
        require(size, name)
        if size > limit:
            raise UserError(f"{name} is larger than {limit >> 20} MiB", help)
        wanted = CHUNK
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _size(file: BinaryIO) -> int:
    """The size of a regular file in bytes; 0 where it is unknown before reading."""
    try:
        found = os.fstat(file.fileno())
    except (OSError, ValueError):
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _unzip(data: bytes, name: str, limit: int) -> bytes:
    """All members of a gzip file, in pieces, so that a small file cannot exhaust memory."""
    out: list[bytes] = []
    size = 0
    while data.startswith(GZIP_MAGIC):
        unpacker = zlib.decompressobj(wbits=31)
        try:
            while not unpacker.eof and (piece := unpacker.decompress(data, CHUNK)):
                out.append(piece)
                size += len(piece)
                data = unpacker.unconsumed_tail
                tick(len(piece) >> 10)
                require(size, name)
                if size > limit:
                    raise UserError(f"{name} unpacks to more than {limit >> 20} MiB", "is it a dump at all? If so, give a part of it")
        except zlib.error as error:
            raise UserError(f"{name} is gzip, but damaged: {error}", "copy it again, or test it with gzip -t") from None
        if not unpacker.eof:
            raise UserError(f"{name} is gzip, but cut off in the middle", "copy it again, or wait until its writer is done")
        data = unpacker.unused_data
    return b"".join(out)


def _near_files(name: str) -> str:
    """A help for a missing file: files with similar names in the same folder, or the missing folder."""
    path = Path(name)
    folder = path.parent
    try:
        siblings = sorted(entry.name for entry in os.scandir(folder))
    except OSError:
        return f"there is no folder {folder}"
    near = get_close_matches(path.name, siblings, n=3, cutoff=0.6)
    if near:
        return "did you mean " + ", ".join(str(folder / n) if str(folder) != "." else n for n in near) + "?"
    return "" if str(folder) != "." else f"looked in {Path.cwd()}"


def _inside(folder: str) -> str:
    """The help for a folder in place of a file: names a file in it, in a dump the largest optimised program."""
    try:
        files = {entry.name: entry.stat().st_size for entry in os.scandir(folder) if entry.is_file()}
    except OSError:
        return "give one of the files in it"
    if not files:
        return "it contains no files"
    best = next((names for end in _LIKELY if (names := [name for name in files if name.endswith(end)])), list(files))
    such = min(best, key=lambda name: (-files[name], name))
    return (f"give one of the {len(files)} files in it, such as {Path(folder) / such};\n"
            f"irscope show {folder} lists their programs")


_LIKELY = ("after_optimizations.txt", "before_optimizations.txt", ".hlo", ".relay", ".txt")
"""How names of dumps end, the likeliest first."""
