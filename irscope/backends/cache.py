"""The compilation cache: object code and whole compiled programs on disk, by the hash of everything that they depend on.

The folder is ``$IRSCOPE_CACHE``, else ``$XDG_CACHE_HOME/irscope``, else ``~/.cache/irscope`` (``%LOCALAPPDATA%`` on Windows).
``IRSCOPE_CACHE=off`` disables it. Entries are written under a temporary name and renamed, so writes are atomic for readers.

Entries are machine code that is executed, so they are trusted only when

* the folders and the file belong to this user or to root, and no other user may write to them (:func:`distrust`);
* the entry is a regular file, and neither a link nor a pipe: it is opened without following links and without waiting for a writer;
* the digest in it matches its content and its own name, so that an entry copied from another key is rejected.

An entry that fails a check is treated as absent, and recompiled; :attr:`CacheEntry.fault` says why. The oldest entries are removed when
there are too many. A cache that cannot be written is not an error: it only costs time.
"""
from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from irscope.lazy import Array
from irscope.lower.memory import aligned_bytes
from irscope.source.budget import require

_MAGIC = b"irscope-object-2\n"
_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""The flags to open an entry with: a link fails, a pipe does not wait for a writer."""
LARGEST = 1 << 29
"""The most bytes in the cache."""
LARGEST_ENTRY = LARGEST // 2
"""The most bytes of an entry: a larger one would displace most others."""
LARGE = 1 << 20
"""When an entry of this many bytes or more is written, the size of the cache is checked."""


def key(*parts: str) -> str:
    """The name of an entry."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def folder() -> Path | None:
    """The folder of the entries, or None when the cache is disabled."""
    chosen = os.environ.get("IRSCOPE_CACHE")
    if chosen == "off":
        return None
    if chosen:
        return Path(chosen)
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    try:
        return Path(base) / "irscope" if base else Path.home() / ".cache" / "irscope"
    except RuntimeError:  # no home directory
        return None


def distrust(place: Path) -> str | None:
    """The reason not to trust a folder (another user owns it or may write to it), or None. Also None where the folder does not exist."""
    if not hasattr(os, "geteuid"):
        return None  # Windows keeps the folders of users apart
    try:
        found = os.stat(place)
    except OSError:
        return None
    return _foreign(found) or (None if stat.S_ISDIR(found.st_mode) else "is not a folder")


def refusal() -> str | None:
    """The reason why the cache is ignored, as a sentence, or None: it is used, or disabled."""
    place = folder()
    reason = distrust(place) if place is not None else None
    return f"the cache {place} is not used: it {reason}" if reason else None


def _foreign(found: os.stat_result) -> str | None:
    """The fault in the owner or the mode of a file or folder, or None."""
    if hasattr(os, "geteuid") and found.st_uid not in (os.geteuid(), 0):
        return f"belongs to user {found.st_uid}"
    if hasattr(os, "geteuid") and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written by other users"
    return None


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A cache entry. ``content``: its bytes, aligned to 64, or None. ``fault``: why an existing entry is rejected, as a predicate."""

    content: Array | None = None
    fault: str = ""


def entry(name: str) -> CacheEntry:
    """Read an entry. Nothing of it is interpreted before owner, mode and digest are verified."""
    place = folder()
    if place is None or distrust(place):
        return CacheEntry()  # :func:`refusal` reports the folder
    fault = distrust(place / name[:2])
    if fault:
        return CacheEntry(fault=f"is in a folder that {fault}")
    try:
        return _verified(name, place / name[:2] / name)
    except FileNotFoundError:
        return CacheEntry()
    except OSError as error:  # a link, among others
        return CacheEntry(fault=f"cannot be opened as a regular file: {error.strerror or error}")


def read(name: str) -> bytes | None:
    """The content of an entry, or None when it is absent, damaged, of another key, or not to be trusted."""
    content = entry(name).content
    return None if content is None else content.tobytes()


def _verified(name: str, path: Path) -> CacheEntry:
    """Read an entry, and check the file's type, owner, mode, size and digest. Raises OSError."""
    handle = os.open(path, _OPEN)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return CacheEntry(fault="is not a regular file")
        foreign = _foreign(found)
        if foreign:
            return CacheEntry(fault=foreign)
        if found.st_size > LARGEST:
            return CacheEntry(fault="is larger than the whole cache")
        with os.fdopen(handle, "rb", closefd=False) as file:
            head = file.read(len(_MAGIC) + _DIGEST)
            size = found.st_size - len(head)
            if head[:len(_MAGIC)] != _MAGIC or len(head) < len(_MAGIC) + _DIGEST:
                return CacheEntry(fault="is not an entry of this version of irscope")
            require(size, "an entry of the cache")
            content = aligned_bytes(size)  # vector loads of constants expect this alignment
            if file.readinto(content.data) != size or _digest(name, [content.data]) != head[len(_MAGIC):]:
                return CacheEntry(fault="is damaged, or an entry of another key")
            return CacheEntry(content)
    finally:
        os.close(handle)


Content = bytes | memoryview
"""A piece of an entry's content."""


def write(name: str, *pieces: Content) -> bool:
    """Store an entry, the pieces one after the other, if that is possible and the folder is trusted. Returns whether it is stored."""
    place = folder()
    if place is None or distrust(place) or distrust(place / name[:2]) or sum(map(_bytes_of, pieces)) > LARGEST_ENTRY:
        return False
    target = place / name[:2] / name
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        for new in (place, target.parent):
            new.mkdir(mode=0o700, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".new-")
    except OSError:
        return False
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + _digest(name, pieces))
            for piece in pieces:
                file.write(piece)
        os.replace(temporary, target)
        if name.startswith("00") or sum(map(_bytes_of, pieces)) >= LARGE:  # one small entry in 256 triggers the check
            prune(place)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        return False
    return True


def prune(place: Path, limit: int = LARGEST) -> None:
    """Remove the entries that were written longest ago until the rest is below the limit. Concurrent readers find them absent."""
    entries = []
    for path in place.glob("??/*"):
        try:
            found = path.lstat()
        except OSError:
            continue
        entries.append((found.st_mtime, found.st_size, path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries, key=lambda entry: entry[0]):
        if total <= limit:
            return
        with suppress(OSError):
            path.unlink()
            total -= size


_DIGEST = 16
"""Bytes of a digest."""


def _digest(name: str, pieces: Sequence[Content]) -> bytes:
    """The digest that binds an entry's content to its name."""
    digest = hashlib.blake2b(digest_size=_DIGEST, key=name.encode())
    for piece in pieces:
        digest.update(piece)
    return digest.digest()


def _bytes_of(piece: Content) -> int:
    return memoryview(piece).nbytes
