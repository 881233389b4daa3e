"""The answer about one pair of operators: fused or not, in which kernel and by which rule, and what to ask where no edge joins them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise

from irscope.analysis.values import written
from irscope.fusion import EdgeVerdict, Plan
from irscope.graph import Graph, Module, Node
from irscope.source import UserError

NEAREST = 5
"""Names that are offered for one that is not there, and operators of a kernel that are named."""
KINDS = {
    "contraction": "a matrix product and what works on its result",
    "convolution": "a convolution and what works on its result",
    "window": "a reduction over windows and what works on its result",
    "rows": "reductions over rows and the operators around them",
    "reduction": "a reduction and what it reads",
    "map": "elementwise operators and movement",
    "attention": "two products and the softmax between them",
    "whole": "one operation that stands alone",
}
"""What the kinds of groups (fusion/plan.py) compute."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """The kernel that computes both ends of an edge: what it ends in, the operators of the text in it, and how it came to be."""

    name: str
    nodes: tuple[str, ...]
    kind: str
    decision: int = 0
    decisions: int = 0

    def told(self) -> str:
        """``the kernel of %max.3: elementwise operators and movement, 4 operators: %add.7, ...; decision 3 of 12``."""
        shown = ", ".join(f"%{name}" for name in self.nodes[:NEAREST])
        more = f" and {len(self.nodes) - NEAREST} more" if len(self.nodes) > NEAREST else ""
        what = KINDS.get(self.kind, self.kind)
        order = f"; decision {self.decision} of {self.decisions}" if self.decision else ""
        return f"the kernel of %{self.name}: {what}, {len(self.nodes)} operators ({shown}{more}){order}"


def kernels_of(module: Module, plans: Iterable[Plan], edges: Iterable[EdgeVerdict]) -> dict[EdgeVerdict, Kernel]:
    """The kernels of those edges that a policy fused, where it says which."""
    made = list(plans)
    found = {}
    for edge in edges:
        if edge.fused != "none" and (kernel := _kernel(module, made, edge)) is not None:
            found[edge] = kernel
    return found


def _kernel(module: Module, plans: list[Plan], edge: EdgeVerdict) -> Kernel | None:
    own = {node.name for graph in module.graphs.values() for node in graph.nodes}
    for plan in plans:
        for group in plan.groups:
            names = [_names(node) for node in group.nodes]
            inside = set().union(*names) if names else set()
            if not inside.issuperset(edge.names):
                continue
            nodes = dict.fromkeys(next((name for name in known if name in own), known[0]) for known in names)
            root = next((name for name in _names(group.root) if name in own), group.root.name)
            order = next((i for i, pair in enumerate(plan.decisions, 1) if pair == edge.names), 0)
            return Kernel(root, tuple(nodes), group.kind, order, len(plan.decisions))
    return None


def _names(node: Node) -> list[str]:
    """What a node of a plan is called in the text: by the operator it comes from, by itself, by the others it stands for."""
    return list(dict.fromkeys((written(node).name, node.name, *(origin.name for origin in node.origin))))


def kernels_by_node(module: Module, plans: Iterable[Plan]) -> dict[Node, tuple[str, ...]]:
    """For each node of the text the kernels that compute it, each called after the node of the text that it ends in.

    What is cheap to compute again stands in several. One operator of the text that is several to the policy stands in the kernels of all.
    """
    named = {(graph.name, node.name): node for graph in module.graphs.values() for node in graph.nodes}
    anywhere = {node.name: node for node in named.values()}
    found: dict[Node, dict[str, None]] = {}
    for plan in plans:
        for group in plan.groups:
            if not group.outputs:
                continue  # it computes nothing: tokens
            own = [_own(named, anywhere, plan.graph, node) for node in group.nodes]
            root = _own(named, anywhere, plan.graph, group.root)
            for node in own:
                if node is not None:
                    found.setdefault(node, {})[root.name if root is not None else group.root.name] = None
    return {node: tuple(kernels) for node, kernels in found.items()}


def _own(named: Mapping[tuple[str, str], Node], anywhere: Mapping[str, Node], graph: Graph, node: Node) -> Node | None:
    """The node of the text that a node of a plan stands for."""
    for name in _names(node):
        if (found := named.get((graph.name, name)) or anywhere.get(name)) is not None:
            return found
    return None


def must_exist(module: Module, name: str, others: Iterable[str]) -> None:
    """Raises UserError for a name that no node has, with the nodes of that operator, or the nearest names."""
    nodes = [node for graph in module.graphs.values() for node in graph.nodes]
    names = dict.fromkeys([node.name for node in nodes] + list(others))
    if name in names:
        return
    same = [node.name for node in nodes if node.op.name in (name, f"aten::{name}", f"nn.{name}")]
    if same:
        raise UserError(f"there is no node {name}", f"that is an operator; {_listed(same)} {'is one' if len(same) == 1 else 'are such'}")
    near = get_close_matches(name, names, n=NEAREST, cutoff=0.6) or [one for one in names if name.lower() in one.lower()][:NEAREST]
    help = f"did you mean {_listed(near)}?" if near else f"irscope show {module.source.name} --format text names them all"
    raise UserError(f"there is no node {name}", help)


def _listed(names: list[str]) -> str:
    return ", ".join(f"%{name}" for name in names[:NEAREST]) + (f" and {len(names) - NEAREST} more" if len(names) > NEAREST else "")


def not_joined(module: Module, pair: tuple[str, str], policy: str, judged: Iterable[EdgeVerdict]) -> UserError:
    """The error for two nodes that no judged edge joins: what lies between them, or who their neighbours are."""
    way = _way(module, *pair) or _way(module, pair[1], pair[0])
    if way is not None and len(way) == 2:
        message = f"the text joins %{way[0]} and %{way[1]}, and {policy} passes no verdict on that edge"
        about = [edge for edge in judged if not set(way).isdisjoint(edge.names)]
        nearest = ", ".join(f"%{edge.producer.name} -> %{edge.consumer.name}" for edge in about[:NEAREST])
        why = "parameters, constants, calls and what only names a part of another value are computed by no kernel"
        return UserError(message, f"{why}; " + (f"judged is {nearest}" if nearest else "--why-not-fused without names tells every edge"))
    if way is not None:
        between = way[1:-1]
        message = f"no edge joins %{way[0]} and %{way[-1]}: {_listed(between)} {'lies' if len(between) == 1 else 'lie'} between them"
        known = {edge.names for edge in judged}
        steps = [step for step in pairwise(way) if step in known]
        return UserError(message, "ask for one step of it: " + " or ".join(f"{a} {b}" for a, b in steps[:3]) if steps else "")
    told = []
    for name in pair:
        users = _neighbours(module, name)
        told.append(f"%{name} goes to {_listed(users)}" if users else f"nothing takes the value of %{name}")
    return UserError(f"no edge joins %{pair[0]} and %{pair[1]}, and no path leads from one to the other", "; ".join(told))


def _home(module: Module, name: str) -> tuple[Graph, Node] | None:
    entry = [module.graphs[module.entry]] if module.entry in module.graphs else []
    for graph in (*entry, *module.graphs.values()):
        for node in graph.nodes:
            if node.name == name:
                return graph, node
    return None


def _neighbours(module: Module, name: str) -> list[str]:
    found = _home(module, name)
    return [] if found is None else [user.name for user in found[0].users()[found[1].index]]


def _way(module: Module, start: str, end: str) -> list[str] | None:
    """The shortest way along operands from one node to another of the same graph; None where there is none."""
    found = _home(module, start)
    if found is None:
        return None
    graph, first = found
    users = graph.users()
    came: dict[int, Node | None] = {first.index: None}
    waiting = deque([first])
    while waiting:
        node = waiting.popleft()
        if node.name == end:
            way = [node.name]
            before = came[node.index]
            while before is not None:
                way.append(before.name)
                before = came[before.index]
            return way[::-1]
        for user in users[node.index]:
            if user.index not in came:
                came[user.index] = node
                waiting.append(user)
    return None
