"""From a text to modules: finds the modules among other text, reads each, and reports what it could not read."""
from __future__ import annotations

import re

from irscope.formats.hlo.assembly import Assembly
from irscope.formats.hlo.body import read_computation, read_nested, read_printed
from irscope.formats.hlo.careful import read_instruction, read_right_side
from irscope.formats.hlo.faults import LIMIT, LOSSY_PRINT, NO_MODULE, SYNTAX, TEXT_AROUND, TRUNCATED, Faults, Refused, Span
from irscope.formats.hlo.forward import finish_awaited
from irscope.formats.hlo.header import check_aliases, read_header
from irscope.formats.hlo.lexer import BLANKS, Cursor
from irscope.formats.hlo.provenance import HloProvenance
from irscope.formats.hlo.surroundings import without_prefixes
from irscope.formats.hlo.truncation import mark_cut
from irscope.formats.hlo.types import begins_type
from irscope.graph import Module, Op, Reading
from irscope.graph.collector import collector_paused
from irscope.source import SourceText

HLO_MODULE = re.compile(r"[ \t]*HloModule(?![\w.\-]|[ \t]*[=({])")
NEXT_MODULE = re.compile(r"^[ \t]*HloModule(?![\w.\-]|[ \t]*[=({])", re.MULTILINE)
# What may open a computation: a name, then its body or its signature.
OPENS = re.compile(r"[ \t]*(?:ENTRY(?![\w.\-])|%?[A-Za-z_][\w.\-]*\s*\{|"
                   r"%?[A-Za-z_][\w.\-]*\s*\((?=[^\n]*->|(?:[^{}]|\{[\d,]*\}){0,20000}?->)|\{[ \t]*$|%\()", re.MULTILINE)
CUT_HEADER = re.compile(r"(?:E(?:N(?:T(?:RY?)?)?)?|(?:ENTRY[ \t]+)?%(?:[A-Za-z_][\w.\-]*)?[ \t]*(?:\([^\n]*)?)")
NEXT_START = re.compile(
    r"^[ \t]*(?:HloModule(?![\w.\-]|[ \t]*[=({])|ENTRY(?![\w.\-])|%?[A-Za-z_][\w.\-]*[ \t]*(?:\([^\n]*\)[ \t]*->[^\n]*)?\{)", re.MULTILINE)

# An instruction without a module: ``name = ...``, or only the right side.
SINGLE = re.compile(r"(?:ROOT\s+)?%?[A-Za-z_][\w.\-]*\s+=\s|(?:\(|[a-z]\w*\[[\d,<=? ]*\])[^\n]*?[ )}\]][a-z][a-z\-]*\(")


def read(source: SourceText) -> Reading:
    """Read the modules of an HLO text, with findings. Never raises on malformed text."""
    reading = Reading(source, "hlo")
    faults = Faults(source)
    text = without_prefixes(source.text)
    if "\r" in text:
        text = text.replace("\r\n", " \n")
    with collector_paused():
        try:
            _Reader(source, text, faults, reading.modules).run()
        except RecursionError:  # the caller's stack was nearly full
            faults.add(LIMIT, "the text is nested too deeply to be read from here", Span(0))
    reading.findings, reading.ok = faults.close(), faults.ok
    return reading


class _Reader:
    """Reads the top level of a text."""

    def __init__(self, source: SourceText, text: str, faults: Faults, modules: list[Module]) -> None:
        self.source, self.text, self.faults, self.modules = source, text, faults, modules
        self.ops: dict[str, Op] = {}
        self.open: Assembly | None = None

    def run(self) -> None:
        """Read the whole text."""
        at = 0
        while True:
            at = self._skip_blanks(at)
            if at >= len(self.text):
                break
            try:
                at = self._next(at)
                if self.open is not None and self.open.module.graphs:
                    at = read_printed(self.open, at)
            except Refused as refused:
                self.faults.take(refused)
                at = self._behind(at, refused)
                if self.open is not None and at >= len(self.text) and "\n" not in self.text[refused.offset:].strip():
                    self.open.ends_early = True
        self._close()
        if not self.modules:
            self._tell_nothing()

    def _next(self, at: int) -> int:
        """Read what begins at an offset; returns the offset after it."""
        text = self.text
        if HLO_MODULE.match(text, at):
            self._close(at)
            self._begin(at)
            assert self.open is not None
            return read_header(self.open, Cursor(text, at))
        if OPENS.match(text, at):
            if self.open is None:
                self._begin(at)
            assert self.open is not None
            return read_computation(self.open, at)
        if self.open is None and not self.modules and SINGLE.match(text, at) and not NEXT_START.search(text, at):
            return self._single(at)
        if self.open is not None and CUT_HEADER.fullmatch(text, at):
            raise Refused(TRUNCATED, "the text ends here, in the header of a computation", len(text) - 1, 1, "was the dump cut off?")
        return self._around(at)

    def _behind(self, at: int, refused: Refused) -> int:
        """The offset at which to resume when what began at an offset cannot be read."""
        if refused.fault is LOSSY_PRINT:  # skip to the next module
            m = NEXT_MODULE.search(self.text, at + 1)
            return m.start() if m else len(self.text)
        return self._find_start(max(at + 1, self.text.find("\n", at)))

    def _begin(self, at: int) -> None:
        self.open = Assembly(self.source, self.text, self.faults, self.ops, at, read_nested)

    def _close(self, end: int | None = None) -> None:
        """Complete the open module, whose text ends at an offset (default: with the text)."""
        assembly, self.open = self.open, None
        if assembly is None:
            return
        module = assembly.finish()
        finish_awaited(assembly)
        check_aliases(assembly)
        mark_cut(assembly, len(self.text) if end is None else end)
        if not module.name:
            module.name = f"module_{module.entry}"
        module.provenance = HloProvenance(self.text, module.attrs.get("stack_frames"))
        self.modules.append(module)

    def _single(self, at: int) -> int:
        """One instruction without a module around it; its operands have types and become parameters."""
        self._begin(at)
        assembly = self.open
        assert assembly is not None
        assembly.makes_parameters = True
        assembly.open("main", at)
        cursor = Cursor(self.text, at)
        try:
            if begins_type(cursor):
                assembly.add(read_right_side(assembly, cursor, "result", cursor.at), True, cursor.at)
            else:
                read_instruction(assembly, cursor)
            if cursor.kind != "end":
                cursor.refuse("expected the text to end after a single instruction",
                              help="a module begins with HloModule, a computation with name {")
        finally:
            graph = assembly.close()
            if graph.nodes:
                assembly.register(graph, True, at)
            else:
                self.open = None
        return cursor.at

    def _around(self, at: int) -> int:
        """Skip text that is not HLO, and report it once per piece."""
        end = self._find_start(at + 1)
        piece = self.text[at:end]
        line = piece.split("\n", 1)[0].strip()
        shown = line if len(line) <= 40 else line[:37] + "..."
        if "}" in line and not line.strip("}, \t"):
            self.faults.add(SYNTAX, "a '}' closes nothing here", Span(at))
        else:
            lines = piece.strip().count("\n") + 1
            what = f"{lines} lines that are not HLO are skipped, from" if lines > 1 else "a line that is not HLO is skipped:"
            self.faults.add(TEXT_AROUND, f"{what} {shown!r}", Span(at, max(1, len(line))))
        return end

    def _find_start(self, at: int) -> int:
        m = NEXT_START.search(self.text, at)
        return m.start() if m else len(self.text)

    def _skip_blanks(self, at: int) -> int:
        m = BLANKS.match(self.text, at)
        return m.end() if m else at

    def _tell_nothing(self) -> None:
        text = self.text.strip()
        if not text:
            self.faults.add(NO_MODULE, "the text is empty", Span(0), "was the dump written at all?")
        elif self.faults.ok:
            begin = len(self.text) - len(self.text.lstrip())
            self.faults.add(NO_MODULE, "no HLO module was found in the text", Span(begin),
                            "an HLO dump has a line HloModule name, or computations name { ... }")
