"""Structural rules for formats with their own operators: they run on the primitives, and report the operators that the user wrote."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from irscope.analysis.values import written
from irscope.graph import Kind, Node
from irscope.lint.collect import found_by
from irscope.lint.context import Context
from irscope.lint.findings import RuleFinding
from irscope.lint.rule import Rule, place_of
from irscope.lint.view import ModuleView
from irscope.source import Finding, Note

WORK = (Kind.ELEMENTWISE, Kind.REDUCTION, Kind.CONTRACTION, Kind.OPAQUE)
"""Primitives that compute; an operator of the text that is one of them, with movement around it, is that one."""

_NAME = re.compile(r"%([\w.\-]+)")


def lint_primitives(context: Context, rules: Iterable[type[Rule]]) -> list[Finding]:
    """What rules find in the primitives of a module, where it has them.

    A finding stands at the operator of the text that its node comes from, once for each rule and operator.
    """
    if context.view.primitive is None:
        return []
    inner = context.inner
    works = Counter(written(node) for graph in inner.view.array_graphs for node in graph.nodes if node.op.kind in WORK)
    found: dict[tuple[str, str, int], Finding] = {}
    for rule in rules:
        for finding in found_by(inner, rule):
            if not context.module.dialect.primitive and not rule.inside and _is_the_operators_own(finding, inner.view, works):
                continue
            named_finding = _in_names_of_text(context, finding, inner.view)
            found.setdefault((named_finding.code, named_finding.node, named_finding.offset), named_finding)
    return list(found.values())


def _is_the_operators_own(finding: Finding, view: ModuleView, works: Counter[Node]) -> bool:
    """Whether all that a finding names are primitives of one operator of the text that computes in several steps, or several of one."""
    named = _named(finding, view)
    involved = {written(node) for node in named}
    return len(involved) == 1 and (len(named) > 1 or works[involved.pop()] > 1)


def _named(finding: Finding, view: ModuleView) -> list[Node]:
    """The nodes that a finding names, its own first."""
    texts = (finding.message, *(note.text for note in finding.notes))
    names = dict.fromkeys([finding.node, *(name for text in texts for name in _NAME.findall(text))])
    return [node for name in names if (node := view.find(finding.graph, name)) is not None]


def _in_names_of_text(context: Context, finding: Finding, view: ModuleView) -> Finding:
    """The finding in the names of the text."""
    module = context.module

    def in_text(match: re.Match[str]) -> str:
        node = view.find(finding.graph, match[1])
        return f"%{written(node).name}" if node is not None else match[0]

    own = view.find(finding.graph, finding.node)
    if own is None or written(own).loc < 0:
        return finding
    node = written(own)
    offset, length = place_of(module, node)
    made = replace(
        finding,
        message=_NAME.sub(in_text, finding.message),
        help=_NAME.sub(in_text, finding.help),
        notes=tuple(Note(_NAME.sub(in_text, note.text), note.offset) for note in finding.notes),
        node=node.name,
        graph=context.view.graph_of[node].name if node in context.view.graph_of else finding.graph,
        offset=offset,
        length=length,
    )
    if isinstance(made, RuleFinding):
        made.about = tuple(dict.fromkeys(map(written, _named(finding, view))))
    return made
