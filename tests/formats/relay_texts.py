"""Reading the Relay texts of tests."""
from __future__ import annotations

from irscope.formats.relay import read
from irscope.graph import Reading
from irscope.source import SourceText


def parsed(text: str) -> Reading:
    """What is read; the text has no fault."""
    reading = read(SourceText("t.relay", text))
    assert reading.ok, [f.render() for f in reading.findings]
    return reading
