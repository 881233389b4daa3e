"""Standard output and standard error of a command: untrusted text reaches a terminal as visible characters only.

Every command writes through :class:`Guarded`, whatever prints: click, rich, ``print``. Where colour is wanted, the colour codes that
irscope itself uses pass. The text of a program that goes to a file or a pipe is data and is not changed: :func:`program_text` gives the
stream for it.
"""
from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from irscope.source import UserError
from irscope.source.links import OWN_LINK
from irscope.source.visible import replace_unencodable, visible

_CODES = re.compile(rf"(\x1b\[(?:\d{{1,3}}(?:;\d{{1,3}})*)?m|{OWN_LINK})")
"""Select Graphic Rendition: colours and weights, which move nothing and answer nothing. And the links that irscope itself makes."""


class Guarded:
    """A text stream that replaces control characters; everything else is the stream behind it."""

    def __init__(self, stream: TextIO, colour: bool) -> None:
        self.stream = stream
        self.colour = colour

    def write(self, text: str) -> int:
        """Write the text, visible; colour codes, and links of irscope's own, pass where colour is wanted."""
        if self.colour and "\x1b" in text:
            text = "".join(part if i % 2 else visible(part) for i, part in enumerate(_CODES.split(text)))
        else:
            text = visible(text)
        return self.stream.write(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class Closed:
    """Standard output of a process that was started without one (``>&-``): the first word written to it is refused."""

    encoding, errors = "utf-8", "strict"

    def write(self, text: str) -> int:
        raise UserError("standard output is closed", "-o FILE writes to a file")

    def flush(self) -> None:
        """Nothing was written."""

    def isatty(self) -> bool:
        return False

    @property
    def buffer(self) -> Closed:
        return self


@contextmanager
def guarded(wants_colour: Any) -> Iterator[None]:
    """Guard both streams while a command runs. ``wants_colour(stream)`` says where colour is wanted."""
    _fill_closed()
    before = sys.stdout, sys.stderr
    replace_unencodable(sys.stdout)
    sys.stdout = cast(TextIO, Guarded(sys.stdout or cast(TextIO, Closed()), wants_colour(sys.stdout)))
    sys.stderr = cast(TextIO, Guarded(sys.stderr or open(os.devnull, "w"), wants_colour(sys.stderr)))  # noqa: SIM115 (open until the end)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def program_text() -> TextIO:
    """Standard output for the text of a program: guarded on a terminal, as it is where a file or a program reads it."""
    stream = sys.stdout
    return stream.stream if isinstance(stream, Guarded) and not stream.isatty() else stream


def _fill_closed() -> None:
    """Take the numbers of standard streams that are closed, or the next open file would get them."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
