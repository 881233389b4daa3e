"""Which nodes a drawing writes into their users, and which it looks through."""
from __future__ import annotations

from enum import Enum

from irscope.analysis.summary import describe_type
from irscope.graph import Graph, Kind, Node
from irscope.ops import hlo, sets
from irscope.render.labels import literal_text
from irscope.render.units import short

MANY_PARAMETERS = 8
MAX_TUPLE = 16
MAX_TEXT = 40
_SIZES = sets.torchscript("size len dim Int Bool ScalarImplicit prim::NumToTensor")
"""Operators that read a size or make a number of it: no data flows through them, and nothing is written for them."""
_VIA = hlo.named("get-tuple-element bitcast opt-barrier")
_DISGUISES = sets.hlo("broadcast reshape bitcast convert") | sets.relay("reshape")


class Fold(Enum):
    """What becomes of a node in a drawing. The data of the page has the first letter of each value."""

    BOX = "box"      # drawn
    TEXT = "text"    # written into its users
    VIA = "via"      # looked through: its users take its operands


def folding(graph: Graph, fold_parameters: bool) -> list[Fold]:
    """What becomes of each node of a graph, by index. Constants and their broadcasts are text, tuples, gets and bitcasts looked through."""
    folds = [Fold.BOX] * len(graph.nodes)
    for i, node in enumerate(graph.nodes):
        op = node.op
        leaf = op.work == "constant" or (op.kind is Kind.LEAF and op is not hlo.parameter)
        plumbing = op in _VIA or (op.work == "free" and op is not hlo.get_dimension_size and len(node.operands) <= MAX_TUPLE)
        if op in _SIZES or leaf or (op is hlo.parameter and fold_parameters) or _is_constant_in_disguise(node, folds):
            folds[i] = Fold.TEXT
        elif plumbing:
            folds[i] = Fold.VIA
    if graph.root is not None and folds[graph.root.index] is Fold.TEXT and graph.root.op is not hlo.parameter:
        folds[graph.root.index] = Fold.BOX
    return folds


def without_tuples(graph: Graph, folds: list[Fold]) -> list[Fold]:
    """The same, but every tuple is looked through: a training step has hundreds of results, and a box for them says nothing."""
    return [Fold.VIA if node.op is hlo.tuple else fold for node, fold in zip(graph.nodes, folds, strict=True)]


def _is_constant_in_disguise(node: Node, folds: list[Fold]) -> bool:
    """A broadcast scalar is the scalar to a reader; a reshaped parameter is no longer the parameter."""
    if node.op not in _DISGUISES or not node.operands:
        return False
    inner = node.operands[0]
    return folds[inner.index] is Fold.TEXT and (inner.op is not hlo.parameter or node.op is hlo.bitcast)


def text_of(node: Node) -> str:
    """What a folded node is written as in its users' boxes; the empty text where that would say nothing."""
    if node.op in _SIZES:
        return ""
    while node.op in _DISGUISES and node.operands:
        node = node.operands[0]
    if node.op is hlo.parameter:
        return short(f"{node.name} {describe_type(node.type)}", MAX_TEXT)
    return short(literal_text(node), MAX_TEXT)
