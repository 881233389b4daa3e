"""State shared by the constructs of a Relay program during a run: graph under construction, active functions, old values of references."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import Any

from irscope.expand.frames import Framed, FramedProgram
from irscope.expand.relay.values import Journal, Reference
from irscope.expand.steps import Steps
from irscope.formats.relay.algebra import Relay
from irscope.formats.relay.attributes import RelayModule
from irscope.graph import Graph, Module, Node
from irscope.source import UserError

Run = Steps
"""A call in progress: it yields other calls, is sent their values, and returns its own."""

MAX_DEPTH = 5_000
"""Calls nested deeper than this count as a recursion that does not end."""
MAX_NESTED = 100
"""Conditionals nested deeper than this count as a recursion that ends depending on data."""


class FramedRelay(Framed, Relay):
    """Relay's algebra in the innermost frame."""


class RelayProgram(FramedProgram[FramedRelay]):
    """The state of a run. Choices and loops run graphs by :meth:`call` and :meth:`fill`."""

    def __init__(self, module: Module) -> None:
        super().__init__(module, FramedRelay)
        self.constructors = {name: len(fields) for made in RelayModule.of(module).types.values() for name, fields in made.items()}
        self.running: list[Graph] = []
        self.nesting = 0
        self.journals: list[Journal] = []

    @abstractmethod
    def call(self, graph: Graph, arguments: list[object]) -> Run:
        """Run a graph. Its captures follow its own parameters."""

    @abstractmethod
    def fill(self, graph: Graph, values: dict[Node, object], wanted: Container[Node] | None = None) -> Run:
        """Compute the values of a graph's nodes that are not known yet, or of those in ``wanted``."""

    def repeated(self) -> str:
        """The active function with the deepest recursion."""
        names = Counter(g.name for g in self.running if "captures" not in g.notes)
        return f"@{names.most_common(1)[0][0]}"

    @contextmanager
    def nested(self, node: Node) -> Iterator[None]:
        """Enter the branches of a choice that depends on data."""
        self.nesting += 1
        if self.nesting > MAX_NESTED:
            raise UserError(f"{self.repeated()} calls itself in a branch that depends on data, so the number of calls is unknown"
                            f"{self.where(node)}",
                            "a function `if (go) { @f(next...) } else { result }` becomes a loop; else the end must not depend on data")
        yield
        self.nesting -= 1

    @contextmanager
    def journal(self) -> Iterator[Journal]:
        """Record the old values of the references that are written until the block ends."""
        made = Journal(len(self.journals))
        self.journals.append(made)
        yield made
        self.journals.pop()

    def write(self, cell: Reference, value: Any) -> None:
        """Give a reference another value."""
        for journal in self.journals:
            journal.before.setdefault(cell, cell.value)
        cell.value = value

    def at(self, node: Node) -> None:
        """Attribute the nodes built from here on to this node."""
        self.t.builder.at = (node,)

    def where(self, node: Node) -> str:
        """`` (line 4)``."""
        return f" (line {self.module.source.place(node.loc).line})" if node.loc >= 0 and self.module.source.text else ""
