"""Which values are known before the program runs: constants, and what is computed from constants alone."""
from __future__ import annotations

from irscope.graph import Effect, Graph


def known_early(graph: Graph) -> list[bool]:
    """For each node, by index, whether its value depends on constants alone. A constant whose value the text elides is not known."""
    known = [False] * len(graph.nodes)
    for node in graph.nodes:
        if node.op.name == "constant":
            known[node.index] = not node.attrs["literal"].elided
        elif node.op.name != "parameter" and node.op.effect is Effect.PURE:
            known[node.index] = all(known[o.index] for o in node.operands)
    return known
