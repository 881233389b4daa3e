"""Changes that give a reader its own copy of a value, or take a copy away."""

from __future__ import annotations

from irscope.analysis.values import LEAVES
from irscope.fusion.xla.effects import is_effect
from irscope.graph import Effect, Kind, Node
from irscope.lint.edits import Edit, Site
from irscope.lint.proven.site import RefusedEdge
from irscope.ops import hlo

CHAIN = 12
"""Operators that one copy computes at the most; longer chains would take the work of a kernel twice."""
COPIED = (Kind.ELEMENTWISE, Kind.BROADCAST, Kind.INJECTIVE)


def duplicate(edge: RefusedEdge) -> Edit | None:
    """The consumer reads a second, equal computation of the producer."""
    producer = edge.producer
    if not edge.others or producer.op in LEAVES or producer.bodies:
        return None
    if producer.op.effect is not Effect.PURE or is_effect(producer.op, producer):
        return None
    return _with_copy(edge, [edge.producer], apart=False)


def duplicate_behind_barrier(edge: RefusedEdge) -> Edit | None:
    """The consumer computes the producer itself, from operands behind a barrier, so that CSE does not merge the two."""
    return _with_copy(edge, _chain(edge), apart=True) if edge.others and _is_copied(edge.producer) else None


def _is_copied(node: Node) -> bool:
    return node.op.kind in COPIED and bool(node.operands) and not node.bodies


def _with_copy(edge: RefusedEdge, chain: list[Node], apart: bool) -> Edit:
    return Edit({edge.consumer: lambda site: _reads_copy(site, edge, chain, apart)}, tuple(chain), apart)


def _chain(edge: RefusedEdge) -> list[Node]:
    """The producer and what it is computed from back to stored values, operands first; the producer alone where that is too long."""
    found = {edge.producer: None}
    todo = [edge.producer]
    while todo:
        for operand in todo.pop().operands:
            if operand in found or operand in edge.stored or not _is_copied(operand):
                continue
            if len(found) == CHAIN:
                return [edge.producer]
            found[operand] = None
            todo.append(operand)
    return sorted(found, key=lambda node: node.index)


def _reads_copy(site: Site, edge: RefusedEdge, chain: list[Node], apart: bool) -> Node:
    """The consumer over a copy of the chain that ends in the producer."""
    producer, reader = edge.producer, edge.consumer
    copies: dict[Node, Node] = {}
    fenced: dict[Node, Node] = {}

    def source(node: Node) -> Node:
        if node in copies:
            return copies[node]
        if node not in fenced:
            given = site.new(node)
            behind = apart and node.op is not hlo.constant and bool(node.operands or node.op is hlo.parameter)
            fenced[node] = site.op(hlo.opt_barrier, given, type=given.type) if behind else given
        return fenced[node]

    for node in chain:
        copies[node] = site.copy(node, *(source(operand) for operand in node.operands))
    return site.copy(reader, *(copies[producer] if operand is producer else site.new(operand) for operand in reader.operands))
