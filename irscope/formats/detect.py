"""From bytes or text to a Reading: detects the format by content and never by suffix, and explains what to do with other files."""
from __future__ import annotations

import codecs

from irscope.formats import FORMATS, BinaryFormat, format_named
from irscope.formats.neighbours import by_sight, in_bytes, in_text, looks_printed
from irscope.graph import Reading
from irscope.source import SourceText, UserError
from irscope.source.files import Bytes
from irscope.version import __version__

# A reader with this confidence has seen a header of its format; the surrounding text cannot change that.
SURE = 0.9


_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
          (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
"""Marks at the begin of a text; one of UTF-32 begins with one of UTF-16."""


def encoding_of(data: bytes) -> str | None:
    """The encoding that a byte-order mark names; None where there is none."""
    return next((encoding for mark, encoding in _MARKS if data.startswith(mark)), None)


def decode(data: bytes, name: str) -> SourceText:
    """The text of a file. Raises UserError where it is binary, naming the kind of file when it is known."""
    encoding = encoding_of(data)
    if encoding is not None:
        return SourceText(name, data.decode(encoding, "replace"))
    neighbour = in_bytes(data)
    if neighbour is not None:
        raise UserError(f"{called(name)} is {neighbour.what}, not a text that irscope reads", neighbour.help_for(name))
    if not looks_printed(data):
        raise UserError(f"{called(name)} is binary, not a text", f"irscope reads the text that a compiler prints: {', '.join(FORMATS)}")
    # A dump may quote bytes that are not UTF-8 (a file name, a string constant): they become replacement characters.
    return SourceText(name, data.decode("utf-8", "replace"))


MAPPED_HEAD = 1 << 20
"""So many bytes of a mapped file decide on its format."""
_PRINTED = bytes(range(32, 256)) + b"\t\n\r\f\v\x1b\b"


def read_data(data: Bytes, name: str, format: str | None = None) -> Reading:
    """Read the bytes of a file: a text, or a binary file of a format that has some. Raises UserError where irscope does not read them."""
    head = data if isinstance(data, bytes) else data[:MAPPED_HEAD]
    binary = detect_bytes(head) if format is None else format if _is_binary(head) else None
    found = format_named(binary) if binary is not None else None
    if found is not None and isinstance(found, BinaryFormat):
        return found.read_bytes(data, name)
    return read(decode(data[:], name), format)


def detect_bytes(data: bytes) -> str | None:
    """The likeliest format that reads these bytes as a binary file; None where there is none, or they are to be decoded as a text."""
    if not _is_binary(data):
        return None
    scores = {name: found.sniff_bytes(data) for name in FORMATS if isinstance(found := format_named(name), BinaryFormat)}
    best = max(scores, key=lambda name: scores[name], default=None)
    return best if best is not None and scores[best] > 0 else None


def _is_binary(data: bytes) -> bool:
    return encoding_of(data) is None and bool(data[:1 << 16].translate(None, _PRINTED))


def detect(text: str) -> str | None:
    """The name of the format that a text is written in, or None."""
    scores: dict[str, float] = {}
    for name in FORMATS:
        scores[name] = float(format_named(name).sniff(text))
        if scores[name] >= SURE:
            return name
    best = max(scores, key=lambda name: scores[name], default=None)
    if in_text(text) is not None:
        return None
    if best is not None and scores[best] > 0:
        return best
    return by_sight(text)


def read(source: SourceText, format: str | None = None) -> Reading:
    """Read a text in the given or the detected format. Raises UserError when irscope does not read the format."""
    if format is not None:
        return format_named(format).read(source)
    found = detect(source.text)
    if found is None:
        raise unknown(source)
    if found not in FORMATS:
        raise UserError(f"{called(source.name)}: this is {found} text, which irscope {__version__} does not read yet",
                        f"this version reads {' and '.join(FORMATS)}")
    return format_named(found).read(source)


def unknown(source: SourceText) -> UserError:
    """The error for a text of an unknown format: names the kind of file when it is known, else quotes the beginning."""
    neighbour = in_text(source.text)
    if neighbour is not None:
        return UserError(f"{called(source.name)} is {neighbour.what}, which irscope does not read", neighbour.help_for(source.name))
    first = next((line.strip() for line in source.text[:4096].splitlines() if line.strip()), "")
    shown = first if len(first) <= 60 else first[:57] + "..."
    return UserError(
        f"{called(source.name)}: the format is not recognised; it begins with {shown!r}",
        f"irscope reads {', '.join(FORMATS)}; --from {'|'.join(FORMATS)} reads a text as that format, whatever it looks like",
    )


def called(name: str) -> str:
    """The name of a source in messages: its path, or "standard input" for ``-``."""
    return "standard input" if name == "-" else name
