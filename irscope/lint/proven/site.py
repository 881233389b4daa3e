"""The refused edge that a fix is searched for, with what candidates need to know about its surroundings."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from irscope.graph import DTYPES, DType, Graph, Node, TensorType

NEAR = 64
"""The largest number of nodes above the consumer that are searched for the producer, if the compiler merged a path into one edge."""


@dataclass(frozen=True, slots=True)
class RefusedEdge:
    """An edge that a policy does not fuse. ``users`` are those of the graph's nodes by index; ``stored`` the nodes with values in memory.

    ``rule`` is the short name of the rule that refused it, ``compiler`` the policy without its release.
    """

    graph: Graph
    producer: Node
    consumer: Node
    rule: str
    compiler: str
    users: list[list[Node]]
    stored: Collection[Node] = ()

    @property
    def others(self) -> list[Node]:
        """The users of the producer beside the consumer."""
        return [user for user in self.users[self.producer.index] if user is not self.consumer]

    @property
    def is_alone(self) -> bool:
        """Whether the consumer is the only user of the producer, whose value does not leave the graph."""
        return not self.others and self.producer is not self.graph.root

    def steps(self) -> Iterator[RefusedEdge]:
        """The edges of the text on the shortest path between the ends: itself, where the consumer reads the producer."""
        came: dict[Node, Node] = {self.consumer: self.consumer}
        queue = [self.consumer]
        for node in queue:
            if node is self.producer or len(came) > NEAR:
                break
            for operand in node.operands:
                if operand not in came and operand.index >= self.producer.index:
                    came[operand] = node
                    queue.append(operand)
        node = self.producer
        while node in came and node is not self.consumer:
            yield replace(self, producer=node, consumer=came[node])
            node = came[node]

    def only_user(self, node: Node) -> Node | None:
        """The only user of a node; None if there are several, or none."""
        users = self.users[node.index]
        return users[0] if len(users) == 1 and node is not self.graph.root else None


def tensor(node: Node) -> TensorType | None:
    """The type of an array of known shape; None for anything else."""
    type = node.type
    return type if isinstance(type, TensorType) and type.is_static else None


def has_wide_range(dtype: DType) -> bool:
    """Whether a float type has at least the range of ``bf16``: in others, a scale that is applied elsewhere overflows or underflows."""
    bf16 = DTYPES["bf16"]
    return dtype.is_float and dtype.largest >= bf16.largest and dtype.min_exponent <= bf16.min_exponent


def shaped(like: TensorType, shape: tuple[int, ...]) -> TensorType:
    """An array type with the elements of another; in the default layout if its shape differs."""
    return like if tuple(like.shape) == shape else TensorType(like.dtype, shape)
