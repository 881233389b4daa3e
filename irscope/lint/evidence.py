"""The evidence for a finding: its operators with their types and lines, and the present cost of the kernels that compute them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

from irscope.analysis.summary import describe_type, source_line
from irscope.analysis.values import written
from irscope.fusion import Group, Plan
from irscope.graph import Graph, Kind, Node, Type
from irscope.lint.context import Context
from irscope.lint.estimate import Works
from irscope.lint.findings import RuleFinding
from irscope.ops.sets import hlo, torchscript
from irscope.source import Finding, Step

MAX_PATH = 8
"""Operators of a finding that are shown; the first to be named come first."""
OPERANDS = 3
"""Operands that are shown where a finding names one operator alone."""
TYPE_WIDTH = 60
"""Characters of a type: a tuple of a thousand parts is cut."""
_NAME = re.compile(r"%([\w.\-]+)")
_LEAVES = hlo("constant") | torchscript("prim::Constant prim::GetAttr prim::ListConstruct")
"""Operands that are no step of a path: literals, and what TorchScript fetches or packs."""


class Evidence:
    """Completes the findings of one module; shared facts are computed once."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._kernel_costs: dict[Group, tuple[float, float, object, float]] = {}  # microseconds, bytes, the call, and how often it runs

    def complete(self, findings: Iterable[Finding]) -> None:
        """Gives each finding about nodes its path, and what the kernels on it cost."""
        for finding in findings:
            if finding.node and not finding.path:
                nodes = self._nodes(finding)
                finding.path = tuple(self._step(node, node.name == finding.node) for node in nodes)
                finding.costs = self._costs(nodes)

    @cached_property
    def _types(self) -> dict[Node, Type]:
        """The types of the results of operators whose own type the text leaves open: those of the last primitive made of each."""
        inner = self.context.inner
        return {} if inner is self.context else {written(n): n.type for graph in inner.view.graphs for n in graph.nodes}

    @cached_property
    def _places(self) -> dict[Node, tuple[int, int]]:
        return {node: (place, node.index) for place, graph in enumerate(self.context.view.graphs) for node in graph.nodes}

    def _nodes(self, finding: Finding) -> list[Node]:
        """The nodes of the text that a finding is about, in the order of the text."""
        edit = finding.edit if isinstance(finding, RuleFinding) else None
        found: list[Node | None] = list(finding.about) if isinstance(finding, RuleFinding) else []
        if not found:
            texts = [finding.message, *(note.text for note in finding.notes)]
            names = [finding.node, *(name for text in texts for name in _NAME.findall(text))]
            found = [self.context.view.find(finding.graph, name) for name in names]
        found += [written(node) for node in (edit.nodes if edit is not None else ())]
        nodes = list(dict.fromkeys(node for node in found if node is not None and node in self._places))
        if len(nodes) == 1:
            nodes += list(dict.fromkeys(o for o in nodes[0].operands if o.op not in _LEAVES and o in self._places))[:OPERANDS]
        return sorted(nodes[:MAX_PATH], key=lambda node: self._places[node])

    def _step(self, node: Node, here: bool) -> Step:
        made = describe_type(self._types.get(node, node.type) if not self.context.module.dialect.primitive else node.type)
        kind = made if len(made) <= TYPE_WIDTH else made[: TYPE_WIDTH - 3] + "..."
        return Step(node.name, node.op.name, kind, node.loc, source_line(self.context.module, node), here)

    @cached_property
    def _kernels(self) -> dict[Node, list[tuple[Plan, Group]]]:
        """For each node of the text the kernels that compute it."""
        found: dict[Node, list[tuple[Plan, Group]]] = {}
        for plan in self.context.costs.planned.plans if self.context.costs.planned is not None else ():
            for group in plan.groups:
                for node in dict.fromkeys(self._own(node, plan.graph) for node in group.nodes):
                    if node is not None:
                        found.setdefault(node, []).append((plan, group))
        return found

    @cached_property
    def _runs(self) -> dict[str, float]:
        """How often each graph that was planned runs in one run of the module."""
        planned = self.context.costs.planned
        return {graph.name: n for graph, n in planned.survey.calls.times.items()} if planned is not None else {}

    @cached_property
    def _works(self) -> Works:
        return Works(self.context.costs.machine, self.context.settings.policy)

    def _own(self, node: Node, graph: Graph) -> Node | None:
        """The node of the text that a node of a plan stands for."""
        origin = written(node)
        if origin in self._places:
            return origin
        return self.context.view.original(node, graph)

    def _costs(self, nodes: list[Node]) -> dict[str, float] | None:
        """What the kernels of some nodes cost in one run of the module; None where no kernel computes them, or their cost is not known."""
        planned = self.context.costs.sized
        kernels = {group: plan for node in nodes if node.op.kind is not Kind.LEAF for plan, group in self._kernels.get(node, ())}
        if planned is None or not kernels:
            return None
        us = moved = 0.0
        started: dict[object, float] = {}
        for group, plan in kernels.items():
            cost = self._kernel_costs.get(group)
            if cost is None:
                runs = self._runs.get(plan.graph.name, 1.0)
                kernel_us, bytes = planned.kernel_us(plan.graph, group, self._works), planned.moved(plan.graph, group)
                cost = self._kernel_costs[group] = runs * kernel_us, runs * bytes, planned.call_of.get(group, group), runs
            us += cost[0]
            moved += cost[1]
            started.setdefault(cost[2], cost[3])
        launches = float(sum(started.values()))
        total = self.context.costs.total_us or 0.0
        share = {"share": round(min(1.0, us / total), 4)} if total else {}
        return {"us": round(us, 3), "bytes": moved, "kernels": launches, **share}
