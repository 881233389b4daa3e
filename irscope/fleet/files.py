"""The dumps among the files and folders that a user names."""
from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

SURE_SUFFIXES = (".hlo", ".relay", ".ir", ".torchscript")
"""Files of these names are dumps, also when they are broken: the user wants to hear of it."""
TEXT_SUFFIXES = (".txt", ".text", ".log", ".mlir", "")
"""Files of these names are dumps when they look like one."""
LOOK = 1 << 16


@dataclass(slots=True)
class Found:
    """``files`` in the order given, those of a folder by name; ``skipped`` are files in folders that are no dumps."""

    files: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def find_files(paths: Iterable[str]) -> Found:
    """The files that the paths stand for. A file that is named is taken as it is; a folder is searched through for dumps."""
    found = Found()
    for path in paths:
        if path != "-" and os.path.isdir(path):
            for inside in _walk(path):
                (found.files if _is_dump(inside) else found.skipped).append(inside)
        else:
            found.files.append(path)
    return found


def _walk(folder: str) -> Iterable[str]:
    """Every file below a folder, hidden ones left out, in an order that does not depend on the file system."""
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield os.path.join(parent, name)


def _is_dump(path: str) -> bool:
    name = path.lower().removesuffix(".gz")
    suffix = Path(name).suffix
    if suffix in SURE_SUFFIXES:
        return True
    # `module_0000.jit_f.before_optimizations` has a suffix that nobody meant as one.
    if suffix not in TEXT_SUFFIXES and not Path(name).name.startswith("module_"):
        return False
    return sniff(path) is not None


def sniff(path: str) -> str | None:
    """The format of the text at the begin of a file, or None where it is none that irscope knows."""
    from irscope.formats.detect import detect
    from irscope.formats.neighbours import looks_printed

    try:
        opener = gzip.open if path.endswith(".gz") else open
        with opener(path, "rb") as file:
            head: bytes = file.read(LOOK)
    except (OSError, EOFError, zlib.error):
        return None
    if not head.strip() or not looks_printed(head):
        return None
    return detect(head.decode("utf-8", "replace"))
