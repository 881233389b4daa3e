"""Makes text of an untrusted file safe to print: the one place that decides which characters are shown as they are.

A terminal obeys control characters (ESC and CSI sequences, the C1 controls, which some terminals take as 8-bit ESC), bidirectional
controls reorder what a reader sees, and XML holds neither controls nor surrogates. :func:`visible` replaces each of them by one visible
character, so that columns and carets stay where they are. :func:`markup` is that and the escapes of XML and HTML, :func:`json_text` keeps
the characters but spells them with JSON's own escapes.
"""
from __future__ import annotations

import html
import io
import re
from typing import TextIO

UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # ASCII controls but tab and line end, DEL, C1
    "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"  # bidirectional and invisible format controls, separators of lines
    "\ud800-\udfff\ufffe\uffff]"  # surrogates, which have no encoding
)
"""The characters that are not shown as they are."""
_STAND_INS = {code: 0x2400 + code for code in range(32)} | {0x7F: 0x2421}
"""Control pictures: ESC is shown as U+241B."""


def visible(text: str) -> str:
    """``text`` with every control or invisible character replaced by a visible one.

    >>> visible("a\\x1b[31m")
    'a␛[31m'
    """
    return UNPRINTABLE.sub(lambda found: chr(_STAND_INS.get(ord(found[0]), 0xFFFD)), text) if UNPRINTABLE.search(text) else text


def one_line(text: str) -> str:
    """:func:`visible`, with blanks in place of tabs and line ends."""
    return visible(text).replace("\n", " ").replace("\t", " ")


def markup(text: str) -> str:
    """Text as the content or a quoted attribute of XML, HTML, SVG, or a label of graphviz."""
    return html.escape(visible(text))


def json_text(text: str) -> str:
    """A finished JSON text in which unprintable characters, which occur inside strings only, are spelled ``\\uXXXX``."""
    return _INSIDE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) if _INSIDE.search(text) else text


_INSIDE = re.compile("(?!\r)" + UNPRINTABLE.pattern)
"""A carriage return may occur between the members of a JSON text."""


def replace_unencodable(stream: TextIO | None) -> None:
    """Write ``?`` for what the encoding of a stream does not have: a name of a dump in the C locale is not an error."""
    if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
        stream.reconfigure(errors="replace")
