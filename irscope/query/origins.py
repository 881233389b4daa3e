"""Adds the user's source lines to the findings of a reader: an error in an instruction names the line that it came from."""
from __future__ import annotations

from bisect import bisect_right

from irscope.graph import Graph, Module, Reading
from irscope.source import Finding

MAX_FINDINGS = 1000
"""How many findings get a line: more are not readable."""
MAX_BACK = 8
"""How many nodes are skipped that stand for operands that the text does not have."""


def with_origins(reading: Reading) -> Reading:
    """The same reading. Its findings about nodes get the user's own line, where the text names one."""
    wanted = [finding for finding in reading.findings[:MAX_FINDINGS] if finding.offset >= 0 and not finding.source_line]
    if wanted:
        graphs = sorted(((graph.loc, at, module, graph) for at, module in enumerate(reading.modules) for graph in module.graphs.values()
                         if graph.loc >= 0), key=lambda found: found[:2])
        begins = [loc for loc, *_ in graphs]
        for finding in wanted:
            at = bisect_right(begins, finding.offset) - 1
            if at >= 0:
                finding.source_line = _line(reading.source.text, *graphs[at][2:], finding)
    return reading


def _line(text: str, module: Module, graph: Graph, finding: Finding) -> str:
    """Where the node at a finding comes from: the last that begins before it, if it has the name or stands on the same line."""
    nodes = module.graphs.get(finding.graph, graph).nodes
    at = bisect_right(nodes, finding.offset, key=lambda node: node.loc) - 1
    for node in nodes[max(0, at - MAX_BACK):at + 1][::-1]:
        if not node.synthetic and 0 <= node.loc <= finding.offset:
            if node.name != finding.node and "\n" in text[node.loc:finding.offset]:
                return ""
            stack = module.call_stack(node)
            return str(stack[0]) if stack else ""
    return ""
