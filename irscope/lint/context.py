"""What a rule may ask about the module it checks; each answer is computed once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from irscope.graph import Graph, Module, Node, TensorType, callees_first
from irscope.lint.values import uniform_axes
from irscope.source import Finding, Note, Severity, UserError

if TYPE_CHECKING:
    from irscope.lint.planned import Planned
    from irscope.lint.rule import Rule


class Context:
    """A module and the facts about it that rules share."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._users: dict[Graph, list[list[Node]]] = {}
        self._uniform: dict[Graph, list[frozenset[int]]] = {}

    @cached_property
    def graphs(self) -> list[Graph]:
        """Every graph of the module, callees first."""
        return callees_first(self.module)

    @cached_property
    def inlined(self) -> set[Graph]:
        """Bodies of fusions: the compiler has decided about what is inside them."""
        return {body for graph in self.graphs for node in graph.nodes if node.op.name == "fusion" for body in node.bodies}

    @cached_property
    def scalar_bodies(self) -> set[Graph]:
        """Bodies that are run once an element (reducers, comparators)."""
        return {
            body
            for graph in self.graphs
            for node in graph.nodes
            for body in node.bodies
            if node.op.name not in ("while", "conditional", "call", "fusion", "async-start", "custom-call")
        }

    @cached_property
    def array_graphs(self) -> list[Graph]:
        """The graphs that work on whole arrays: all but reducers and comparators."""
        return [g for g in self.graphs if g not in self.scalar_bodies]

    def users(self, node: Node, graph: Graph) -> list[Node]:
        """The nodes of ``graph`` that take the value of ``node``."""
        if graph not in self._users:
            self._users[graph] = graph.users()
        return self._users[graph][node.index]

    @cached_property
    def planned(self) -> Planned | None:
        """What irscope's own policy makes of the module; None where it cannot be expanded to primitives."""
        from irscope.lint.planned import Planned

        try:
            return Planned(self.module, "irscope")
        except (UserError, ValueError):
            return None

    def uniform(self, graph: Graph) -> list[frozenset[int]]:
        """For each node, by index, the axes along which broadcasts alone make all elements equal."""
        if graph not in self._uniform:
            self._uniform[graph] = uniform_axes(graph)
        return self._uniform[graph]

    @cached_property
    def _by_name(self) -> dict[str, list[tuple[Node, Graph]]]:
        found: dict[str, list[tuple[Node, Graph]]] = {}
        for graph in self.array_graphs:
            for node in graph.nodes:
                if node.op.dialect == "hlo":
                    found.setdefault(node.op.name, []).append((node, graph))
        return found

    def primitives(self, *names: str) -> Iterator[tuple[Node, Graph]]:
        """The HLO operations of these names, with their graph, in the graphs that work on whole arrays."""
        for name in names:
            yield from self._by_name.get(name, ())

    @cached_property
    def optimised(self) -> bool:
        """Whether the text is what a compiler left: what it did not remove, it keeps."""
        return bool(self.module.attrs.get("is_scheduled")) or bool(self.inlined)

    def tensors(self, graph: Graph) -> Iterator[tuple[Node, TensorType]]:
        """The nodes of a graph that give one tensor, with their type."""
        for node in graph.nodes:
            if isinstance(node.type, TensorType):
                yield node, node.type

    def finding(
        self,
        rule: Rule,
        node: Node,
        graph: Graph,
        message: str,
        *,
        severity: Severity | None = None,
        notes: tuple[Note, ...] = (),
        help: str = "",
        saves: dict[str, float] | None = None,
    ) -> Finding:
        """A finding of ``rule`` at ``node``, with its place in the text and the user's own source line."""
        stack = self.module.call_stack(node)
        name_at = self.module.source.text.find(node.name, node.loc, node.loc + len(node.name) + 8) if node.loc >= 0 else -1
        return Finding(
            rule.code,
            rule.name,
            rule.severity if severity is None else severity,
            message,
            self.module.source,
            name_at if name_at >= 0 else node.loc,
            len(node.name) if name_at >= 0 else 1,
            notes,
            help,
            node.name,
            graph.name,
            str(stack[0]) if stack else "",
            saves,
        )
