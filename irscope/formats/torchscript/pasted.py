"""Cleans pasted text: removes log and mail prefixes, HTML escapes, colour codes, and the repr of a string."""
from __future__ import annotations

import html as entities
import re
from bisect import bisect_right
from dataclasses import dataclass, field

HEADER = re.compile(r"\bgraph\s*\(\s*(?:%|\)\s*[:{])")
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
STATEMENT = re.compile(r"%[^\n=]{1,400}= *\^?[\w.]+::\w+|=\s*prim::\w+")
FX = re.compile(
    r"%\S{1,400}+ +:[^\n]{0,200}?(?:\[num_users=\d+\] )?=\s*(?:placeholder|call_function|call_module|call_method|get_attr|output)\[target",
)


@dataclass(slots=True)
class Cleaned:
    """The text to read, and the offsets of its lines in the given text."""

    text: str
    changed: bool = False
    quoted: bool = False
    _starts: list[int] = field(default_factory=list)
    _sources: list[int] = field(default_factory=list)

    def source_offset(self, offset: int) -> int:
        """The offset in the given text; exact where the line only lost a prefix, else the nearest known one."""
        if not self.changed:
            return offset
        line = bisect_right(self._starts, offset) - 1
        return self._sources[line] + offset - self._starts[line]


def sniff(text: str) -> float:
    """The confidence that a text contains a TorchScript graph, from 0 to 1."""
    if "graph" not in text:
        return 0.0
    if "\x1b" in text:
        text = ANSI.sub("", text)
    header = HEADER.search(text)
    if header is None:
        return 0.0
    after = text[header.start():header.start() + 200_000]
    if FX.search(after):
        return 0.0
    return 0.95 if "\n  return (" in text or STATEMENT.search(after) or "return (" in after else 0.3


def clean(text: str) -> Cleaned:
    """The text without the prefixes, escapes and codes that logs, mails and HTML added."""
    if not any(mark in text for mark in ("\x1b", "\r", "\xa0", "\ufeff", "&gt;", "&quot;", "\\n")) and not _prefixed(text):
        return Cleaned(text)
    given, text = text, _unquote(text)
    made = Cleaned("", True, text is not given)
    newline = 2 if made.quoted else 1
    lines: list[str] = []
    out, at, prefix = 0, 0, ""
    html = "-&gt;" in text or "=&quot;" in text
    for line in text.split("\n"):
        shown = _plain(line, html)
        found = HEADER.search(shown)
        if found is not None and "with " not in shown[:found.start()]:
            prefix = shown[:found.start()]
        skip = _length_of(prefix, shown)
        made._starts.append(out)
        made._sources.append(at + skip)
        lines.append(shown[skip:])
        out += len(shown) - skip + 1
        at += len(line) + newline
    made.text = "\n".join(lines)
    return made


def _plain(line: str, html: bool) -> str:
    line = ANSI.sub("", line).replace("\r", "").replace("\xa0", " ").replace("\ufeff", "")
    if html and "&" in line:
        line = entities.unescape(line)
    return line


def _prefixed(text: str) -> bool:
    """Whether a graph has a prefix on its line."""
    for found in HEADER.finditer(text):
        start = text.rfind("\n", 0, found.start()) + 1
        before = text[start:found.start()]
        if before and not before.endswith("= "):
            return True
    return False


def _length_of(prefix: str, line: str) -> int:
    """The length of the prefix that the line has in common with the graph's first line; digits (times, counts) may differ."""
    if not prefix:
        return 0
    if line.startswith(prefix):
        return len(prefix)
    if prefix.strip() and line[:len(prefix)].rstrip() == prefix.rstrip() and len(line) <= len(prefix):
        return len(line)
    if len(line) < len(prefix) or not prefix.strip():
        return 0
    same = re.sub(r"\d", "0", prefix) == re.sub(r"\d", "0", line[:len(prefix)])
    return len(prefix) if same else 0


def _unquote(text: str) -> str:
    r"""The text of a Python string that was printed with its ``\n`` in it."""
    begin = HEADER.search(text)
    if begin is None or text.count("\\n") < 2 or text.count("\n", begin.start()) * 2 > text.count("\\n", begin.start()):
        return text
    return text.replace("\\n", "\n").replace("\\'", "'").replace("\\\\", "\\")
