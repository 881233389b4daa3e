"""Modules: the graphs of one dump; and readings: the modules and findings of one text."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from irscope.graph.allocations import BufferAssignment
from irscope.graph.dialect import Dialect
from irscope.graph.node import Graph, Node
from irscope.graph.provenance import NoProvenance, Provenance, SourceLine
from irscope.lazy import Array
from irscope.source import Finding, SourceText
from irscope.source.notebook import Viewable

SHARDING = "sharding"


@dataclass(frozen=True, slots=True)
class Cut:
    """What is there of a module whose text was cut off: the names of the complete graphs, the name of the entry where the text came so
    far, and the number of lines."""

    complete: frozenset[str]
    entry: str | None
    lines: int

    def __str__(self) -> str:
        n = len(self.complete)
        lines = f"{self.lines:,} {'line' if self.lines == 1 else 'lines'}"
        entry = "ENTRY missing" if self.entry is None else f"ENTRY {self.entry} {'' if self.entry in self.complete else 'in'}complete"
        return f"the text is cut off after {lines}: {n:,} complete {'computation' if n == 1 else 'computations'}, {entry}"


@dataclass(slots=True, eq=False)
class Module(Viewable):
    """The graphs of one dump, by name, callees before callers.

    ``dialect`` is what its format declares; ``entry`` names the graph that runs; ``attrs`` are the module's own attributes as the
    format keeps them. A module with a ``cut`` is not whole, and has no ``entry``: its graphs can be looked at one by one. ``stored`` has
    the values of parameters of the entry that the file itself holds, by name; each is read when it is looked up.
    """

    name: str
    dialect: Dialect
    graphs: dict[str, Graph] = field(default_factory=dict)
    entry: str = ""
    attrs: dict[str, Any] = field(default_factory=dict)
    source: SourceText = field(default_factory=lambda: SourceText("", ""))
    provenance: Provenance = field(default_factory=NoProvenance)
    cut: Cut | None = None
    stored: Mapping[str, Array] = field(default_factory=dict)
    _numbered: dict[str, int] = field(default_factory=dict, repr=False)  # the next number to try: 10,000 graphs may want the same name

    @property
    def format(self) -> str:
        """The name of the format, for messages."""
        return self.dialect.name

    @property
    def is_primitive(self) -> bool:
        """Whether the graphs consist of primitives: read so, or expanded from another dialect."""
        return self.dialect.primitive or bool(self.attrs.get("primitive"))

    @property
    def flushes_denormals(self) -> bool:
        """Whether denormal floats count as zeros of their sign where something is computed. XLA's CPU backend runs HLO so; torch and TVM
        keep them. Compiled code and the reference both read this."""
        return self.dialect.flushes_denormals

    def main(self) -> Graph:
        """The graph that runs."""
        return self.graphs[self.entry]

    def scope(self, node: Node) -> str:
        """The user's name for the place that the node comes from, or the empty string."""
        return self.provenance.scope(node.loc) if node.loc >= 0 else ""

    def call_stack(self, node: Node) -> tuple[SourceLine, ...]:
        """The call stack in the user's program that created the node, innermost line first."""
        return self.provenance.call_stack(node.loc) if node.loc >= 0 else ()

    def raw(self, node: Node) -> Mapping[str, str]:
        """The attributes of the node that were kept as text."""
        return still_true(node, self.provenance.raw(node.loc)) if node.loc >= 0 else {}

    def fresh_name(self, wanted: str) -> str:
        """A graph name that is still free."""
        if wanted not in self.graphs:
            return wanted
        n = self._numbered.get(wanted, 1)
        while f"{wanted}.{n}" in self.graphs:
            n += 1
        self._numbered[wanted] = n
        return f"{wanted}.{n}"

    def derived(self, name: str | None = None) -> Module:
        """A module without graphs that keeps this one's source, provenance and attributes, for a pass to fill."""
        return Module(name or self.name, self.dialect, {}, self.entry, dict(self.attrs), self.source, self.provenance,
                      stored=self.stored)

    def __repr__(self) -> str:
        return f"<module {self.name}: {len(self.graphs)} graphs>"


def still_true(node: Node, raw: Mapping[str, str]) -> Mapping[str, str]:
    """The attributes in a node's text without a sharding that is one of another shape: a pass moved the node before a reshape."""
    if SHARDING not in raw or not node.origin or _shapes(node) == _shapes(node.origin[0]):
        return raw
    return {name: value for name, value in raw.items() if name != SHARDING}


def _shapes(node: Node) -> list[object]:
    return [getattr(leaf, "shape", None) for leaf in node.type.leaves()]


@dataclass(slots=True)
class Reading(Viewable):
    """The result of reading a text: modules (most texts hold one) and findings. ``ok`` follows the format's own parser.

    Files of some formats also hold the ``arguments`` of a run, flattened, and the compiler's assignment of ``buffers``.
    ``has_other_files``: values of constants lie in other files, which are read when they are looked up.
    """

    source: SourceText
    format: str
    modules: list[Module] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    ok: bool = True
    arguments: tuple[Array, ...] = ()
    buffers: BufferAssignment | None = None
    has_other_files: bool = False

    def __repr__(self) -> str:
        modules, findings = len(self.modules), len(self.findings)
        return (f"<reading of {self.source.name!r}: {self.format}, {modules} {'module' if modules == 1 else 'modules'}, "
                f"{findings} {'finding' if findings == 1 else 'findings'}>")

    def module(self) -> Module:
        """The first module; raises ValueError when nothing was understood."""
        if not self.modules:
            raise ValueError(f"{self.source.name}: no module was read")
        return self.modules[0]
