"""Object code on disk, by the hash of everything it depends on.

The folder is ``$IRSCOPE_CACHE``, else ``$XDG_CACHE_HOME/irscope``, else ``~/.cache/irscope`` (``%LOCALAPPDATA%`` on Windows).
``IRSCOPE_CACHE=off`` keeps nothing. Entries are written under another name and renamed, so that a reader sees all or nothing, and carry
a checksum; what does not fit it is as good as absent. The oldest go when there are too many. A cache that cannot be written is no error:
it only costs time.
"""
from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from pathlib import Path

_MAGIC = b"irscope-object-1\n"
LARGEST = 1 << 29
"""Bytes that the cache may take."""


def key(*parts: str) -> str:
    """The name of an entry."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def folder() -> Path | None:
    """Where entries lie, or None when there is to be no cache."""
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


def read(name: str) -> bytes | None:
    """An entry, or None when it is absent or damaged."""
    place = folder()
    if place is None:
        return None
    try:
        content = (place / name[:2] / name).read_bytes()
    except OSError:
        return None
    start = len(_MAGIC) + 16
    if content[:len(_MAGIC)] != _MAGIC or len(content) < start:
        return None
    payload = content[start:]
    return payload if content[len(_MAGIC):start] == _checksum(payload) else None


def write(name: str, payload: bytes) -> None:
    """Keep an entry, if that is possible."""
    place = folder()
    if place is None:
        return
    target = place / name[:2] / name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".new-")
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + _checksum(payload) + payload)
        os.replace(temporary, target)
        if name.startswith("00"):  # one write in 256 looks after the size
            prune(place)
    except OSError:
        try:
            os.unlink(temporary)
        except OSError:
            pass


def prune(place: Path, limit: int = LARGEST) -> None:
    """Remove the entries that were written longest ago until the rest is below the limit. Whoever reads meanwhile finds them absent."""
    entries = []
    for path in place.glob("??/*"):
        try:
            found = path.stat()
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


def _checksum(payload: bytes) -> bytes:
    return hashlib.blake2b(payload, digest_size=16).digest()
