"""Reads operations, regions and blocks: the generic form here, the pretty forms by their declarations."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from irscope.formats.faults import Faults, Refused, Span
from irscope.formats.stablehlo.dialects import CLOSED, SHORT_NAMES, TERMINATORS, known
from irscope.formats.stablehlo.draft import Draft
from irscope.formats.stablehlo.faults import (
    DUPLICATE_NAME,
    LOSSY_PRINT,
    MISSING_TERMINATOR,
    RESULT_COUNT,
    SYNTAX,
    TRUNCATED,
    UNKNOWN_DIALECT,
    UNKNOWN_OPERATION,
    UNREADABLE_DIALECT,
)
from irscope.formats.stablehlo.form_types import read_tail
from irscope.formats.stablehlo.forms import form_of, read_form
from irscope.formats.stablehlo.lexer import ALIAS_USE, NAME, Closings, Cursor, unescape
from irscope.formats.stablehlo.lines import Lines
from irscope.formats.stablehlo.operations import UNREADABLE, Block, Operation, Region, Value
from irscope.formats.stablehlo.scope import Scope
from irscope.formats.stablehlo.templates import Rules, no_rules
from irscope.formats.stablehlo.types import TypeTable
from irscope.formats.stablehlo.undeclared import read_undeclared
from irscope.formats.stablehlo.values import Values
from irscope.graph import UNKNOWN, Node, Type
from irscope.source import did_you_mean
from irscope.source.budget import tick

ALIAS = re.compile(rf"^[ \t]*([#!](?:{NAME}))[ \t]*=[ \t]*(?=\S)", re.MULTILINE | re.ASCII)
ALIASES = re.compile(ALIAS.pattern.replace("^", r"\n", 1), re.ASCII)
"""The same behind a newline, for which Python searches faster than for the beginning of a line."""
ARGUMENT = re.compile(rf'%({NAME}): (tensor<[^<>"\n]++>)', re.ASCII)
"""An argument as compilers print it, of a type without bounds."""
RESOURCE = re.compile(r'([\w.$-]+|"[^"\n]*"):[ \t]*"(0x[0-9A-Fa-f]*)"')
ISOLATED = frozenset(("func.func", "builtin.module"))
# Where reading resumes after an operation that could not be read.
RESUME = re.compile(rf"^[ \t]*(?=%(?:{NAME})(?::\d+)?(?:, %[^\n=]*)? = |\"?[a-z_]\w*\.[a-z]|return\b|call\b|module\b"
                    r"|\}|\^|[#!][\w.$-]+ = )", re.MULTILINE | re.ASCII)
MOST_STAND_INS = 10_000
"""Results of operations that cannot be read: a line may state that it has 100,000, and beyond these each name stands for one."""
Special = Callable[["Parser", Cursor, Draft], None]


class Parser:
    """Reads operations of one text. ``specials`` reads the pretty forms that no declaration describes.

    Where ``rules`` are given, operations of functions become nodes by these rules as their lines are read.
    """

    def __init__(self, text: str, faults: Faults, specials: dict[str, Special], rules: Rules | None = None) -> None:
        self.text, self.faults, self.specials = text, faults, specials
        self.aliases = {m[1]: m.end() - 1 for m in ALIASES.finditer("\n" + text)}
        self.resources = _resources(text)
        self.types = TypeTable(self.aliases.get)
        self.values = Values(self.types, self.aliases.get, self.resources)
        self.scope = Scope(faults)
        self.makes_nodes = rules is not None
        self.locations: dict[str, int] = {}
        """The aliases of locations that are used, with the offset of the first use."""
        self.lines = Lines(text, self.values, self.locations, rules or no_rules)
        self._closings = Closings(text)
        self.is_cut = False
        self.stand_ins = MOST_STAND_INS

    def operations(self, cursor: Cursor) -> list[Operation | Node]:
        """Read operations up to a closing brace, a block's label or the end of the text."""
        found: list[Operation | Node] = []
        while True:
            at = self.lines.read(self.scope, cursor.at, found)
            if at != cursor.at:
                self._goto(cursor, at)
            if cursor.kind in ("end", "block") or cursor.sees("}") or (cursor.kind == "attribute" and "#" + cursor.value in self.aliases) \
                    or cursor.sees("{-#") or (cursor.kind == "type" and "!" + cursor.value in self.aliases):
                return found
            tick()
            found += self._one(cursor)

    def _one(self, cursor: Cursor) -> list[Operation]:
        """One operation. Where it cannot be read, a stand-in for its results."""
        begin = cursor.at
        names: list[tuple[str, int, int]] = []
        try:
            return [self.operation(cursor, names)]
        except Refused as refused:
            self.tell(refused)
            made: list[Value] = []
            for name, count, _ in names:
                if name not in self.scope.values:
                    self.stand_ins -= count
                    made += self.scope.bind(name, (UNKNOWN,) * (count if self.stand_ins >= 0 else 1))
            self._goto(cursor, self._behind(begin, refused.offset))
            return [Operation(UNREADABLE, (), tuple(made), {}, (), begin, begin, cursor.at)]

    def tell(self, refused: Refused) -> None:
        """Report a fault; that the text ends is reported once."""
        if refused.fault is TRUNCATED:
            if self.is_cut:
                return
            self.is_cut = True
        self.faults.take(refused)

    def _goto(self, cursor: Cursor, at: int) -> None:
        while True:
            try:
                cursor.goto(at)
                return
            except Refused as refused:
                self.tell(refused)
                at = self._behind(at, refused.offset)

    def _behind(self, begin: int, at: int) -> int:
        """The offset at which to resume when the operation at ``begin`` cannot be read at ``at``: behind it and the regions it opens."""
        line_end = self.text.find("\n", max(begin, min(at, len(self.text))))
        if line_end < 0:
            return len(self.text)
        if self.text[line_end - 1] == "{":
            end = self._closings.after(line_end - 1)
            line_end = max(line_end, self.text.find("\n", end) if end > 0 else line_end)
        m = RESUME.search(self.text, line_end)
        return m.end() if m is not None else len(self.text)

    def operation(self, cursor: Cursor, names: list[tuple[str, int, int]]) -> Operation:
        """Step over one operation; ``names`` becomes the names of its results, their numbers and offsets."""
        begin = cursor.at
        if cursor.kind == "value":
            self._names(cursor, names)
        at = cursor.at
        if cursor.kind == "string":
            draft = self._generic(cursor)
        elif cursor.kind == "word":
            draft = self._pretty(cursor, sum(count for _, count, _ in names))
        else:
            cursor.missing("expected operation name in quotes")
        draft.at = at
        end = cursor.last
        operation = self._finish(draft, names, (begin, end, self.location(cursor)))
        if len(names) <= 1 and (not operation.regions or draft.applied is not None):
            self.lines.templates.learn(operation, draft)
        return operation

    def _names(self, cursor: Cursor, names: list[tuple[str, int, int]]) -> None:
        for _ in cursor.elements():
            name, at = cursor.operand()
            if "#" in name:
                raise Refused(SYNTAX, "a result is defined without '#'", at, len(name) + 1)
            count = 1
            if cursor.eat(":"):
                count = cursor.integer("the number of results")
                if not 1 <= count <= 100_000:
                    raise Refused(RESULT_COUNT, "expected named operation to have at least 1 result", at, len(name) + 1)
            names.append((name, count, at))
        cursor.expect("=", "after SSA name")

    def _finish(self, draft: Draft, names: Sequence[tuple[str, int, int]], place: tuple[int, int, int]) -> Operation:
        """The operation of a draft: looks up its operands and defines its results."""
        begin, end, location = place
        use, at = self.scope.use, draft.at
        operands = tuple([use(name, type, where, at) for (name, where), type in zip(draft.operands, draft.types, strict=True)])
        results: list[Value] = []
        if names:
            total = sum(count for _, count, _ in names)
            if total != len(draft.results):
                raise Refused(RESULT_COUNT, f"operation defines {len(draft.results)} results but was provided {total} to bind", names[0][2],
                              len(names[0][0]) + 1)
            first = 0
            for name, count, where in names:
                self.scope.define(name, where)
                results += self.scope.bind(name, draft.results[first:first + count])
                first += count
        else:
            results = [Value(f"_{begin}_{i}", type) for i, type in enumerate(draft.results)]
        return Operation(draft.name, operands, tuple(results), draft.attributes, tuple(draft.regions), begin, at, end, location)

    def _generic(self, cursor: Cursor) -> Draft:
        """``"name"(operands) <{properties}> ({ regions }) {attributes} : function type``."""
        name, at = unescape(cursor.value), cursor.at
        exists = known(name)
        if exists is None:
            self.faults.add(UNKNOWN_DIALECT, f"the operation {name} is of a dialect that irscope does not know: it is opaque",
                            Span(at, len(name) + 2))
        elif not exists:
            self._tell_unknown(name, at, "unregistered operation")
        cursor.next()
        draft = Draft(name, at)
        cursor.expect("(", "before the operands")
        draft.operands = cursor.operands()
        cursor.expect(")", "after the operands")
        self.generic_tail(cursor, draft)
        return draft

    def generic_tail(self, cursor: Cursor, draft: Draft) -> None:
        """Step over what follows the operands of the generic form."""
        if cursor.sees("["):
            for _ in cursor.items("[]", "the successors"):
                cursor.next()
        if cursor.sees("<"):
            cursor.next()
            if not cursor.sees("{"):
                cursor.refuse("expected '{' before the properties")
            draft.attributes.update(self.values.dictionary(cursor))
            cursor.expect(">", "after the properties")
        if cursor.sees("("):
            isolated = draft.name in ISOLATED
            for _ in cursor.items("()", "the regions"):
                draft.regions.append(self.isolated(cursor, draft.name) if isolated else self.region(cursor, draft.name))
        read_tail(self.values, cursor, draft)

    def _pretty(self, cursor: Cursor, count: int) -> Draft:
        """An operation in the form of its dialect."""
        at, written = cursor.at, cursor.value
        name = SHORT_NAMES.get(written, written)
        draft = Draft(name, at, bound=count)
        special, form = self.specials.get(name), form_of(name)
        cursor.next()
        if special is None and form is None and name == written and "." not in name:
            if cursor.kind == "end":
                cursor.refuse("expected the rest of an operation")
            raise Refused(SYNTAX, f"custom op '{name[:40]}' is unknown: an operation is written dialect.name", at, len(name))
        if special is not None:
            special(self, cursor, draft)
        elif form is not None:
            read_form(form, self.values, cursor, draft)
            if not known(name):
                self._tell_unknown(name, at, "custom op")
        else:
            self._undeclared(cursor, draft)
        return draft

    def _undeclared(self, cursor: Cursor, draft: Draft) -> None:
        exists, name = known(draft.name), draft.name
        if exists is None:
            dialect = name.partition(".")[0]
            self.faults.add(UNREADABLE_DIALECT, f"Dialect '{dialect}' not found for custom op '{name}'", Span(draft.at, len(name)),
                            did_you_mean(dialect, CLOSED) or "print the text in the generic form: mlir-opt --mlir-print-op-generic")
        elif not exists:
            self._tell_unknown(name, draft.at, "custom op")
        elif name.partition(".")[0] in CLOSED:
            raise Refused(SYNTAX, f"{name} has no custom assembly form", draft.at, len(name), f'it is written "{name}"(...) : type')
        read_undeclared(self.values, cursor, draft)

    def _tell_unknown(self, name: str, at: int, what: str) -> None:
        dialect, _, short = name.partition(".")
        near = did_you_mean(short, CLOSED[dialect])
        self.faults.add(UNKNOWN_OPERATION, f"{what} '{name}' is unknown: the dialect {dialect} does not have it", Span(at, len(name)), near)

    def isolated(self, cursor: Cursor, owner: str, arguments: Sequence[tuple[str, int, Type]] = ()) -> Region:
        """Step over a region that sees nothing from outside."""
        with self.closed_scope(self.makes_nodes and owner == "func.func"):
            return self.region(cursor, owner, arguments)

    @contextmanager
    def closed_scope(self, makes_nodes: bool) -> Iterator[None]:
        """Values in the block have names of their own, and are all defined at its end."""
        outer, self.scope = self.scope, Scope(self.faults, makes_nodes)
        try:
            yield
            if not self.is_cut:
                self.scope.close()
        finally:
            self.scope = outer

    def region(self, cursor: Cursor, owner: str, arguments: Sequence[tuple[str, int, Type]] = (), blame: int = -1) -> Region:
        """Step over ``{ operations }``; ``arguments`` are those of its first block that stand before the brace.

        ``blame`` is the offset at which a missing return is reported, by default that of the block's last operation.
        """
        opened = cursor.at
        cursor.nest(5)
        if not cursor.sees("{"):
            cursor.refuse("expected '{' to begin a region")
        self._goto(cursor, cursor.after)
        if cursor.sees("..."):
            raise Refused(LOSSY_PRINT, "expected operation name in quotes: the printer left this region out", cursor.at, 3,
                          "print the text again without the option that skips regions (enable_debug_info and others keep them)")
        self.scope.enter()
        region = Region([])
        if cursor.kind != "block" and not (cursor.sees("}") and not arguments):
            region.blocks.append(Block(self.arguments(arguments), self.operations(cursor)))
        while cursor.kind == "block":
            region.blocks.append(self._block(cursor))
        self.scope.leave()
        cursor.depth -= 5
        if cursor.kind == "end":
            self.tell(Refused(TRUNCATED, f"the text ends here, but a region of {owner} is open", cursor.last, 1, "was the dump cut off?"))
            return region
        if not cursor.sees("}"):
            cursor.refuse("expected '}' to end a region")
        self._goto(cursor, cursor.after)
        self._check_terminators(region, owner, opened, blame)
        return region

    def arguments(self, arguments: Sequence[tuple[str, int, Type]]) -> tuple[Value, ...]:
        """Define the arguments of a block."""
        made: list[Value] = []
        for name, at, type in arguments:
            self.scope.define(name, at)
            made += self.scope.bind(name, (type,))
        return tuple(made)

    def _block(self, cursor: Cursor) -> Block:
        """``^bb0(%a: T, %b: T): operations``."""
        label = cursor.take()
        arguments = self.signature(cursor) if cursor.sees("(") else []
        made = self.arguments(arguments)
        cursor.expect(":", "after the label of a block")
        return Block(made, self.operations(cursor), label)

    def signature(self, cursor: Cursor) -> list[tuple[str, int, Type]]:
        """Step over ``(%a: T loc(...), %b: T)``."""
        found: list[tuple[str, int, Type]] = []
        for _ in cursor.items("()", "the arguments"):
            found.append(self.argument(cursor))
            self.location(cursor)
        return found

    def argument(self, cursor: Cursor) -> tuple[str, int, Type]:
        """Step over ``%a: T``; returns the name, the offset and the type."""
        at = cursor.at
        m = ARGUMENT.match(cursor.text, at, cursor.end)
        plain = self.types.plain(m[2]) if m is not None else None
        if m is not None and plain is not None:
            cursor.goto(m.end())
            return m[1], at, plain
        name, _ = cursor.operand()
        cursor.expect(":", "after the name of an argument")
        return name, at, self.types.read(cursor)

    def location(self, cursor: Cursor) -> int:
        """Step over a trailing ``loc(...)``; returns its offset, -1 where there is none."""
        if not cursor.sees_word("loc"):
            return -1
        at = cursor.at
        cursor.next()
        if not cursor.sees("("):
            cursor.refuse("expected '(' in location")
        inner = cursor.at
        for m in ALIAS_USE.finditer(cursor.balanced()):
            if m[1] is not None:
                self.locations.setdefault(m[1], inner + m.start())
        return at

    def _check_terminators(self, region: Region, owner: str, opened: int, blame: int) -> None:
        """Each block of a function or of a known operation's region ends with a return."""
        if self.is_cut or owner == "builtin.module" or not known(owner):
            return
        labels: set[str] = set()
        for block in region.blocks:
            last = block.operations[-1] if block.operations else None
            if last is None or isinstance(last, Node) or (last.name not in TERMINATORS and last.name != UNREADABLE and known(last.name)):
                at = blame if blame >= 0 else opened if last is None else last.at if isinstance(last, Operation) else _at(self.text, last)
                self.faults.add(MISSING_TERMINATOR, f"block with no terminator, in {owner}", Span(at, 1),
                                "a function ends with return, another region with stablehlo.return")
            if block.label and block.label in labels:
                self.faults.add(DUPLICATE_NAME, f"redefinition of block '^{block.label}'", Span(opened))
            labels.add(block.label)


def _at(text: str, node: Node) -> int:
    """The offset of the name of the operation of a node, behind that of its result."""
    return text.index(" = ", node.loc) + 3


def _resources(text: str) -> dict[str, tuple[int, int]]:
    """The blobs of ``{-# dialect_resources: {...} #-}``, by name."""
    begin = text.rfind("{-#")
    if begin < 0:
        return {}
    found: dict[str, tuple[int, int]] = {}
    for m in RESOURCE.finditer(text, begin):
        found[m[1].strip('"')] = m.span(2)
    return found

