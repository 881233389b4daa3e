"""Composite outlining: outlines the matches of the user's patterns into functions marked with a name."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.graph import Module, Node
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement
from irscope.passes.base import RelayPass
from irscope.passes.composite import Recipe, put_together
from irscope.passes.pattern import DataflowPattern, Match, is_constant
from irscope.passes.pattern_text import pattern_of
from irscope.passes.registry import split_outside
from irscope.source import UserError
from irscope.source.files import read_plain_text


class MergeComposite(RelayPass):
    """Outline the matches of patterns into functions with composite names, as TVM's MergeComposite does for backends with such kernels.

        %0 = nn.conv2d(%x, %w);                 %1 = fn (%p0, %p1, Composite="my.conv_relu", PartitionedFromPattern="nn.conv2d_nn.relu_") {
        nn.relu(%0)                     ->        %0 = nn.conv2d(%p0, %p1);
                                                  nn.relu(%0)
                                                };
                                                %1(%x, %w)

    ``patterns`` is ``NAME: PATTERN``, several separated by ``;`` (``passes/pattern_text.py`` has the syntax), or ``file`` names a file
    with one per line. Patterns are tried in order, each on the whole graph, so list longer ones first; a node belongs to one function.
    A value with users outside the match stays outside, and the pass reports it. Constants in a pattern move inside. In Python,
    ``MergeComposite.of`` takes patterns.
    """

    name = "merge-composite"

    def __init__(self, patterns: str = "", file: str = "") -> None:
        lines = [line for line in read_plain_text(file).splitlines() if line.strip() and not line.lstrip().startswith("#")] if file else []
        self.table = [_named(text) for text in (*split_outside(patterns, ";"), *lines)]

    @classmethod
    def of(cls, table: Sequence[tuple[str, DataflowPattern]]) -> MergeComposite:
        """The pass with patterns built in Python, each with its name."""
        made = cls()
        made.table = list(table)
        return made

    def rewrite(self, module: Module) -> Module:
        made, self.declined = put_together(module, [_recipe(name, pattern) for name, pattern in self.table])
        return made


def _recipe(name: str, pattern: DataflowPattern) -> Recipe:
    def marks(found: Match) -> dict[str, object]:
        return {"Composite": name, "PartitionedFromPattern": "".join(_word(node) for node in reversed(found.inside))}

    def asked_for(found: Match, node: Node) -> bool:
        return is_constant(node) and any(each is node and is_constant in pattern.conditions for pattern, each in found.nodes.items())

    return Recipe(pattern, lambda found: name, marks, asked_for)


def _word(node: Node) -> str:
    """How TVM writes a node in ``PartitionedFromPattern``."""
    if node.op is hlo.get_tuple_element:
        return f"TupleGetItem{GetTupleElement.of(node).index}_"
    return "Tuple_" if node.op is hlo.tuple else f"{node.op.name}_"


def _named(text: str) -> tuple[str, DataflowPattern]:
    name, colon, pattern = text.partition(":")
    if not colon or not name.strip():
        raise UserError(f"merge-composite: {text.strip()!r} has no name", "write NAME: PATTERN, such as my.relu: nn.relu(*)")
    return name.strip(), pattern_of(pattern.strip())
