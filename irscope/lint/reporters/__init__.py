"""The report formats: one file per format, each with ``write(report) -> str``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from irscope.lint.report import Report

FORMATS = {
    "full": "full",
    "concise": "concise",
    "json": "json_",
    "jsonl": "jsonl",
    "sarif": "sarif",
    "github": "github",
    "gitlab": "gitlab",
    "junit": "junit",
    "markdown": "markdown",
}
"""Name on the command line: file in this folder."""


def reporter(name: str) -> Callable[[Report], str]:
    """The function that writes a report in a format."""
    write: Callable[[Report], str] = import_module(f"irscope.lint.reporters.{FORMATS[name]}").write
    return write
