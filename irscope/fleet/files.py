"""The dumps among the files and folders that a user names."""
from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from irscope.formats.detect import detect, detect_bytes, encoding_of
from irscope.formats.neighbours import DUMP_HLO, Neighbour, in_bytes, in_text, looks_printed
from irscope.source import UserError

SURE_SUFFIXES = (".hlo", ".relay", ".ir", ".torchscript")
"""Files of these names are dumps, also when they are broken: the user wants to hear of it."""
PROTO_SUFFIXES = (".pb", ".txtpb", ".pbtxt", ".textproto")
TEXT_SUFFIXES = (".txt", ".text", ".log", ".mlir", ".mlirbc", ".stablehlo", ".py", "", *PROTO_SUFFIXES)
"""Files of these names are dumps when they look like one."""
LOOK = 1 << 16
ASKED = 100
"""Of so many files of a folder without dumps it is asked what they are."""


@dataclass(slots=True)
class Found:
    """``files`` in the order given, those of a folder by name; ``skipped`` are files in folders that are no dumps.

    Of a module in a folder that was written as text and as a proto, the text is taken.
    """

    files: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def find_files(paths: Iterable[str]) -> Found:
    """The files that the paths name. A named file is used as it is; a folder is searched for dumps."""
    found = Found()
    for path in paths:
        if path != "-" and os.path.isdir(path):
            dumps: list[str] = []
            for inside in _walk(path):
                (dumps if _is_dump(inside) else found.skipped).append(inside)
            texts = {stem(inside) for inside in dumps if not is_proto(inside)}
            found.files += [inside for inside in dumps if not (is_proto(inside) and stem(inside) in texts)]
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


def no_dump(paths: Sequence[str], skipped: Sequence[str]) -> UserError:
    """The message for folders without dumps: what they contain instead, and what to do about the first known kind of file."""
    where = "no dump in " + ", ".join(paths)
    if not skipped:
        return UserError(f"{where}, which holds no files", DUMP_HLO)
    beside = f"{where}, beside {len(skipped):,} files that are none" if len(skipped) > 1 else f"{where}, beside 1 file that is none"
    for path in skipped[:ASKED]:
        neighbour = _neighbour(path)
        if neighbour is not None:
            return UserError(f"{beside}: {os.path.basename(path)} is {neighbour.what}", neighbour.help_for(path))
    return UserError(beside, "name a file to hear what is wrong with it")


def is_proto(path: str) -> bool:
    """Whether a file has the name of a proto."""
    return path.lower().removesuffix(".gz").endswith(PROTO_SUFFIXES)


def stem(path: str) -> str:
    """The path without the suffixes of its form: what the text, the proto and the reports of one module have in common.

    >>> stem("d/module_0001.jit_f.before_optimizations.hlo.pb.gz")
    'd/module_0001.jit_f.before_optimizations'
    """
    path = path.removesuffix(".gz")
    for suffix in (*PROTO_SUFFIXES, ".txt", ".hlo"):
        path = path.removesuffix(suffix)
    return path


def _is_dump(path: str) -> bool:
    if not os.path.isfile(path):
        return False  # a pipe, a socket, a device, a link to nowhere: some of them are never read to their end
    name = path.lower().removesuffix(".gz")
    suffix = Path(name).suffix
    if suffix in SURE_SUFFIXES:
        return True
    # `module_0000.jit_f.before_optimizations` has a suffix that nobody meant as one.
    if suffix not in TEXT_SUFFIXES and not Path(name).name.startswith("module_"):
        return False
    return sniff(path) is not None


def sniff(path: str) -> str | None:
    """The format of the text at the beginning of a file, or None if irscope does not know it."""
    binary = detect_bytes(_head(path))
    if binary is not None:
        return binary
    head = head_of(path)
    return detect(head) if head else None


def head_of(path: str) -> str:
    """The text at the beginning of a file; empty where it is binary or cannot be read."""
    head = _head(path)
    encoding = encoding_of(head)
    if not head.strip() or not (encoding or looks_printed(head)):
        return ""
    return head.decode(encoding or "utf-8", "replace")


def _head(path: str) -> bytes:
    """The beginning of a file; empty if it cannot be read."""
    try:
        opener = gzip.open if path.endswith(".gz") else open
        with opener(path, "rb") as file:
            return bytes(file.read(LOOK))
    except (OSError, EOFError, zlib.error):
        return b""


def _neighbour(path: str) -> Neighbour | None:
    """What a file that is no dump is, when it is one that people mistake for a dump."""
    head = _head(path) if os.path.isfile(path) else b""
    return in_bytes(head) or (in_text(head.decode("utf-8", "replace")) if looks_printed(head) else None)
