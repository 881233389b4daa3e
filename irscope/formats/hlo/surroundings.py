"""What stands around HLO in the files that people have: log prefixes before every line, other output, and how to tell HLO from it."""
from __future__ import annotations

import re

HEAD = 1 << 18

# Log prefixes that loggers put before a line: glog and absl, TensorFlow, Python's logging, MPI and torchrun ranks, containers.
_STAMP = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
PREFIX = (
    r"(?:\[?(?:rank|default|worker|host|task)?\d*\]?:? ?\[?\d*\]?: )?"
    r"(?:[IWEFV]\d{4} +\d\d:\d\d:\d\d\.\d+ +\d* *[^\s\]]+:\d+\] "
    rf"|{_STAMP}: [IWEFV] [^\s\]]+:\d+\] "
    rf"|{_STAMP}:? (?:stdout [FP] |stderr [FP] )?(?:[-\w.:]+ ){{0,4}}?(?:- )?(?:\[?(?:DEBUG|INFO|WARNING|ERROR)\]?:? (?:[-\w.]+:? )?(?:- )?)?"
    r"|(?:DEBUG|INFO|WARNING|ERROR):[\w.]+:)?"
)
HEADER_LINE = re.compile(r"^([^\n\"{}]{1,200}?)(?<![\w.])HloModule [\w.%$\-]", re.MULTILINE)
KNOWN_PREFIX = re.compile(r"^" + PREFIX, re.MULTILINE)

MODULE = re.compile(r"^[ \t]*HloModule[ \t]+(?:[\w.%$\-]|,)", re.MULTILINE)
COMPUTATION = re.compile(r"^[ \t]*(?:ENTRY[ \t]+)?%?[A-Za-z_][\w.\-]*[ \t]*(?:\([^\n]*\)[ \t]*->[ \t]*[^\n]*)?\{[ \t]*(?://[^\n]*|[%A-Za-z_][\w.\-]* = [^\n]*)?$", re.MULTILINE)
INSTRUCTION = re.compile(r"^[ \t]*(?:ROOT[ \t]+)?%?[A-Za-z_][\w.\-]*[ \t]+=[ \t]+(?:\(|[a-z]\w*\[[\d,<=? ]*\])[^\n]*\b[a-z][a-z\-]*\(", re.MULTILINE)


def sniff(text: str) -> float:
    """How sure a text is HLO, from 0 to 1."""
    head = text[:HEAD]
    if MODULE.search(head):
        return 1.0
    if HEADER_LINE.search(head):
        return 0.95
    instruction = INSTRUCTION.search(head)
    if instruction and (COMPUTATION.search(head) or "ENTRY" in head):
        return 0.8
    if instruction or re.match(r"\s*(?:\(|[a-z]\w*\[[\d,]*\])[^\n]*? [a-z][a-z\-]*\([^\n]*\)", head):
        return 0.5
    return 0.3 if re.search(r"^[ \t]*(?:ENTRY [%\w]|HloModule\b)", head, re.MULTILINE) else 0.0


def without_prefixes(text: str) -> str:
    """The text with log prefixes blanked out, so that offsets stay what they are; the text itself when it has none."""
    m = HEADER_LINE.search(text, 0, HEAD)
    if m is None or not m[1].strip() or m[1].lstrip().startswith(("//", "/*", "#")):
        return text
    known = KNOWN_PREFIX.match(text, m.start())
    if known is not None and known[0].strip() and known.end() >= m.end(1):
        return KNOWN_PREFIX.sub(_blank, text)
    literal = m[1]
    if ("\n" + literal) in text[m.end():m.end() + (1 << 16)]:  # the same words before every line
        return re.sub("^" + re.escape(literal), _blank, text, flags=re.MULTILINE)
    return text[:m.start()] + " " * len(literal) + text[m.end(1):]


def _blank(m: re.Match[str]) -> str:
    return " " * len(m[0])
