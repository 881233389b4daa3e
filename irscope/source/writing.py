"""Writes files: whole or not at all, and never replaces what is not a regular file.

* A regular file is written under another name beside it and renamed when complete, with the mode of the old file.
* A link stays; the file that it points to is replaced.
* Anything but a regular file (a device, a pipe, ``/dev/stdout``, the ``/dev/fd/63`` of a process substitution) is written through.
* A writable file in a read-only folder (a mounted file, say) is overwritten in place once the content is complete.
* A file that was read as an input is refused (:mod:`irscope.source.reads`).
"""
from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import BinaryIO

from irscope.source.errors import UserError
from irscope.source.reads import known_reads

_DESCRIPTOR = re.compile(r"/(?:dev|proc/(?:self|thread-self))/fd/(\d{1,9})")
_STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}


@contextmanager
def writing(path: str, inputs: Collection[str] = (), again: bool = False) -> Iterator[BinaryIO]:
    """Open a stream that writes a file. Raises UserError when ``path`` is one of ``inputs``, was read, or cannot be written.

    ``path`` is checked before and after the content is written, because more files may be read in between. ``again``: the file may be one
    that was read, and is updated.
    """
    if "\0" in path:
        raise UserError(f"{path!r} is not a file name: it contains a NUL character")
    if path == "-":
        raise UserError("- is not a file: this is not written to standard output", "./- names a file, /dev/stdout is standard output")
    read = () if again else known_reads()
    _refuse_input(path, inputs, read)
    try:
        with _opened(path) as stream:
            yield stream
            _refuse_input(path, inputs, read)
    except BrokenPipeError:
        raise
    except OSError as error:
        folder = "does its folder exist, and may you write there?" if error.errno not in (None, 28) else ""
        raise UserError(f"{path}: cannot be written: {error.strerror or error}", folder) from None


def _opened(path: str) -> AbstractContextManager[BinaryIO]:
    """The stream: a descriptor, a device or a pipe itself, and for a regular file one that replaces it when complete."""
    descriptor = _descriptor(path)
    if descriptor is not None:
        # Reopened, a redirected standard output would start at its beginning and overwrite earlier output.
        return os.fdopen(os.dup(descriptor), "wb")
    target = os.path.realpath(path)
    try:
        before: os.stat_result | None = os.stat(target)
    except FileNotFoundError:
        before = None
    if before is not None and not stat.S_ISREG(before.st_mode):
        return open(path, "wb")
    return _replacing(target, before)


def is_written_through(path: str) -> bool:
    """Whether a path names what is not a regular file: a device, a pipe, a descriptor."""
    return _descriptor(path) is not None or (os.path.exists(path) and not os.path.isfile(path))


def _descriptor(path: str) -> int | None:
    """The number of the open file that a name under /dev or /proc stands for."""
    if path in _STANDARD:
        return _STANDARD[path]
    found = _DESCRIPTOR.fullmatch(path)
    return int(found[1]) if found else None


@contextmanager
def _replacing(target: str, before: os.stat_result | None) -> Iterator[BinaryIO]:
    """Write a regular file under another name, and rename it to ``target`` when complete."""
    folder = os.path.dirname(target)
    try:
        handle, temporary = tempfile.mkstemp(prefix=".irscope-", dir=folder)
    except OSError:
        if before is None or not os.access(target, os.W_OK):
            raise
        handle, temporary = tempfile.mkstemp(prefix="irscope-")
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        if os.path.dirname(temporary) == folder:
            os.chmod(temporary, stat.S_IMODE(before.st_mode) if before is not None else 0o666 & ~_umask())
            try:
                os.replace(temporary, target)
                return
            except OSError:
                if before is None:
                    raise
        shutil.copyfile(temporary, target)  # mounted by itself, or in a read-only folder
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _refuse_input(path: str, *inputs: Collection[str]) -> None:
    """Raise UserError where a path is an input."""
    if any(_is_same(path, given) for names in inputs for given in names):
        raise UserError(f"{path} is an input; it is not overwritten", "give another name for the output")


def _is_same(path: str, given: str) -> bool:
    """Whether two names are one regular file."""
    with suppress(OSError, ValueError):
        return os.path.isfile(path) and os.path.samefile(path, "/dev/stdin" if given == "-" else given)
    return False


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
