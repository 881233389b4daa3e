"""The errors of damaged zip archives, which readers of archives turn into messages that name the file."""
from __future__ import annotations

import struct
import zlib

from irscope.lazy import lzma, zipfile


def damaged() -> tuple[type[Exception], ...]:
    """What zipfile raises for damaged archives, and for encrypted ones and unknown compressions (RuntimeError).

    A function, so that zipfile is imported with the first archive.
    """
    found = zipfile.BadZipFile, OSError, ValueError, RuntimeError, struct.error, EOFError, zlib.error, OverflowError
    try:
        return *found, lzma.LZMAError
    except ImportError:  # a Python without it unpacks no such members
        return found
