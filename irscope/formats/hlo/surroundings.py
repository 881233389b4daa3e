"""The text around HLO in real files: log prefixes on every line, other output, and how to distinguish HLO from it."""
from __future__ import annotations

import re

HEAD = 1 << 18

_NAME = r"%?[A-Za-z_][\w.\-]*"
MODULE = re.compile(r"^[ \t]*HloModule[ \t]+(?:[\w.%$\-]|,)", re.MULTILINE)
# A header after a prefix: "I0000 00:00:17.123 file.cc:12] HloModule jit_f, is_scheduled=true".
PREFIXED = re.compile(r"^([^\n\"{}]{1,200}?)(?<![\w.])HloModule [\w.%$\-]+:?(?:,[^\n]*)?[ \t\r]*$", re.MULTILINE)
# ``name {``, ``ENTRY name (p: f32[2]) -> f32[2] {`` at the end of a line, or followed by a comment or an instruction.
COMPUTATION = re.compile(
    rf"^[ \t]*(?:ENTRY[ \t]+)?{_NAME}[ \t]*(?:\([^\n]*\)[ \t]*->[ \t]*[^\n]*)?\{{[ \t\r]*(?://[^\n]*|{_NAME} = [^\n]*)?$", re.MULTILINE)
_RESULT = r"(?:\(|[a-z]\w*\[[\d,<=? ]*\])[^\n]*?[ )}\]]"
# Begins with the end of the line before: Python searches for a literal much faster than for the beginning of a line.
INSTRUCTION = re.compile(rf"\n[ \t]*(?:ROOT[ \t]+)?{_NAME}[ \t]+=[ \t]+{_RESULT}[a-z][a-z\-]*\(")
BARE_INSTRUCTION = re.compile(rf"\s*{_RESULT}[a-z][a-z\-]*\([^\n]*\)")
KEYWORD = re.compile(r"^[ \t]*(?:ENTRY [%\w]|HloModule(?![\w.\-]))", re.MULTILINE)


def sniff(text: str) -> float:
    """The confidence that a text is HLO, from 0 to 1."""
    head = text[:HEAD]
    has_header = "HloModule" in head
    if has_header and MODULE.search(head):
        return 1.0
    if has_header and _prefixed(head) is not None:
        return 0.95
    instruction = INSTRUCTION.search("\n" + head)
    if instruction and (COMPUTATION.search(head) or KEYWORD.search(head)):
        return 0.8
    if instruction or BARE_INSTRUCTION.match(head):
        return 0.5
    return 0.3 if (has_header or "ENTRY " in head) and KEYWORD.search(head) else 0.0


def without_prefixes(text: str) -> str:
    """The text with log prefixes blanked out, so that offsets do not change; the text itself when it has none."""
    m = _prefixed(text[:HEAD])
    return text if m is None else _prefix(m[1]).sub(_blank, text)


def _prefixed(head: str) -> re.Match[str] | None:
    """The line of a module header that has a prefix; None where headers are at the beginning of lines."""
    if MODULE.search(head):
        return None
    for m in PREFIXED.finditer(head):
        if m[1].strip() and not m[1].lstrip().startswith(("//", "/*", "#")):
            following = _prefix(m[1]).sub(_blank, head[m.end():m.end() + 20000])
            if COMPUTATION.search(following) or "FileNames" in following:
                return m
    return None


def _prefix(prefix: str) -> re.Pattern[str]:
    """The pattern of the prefix of every line, given that of one: numbers (times, source lines) may differ."""
    words = [re.sub(r"\d+", r"\\d+", re.escape(word)) for word in re.split(r"[ \t]+", prefix)]
    return re.compile("^" + r"[ \t]+".join(words), re.MULTILINE)


def _blank(m: re.Match[str]) -> str:
    return " " * len(m[0])
