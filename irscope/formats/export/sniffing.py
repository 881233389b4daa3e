"""Detects printed FX graphs by their content."""
from __future__ import annotations

import re

HEAD = 1 << 18
"""So many characters are looked at: a log may begin with other lines."""
CLASS = re.compile(
    r"^[^\n]*\bclass (?:<lambda>|[\w.]+)\((?:torch\.)?nn\.Module\):[ \t]*\n(?:[^\n]*\n){0,3}?[^\n]*\bdef forward\(", re.MULTILINE)
LISTING = re.compile(r"^[^\n]*\bgraph\([^()\n]*\):\s*\n[^\n]*%[^\s:]+ : [^\n]*\[(?:num_|#)?users=?[^\]\n]*\] = \w+\[target=", re.MULTILINE)
EMPTY = re.compile(r"^graph\(\):\s*\n\s*return \(", re.MULTILINE)
STATEMENT = re.compile(r"^[^\n]*\b\w+(?:: \"[^\"\n]*\")? = torch\.ops\.\w+\.\w+|;  \w+ = (?:\w+ = )*None", re.MULTILINE)
ALONE = re.compile(r"^def forward\(self[^\n]*\):", re.MULTILINE)
TAIL = re.compile(r";  \w+ = (?:\w+ = )*None$|^ +\w+ = torch\.ops\.\w+\.\w+\.\w+\(", re.MULTILINE)
SCRIPT = re.compile(r"torch\._inductor|isolate_fails_code_str|class Repro\(torch\.nn\.Module\)")


def sniff(text: str) -> float:
    """The confidence that a text holds printed FX graphs, from 0 to 1."""
    head = text[:HEAD]
    if "Module):" not in head and "users" not in head and "graph():" not in head and "ExportedProgram:" not in head \
            and "def forward(self" not in head:
        return 0.0
    if re.match(r"\s*ExportedProgram:\s*\n", head) or LISTING.search(head) or EMPTY.search(head):
        return 0.95
    if CLASS.search(head):
        return 0.95 if STATEMENT.search(head) or re.search(r"# (?:File: |No stacktrace)|forward\(self[^)\n]*: \"", head) else 0.0
    if ALONE.search(head) and TAIL.search(head):
        return 0.95
    if SCRIPT.search(head) and "def forward(" in head and STATEMENT.search(head):
        return 0.95
    return 0.0
