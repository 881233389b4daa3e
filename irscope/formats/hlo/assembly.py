"""A module under construction: its computations, names and shared tables. Both paths of the reader add their instructions here."""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from irscope.formats.hlo.dialect import HLO
from irscope.formats.hlo.faults import (
    ASYNC_CHAIN,
    DUPLICATE_NAME,
    ENTRY_OR_ROOT,
    ILLEGAL_NAME,
    LAYOUT,
    MAX_FINDINGS,
    PARAMETER_NUMBER,
    RESULT_TYPE,
    UNDEFINED_OPERAND,
    Fault,
    Faults,
    Span,
)
from irscope.formats.hlo.lexer import RESERVED_TYPES, Cursor
from irscope.formats.hlo.opcodes import OPCODES
from irscope.formats.hlo.types import TypeTable, compatible
from irscope.graph import NO_ATTRS, UNKNOWN, Effect, Graph, Module, Node, Op, Type, unknown_op
from irscope.ops.registry import lookup
from irscope.source import Note, SourceText, did_you_mean

MAX_GUESSED = 20000  # with more names than this, there is no "did you mean"

UNDEFINED = Op("undefined", effect=Effect.CONTROL, known=False)
"""Stands in for an operand that the text does not define, so that the rest of the graph can be read."""


SPOILT = "?"
"""The suffix of the operator name of an instruction that lacks what its opcode requires."""


class Entry(NamedTuple):
    """A parsed opcode and attribute text; shared by all instructions that spell them alike.

    ``operands`` is their number, or one of the marks below. ``looks`` says that each instruction must be checked.
    """

    op: Op
    operands: int
    attrs: Mapping[str, Any]
    bodies: tuple[Graph, ...]
    looks: bool


ANY, PARAMETER, CONSTANT = -1, -2, -3


class ComputationDraft:
    """A computation under construction."""

    __slots__ = ("graph", "is_cut", "names", "result", "result_at", "taken")

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.names: dict[str, Node] = {}
        self.result: Type | None = None
        self.result_at = -1
        self.is_cut = False
        self.taken: dict[str, int] = {}

    def free_name(self, wanted: str) -> str:
        """A name that no instruction of the computation has."""
        name, n = wanted, self.taken.get(wanted, 0)
        while name in self.names:
            n += 1
            name = f"{wanted}.{n}"
        self.taken[wanted] = n  # the smaller numbers stay taken
        return name


class Awaited(NamedTuple):
    """A computation that is called before its definition; the graph has a note ``missing`` until it is defined. ``span`` is the call's."""

    graph: Graph
    span: Span


ReadNested = Callable[["Assembly", Cursor, str], Graph]
"""Reads ``{ instructions }`` at a cursor as a computation of a name."""


class Assembly:
    """One module under construction.

    ``tables[opcode][attribute text]`` is an Entry, ``values[kind, text]`` the value of an attribute, and ``tails`` the texts of
    metadata and backend configs that are well-formed; ``text`` is the source with log prefixes blanked out.
    ``read_nested`` reads a computation that is written inline in an attribute list. ``entry`` is the name in the header of the entry,
    ``unfinished`` are the computations that are not closed; ``ends_early``: the text ends within a computation or a header.
    """

    def __init__(self, source: SourceText, text: str, faults: Faults, ops: dict[str, Op], begin: int, read_nested: ReadNested) -> None:
        self.source, self.text, self.faults, self.read_nested = source, text, faults, read_nested
        self.module = Module("", HLO, source=source)
        self.begin = begin
        self.types = TypeTable(lambda message, at, length: self.tell(LAYOUT, message, Span(at, length)))
        self.ops = ops
        self.tables: dict[str, dict[str, Entry]] = {}
        self.tails: set[str] = set()
        self.numbers: dict[str, dict[str, object]] = {}
        self.values: dict[tuple[str, str], Any] = {}
        self.literals: dict[tuple[int, str], dict[str, object]] = {}
        self.scopes: list[ComputationDraft] = []
        self.awaited: dict[str, Awaited] = {}
        self.async_starts: dict[Graph, Node] = {}
        self.entry_at = self.aliases_at = -1
        self.entry = ""
        self.unfinished: set[str] = set()
        self.ends_early = False
        self.first_finding = len(faults.findings)
        self._fitting: dict[tuple[int, int], bool] = {}
        self.makes_parameters = False

    @property
    def scope(self) -> ComputationDraft:
        """The innermost open computation."""
        return self.scopes[-1]

    def tell(self, fault: Fault, message: str, span: Span, help: str = "", notes: tuple[Note, ...] = ()) -> None:
        """Report a fault in the open computation."""
        self.faults.add(fault, message, span._replace(graph=self.scopes[-1].graph.name if self.scopes else ""), help, notes)

    def op(self, name: str) -> Op:
        """The declaration of an opcode; an opaque operator where there is none."""
        found = self.ops.get(name)
        if found is None:
            found = self.ops[name] = lookup(name) or (Op(name, effect=Effect.CONTROL) if name in OPCODES else unknown_op(name, "hlo"))
        return found

    def spoil(self, node: Node) -> None:
        """Make an instruction opaque that lacks an operand or an attribute: users of the graph rely on what an opcode has.

            a = f32[2] add(x)    ->    the operator of %a is named add?
        """
        if not node.op.name.startswith("async-") and not node.op.name.endswith(SPOILT):  # chains are linked by these names
            name = node.op.name + SPOILT
            node.op = self.ops.setdefault(name, Op(name, effect=Effect.CONTROL))

    def open(self, name: str, at: int) -> ComputationDraft:
        """Begin a computation."""
        scope = ComputationDraft(self._awaited(name) or Graph(name))
        scope.graph.loc = at
        self.scopes.append(scope)
        return scope

    def _awaited(self, name: str) -> Graph | None:
        """The graph that calls of a computation have, where this is its definition."""
        graph = self.awaited[name].graph if name in self.awaited and not self.scopes else None
        return graph if graph is not None and graph.notes.get("missing") and not graph.nodes else None

    def close(self) -> Graph:
        """End the innermost computation: check duplicate names, parameters, root and result."""
        scope = self.scopes.pop()
        graph = scope.graph
        if len(scope.names) != len(graph.nodes):
            self._tell_duplicates(graph)
        if not scope.names.keys().isdisjoint(RESERVED_TYPES):
            for node in graph.nodes:
                if node.name in RESERVED_TYPES:
                    message, help = f"{node.name} is the name of an element type", f"call it {node.name}_"
                    self.faults.add(ILLEGAL_NAME, message, Span(node.loc, len(node.name), node.name, graph.name), help)
        if scope.is_cut:
            self.unfinished.add(graph.name)
            return graph
        if graph.root is None and graph.nodes:
            graph.root = graph.nodes[-1]
        self._number_parameters(graph)
        root = graph.root
        if scope.result is not None and root is not None and root.type is not UNKNOWN and not self._fits(scope.result, root.type):
            message = f"computation {graph.name} declares the result {scope.result}, but its root %{root.name} is {root.type}"
            length = self.on_line(scope.result_at, scope.result_at + len(str(scope.result)))
            self.faults.add(RESULT_TYPE, message, Span(scope.result_at, length, root.name, graph.name), "",
                            (Note("the root is here", root.loc),))
        return graph

    def _fits(self, declared: Type, type: Type) -> bool:
        """Whether two types of the table are compatible; thousands of computations compare the same few pairs."""
        key = (id(declared), id(type))
        fits = self._fitting.get(key)
        if fits is None:
            fits = self._fitting[key] = compatible(declared, type)
        return fits

    def register(self, graph: Graph, is_entry: bool, at: int) -> None:
        """Enter a named computation into the module."""
        known = self.module.graphs.get(graph.name)
        if known is not None:
            self.faults.add(DUPLICATE_NAME, f"there is a computation {graph.name} already",
                            Span(graph.loc, len(graph.name), graph=graph.name), "", (Note("it is first defined here", known.loc),))
            graph.name = self.module.fresh_name(graph.name)
        self.module.graphs[graph.name] = graph
        graph.notes.pop("missing", None)
        if is_entry:
            if self.module.entry:
                self.faults.add(ENTRY_OR_ROOT, "a module has one ENTRY, and this is the second", Span(at, 5, graph=graph.name), "",
                                (Note(f"the first is {self.module.entry}", self.entry_at),))
            else:
                self.module.entry, self.entry_at = graph.name, at

    def add(self, node: Node, is_root: bool, root_at: int = -1) -> Node:
        """Put an instruction into the open computation."""
        scope = self.scope
        graph = scope.graph
        graph.add(node)
        known = scope.names.get(node.name)
        if known is None or known.op is UNDEFINED:
            scope.names[node.name] = node
        if is_root:
            if graph.root is not None:
                self.faults.add(ENTRY_OR_ROOT, "a computation has one ROOT, and this is the second",
                                Span(root_at, 4, node.name, graph.name), "", (Note(f"the first is %{graph.root.name}", graph.root.loc),))
            else:
                graph.root = node
        return node

    def operand(self, name: str, at: int) -> Node:
        """The instruction of a name; for an unknown name, reports it once and returns a stand-in."""
        scope = self.scope
        node = scope.names.get(name)
        if node is None:
            # A fault that is only counted needs no help.
            shown = len(self.faults.findings) < MAX_FINDINGS
            near = did_you_mean(name, scope.names) if shown and len(scope.names) < MAX_GUESSED else ""
            self.tell(UNDEFINED_OPERAND, f"there is no instruction {name} before this one", Span(at, len(name)), near,
                      self._where_else(name, at) if shown else ())
            node = self.stand_in(name, at)
        return node

    def _where_else(self, name: str, at: int) -> tuple[Note, ...]:
        """Where a name that is missing here is defined."""
        outer = next((s.names[name] for s in reversed(self.scopes[:-1]) if name in s.names), None)
        if outer is not None:
            return (Note(f"%{name} belongs to the computation around this one; a computation sees its own instructions only", outer.loc),)
        if name in self.module.graphs:
            return (Note(f"{name} is a computation", self.module.graphs[name].loc),)
        later = re.compile(rf"^[ \t]*(?:ROOT[ \t]+)?%?{re.escape(name)}[ \t]+=", re.MULTILINE).search(self.text, at)
        end = self.text.find("\n}", at)
        if later and (end < 0 or later.start() < end):
            return (Note("it is defined later, here; an instruction must precede its users", later.end() - 1 - len(name)),)
        return ()

    def stand_in(self, name: str, at: int) -> Node:
        """A node for a name that could not be read; it is not shown."""
        scope = self.scope
        node = scope.names.get(name)
        if node is None:
            node = scope.graph.add(Node(UNDEFINED, name, UNKNOWN, (), NO_ATTRS, (), at, -1, (), True))
            scope.names[name] = node
        return node

    def check_name(self, name: str, at: int) -> None:
        """Report names that XLA reserves and refuses."""
        if name.startswith("__") and not name.startswith("__xla_"):
            self.tell(ILLEGAL_NAME, f"names beginning with __ are reserved: {name}", Span(at, len(name), name), f"call it a{name[1:]}")

    def on_line(self, begin: int, end: int) -> int:
        """How many of the characters between two offsets are on the first line, where carets can underline them."""
        line_end = self.text.find("\n", begin)
        return max(1, (end if line_end < 0 else min(end, line_end)) - begin)

    def async_start(self, graph: Graph, node: Node) -> None:
        """Check that an async computation has one caller."""
        known = self.async_starts.get(graph)
        if known is not None:
            self.tell(ASYNC_CHAIN, f"computation {graph.name} is called by more than one async-start",
                      Span(node.loc, len(node.name), node.name), "", (Note(f"%{known.name} calls it too", known.loc),))
        self.async_starts[graph] = node

    def finish(self) -> Module:
        """Complete the module: set its entry."""
        module = self.module
        if not module.entry and module.graphs:
            module.entry = next(reversed(module.graphs))
        return module

    def _tell_duplicates(self, graph: Graph) -> None:
        first: dict[str, Node] = {}
        for node in graph.nodes:
            known = first.setdefault(node.name, node)
            if known.op is UNDEFINED:
                first[node.name] = node
            elif known is not node:
                self.faults.add(DUPLICATE_NAME, f"there is an instruction {node.name} already",
                                Span(node.loc, len(node.name), node.name, graph.name), "", (Note("it is first defined here", known.loc),))

    def _number_parameters(self, graph: Graph) -> None:
        parameter = self.ops.get("parameter")
        found = [node for node in graph.nodes if node.op is parameter]
        if all(node.attrs["number"] == number for number, node in enumerate(found)):  # as printers write it
            graph.params = found
            return
        by_number: dict[int, Node] = {}
        for node in found:
            number = node.attrs.get("number", -1)
            known = by_number.setdefault(number, node)
            if known is not node:
                self.faults.add(PARAMETER_NUMBER, f"duplicate parameter number {number}",
                                Span(node.loc, len(node.name), node.name, graph.name), "",
                                (Note(f"%{known.name} is parameter {number} already", known.loc),))
        graph.params = [by_number[number] for number in sorted(by_number)]
        if len(by_number) == len(found) and sorted(by_number) != list(range(len(found))):
            missing = next(n for n in range(len(found)) if n not in by_number)
            last = graph.params[-1]
            message = f"computation {graph.name} has no parameter {missing}, but a parameter {last.attrs['number']}"
            self.faults.add(PARAMETER_NUMBER, message, Span(last.loc, len(last.name), last.name, graph.name))
