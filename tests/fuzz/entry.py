"""One input of the fuzzer: a command line and the files that it reads, as a file that holds all of it.

    ["lint", "a.txt", "--policy", "xla-cpu"]
    terminal
    cache flip 7
    file a.txt 9
    ENTRY e {

The first line is the command line. ``terminal`` means that standard output is one. ``cache`` lines change the entries of the compilation
cache between two runs. A ``file`` line gives a name and a number of bytes, which follow, with a line end behind them.
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from irscope.formats.detect import detect, detect_bytes, encoding_of


@dataclass(frozen=True, slots=True)
class Entry:
    """A command line with its surroundings. File names are relative to the folder that the command runs in."""

    args: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    terminal: bool = False
    cache: tuple[str, ...] = ()

    def with_file(self, name: str, content: bytes) -> Entry:
        return replace(self, files={**self.files, name: content})

    def size(self) -> int:
        """Bytes of the files and the command line."""
        return sum(map(len, self.files.values())) + sum(map(len, self.args))


def encode(entry: Entry) -> bytes:
    """The file that stands for an entry."""
    lines = [json.dumps(entry.args), *(["terminal"] if entry.terminal else []), *(f"cache {line}" for line in entry.cache)]
    out = ["\n".join(lines).encode() + b"\n"]
    for name, content in entry.files.items():
        out.append(f"file {name} {len(content)}\n".encode() + content + b"\n")
    return b"".join(out)


def decode(data: bytes) -> Entry:
    """The entry of a file. Raises ValueError, with the line, where it is none."""
    first, _, rest = data.partition(b"\n")
    entry = Entry(tuple(json.loads(first)))
    while rest:
        line, _, rest = rest.partition(b"\n")
        word, _, what = line.decode().partition(" ")
        if word == "terminal":
            entry = replace(entry, terminal=True)
        elif word == "cache":
            entry = replace(entry, cache=(*entry.cache, what))
        elif word == "file":
            name, _, length = what.rpartition(" ")
            content, rest = rest[:int(length)], rest[int(length):]
            if len(content) != int(length) or rest[:1] != b"\n":
                raise ValueError(f"{name} has not the {length} bytes that its line tells")
            entry, rest = entry.with_file(name, content), rest[1:]
        else:
            raise ValueError(f"no line of an entry: {line[:80]!r}")
    return entry


DRAWN = ("dot", "svg", "html", "png", "pdf")
KINDS = (
    ("show", tuple(f"--format {form}" for form in DRAWN), "show drawing"), ("show", ("--lint",), "show --lint"),
    ("lint", ("--fix",), "lint --fix"), ("lint", ("--audit",), "lint --audit"), ("lint", ("--why-not-fused",), "lint --why-not-fused"),
    ("opt", ("--verify", "--bisect"), "opt --verify"), ("compile-and-run", ("--emit",), "compile-and-run --emit"),
)
"""Command, words of which one is there, and the kind of command line that this makes."""
DEEP = {"show drawing", "show --lint", "lint", "lint --fix", "lint --audit", "lint --why-not-fused", "opt", "opt --verify",
        "compile-and-run", "compile-and-run --emit", "check"}
"""Kinds that carry a text, once it is read, through rules, policies, passes, a drawing or a run."""


def kind(entry: Entry) -> str:
    """What sort of command line an entry has; inputs are counted by it."""
    if not entry.args:
        return "usage"
    command, line = entry.args[0], " ".join(entry.args)
    for name, words, found in KINDS:
        if command == name and any(word in line for word in words):
            return found
    return command if command in COMMANDS else "usage"


def format_of(entry: Entry, name: str = "a.txt") -> str:
    """The format of a file of an entry (default: the main text) as irscope detects it; ``none`` where it detects none."""
    data = entry.files.get(name, b"")
    if encoding_of(data) is not None:
        return "none"
    return detect_bytes(data) or detect(data.decode("utf-8", "replace")) or "none"


def formats_of(entry: Entry) -> str:
    """The format of the main text, or ``mixed`` where the other text has another one."""
    other = format_of(entry, "b.txt")
    return "mixed" if other not in ("none", format_of(entry)) else format_of(entry)


COMMANDS = ("read", "show", "stats", "lint", "opt", "diff", "compile-and-run", "check", "rule", "list", "doctor")
"""What an input may ask for: the commands of irscope, and ``read``, which is no command (tests/fuzz/reading.py)."""
