"""The compilation cache: object code on disk, by the hash of everything that it depends on.

The folder is ``$IRSCOPE_CACHE``, else ``$XDG_CACHE_HOME/irscope``, else ``~/.cache/irscope`` (``%LOCALAPPDATA%`` on Windows).
``IRSCOPE_CACHE=off`` disables it. Entries are written under a temporary name and renamed, so writes are atomic for readers.

Entries are machine code that is executed, so they are trusted only when

* the folders and the file belong to this user or to root, and no other user may write to them (:func:`distrust`);
* the entry is a regular file, and neither a link nor a pipe: it is opened without following or waiting;
* the digest in it matches its content and its own name, so that an entry copied from another key is rejected.

An entry that fails a check is treated as absent, and recompiled. The oldest entries are removed when there are too many. A cache that
cannot be written is no error: it only costs time.
"""
from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from pathlib import Path

_MAGIC = b"irscope-object-2\n"
_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""The flags to open an entry with: a link fails, a pipe does not wait for a writer."""
LARGEST = 1 << 29
"""The most bytes in the cache."""


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
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    else:
        base = os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(base) / "irscope" if base else Path.home() / ".cache" / "irscope"
    except RuntimeError:  # no home directory
        return None


def distrust(place: Path) -> str | None:
    """The reason not to trust a folder (another user owns it or may write to it), or None. None too where it does not exist."""
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


def read(name: str) -> bytes | None:
    """An entry, or None when it is absent, damaged, of another key, or not to be trusted."""
    place = folder()
    if place is None or distrust(place) or distrust(place / name[:2]):
        return None
    try:
        content = _content(place / name[:2] / name)
    except OSError:
        return None
    start = len(_MAGIC) + _DIGEST
    if content[:len(_MAGIC)] != _MAGIC or len(content) < start:
        return None
    payload = content[start:]
    return payload if content[len(_MAGIC):start] == _digest(name, payload) else None


def _content(path: Path) -> bytes:
    """The bytes of a trusted regular file; none of anything else. Raises OSError."""
    handle = os.open(path, _OPEN)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or _foreign(found) or found.st_size > LARGEST:
            return b""
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(found.st_size)
    finally:
        os.close(handle)


def write(name: str, payload: bytes) -> None:
    """Store an entry, if that is possible and the folder is trusted."""
    place = folder()
    if place is None or distrust(place) or distrust(place / name[:2]):
        return
    target = place / name[:2] / name
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        for new in (place, target.parent):
            new.mkdir(mode=0o700, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".new-")
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + _digest(name, payload) + payload)
        os.replace(temporary, target)
        if name.startswith("00"):  # one write in 256 checks the size
            prune(place)
    except OSError:
        try:
            os.unlink(temporary)
        except OSError:
            pass


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
        try:
            path.unlink()
            total -= size
        except OSError:
            pass


_DIGEST = 16
"""Bytes of a digest."""


def _digest(name: str, payload: bytes) -> bytes:
    """The digest that binds an entry's content to its name."""
    return hashlib.blake2b(payload, digest_size=_DIGEST, key=name.encode()).digest()
