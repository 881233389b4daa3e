"""A fault in a module, before it becomes a finding with a place in the text."""
from __future__ import annotations

from dataclasses import dataclass

from irscope.graph import Graph, Module, Node
from irscope.ops.module_attributes import HloModule
from irscope.source import Finding, Severity

CODES = {"shape": "SHP006", "type": "SHP006", "dtype": "DTY006", "layout": "LAY006", "rule": "SHP006"}
NAME = "declared-type"


@dataclass(slots=True)
class GraphFault:
    """A node (None: the graph or module as a whole) and what is wrong with it; ``about`` is a key of ``CODES``."""

    node: Node | None
    message: str
    help: str = ""
    about: str = "rule"
    severity: Severity = Severity.ERROR


def finding(module: Module, graph: Graph, fault: GraphFault) -> Finding:
    """The finding of a fault: at the node's name in the text, with the user's own line where there is one."""
    node = fault.node
    stack = module.call_stack(node) if node is not None else ()
    offset = node.loc if node is not None else graph.loc
    length = len(node.name) if node is not None else len(graph.name)
    return Finding(CODES[fault.about], NAME, fault.severity, fault.message, module.source, offset, max(1, length), (), fault.help,
                   node.name if node is not None else "", graph.name, str(stack[0]) if stack else "")


def devices_of(module: Module) -> tuple[int, int]:
    """``replica_count`` and ``num_partitions``; 1 where the module does not state them, or the reader rejected them."""
    attrs = HloModule.of(module)
    replicas, partitions = (n if isinstance(n, int) else 1 for n in (attrs.replica_count, attrs.num_partitions))
    return replicas, partitions
