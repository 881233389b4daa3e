"""Selected nodes as a list for a terminal, with a card for the requested node."""
from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.summary import describe_type, source_line
from irscope.analysis.survey import Survey
from irscope.graph import Graph, Node
from irscope.render.labels import headline
from irscope.render.paint import Paint
from irscope.render.units import bytes_, count, flops, plural, short

MAX_USERS = 12
MAX_FRAMES = 6
LEAST_NAME, LEAST_TYPE = 7, 10
"""Characters of a name and of a type that are kept where there is no room for them."""
SOURCED = 110
"""From this width on a node is listed with the user's line; narrower, its operands matter more."""


def listing(survey: Survey, picked: set[Node], centre: Node | None, what: str, paint: Paint, limit: int | None) -> Iterator[str]:
    """The picked nodes in the order of the text, under the graphs that hold them; before them the card of the centre."""
    if centre is not None:
        yield from card(survey, centre, paint)
        yield ""
    yield paint(f"{plural(len(picked), 'node')} {what}", "bold")
    left = limit if limit is not None else len(picked)
    for graph in survey.module.graphs.values():
        inside = [node for node in graph.nodes if node in picked]
        if not inside or left <= 0:
            continue
        if len(survey.module.graphs) > 1:
            yield paint(graph.name, "cyan") + paint(f"  {count(len(inside))}", "dim")
        for node in inside[:left]:
            yield node_line(survey, graph, node, paint, mark=node is centre)
        left -= len(inside)
    if left < 0:
        yield paint(f"  ... {count(-left)} more: --all lists them", "dim")


def node_line(survey: Survey, graph: Graph, node: Node, paint: Paint, mark: bool = False) -> str:
    """One node on one line: name, operator, type, operands; FLOPs, bytes and the user's own line at its end where there is room."""
    head = f"{'>' if mark else ' '} %{short(node.name, max(LEAST_NAME, paint.width // 3))} = "
    tail = ""
    if paint.width >= 90 and graph in survey.costs.graphs:
        work, moved, is_open = survey.costs.flops(node, graph), survey.costs.traffic(node, graph), survey.costs.is_open(node, graph)
        tail = f"{flops(work, is_open) if work or is_open else '':>12}{bytes_(moved, is_open) if moved or is_open else '':>10}"
    source = source_line(survey.module, node) if paint.width >= SOURCED else ""
    if source:
        tail = f"{tail}  {short(source, paint.width // 4)}"
    space = paint.width - len(tail) - 1
    body = statement(node, space - len(head))
    padding = " " * max(1, space - len(head) - len(body) + 1)
    figures = padding + paint.link(paint(tail, "dim"), source) if tail.strip() else ""
    return paint(head, "bold" if mark else "dim") + paint(body, node.op.work) + figures


def statement(node: Node, space: int) -> str:
    """``f32[8,16] dot(%x, %w)`` in ``space`` characters: what is long is cut, so that operator and operands are still there.

    First the operator's details go, then names and the type are cut; operands that still do not fit are counted: ``add(%a, +3)``.
    """
    type, names = describe_type(node.type), [f"%{o.name}" for o in node.operands]
    for title in (headline(node), node.op.name):
        whole = f"{type} {title}({', '.join(names)})"
        if len(whole) <= space:
            return whole
    kept = type if len(type) <= LEAST_TYPE else short(type, max(LEAST_TYPE, space - len(node.op.name) - 3 - sum(len(n) + 2 for n in names)))
    room = max(LEAST_NAME, space - len(kept) - len(node.op.name) - 3)
    for n in range(len(names), 0, -1):
        rest = [f"+{len(names) - n}"] if n < len(names) else []
        each = (room - sum(len(r) + 2 for r in rest) - 2 * (n - 1)) // n
        if each >= LEAST_NAME or n == 1:
            names = [short(name, max(LEAST_NAME, each)) for name in names[:n]] + rest
            break
    return f"{kept} {node.op.name}({', '.join(names)})"


def card(survey: Survey, node: Node, paint: Paint) -> Iterator[str]:
    """All known facts about one node."""
    graph = next(g for g in survey.module.graphs.values() if node.index < len(g.nodes) and g.nodes[node.index] is node)
    yield paint(f"%{node.name}", "bold") + f"  {headline(node)}  {describe_type(node.type)}"
    times = survey.calls.times.get(graph, 1.0)
    rows: list[tuple[str, str]] = [("graph", graph.name + (f", runs {count(times)} times" if times != 1 else ""))]
    if node.loc >= 0:
        rows.append(("line", str(survey.module.source.place(node.loc).line)))
    scope = survey.module.scope(node)
    if scope:
        rows.append(("scope", scope))
    stack = survey.module.call_stack(node)
    for i, at in enumerate(stack[:MAX_FRAMES]):
        rows.append(("source" if i == 0 else "", f"{at.file}:{at.line}" + (f" in {at.function}" if at.function else "")))
    if not stack and (line := source_line(survey.module, node)):
        rows.append(("source", line))
    if graph in survey.costs.graphs:
        work, moved, is_open = survey.costs.flops(node, graph), survey.costs.traffic(node, graph), survey.costs.is_open(node, graph)
        result = bytes_(survey.costs.size(node.type), survey.costs.is_open_size(node.type))
        rows.append(("cost", f"{flops(work, is_open)}, {bytes_(moved, is_open)} traffic, result {result}"))
    rows += [("attributes" if i == 0 else "", f"{key}={value}") for i, (key, value) in enumerate(node.attrs.items())]
    rows += [("calls", ", ".join(body.name for body in node.bodies))] if node.bodies else []
    rows += [("operands" if i == 0 else "", f"%{o.name} {describe_type(o.type)}") for i, o in enumerate(node.operands[:MAX_USERS])]
    users = survey.users(graph)[node.index]
    rows += [("users" if i == 0 else "", f"%{u.name} {headline(u)}") for i, u in enumerate(users[:MAX_USERS])]
    if len(users) > MAX_USERS:
        rows.append(("", f"{count(len(users) - MAX_USERS)} more"))
    rows += [(key, value) for key, value in survey.module.raw(node).items() if key != "metadata"]
    for label, text in rows:
        cut = short(text, paint.width - 13)
        yield "  " + paint(label.ljust(11), "dim") + (paint.link(cut, text.partition(" in ")[0]) if label in ("source", "") else cut)
