"""Keys of whole compiled programs: everything that decides on one, as text and digests."""
from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec

from irscope.backends import cache, llvm_compile
from irscope.backends.program_file import FORMAT
from irscope.lazy import Array, np
from irscope.source.files import MAX_BYTES
from irscope.version import source_state

CHUNK = 1 << 20
"""Bytes of a file that are read at a time."""


PACKAGES = ("ml_dtypes", "onnx", "jaxlib")
"""Packages that a program may depend on and that are not imported for a stored one."""


@lru_cache(maxsize=1)
def toolchain() -> str:
    """What the machine and the installed software contribute: irscope, Python, packages, LLVM, the processor and its features."""
    machine = llvm_compile.host()
    return "\n".join([str(FORMAT), source_state(), sys.version, str(np.__version__), *map(package_state, PACKAGES), llvm_compile.version(),
                      machine.triple, machine.cpu, machine.features, repr(machine.vectors)])


def package_state(name: str) -> str:
    """Place, size and time of change of a package's first file: they differ after another release is installed; empty without the package.

    Its version would have to be read from its metadata, which takes a tenth of a small program's warm start.
    """
    found = find_spec(name)
    if found is None or not found.origin or not os.path.isfile(found.origin):
        return ""
    file = os.stat(found.origin)
    return f"{found.origin} {file.st_size} {file.st_mtime_ns}"


def program_key(contents: Sequence[str], options: Mapping[str, object], inputs: Sequence[str]) -> str:
    """The key of a program: the digests of its text, weights and constants, the options that it depends on, and the names of the given
    arrays."""
    chosen = json.dumps(options, sort_keys=True, default=_as_data)
    return cache.key("program", toolchain(), json.dumps(contents), chosen, json.dumps(inputs))


def _as_data(value: object) -> object:
    """Numbers and arrays of numpy, and mappings of any type, as data for JSON."""
    return dict(value) if isinstance(value, Mapping) else np.asarray(value).tolist()


def digest_of_bytes(content: bytes) -> str:
    """The digest of a text or of a file in memory."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def digest_of_file(path: str) -> str | None:
    """The digest of a regular file's bytes, as they are on disk; None for a pipe, a device, and what is too large or cannot be read."""
    digest = hashlib.blake2b(digest_size=16)
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
            return None
        with open(path, "rb", buffering=0) as file:
            buffer = bytearray(CHUNK)
            while count := file.readinto(buffer):
                digest.update(memoryview(buffer)[:count])
    except (OSError, ValueError):
        return None
    return digest.hexdigest()


def signature_of(array: Array) -> str:
    """Element type and shape of an array."""
    array = np.asarray(array)
    return f"{array.dtype.str if array.dtype.isbuiltin == 1 else array.dtype.name}{list(array.shape)}"


def digest_of_array(array: Array) -> str:
    """The digest of an array's type, shape and values."""
    array = np.asarray(array)
    digest = hashlib.blake2b(signature_of(array).encode(), digest_size=16)
    if not array.dtype.hasobject:  # no program takes objects
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
