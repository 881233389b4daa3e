"""The formats that irscope reads: a table of names, and the module of each, imported when a text asks for it.

A format is a package with ``read(source) -> Reading``, ``sniff(text) -> float`` (how sure it is that the text is its own, 0 to 1)
and ``print_module(module) -> str``. A name whose package has no code is known, but not offered: it is told apart from garbage.
"""
from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Protocol, cast

from irscope.graph import Module, Reading
from irscope.source import SourceText, UserError, did_you_mean
from irscope.version import __version__

FORMATS: dict[str, str] = {
    "hlo": "irscope.formats.hlo",
    "torchscript": "irscope.formats.torchscript",
    "relay": "irscope.formats.relay",
}
TITLES = {"hlo": "XLA HLO text", "torchscript": "a TorchScript graph", "relay": "Relay text"}


class Format(Protocol):
    """What a package in this folder offers."""

    def read(self, source: SourceText) -> Reading:
        """What it understood of the text. Never raises on a stranger's text."""

    def sniff(self, text: str) -> float:
        """How sure it is that the text is its own, from 0 to 1."""

    def print_module(self, module: Module) -> str:
        """The module as text of the format."""


def readable() -> tuple[str, ...]:
    """The names of the formats that this irscope reads."""
    return tuple(name for name, package in FORMATS.items() if _has_code(package))


def format_named(name: str) -> Format:
    """The package of a format. Raises UserError for a name that is unknown, or known but not read yet."""
    if name not in FORMATS:
        raise UserError(f"there is no format {name!r}", did_you_mean(name, FORMATS) or f"the formats are: {', '.join(readable())}")
    if not _has_code(FORMATS[name]):
        raise not_read_yet(name)
    return cast(Format, importlib.import_module(FORMATS[name]))


def not_read_yet(name: str, where: str = "") -> UserError:
    """The text is of a format that irscope knows by sight alone."""
    subject = f"{where}: this is {TITLES[name]}, which" if where else f"{TITLES[name]} is a format that"
    return UserError(f"{subject} irscope {__version__} does not read yet", f"this version reads {' and '.join(readable())}")


def _has_code(package: str) -> bool:
    spec = find_spec(package)
    return spec is not None and spec.origin is not None
