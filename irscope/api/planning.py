"""The kernels and edges of fusion policies, for drawings and pages: the same verdicts as ``irscope lint --why-not-fused``."""
from __future__ import annotations

from collections.abc import Mapping

from irscope.analysis import soundness
from irscope.analysis.calls import Calls, is_fusion
from irscope.fusion import POLICIES, compiler_of
from irscope.graph import Graph, Module, Node, Reading, callees_first
from irscope.lint.context import Context
from irscope.lint.edges import Edge, edges_of, folded, with_answers
from irscope.lint.fusion import plans, remarks, version_of
from irscope.lint.kernels import kernels_by_node
from irscope.lint.proven.words import answer_lines
from irscope.lint.settings import Settings
from irscope.lint.verdicts import answer
from irscope.render.badges import callers_of
from irscope.render.kernel_plan import KernelPlan, StoredEdge
from irscope.source import UserError


def kernel_plan(reading: Reading, module: Module, policy: str, device: str | None = None) -> KernelPlan:
    """What a policy makes of a module of a reading.

    Raises UserError for an unknown policy or device, and for a text that is not understood well enough.
    """
    soundness.require(reading, module, soundness.Use.POLICIES)
    settings = Settings(policy, device).of(module)
    context = Context(module, settings, reading.ok)
    verdicts, _ = answer(context)
    made = context.costs.decided[1] if context.costs.decided is not None else plans(module, settings.policy, device)
    groups = folded(with_answers(context, edges_of(context, verdicts)))
    calls = Calls(module)
    edges = [_stored(context, calls, edge, number) for number, group in enumerate(groups) for edge in group if edge.is_apart]
    kernels = _with_fusions(module, kernels_by_node(module, made))
    return KernelPlan(version_of(settings.policy, module), kernels, edges, settings.why, remarks(module, settings.policy, device))


def kernel_plans(reading: Reading, module: Module, policies: str, device: str | None = None) -> list[KernelPlan]:
    """What each of several policies, separated by commas, makes of a module. With several, ``device`` applies to
    those of XLA's GPU compiler only.

    Raises UserError as :func:`kernel_plan`.
    """
    names = list(dict.fromkeys(name.strip() for name in policies.split(",") if name.strip()))
    if not names:
        raise UserError("--policy names no policy", f"the policies are {', '.join(POLICIES)}; auto: that of the text's compiler")
    several = len(names) > 1
    return [kernel_plan(reading, module, name, None if several and compiler_of(name) != "xla-gpu" else device) for name in names]


def _with_fusions(module: Module, kernels: Mapping[Node, tuple[str, ...]]) -> dict[Node, tuple[str, ...]]:
    """The kernels of nodes, and of the fusions that the text has already: a policy plans what is in them.

    A node that several kernels recompute says nothing about the kernels of its fusion, unless it is the root.
    """
    found = dict(kernels)
    for graph in callees_first(module, module.main()):
        for node in graph.nodes:
            if node in found or not is_fusion(node):
                continue
            inside = [found[inner] for inner in node.bodies[0].nodes if len(found.get(inner, ())) == 1]
            root = node.bodies[0].root
            mine = inside or ([found[root]] if root is not None and root in found else [])
            if mine:
                found[node] = tuple(dict.fromkeys(name for names in mine for name in names))
    return found


def _stored(context: Context, calls: Calls, edge: Edge, group: int) -> StoredEdge:
    verdict = edge.verdict
    producer, consumer = (context.view.in_text(end, verdict.graph) for end in (verdict.producer, verdict.consumer))
    ends: tuple[Node | None, Node | None] = (producer, consumer)
    if producer is not None and consumer is not None:
        ends = _in_one_graph(calls, context.view.graph_of, producer, consumer)
    fix = answer_lines(edge.answer)[0] if edge.answer is not None else ""
    return StoredEdge(verdict, *ends, edge.ops, edge.sources, edge.carries, edge.bytes, edge.us, group, fix)


def _in_one_graph(calls: Calls, graph_of: Mapping[Node, Graph], producer: Node, consumer: Node) -> tuple[Node, Node]:
    """Two nodes of one graph that are the producer and the consumer or contain them; the given nodes where there are none."""
    around = dict(callers_of(calls, graph_of[producer], producer))
    for graph, node in callers_of(calls, graph_of[consumer], consumer):
        if graph in around and around[graph] is not node:
            return around[graph], node
    return producer, consumer
