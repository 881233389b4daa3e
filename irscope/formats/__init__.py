"""The formats that irscope reads: the packages in this folder, each imported on demand.

A format is a package with ``read(source) -> Reading``, ``sniff(text) -> float`` (the confidence that a text is of the format, 0 to 1),
``print_module(module) -> str`` and a ``TITLE``. A format that also has binary files adds ``sniff_bytes`` and
``read_bytes``. A new folder here makes the format available everywhere, under its name with ``-`` for ``_``.
"""
from __future__ import annotations

import importlib
from pkgutil import iter_modules
from typing import Protocol, cast, runtime_checkable

from irscope.graph import Module, Reading
from irscope.source import SourceText, UserError, did_you_mean
from irscope.source.files import Bytes

FIRST = ("hlo", "torchscript", "inductor")
"""The formats that most texts are of are tried and named first; the others follow by name. A log or trace of Inductor holds FX graphs."""
FORMATS = tuple(sorted((found.name.replace("_", "-") for found in iter_modules(__path__) if found.ispkg),
                       key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name)))


class Format(Protocol):
    """The interface of a package in this folder."""

    TITLE: str
    """What a text of the format is called, with its article where it needs one."""

    def read(self, source: SourceText) -> Reading:
        """Read as much of a text as possible. Never raises on malformed text."""

    def sniff(self, text: str) -> float:
        """The confidence that a text is of this format, from 0 to 1."""

    def print_module(self, module: Module) -> str:
        """The module as text of the format."""


@runtime_checkable
class BinaryFormat(Protocol):
    """The further interface of a package whose format has binary files."""

    def sniff_bytes(self, data: bytes) -> float:
        """The confidence that bytes are a file of this format, from 0 to 1."""

    def read_bytes(self, data: Bytes, name: str) -> Reading:
        """Read a binary file; ``name`` is its name in messages. Raises UserError where nothing of it can be read.

        Of a large zip archive ``data`` is the mapped file, and :meth:`sniff_bytes` gets its beginning.
        """


def format_named(name: str) -> Format:
    """The package of a format. Raises UserError for an unknown name."""
    if name not in FORMATS:
        raise UserError(f"there is no format {name!r}", did_you_mean(name, FORMATS) or f"the formats are: {', '.join(FORMATS)}")
    return cast(Format, importlib.import_module(f"{__name__}.{name.replace('-', '_')}"))
