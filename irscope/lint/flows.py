"""The data flow of one kernel: the share of each of its nodes that is needed, and the bytes of its inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from irscope.fusion.plan import Group
from irscope.graph import Kind, Node, TensorType, bytes_of
from irscope.graph.walk import post_order
from irscope.ops import hlo, sets

PARTS = sets.hlo("slice dynamic-slice gather") | sets.relay("gather")
"""Operators that look at a part of their first operand."""


def has_body(node: Node) -> bool:
    """Whether a node is a fusion of the text with its body."""
    return node.op is hlo.fusion and bool(node.bodies)


class Flows:
    """The data flow of the kernels of a plan. ``fusions`` are those that the text already has; a policy may put parts of several of them
    into one kernel. The nodes of such a kernel are in the bodies of the fusions, and read through the parameters of these bodies.
    """

    def __init__(self, fusions: Iterable[Node]) -> None:
        self._given = {param: given for fusion in fusions for param, given in zip(fusion.bodies[0].params, fusion.operands)}

    def read(self, group: Group) -> float:
        """Bytes that a kernel reads from its inputs. If it only slices an input, the slices count; literal numbers are part of the code.

        An input does not count if the kernel needs no value of the nodes that read it (when a concatenation is written piece by piece, the
        other pieces), nor does a buffer that the kernel updates in place. Nodes that a policy rewrote may lie between an input and its
        reader in the text; they are no inputs themselves.
        """
        wanted = self.wanted(group)
        updates = self._updates(group, wanted)
        given = set(group.inputs)
        if self._is_rewritten(group):
            return float(sum(bytes_of(node.type) for node in group.inputs))
        parts: dict[Node, float] = {}
        whole: dict[Node, float] = {}
        for user, share in wanted.items():
            for place, operand in enumerate(self._operands(user, wanted)):
                if operand in wanted or (place == 0 and user in updates):
                    continue
                if operand not in given and (operand.op is hlo.constant or not self._given):
                    continue
                if place == 0 and user.op in PARTS:
                    parts[operand] = parts.get(operand, 0.0) + share * bytes_of(user.type)
                elif share:
                    much = (share if user.op.kind is Kind.ELEMENTWISE else 1.0) * bytes_of(operand.type)
                    whole[operand] = max(whole.get(operand, 0.0), much)
        total = 0.0
        for node in {**parts, **whole}:
            if node.op is not hlo.constant or not isinstance(node.type, TensorType) or node.type.shape:
                total += min(bytes_of(node.type), parts.get(node, 0.0) + whole.get(node, 0.0))
        return total

    def _is_rewritten(self, group: Group) -> bool:
        """Whether the policy rewrote the graph: nodes take what the kernel has in another form, and none takes one of its inputs.

        A text that holds fusions already is judged as it stands.
        """
        if self._given:
            return False
        known = {*group.nodes, *group.outputs, *group.inputs}
        direct = {operand for user in (*group.nodes, *group.outputs) for operand in self._operands(user, known)}
        hidden = any(node.op.kind is not Kind.LEAF and node not in known for node in direct)
        return hidden and any(node not in direct and node.op is not hlo.constant for node in group.inputs)

    def written(self, group: Group) -> float:
        """Bytes of the values that leave a kernel; of a buffer that it updates in place, the update."""
        updates = self._updates(group, self._inside(group))
        return float(sum(bytes_of(node.operands[1].type if node in updates else node.type) for node in group.outputs))

    def _updates(self, group: Group, inside: Collection[Node]) -> set[Node]:
        """The results of a kernel that overwrite a part of another kernel's buffer."""
        found = (node for node in group.outputs if node.op is hlo.dynamic_update_slice and len(node.operands) > 1)
        return {node for node in found if self._source(node.operands[0], inside) not in inside}

    def wanted(self, group: Group) -> dict[Node, float]:
        """The share of each node's elements that its kernel computes: less than all where the kernel takes only slices of it.

        A policy copies a producer into the kernel of each slice; each of them computes its own part.
        """
        if len(group.nodes) == 1:
            return dict.fromkeys((*group.nodes, *group.outputs), 1.0)
        inside = self._inside(group)
        for node in group.outputs:
            inside[node] = 1.0
        for node in self._readers_first(inside):
            for place, operand in enumerate(self._operands(node, inside)):
                if operand not in inside:
                    continue
                share = 1.0 if inside[node] else 0.0
                if node.op.kind is Kind.ELEMENTWISE:
                    share = inside[node]
                elif place == 0 and node.op in PARTS and bytes_of(operand.type):
                    share = inside[node] * bytes_of(node.type) / bytes_of(operand.type)
                inside[operand] = min(1.0, inside[operand] + share)
        return inside

    def _inside(self, group: Group) -> dict[Node, float]:
        """The nodes that a kernel computes. An element that it takes from the results of another kernel is an input."""
        nodes = dict.fromkeys(group.nodes, 0.0)
        picks = [node for node in nodes if node.op is hlo.get_tuple_element and self._source(node.operands[0], nodes) not in nodes]
        for node in picks:
            del nodes[node]
        return nodes

    def _readers_first(self, inside: Collection[Node]) -> list[Node]:
        """The nodes of a kernel, each after all nodes of the kernel that read it."""
        if not self._given:
            return sorted(inside, key=lambda node: -node.index)
        return post_order(inside, lambda node: [operand for operand in self._operands(node, inside) if operand in inside])[::-1]

    def _operands(self, node: Node, inside: Collection[Node]) -> Iterable[Node]:
        return [self._source(operand, inside) for operand in node.operands] if self._given else node.operands

    def _source(self, node: Node, inside: Collection[Node]) -> Node:
        """The node that provides a value: for a parameter in the body of a fusion, the operand; for a fusion with a result that the kernel
        computes, that result."""
        while True:
            if node.op is hlo.parameter and node in self._given:
                node = self._given[node]
            elif has_body(node) and node not in inside and (root := node.bodies[0].root) is not None and root in inside:
                node = root
            else:
                return node
