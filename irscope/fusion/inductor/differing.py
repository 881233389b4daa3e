"""Whether the known releases may decide differently on a graph: what they lower otherwise is in it."""
from __future__ import annotations

from irscope.fusion.inductor import operators
from irscope.fusion.inductor.releases import RELEASES
from irscope.fusion.inductor.rules import is_identity
from irscope.graph import Graph


def differ(graph: Graph) -> bool:
    """Whether a graph has a value with many users, an operation that computes nothing, or an operator that one release leaves to the
    library; most graphs have none, and one plan stands for all releases."""
    many = min(release.many_users for release in RELEASES.values() if release.many_users)
    fallbacks = [release.fallbacks for release in RELEASES.values()]
    users = graph.users()
    return any(len(users[node.index]) > many or is_identity(node) or any(operators.is_of(node, ops) for ops in fallbacks)
               for node in graph.nodes)
