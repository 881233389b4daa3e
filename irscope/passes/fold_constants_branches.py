"""Branch folding: replaces a conditional on a constant by the branch that it takes."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.expand.expand import GROWTH, MOST_INLINED
from irscope.graph import Builder, Graph, Module, Node, callees_first, rewrite, see_through
from irscope.graph.rewrite import copy_node
from irscope.graph.walk import callees_first_of
from irscope.ops import hlo, sets
from irscope.ops.attributes import Constant
from irscope.ops.sets import relay
from irscope.passes.base import per_graph
from irscope.passes.visitor import without_dead
from irscope.source import budget

CALLS = sets.hlo("call") | relay("call")
CHOICES = sets.hlo("conditional") | relay("if")


def with_branches_taken(module: Module) -> Module:
    """The module without conditionals on known conditions; the same module if there are none."""
    order = callees_first(module)
    if not any(_choice(node) is not None for graph in order for node in graph.nodes):
        return module
    _require_small(module, order)

    def change(graph: Graph, became: dict[Graph, Graph]) -> Graph:
        def rule(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
            choice = _choice(node)
            return None if choice is None else _inlined(builder, node, choice, operands, became)
        return without_dead(see_through(rewrite(graph, rule, became), graph))  # the condition has no user any more

    inner = {body for graph in module.graphs.values() for node in graph.nodes if node.op not in CALLS for body in node.bodies}
    own = [name for name, graph in module.graphs.items() if graph not in inner]
    made = per_graph(module, change)
    reached = set(callees_first_of([made.graphs[name] for name in own]))
    # Branches that are not taken, or are now inlined, are no longer functions of the module.
    made.graphs = {name: graph for name, graph in made.graphs.items() if graph in reached}
    return made


def _require_small(module: Module, order: Sequence[Graph]) -> None:
    """Raise BudgetExceeded where inlining the branches makes more nodes than any program has. ``order`` has callees first."""
    limit = max(MOST_INLINED, GROWTH * sum(len(graph.nodes) for graph in order))
    count: dict[Graph, int] = {}
    for graph in order:
        taken = ((node, _choice(node)) for node in graph.nodes if node.bodies)
        count[graph] = len(graph.nodes) + sum(count.get(node.bodies[choice], 0) for node, choice in taken if choice is not None)
        budget.require_nodes(count[graph], f"taking the known branches of {graph.name}", limit)


def _choice(node: Node) -> int | None:
    """The branch of a conditional that runs, if that is known."""
    if node.op not in CHOICES or not node.operands or node.operands[0].op is not hlo.constant:
        return None
    literal = Constant.of(node.operands[0]).known
    if literal is None:
        return None
    value = literal.value()
    if value.dtype == bool:
        return 0 if value.item() else 1
    # HLO clamps: an index out of range selects the last branch.
    index = int(value.item())
    return index if 0 <= index < len(node.bodies) else len(node.bodies) - 1


def _inlined(builder: Builder, node: Node, choice: int, operands: Sequence[Node], became: dict[Graph, Graph]) -> Node:
    """The nodes of the branch, inlined over the values that it captures (Relay) or its argument (HLO)."""
    body = became.get(node.bodies[choice], node.bodies[choice])
    if node.op is hlo.conditional:
        arguments = [operands[1 + choice]]
    else:
        counts = [int(b.notes.get("captures", 0)) for b in node.bodies]
        begin = 1 + sum(counts[:choice])
        arguments = list(operands[begin:begin + counts[choice]])
    inside: dict[Node, Node] = dict(zip(body.params, arguments, strict=True))
    for inner in body.nodes:
        if inner not in inside:
            inside[inner] = copy_node(builder, inner, [inside[o] for o in inner.operands])
            inside[inner].origin = (*inner.origin, node)
    return inside[body.result()]
