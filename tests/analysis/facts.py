"""All facts about a module as text, one line for each node, section or figure, to compare with golden files."""
from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.calls import body_role, body_use
from irscope.analysis.classes import drawn_class
from irscope.analysis.cost import Totals, is_kernel
from irscope.analysis.highlights import Highlight, Leak, drawn_node, highlights
from irscope.analysis.levels import critical_path
from irscope.analysis.outline import Section
from irscope.analysis.regions import outline_by_region
from irscope.analysis.summary import describe_type, section_source, summarise
from irscope.analysis.survey import Survey
from irscope.graph import Graph


def facts(survey: Survey, nodes: bool = True) -> str:
    """The facts of a module; without ``nodes`` only those of sections and of graphs that run alone."""
    parts = [*_summary(survey), *_outlines(survey), *_highlights(survey)]
    for graph in survey.calls.order:
        if nodes or survey.calls.runs_alone(graph):
            parts += _graph(survey, graph)
        if nodes:
            parts += _nodes(survey, graph)
    return "\n".join(parts) + "\n"


def _number(value: float) -> str:
    return f"{value:.6g}"


def _totals(totals: Totals) -> str:
    figures = ("flops", "read", "written", "bytes", "kernels", "fusions")
    return " ".join(f"{name}={_number(getattr(totals, name))}" for name in figures) + " open" * totals.is_open


def _summary(survey: Survey) -> Iterator[str]:
    summary = summarise(survey, n_costly=4)
    for name in ("name", "entry", "n_nodes", "n_graphs", "entry_nodes", "depth", "width", "critical_nodes", "parameter_bytes", "peak_bytes", "peak_at",
                 "scheduled", "source_files", "no_work", "n_open", "loops"):
        yield f"{name}: {getattr(summary, name)}"
    yield f"critical_share: {_number(summary.critical_share)}"
    yield f"totals: {_totals(survey.totals)}; of the summary {_number(summary.flops)} {_number(summary.bytes)} {summary.kernels} {summary.fusions}"
    for name in ("ops", "classes", "dtypes", "unknown_ops", "sources"):
        yield f"{name}: " + ", ".join(f"{key} {n}" for key, n in sorted(getattr(summary, name).items()))
    for what, values in (("input", summary.inputs), ("output", summary.outputs)):
        yield from (f"{what} {value.name}: {describe_type(value.type)} {value.bytes} {value.path}".rstrip() for value in values)
    for one in summary.costly:
        yield (f"costly {one.graph.name}/{one.node.name}: {_number(one.flops)} {_number(one.bytes)} times={_number(one.times)} "
               f"share={_number(one.share)} {one.source}").rstrip()
    yield f"has_scopes: {survey.has_scopes}"


def _outlines(survey: Survey) -> Iterator[str]:
    yield from _section("by scope", survey, survey.scope_outline)
    yield from _section("by computation", survey, survey.graph_outline)
    entry = survey.module.main()
    yield from _section("by region", survey, survey.outline_of(entry))
    assert survey.outline is (survey.scope_outline if survey.has_scopes else survey.graph_outline)


def _section(title: str, survey: Survey, root: Section) -> Iterator[str]:
    yield f"-- {title}"
    stack = [(root, 0)]
    while stack:
        section, depth = stack.pop()
        ops = ",".join(f"{name}:{n}" for name, n in sorted(section.ops.items())) if depth < 3 else ""
        yield (f"{'  ' * depth}{section.kind} {section.title!r} {section.note} x{section.times} nodes={section.n_nodes} own={len(section.nodes)} "
               f"kernels={_number(section.kernels)} flops={_number(section.flops)} bytes={_number(section.bytes)}{' open' * section.is_open} "
               f"{section_source(survey.module, section)} {ops}").rstrip()
        stack += [(child, depth + 1) for child in reversed(section.children)]


def _highlights(survey: Survey) -> Iterator[str]:
    found = highlights(survey)
    for kind in ("kernels", "copies", "edges"):
        each: Highlight
        for each in getattr(found, kind):
            yield (f"{kind}: {each.label}: {each.graph.name} {' '.join(node.name for node in each.nodes)} bytes={_number(each.bytes)} "
                   f"flops={_number(each.flops)} times={_number(each.times)} share={_number(each.share)}")
    leak: Leak
    for leak in found.leaks:
        members = " ".join(f"{graph.name}/{node.name}" for graph, node in leak.members)
        yield f"leak: {leak.label}: {leak.bytes} bytes, largest {leak.largest[1].name}: {members}"


def _graph(survey: Survey, graph: Graph) -> Iterator[str]:
    calls, costs = survey.calls, survey.costs
    flags = " scalar" * (graph in calls.scalar) + " fused" * (graph in calls.fused) + " alone" * calls.runs_alone(graph)
    drawn = drawn_node(survey, graph, graph.nodes[-1], survey.module.main()) if graph.nodes else None
    yield f"== {graph.name} times={_number(calls.times[graph])}{flags} from {drawn.name if drawn else None}"
    yield f"totals: {_totals(costs.totals[graph])}"
    found = survey.levels(graph)
    yield f"depth {found.depth} width {found.width}: " + "; ".join(" ".join(n.name for n in level) for level in found.independent()[:6])
    yield "longest: " + " ".join(node.name for node in critical_path(graph))
    yield "named: " + survey.naming.work_of(graph.nodes)
    if calls.runs_alone(graph):
        life = survey.memory.graphs[graph]
        at = graph.nodes[life.peak_at].name if life.peak_at >= 0 else "nothing"
        yield f"peak {life.peak} at {at}, unsized {life.unsized.name if life.unsized else None}, results {sorted(life.results)}"


def _nodes(survey: Survey, graph: Graph) -> Iterator[str]:
    costs, life = survey.costs, survey.memory.graphs.get(graph)
    cost, found, scopes = costs.graphs[graph], survey.levels(graph), survey.scopes(graph)
    for node in graph.nodes:
        i = node.index
        memory = f" size={life.size[i]} last={life.last[i]} live={life.live[i]}" if life is not None else ""
        alone = survey.traffic.of(node)
        figures = f"{_number(cost.flops[i])} {_number(cost.read[i])}+{_number(cost.written[i])}{' open' * cost.is_open[i]}"
        whole = f"{_number(costs.flops(node, graph))} {_number(costs.traffic(node, graph))}{' open' * costs.is_open(node, graph)}"
        bodies = "".join(f" {body_use(node).name}:{body_role(node, k)}:{body.name}" for k, body in enumerate(node.bodies))
        yield (f"{node.name} = {node.op.name} [{drawn_class(node)}{' kernel' * is_kernel(node)}] {figures} whole {whole} alone {_number(sum(alone))} "
               f"level={found.level[i]}{memory}{bodies} {'/'.join(scopes[i])}").rstrip()


def regions(survey: Survey, graph: Graph) -> list[str]:
    """The outline of a graph by region, even where it is small."""
    root = outline_by_region(graph, survey.costs, survey.kinds(graph), survey.scopes(graph), survey.naming)
    return list(_section("by region", survey, root))
