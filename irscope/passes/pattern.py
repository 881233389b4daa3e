"""A small pattern language for matching subgraphs.

    conv = op("nn.conv2d")(anything(), anything())
    act = op("nn.relu", "clip")(conv | op("nn.bias_add")(conv, anything()))
    found = act.match(node)              the nodes by pattern: found[conv]; None if it does not match

A pattern constrains operator, operands, attributes and conditions; ``|`` is an alternative, ``optional`` an optional step.
``...`` after the operands allows any others to follow. A pattern used in two places must match the same node in both.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from types import EllipsisType
from typing import Any

from irscope.graph import Graph, Node, TensorType
from irscope.ops import hlo

MAX_NAMED = 8
"""So many users of a value are named one by one."""


@dataclass(slots=True, eq=False)
class Match:
    """The nodes that a pattern matched: ``match[pattern]``; ``root`` is the last, ``inside`` all nodes that operator patterns matched.

    ``inside`` begins with the root and has each node once, before its operands.
    """

    root: Node
    nodes: dict[DataflowPattern, Node] = field(default_factory=dict)
    inside: list[Node] = field(default_factory=list)

    def __getitem__(self, pattern: DataflowPattern) -> Node:
        return self.nodes[pattern]

    def __contains__(self, pattern: DataflowPattern) -> bool:
        return pattern in self.nodes

    def inputs(self) -> list[Node]:
        """The operands from outside the match, in order of their use."""
        inside = set(self.inside)
        return list(dict.fromkeys(o for n in reversed(self.inside) for o in n.operands if o not in inside))

    def escapes(self, graph: Graph, users: list[list[Node]]) -> tuple[Node, str] | None:
        """A node inside, other than the root, that has users outside, and these users; None if the match may be replaced as a whole.

        Lists only the first of very many users.
        """
        inside = set(self.inside)
        for node in self.inside:
            if node is self.root:
                continue
            outside = [f"%{u.name}" for u in islice((u for u in users[node.index] if u not in inside), MAX_NAMED)]
            if node is graph.root:
                outside.append("the result of the function")
            if outside:
                return node, ", ".join(outside)
        return None


@dataclass(frozen=True, slots=True, eq=False)
class DataflowPattern:
    """Matches nodes. Created by :func:`op`, :func:`anything`, :func:`constant`, :func:`parameter`; refined by its methods."""

    names: frozenset[str] = frozenset()
    operands: tuple[DataflowPattern, ...] | None = None
    more: bool = False
    attrs: Mapping[str, Any] = field(default_factory=dict)
    conditions: tuple[Callable[[Node], bool], ...] = ()
    choices: tuple[DataflowPattern, ...] = ()
    heads: frozenset[str] | None = field(init=False, default=None)
    """The operators that a fitting node may have; None: any. Most nodes are distinguished by this alone."""

    def __post_init__(self) -> None:
        heads = self.names or None
        if self.choices and all(choice.heads is not None for choice in self.choices):
            heads = frozenset().union(*(choice.heads or () for choice in self.choices))
        object.__setattr__(self, "heads", heads)

    def __call__(self, *operands: DataflowPattern | EllipsisType) -> DataflowPattern:
        """The same operator with operands that must match these; a ``...`` at the end allows any others to follow."""
        given = [operand for operand in operands if isinstance(operand, DataflowPattern)]
        if any(operand is ... for operand in operands[:-1]):
            raise ValueError("... stands behind the operands")
        return replace(self, operands=tuple(given), more=len(given) < len(operands))

    def __or__(self, other: DataflowPattern) -> DataflowPattern:
        """This pattern, or the other if it does not match."""
        return DataflowPattern(choices=(self, other))

    def with_attrs(self, **attrs: object) -> DataflowPattern:
        """Only nodes whose attributes have these values in the text."""
        return replace(self, attrs={**self.attrs, **attrs})

    def where(self, condition: Callable[[Node], bool]) -> DataflowPattern:
        """Only nodes that satisfy a condition."""
        return replace(self, conditions=(*self.conditions, condition))

    def of_rank(self, rank: int) -> DataflowPattern:
        """Only tensors of a rank."""
        return self.where(lambda node: isinstance(node.type, TensorType) and node.type.rank == rank)

    def optional(self, step: Callable[[DataflowPattern], DataflowPattern]) -> DataflowPattern:
        """``step(self)`` if it matches, otherwise this pattern."""
        return step(self) | self

    def match(self, node: Node) -> Match | None:
        """The match of this pattern at a node and its transitive operands."""
        if self.heads is not None and node.op.name not in self.heads:
            return None
        found = Match(node)
        if not self._fits(node, found):
            return None
        # Operands precede their users: a node that two patterns matched comes after all that read it.
        found.inside = sorted(set(found.inside), key=lambda inside: inside.index, reverse=True)
        return found

    # The recursion is as deep as the pattern, however deep the graph is.
    def _fits(self, node: Node, found: Match) -> bool:
        if found.nodes.get(self, node) is not node:
            return False
        if self.heads is not None and node.op.name not in self.heads:
            return False
        if not self.attrs.items() <= node.attrs.items():
            return False
        if self.conditions and not all(condition(node) for condition in self.conditions):
            return False
        if self.choices:
            return self._chosen(node, found)
        if self.names:
            found.inside.append(node)
        found.nodes[self] = node
        if self.operands is None:
            return True
        enough = len(self.operands) <= len(node.operands) if self.more else len(self.operands) == len(node.operands)
        return enough and all(pattern._fits(operand, found) for pattern, operand in zip(self.operands, node.operands, strict=False))

    def _chosen(self, node: Node, found: Match) -> bool:
        for choice in self.choices:
            if choice.heads is not None and node.op.name not in choice.heads:
                continue
            nodes, inside = dict(found.nodes), list(found.inside)
            if choice._fits(node, found):
                found.nodes[self] = node
                return True
            found.nodes, found.inside = nodes, inside
        return False


def op(*names: str) -> DataflowPattern:
    """A node of one of these operators."""
    return DataflowPattern(frozenset(names))


def anything() -> DataflowPattern:
    """Any node; it stays outside the match."""
    return DataflowPattern()


def constant() -> DataflowPattern:
    """A constant; it stays outside the match."""
    return anything().where(is_constant)


def is_constant(node: Node) -> bool:
    """Whether a node is a constant."""
    return node.op is hlo.constant


def parameter() -> DataflowPattern:
    """A parameter of the graph."""
    return anything().where(lambda node: node.op is hlo.parameter)
