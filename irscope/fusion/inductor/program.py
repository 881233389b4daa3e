"""A graph as Inductor sees it: units of primitives, and the facts about each value that lowering needs."""
from __future__ import annotations

from dataclasses import dataclass, field

from irscope.fusion.inductor.releases import Release
from irscope.fusion.inductor.strides import shape_of
from irscope.graph import Graph, Node
from irscope.graph.walk import behind
from irscope.ops import hlo

LOOKED_THROUGH = hlo.named("reshape broadcast convert")
"""Operators that :func:`seen_through` skips."""


@dataclass(slots=True, eq=False)
class Unit:
    """Primitives that are lowered together, in order; the last one has the value (or several have). ``call``: lowered to a library call."""

    nodes: list[Node]
    call: bool = False
    attention: bool = False


@dataclass(frozen=True, slots=True)
class GroupNorm:
    """The operands of a group normalisation with weights.

    ``image`` (N, C, ...), ``mean`` and ``factor`` (N, groups, 1, ...), ``weight`` and ``bias`` (C); ``weighted`` is the product with the
    weights.
    """

    image: Node
    mean: Node
    factor: Node
    weight: Node
    bias: Node | None
    weighted: Node


@dataclass(slots=True, eq=False)
class Program:
    """A graph as Inductor sees it.

    ``units`` in order; ``strides`` by node index, as in PyTorch; ``uses`` by node index: the number of operators of the traced
    program that read a value, the program's result counted as one (as far as the rules ask); ``called``: nodes that a library call or
    an opaque primitive reads; ``given``: results of the graph; ``copied``: views that need a copy; ``tuples``: concatenations that
    only assemble indices for gather or scatter; ``second``: for the second moment of a ``var_mean`` the reduction of the first
    one; ``means``: the nodes that hold a mean, with that reduction; ``squares``: the summands of second moments;
    ``pixels``: values around convolutions, which get the channels-last layout; ``saved``: results of a forward graph for the
    backward one; ``norms``: group normalisations by their results.
    """

    graph: Graph
    release: Release
    units: list[Unit] = field(default_factory=list)
    strides: list[tuple[int, ...]] = field(default_factory=list)
    uses: list[int] = field(default_factory=list)
    users: list[list[Node]] = field(default_factory=list)
    called: set[Node] = field(default_factory=set)
    given: set[Node] = field(default_factory=set)
    tuples: set[Node] = field(default_factory=set)
    copied: set[Node] = field(default_factory=set)
    second: dict[Node, Node] = field(default_factory=dict)
    means: dict[Node, Node] = field(default_factory=dict)
    pixels: set[Node] = field(default_factory=set)
    squares: set[Node] = field(default_factory=set)
    saved: set[Node] = field(default_factory=set)
    norms: dict[Node, GroupNorm] = field(default_factory=dict)
    home: dict[Node, Unit] = field(default_factory=dict)


def seen_through(node: Node) -> Node:
    """The value below broadcasts, reshapes and conversions."""
    return behind(node, LOOKED_THROUGH)


def is_number(node: Node) -> bool:
    """Whether a value is one number in the program's text."""
    node = seen_through(node)
    return node.op is hlo.constant and not shape_of(node)
