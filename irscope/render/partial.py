"""The terminal view of a text that was cut off: computation by computation, without figures of the program."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from irscope.analysis.survey import Survey
from irscope.graph import Cut, Graph
from irscope.render.paint import Paint
from irscope.render.units import plural, short

ROWS = 24
NAMED_OPERATORS = 6


def partial_lines(survey: Survey, cut: Cut, paint: Paint, file: str, everything: bool) -> Iterator[str]:
    """What is there: first that the text is cut off, then a row for each computation with its operators, the unfinished ones last."""
    module = survey.module
    yield paint(short(str(cut), paint.width), "red")
    yield paint(short(f"{module.dialect.module} {module.name}", paint.width), "bold") + "  " + paint(file, "dim")
    size = plural(survey.n_nodes, module.dialect.instruction)
    yield f"  what follows is of the part that is there ({size}); its totals are not the program's"
    yield ""
    unfinished = [graph for graph in module.graphs.values() if graph.name not in cut.complete and "inline" not in graph.notes]
    complete = [graph for graph in module.graphs.values() if graph.name in cut.complete]
    shown = complete if everything else complete[:ROWS]
    yield paint("complete computations", "bold")
    yield from (_row(graph, paint) for graph in shown)
    if len(shown) < len(complete):
        yield paint(f"  ... {len(complete) - len(shown):,} more: --all lists them", "dim")
    if unfinished:
        yield paint("not complete", "bold")
        yield from (_row(graph, paint) for graph in unfinished)


def _row(graph: Graph, paint: Paint) -> str:
    nodes = [node for node in graph.nodes if not node.synthetic]
    ops = Counter(node.op.name for node in nodes if node.op.name not in ("parameter", "constant"))
    result = f" -> {graph.root.type}" if graph.root is not None else ""
    named = ", ".join(f"{name} {n}" if n > 1 else name for name, n in ops.most_common(NAMED_OPERATORS))
    more = f", +{len(ops) - NAMED_OPERATORS} more" if len(ops) > NAMED_OPERATORS else ""
    return short(f"  {graph.name}{result}: {len(nodes):,}  {named}{more}", paint.width)
