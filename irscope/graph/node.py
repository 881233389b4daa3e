"""The common graph: nodes, graphs, modules. A Node is its own value."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from irscope.graph.dialect import Dialect
from irscope.graph.op import Op
from irscope.graph.provenance import NoProvenance, Provenance, SourceLine
from irscope.graph.types import Type
from irscope.source import Finding, SourceText
from irscope.source.budget import tick

NO_ATTRS: Mapping[str, Any] = MappingProxyType({})


@dataclass(slots=True, eq=False)
class Node:
    """One operation and its result.

    ``operands`` are the nodes whose values it takes; ``attrs`` its parsed attributes, shared between nodes and never changed
    in place; ``bodies`` the graphs it calls; ``loc`` the offset of its text in the module's source (-1: none);
    ``index`` its place in ``graph.nodes``; ``origin`` the nodes of the earlier graph that it stands for.
    ``synthetic`` marks a node that the text does not write (a ``get`` of a multi-result operator): neither shown nor counted.
    """

    op: Op
    name: str
    type: Type
    operands: tuple[Node, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=lambda: NO_ATTRS)
    bodies: tuple[Graph, ...] = ()
    loc: int = -1
    index: int = -1
    origin: tuple[Node, ...] = ()
    synthetic: bool = False

    def __repr__(self) -> str:
        return f"%{self.name} = {self.type} {self.op.name}({', '.join('%' + o.name for o in self.operands)})"


@dataclass(slots=True, eq=False)
class Graph:
    """Nodes in definition order (operands stand before users), the parameters, and the node whose value is the result.

    Bodies are closed: a graph refers to its own nodes only. ``params[i]`` is the parameter of number i.
    ``root`` is None only in a graph whose text broke off. ``loc`` is where its text begins.
    ``notes`` holds what a format wants to keep of it (execution_thread, signature).
    """

    name: str
    nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)
    root: Node | None = None
    loc: int = -1
    notes: dict[str, Any] = field(default_factory=dict)

    def result(self) -> Node:
        """The root; raises ValueError where the text gave none."""
        if self.root is None:
            raise ValueError(f"graph {self.name} has no result")
        return self.root

    def add(self, node: Node) -> Node:
        """Append a node and number it. Raises BudgetExceeded where the file takes more than it may."""
        tick()
        node.index = len(self.nodes)
        self.nodes.append(node)
        return node

    def users(self) -> list[list[Node]]:
        """For each node, by index, the nodes that take its value, each once, in order."""
        users: list[list[Node]] = [[] for _ in self.nodes]
        for node in self.nodes:
            for operand in node.operands:
                mine = users[operand.index]
                if not mine or mine[-1] is not node:
                    mine.append(node)
        return users

    def shown(self) -> Iterator[Node]:
        """The nodes that the text writes."""
        return (n for n in self.nodes if not n.synthetic)

    def __repr__(self) -> str:
        return f"<graph {self.name}: {len(self.nodes)} nodes>"


@dataclass(slots=True, eq=False)
class Module:
    """The graphs of one dump, by name, callees before callers.

    ``dialect`` is what its format declares; ``entry`` names the graph that runs; ``attrs`` are the module's own attributes as the
    format keeps them.
    """

    name: str
    dialect: Dialect
    graphs: dict[str, Graph] = field(default_factory=dict)
    entry: str = ""
    attrs: dict[str, Any] = field(default_factory=dict)
    source: SourceText = field(default_factory=lambda: SourceText("", ""))
    provenance: Provenance = field(default_factory=NoProvenance)
    _numbered: dict[str, int] = field(default_factory=dict, repr=False)  # a number to begin with: 10,000 graphs may want the same name

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
        keep them. Compiled code and the reference both ask here."""
        return self.dialect.flushes_denormals

    def main(self) -> Graph:
        """The graph that runs."""
        return self.graphs[self.entry]

    def scope(self, node: Node) -> str:
        """The user's own name for where the node comes from, or the empty string."""
        return self.provenance.scope(node.loc) if node.loc >= 0 else ""

    def call_stack(self, node: Node) -> tuple[SourceLine, ...]:
        """The lines of the user's program that made the node, innermost first."""
        return self.provenance.call_stack(node.loc) if node.loc >= 0 else ()

    def raw(self, node: Node) -> Mapping[str, str]:
        """The attributes of the node that were kept as text."""
        return self.provenance.raw(node.loc) if node.loc >= 0 else {}

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
        """A module without graphs that keeps this one's source, provenance and attributes: what a pass fills."""
        return Module(name or self.name, self.dialect, {}, self.entry, dict(self.attrs), self.source, self.provenance)

    def __repr__(self) -> str:
        return f"<module {self.name}: {len(self.graphs)} graphs>"


@dataclass(slots=True)
class Reading:
    """What a reader understood of a text: modules (most texts hold one) and findings. ``ok`` follows the format's own parser."""

    source: SourceText
    format: str
    modules: list[Module] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    ok: bool = True

    def module(self) -> Module:
        """The first module; raises ValueError when nothing was understood."""
        if not self.modules:
            raise ValueError(f"{self.source.name}: no module was read")
        return self.modules[0]
