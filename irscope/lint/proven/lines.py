"""The operators that a change replaces, and those in their place, as short lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from irscope.analysis.summary import describe_type
from irscope.analysis.values import LEAVES, number
from irscope.graph import Graph, Node
from irscope.lint.edits import Edit, built
from irscope.lint.proven.trial import TrialScope, origin_in
from irscope.ops import hlo

SHOWN = ("dimensions", "lhs_contracting_dims", "rhs_contracting_dims", "lhs_batch_dims", "rhs_batch_dims", "iota_dimension", "slice",
         "padding", "direction")
"""Attributes that a line has."""
MOST = 8
"""Lines of either side."""


def lines_of(scope: TrialScope, edit: Edit, home: Mapping[Node, Graph]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The operators before and after an edit, as ``%m = f32[8,8] multiply(%x, %y)``."""
    before = [node for node in scope.nodes if node in edit.changes]
    made = built(scope.nodes, scope.results, edit, scope.graph.name)

    def replaced(nodes: Iterable[Node]) -> list[Node]:
        wanted = set(nodes)
        return [node for node in made.nodes if origin_in(node, home) in wanted and node.op not in LEAVES]

    after = replaced(before)
    if not after:  # the operators fell away: their readers show what took their place
        readers = [node for node in scope.nodes if not edit.changes.keys().isdisjoint(node.operands)]
        before, after = [*before, *readers], replaced(readers)
    return _cut([_line(node) for node in before]), _cut([_line(node) for node in after])


def _cut(lines: list[str]) -> tuple[str, ...]:
    """The lines; of many the first and the last."""
    half = MOST // 2
    return tuple(lines) if len(lines) <= MOST else (*lines[:half], f"... {len(lines) - 2 * half} more", *lines[-half:])


def _line(node: Node) -> str:
    operands = ", ".join(_operand(operand) for operand in node.operands)
    shown = ((name, node.attrs[name]) for name in SHOWN if node.attrs.get(name) not in (None, (), ""))
    attrs = "".join(f", {name}={value if isinstance(value, int | str) else _braced(value)}" for name, value in shown)
    return f"%{node.name} = {describe_type(node.type)} {node.op.name}({operands}){attrs}"


def _operand(node: Node) -> str:
    """An operand by name; a number as itself."""
    value = number(node, 0) if node.op is hlo.constant else None
    return f"%{node.name}" if value is None else f"{value:g}"


def _braced(values: Iterable[object]) -> str:
    """Numbers in braces; of ranges and paddings ``start:limit:step``."""
    return "{" + ",".join(":".join(map(str, one)) if isinstance(one, tuple) else str(one) for one in values) + "}"
