"""A composite that was recognised, and what keeps another from being one."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.graph import Graph, Node


@dataclass(frozen=True, slots=True)
class Odd:
    """What is odd about a composite: ``node`` is the one to blame, ``says`` the rest of "this is a ..., but ...".

    ``wrong``: it cannot be meant; otherwise it may be a variant of the model's own.
    """

    node: Node
    says: str
    help: str
    wrong: bool = False
    others: tuple[tuple[Node, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Composite:
    """A well-known composite, by structure alone.

    ``what`` is its name, ``result`` the node that has its value, ``nodes`` the parts that it was known by; ``odd`` is None for the
    canonical form.
    """

    what: str
    graph: Graph
    result: Node
    nodes: tuple[Node, ...]
    odd: Odd | None = None

    @property
    def article(self) -> str:
        """What stands before its name in a sentence."""
        return "an" if self.what[0] in "aeiou" or self.what.startswith("RMS") else "a"
