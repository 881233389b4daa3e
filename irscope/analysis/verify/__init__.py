"""The module rules that span operators, after XLA's verifier: signatures, pairs, groups, layouts, aliases, shardings."""
from __future__ import annotations

from irscope.analysis.verify import aliasing, buffers, calls, groups, layouts, pairs, shardings, threads
from irscope.analysis.verify.faults import GraphFault
from irscope.graph import Graph, Module

RULES = (threads, pairs, groups, layouts, aliasing, shardings, calls, buffers)


def module_rules(module: Module) -> list[tuple[Graph, GraphFault]]:
    """The violations of a rule, with their graphs."""
    return [found for rule in RULES for found in rule.check(module)]
