"""The kernels that a fusion policy makes of the operators of a text, by the names that the text has for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from irscope.analysis.values import written
from irscope.fusion import EdgeVerdict, Plan
from irscope.graph import Graph, Module, Node
from irscope.lint.view import ModuleView

NEAREST = 5
"""Operators of a kernel that are named."""
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
    """The kernel that computes both ends of an edge: what it ends in, the operators of the text in it, and how it came to be.

    ``loop_nests``: how many the kernel runs, of which this one computes both ends; 0 if it is a single one.
    """

    name: str
    nodes: tuple[str, ...]
    kind: str
    decision: int = 0
    decisions: int = 0
    loop_nests: int = 0

    def describe(self) -> str:
        """``the kernel of %max.3: elementwise operators and movement, 4 operators: %add.7, ...; decision 3 of 12``."""
        shown = ", ".join(f"%{name}" for name in self.nodes[:NEAREST])
        more = f" and {len(self.nodes) - NEAREST} more" if len(self.nodes) > NEAREST else ""
        what = KINDS.get(self.kind, self.kind)
        order = f"; decision {self.decision} of {self.decisions}" if self.decision else ""
        nests = f"; one of {self.loop_nests} loop nests that the kernel runs" if self.loop_nests else ""
        return f"the kernel of %{self.name}: {what}, {len(self.nodes)} operators ({shown}{more}){order}{nests}"


def kernels_of(module: Module, plans: Iterable[Plan], edges: Iterable[EdgeVerdict]) -> dict[EdgeVerdict, Kernel]:
    """The kernels of those edges that a policy fused, where it says which."""
    made = list(plans)
    found = {}
    for edge in edges:
        if edge.fused != "none" and (kernel := _kernel(module, made, edge)) is not None:
            found[edge] = kernel
    return found


def _kernel(module: Module, plans: list[Plan], edge: EdgeVerdict) -> Kernel | None:
    known = {node.name for graph in module.graphs.values() for node in graph.nodes}
    for plan in plans:
        for group in plan.groups:
            names = [_names(node) for node in group.nodes]
            inside = set().union(*names) if names else set()
            if not inside.issuperset(edge.names):
                continue
            nodes = dict.fromkeys(next((name for name in one if name in known), one[0]) for one in names)
            root = next((name for name in _names(group.root) if name in known), group.root.name)
            order = next((i for i, pair in enumerate(plan.decisions, 1) if pair == edge.names), 0)
            nests = next((call.nests for call in plan.calls or () if group in call.groups), 0)
            return Kernel(root, tuple(nodes), group.kind, order, len(plan.decisions), nests if nests > 1 else 0)
    return None


def _names(node: Node) -> list[str]:
    """What a node of a plan is called in the text: by the operator it comes from, by itself, by the others it stands for."""
    return list(dict.fromkeys((written(node).name, node.name, *(origin.name for origin in node.origin))))


def kernels_by_node(module: Module, plans: Iterable[Plan]) -> dict[Node, tuple[str, ...]]:
    """For each node of the text the kernels that compute it, each called after the node of the text that it ends in.

    What is cheap to compute again stands in several. One operator of the text that is several to the policy stands in the kernels of all.
    """
    view = ModuleView(module)

    def original(node: Node, graph: Graph) -> Node | None:
        return next((found for name in _names(node) if (found := view.find(graph.name, name)) is not None), None)

    found: dict[Node, dict[str, None]] = {}
    for plan in plans:
        for group in plan.groups:
            if not group.outputs:
                continue  # it computes nothing: tokens
            originals = [original(node, plan.graph) for node in group.nodes]
            root = original(group.root, plan.graph)
            for node in originals:
                if node is not None:
                    found.setdefault(node, {})[root.name if root is not None else group.root.name] = None
    return {node: tuple(kernels) for node, kernels in found.items()}
