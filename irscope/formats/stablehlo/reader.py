"""From a text to modules: reads the operations at its top, reports what is around them, and builds the graphs."""
from __future__ import annotations

import re

from irscope.formats.faults import Faults, Refused, Span
from irscope.formats.stablehlo.building.direct import direct
from irscope.formats.stablehlo.building.module import build_module
from irscope.formats.stablehlo.faults import LIMIT, NO_MODULE, SYNTAX, TEXT_AROUND, UNKNOWN_ALIAS
from irscope.formats.stablehlo.lexer import SPACE, Cursor
from irscope.formats.stablehlo.modules import modules_of
from irscope.formats.stablehlo.operations import Operation, ParsedModule
from irscope.formats.stablehlo.parser import ALIAS, Parser
from irscope.formats.stablehlo.provenance import StablehloProvenance
from irscope.formats.stablehlo.special import SPECIALS
from irscope.formats.stablehlo.templates import Rules
from irscope.graph import Node, Reading
from irscope.graph.collector import collector_paused
from irscope.source import SourceText

HEAD = 1 << 18
MODULE = re.compile(r"^[ \t]*(?:module(?: @[^\n]*| attributes[^\n]*)? ?\{|\"builtin\.module\"\()", re.MULTILINE)
OPERATION = re.compile(r'^[ \t]*(?:%[^\n=]{1,200} = )?"?(?:stablehlo|chlo|mhlo)\.[a-z_]+', re.MULTILINE)
FUNCTION = re.compile(r'^[ \t]*(?:func\.func [a-z@]|"func\.func"\(|sdy\.mesh )', re.MULTILINE)
OTHER_DIALECT = re.compile(r'^[ \t]*(?:%[^\n=]{1,200} = )?"?(?!func\.|sdy\.|builtin\.)[a-z_]\w*\.[a-z_]', re.MULTILINE)
STARTS = re.compile(r"(?:module|func|builtin\.module|func\.func|sdy\.mesh|[a-z_]\w*\.[a-z]\w*)(?![\w.])"
                    r"|%[\w$.-]+(?::\d+)?(?:, %[^\n=]*)? *=|\"[a-z_]\w*\.[\w.]+\"\(", re.ASCII)
NEXT_START = re.compile(rf"^[ \t]*(?={STARTS.pattern}|[#!][\w$.-]+ = |\{{-#)", re.MULTILINE | re.ASCII)
RESOURCES = re.compile(r"\{-#.*?#-\}", re.DOTALL)
LOCATIONS = re.compile(r"(?:[ \t]*+#loc\d*+ = loc\([^\n]*\)[ \t]*+(?:\n|$))++")
MAX_LINE = 40


def sniff(text: str) -> float:
    """The confidence that a text is StableHLO, from 0 to 1."""
    head = text[:HEAD]
    if OPERATION.search(head) is not None:
        return 0.95
    module = MODULE.search(head)
    if FUNCTION.search(head) is not None or module is not None:
        if module is not None and ("mhlo." in module[0] or "jax." in module[0]):
            return 0.95
        return 0.9 if OTHER_DIALECT.search(head) is None and FUNCTION.search(head) is not None else 0.0
    return 0.0


def read(source: SourceText) -> Reading:
    """Read the modules of a StableHLO text, with findings. Never raises on malformed text."""
    reading = Reading(source, "stablehlo")
    faults = Faults(source)
    with collector_paused():
        for parsed in parse(source, faults, direct):
            module, raw = build_module(parsed, source, faults)
            module.provenance = StablehloProvenance(source.text, parsed.aliases, parsed.operations, raw)
            reading.modules.append(module)
    reading.findings, reading.ok = faults.close(), faults.ok
    return reading


def parse(source: SourceText, faults: Faults, rules: Rules | None = None) -> list[ParsedModule]:
    """The modules of a text as trees of operations; those that have a rule are nodes.

    Reports what it could not read; never raises on malformed text.
    """
    text = source.text.replace("\r\n", " \n") if "\r" in source.text else source.text
    parser = Parser(text if text.endswith("\n") else text + "\n", faults, SPECIALS, rules)
    try:
        operations = _top(parser, faults)
    except RecursionError:  # the caller's stack was nearly full
        faults.add(LIMIT, "the text is nested too deeply to be read from here", Span(0))
        return []
    for name, at in parser.locations.items():
        if "#" + name not in parser.aliases:
            faults.add(UNKNOWN_ALIAS, f"operation location alias was never defined: #{name}", Span(at, len(name) + 1))
    modules = modules_of(operations, faults, parser)
    if faults.ok:
        _check_functions(modules, text, faults)
    return modules


def _check_functions(modules: list[ParsedModule], text: str, faults: Faults) -> None:
    """Report a text without modules, and modules without functions."""
    help = "a StableHLO dump has a line module @name { and functions func.func"
    if not modules:
        faults.add(NO_MODULE, "no StableHLO module was found in the text" if text.strip() else "the text is empty", Span(0), help)
    for module in modules:
        if not module.functions:
            faults.add(NO_MODULE, f"module {module.name or 'without a name'} has no function", Span(module.begin, 6), help)


def _top(parser: Parser, faults: Faults) -> list[Operation | Node]:
    """The operations outside of any module."""
    text, at = parser.text, 0
    found: list[Operation | Node] = []
    while True:
        space = SPACE.match(text, at)
        at = space.end() if space else at
        if at >= len(text):
            break
        behind = _alias(parser, at)
        if behind > at:
            at = behind
        elif STARTS.match(text, at) is None:
            at = _around(text, at, faults)
        else:
            cursor = Cursor(text, at)
            found += parser.operations(cursor)
            at = cursor.at if cursor.at != at else _around(text, at, faults)
    if not parser.is_cut:
        parser.scope.close()
    return found


def _alias(parser: Parser, at: int) -> int:
    """The offset behind definitions of aliases or a table of resources, ``at`` where there are none."""
    text = parser.text
    table = LOCATIONS.match(text, at) or RESOURCES.match(text, at)
    if table is not None:
        return table.end()
    m = ALIAS.match(text, at)
    if m is None:
        return at
    try:
        cursor = Cursor(text, m.end())
        if cursor.sees_word("loc"):
            parser.location(cursor)
        elif m[1][0] == "!":
            parser.types.read(cursor)
        else:
            parser.values.read(cursor)
        return cursor.at
    except Refused as refused:
        parser.tell(refused)
        end = text.find("\n", max(m.end(), refused.offset))
        return end if end >= 0 else len(text)


def _around(text: str, at: int, faults: Faults) -> int:
    """Skip text that is not MLIR, and report it once per piece."""
    m = NEXT_START.search(text, at + 1)
    end = m.end() if m is not None else len(text)
    line = text[at:end].split("\n", 1)[0].strip()
    shown = line if len(line) <= MAX_LINE else line[:MAX_LINE - 3] + "..."
    if "}" in line and not line.strip("}) ,\t"):
        faults.add(SYNTAX, "expected operation name in quotes: a '}' closes nothing here", Span(len(text[:at].rstrip())))
    else:
        faults.add(TEXT_AROUND, f"unexpected text, which is not MLIR, is skipped from here: {shown!r}", Span(at, max(1, len(line))))
    return end
