"""From Relay text to modules: real dumps of every version, logs of TVM's passes, and the shorter style of lessons.

    def @main(%x: Tensor[(1, 128), float32], %w: Tensor[(64, 128), float32]) -> Tensor[(1, 64), float32] {
      %0 = nn.dense(%x, %w, units=64);
      return %0;
    }

Each function is a graph. Calls, projections and tuples are nodes; bindings are only names.
"""

from __future__ import annotations

import re
import sys

from irscope.formats.relay import operators
from irscope.formats.relay.definitions import Definitions
from irscope.formats.relay.lexer import HEADER
from irscope.formats.relay.snapshots import snapshots
from irscope.graph import Reading
from irscope.graph.collector import collector_paused
from irscope.source import SourceText

# Both begin with a literal, for which Python searches at the speed of memory.
DEFINITION = re.compile(r"def\s+@[\w.]+\s*(?:\[[^\]]*\])?\s*\(")
BINDING = re.compile(r"\n[ \t]*%\d+\s*=\s*[a-z][\w.]*\((?!.*\[)[^=]*%")
RECURSION = 6000
"""Expressions are read by descent; the cursor's own limit on nesting is far below this one."""


def sniff(text: str) -> float:
    """The confidence that a text is Relay, from 0 to 1."""
    head = text[:20_000]
    header = HEADER.match(head)
    if header is not None:
        return 0.95
    if any(not m.start() or head[m.start() - 1].isspace() for m in DEFINITION.finditer(head)):
        return 0.95
    if re.match(r"\s*+(?:/\*.*?\*/\s*+|//[^\n]*+\s*+)*+(?:fn\s*\(\s*%|free_var\s+%|type\s+\w+\s*[\[{])", head, re.DOTALL):
        return 0.9
    if "::" not in head and BINDING.search("\n" + head):
        return 0.6
    return 0.0


def read(source: SourceText) -> Reading:
    """Read a text: one module, or the modules of a log in order."""
    reading = Reading(source, "relay")
    operators.load()
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, RECURSION))
    try:
        with collector_paused():
            for part in snapshots(source.text):
                Definitions(source, reading, part).run()
    finally:
        sys.setrecursionlimit(limit)
    return reading
