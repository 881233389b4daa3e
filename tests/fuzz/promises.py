"""What every output promises: JSON that parses, XML that is well-formed, and no control character of a stranger's text."""
from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

from irscope.source.visible import UNPRINTABLE
from tests.fuzz.entry import Entry, kind

_COLOUR = re.compile(r"\x1b\[(?:\d{1,3}(?:;\d{1,3})*)?m")

def broken_promise(entry: Entry, status: int | None, out: str, err: str, folder: Path) -> str:
    """What an output is not and should be; empty where all is well."""
    if status not in (0, 1, 2) or entry.args[:1] == ("read",):
        return ""
    format = _format(entry)
    # The text of a program is data: it is not changed where no terminal shows it.
    verbatim = not entry.terminal and (format in ("text", "dot") or entry.args[0] == "opt" or {"--emit", "--fix"} & set(entry.args))
    for name, text in (("out", "" if format in ("png", "pdf") else out), ("err", err)):
        if entry.terminal:
            text = _COLOUR.sub("", text)
        if UNPRINTABLE.search(text.replace("\r\n", "\n")) and not (verbatim and name == "out"):
            return f"control characters {kind(entry)}"
    findings = format == "gitlab" and '"check_name"' in out + _written(entry, folder)
    if status == 2 and not findings and not re.search(r"rror|not ok|fault|no such file", err + out + _written(entry, folder)):
        return f"no word of an error {kind(entry)}"
    for text in (out if not _outputs(entry, folder) else "", *(_text(folder / name) for name in _outputs(entry, folder))):
        if text.strip() and (fault := _malformed(format, text)):
            return f"malformed {format} {kind(entry)}: {fault}"
    return ""


def _written(entry: Entry, folder: Path) -> str:
    return "".join(_text(folder / name) for name in _outputs(entry, folder))


def _named(entry: Entry) -> list[str]:
    """The files that the command line names for its output."""
    named = [entry.args[i + 1] for i, word in enumerate(entry.args[:-1]) if word in ("-o", "--output")]
    named += [word.partition("=")[2] if word[1] == "-" else word[2:] for word in entry.args if word.startswith(("-o", "--output=")) and word != "-o"]
    return [name for name in named if name not in ("-", "")]


def _outputs(entry: Entry, folder: Path) -> list[str]:
    """Those that the output was written to: inputs are refused, but a file of the entry may be none of the command's."""
    return [name for name in _named(entry) if name not in entry.files or _bytes(folder / name) != entry.files[name]]


def _bytes(path: Path) -> bytes:
    """The content of a file; nothing where it is none."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except (OSError, ValueError):
        return b""


def _text(path: Path) -> str:
    """What a file holds; nothing where it is none or not a text."""
    try:
        return path.read_text(errors="surrogateescape") if path.is_file() else ""
    except (OSError, ValueError):
        return ""


def _format(entry: Entry) -> str:
    """The format that the last ``--format`` of the command line, or the suffix of its output, asks for."""
    if "--emit" in entry.args or {"-h", "--help", "--version"} & set(entry.args):
        return ""
    args = entry.args[:entry.args.index("--")] if "--" in entry.args else entry.args  # what follows are names of files
    named = [args[i + 1] for i, word in enumerate(args[:-1]) if word == "--format"]
    if named:
        return named[-1]
    suffixes = [name.rpartition(".")[2] for name in _named(entry) if name not in entry.files]
    return suffixes[-1] if suffixes and entry.args[0] == "show" else ""


def _malformed(format: str, text: str) -> str:
    """Why a text is not of its format."""
    try:
        if format == "json":  # a value for each file
            at, decoder = 0, json.JSONDecoder(parse_constant=_refuse)
            while text[at:].strip():
                at = decoder.raw_decode(text, len(text) - len(text[at:].lstrip()))[1]
        elif format in ("sarif", "gitlab"):
            json.loads(text, parse_constant=_refuse)
        elif format == "jsonl":
            for line in text.splitlines():
                json.loads(line, parse_constant=_refuse)
        elif format in ("svg", "junit"):
            ElementTree.fromstring(text)
    except (ValueError, ElementTree.ParseError) as fault:
        return re.sub(r"\d+", "N", str(fault))[:80]
    return ""


def _refuse(constant: str) -> None:
    """NaN and infinities, which Python writes and reads, are no JSON."""
    raise ValueError(f"{constant} is not JSON")
