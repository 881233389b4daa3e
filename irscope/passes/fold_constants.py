"""What depends on constants alone is a constant."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from irscope.graph import Builder, Effect, Graph, Module, Node, TensorType
from irscope.graph.rewrite import copy_node
from irscope.ops import get
from irscope.ops.attrs import Literal
from irscope.passes.base import Pass, rewritten
from irscope.source import UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]

LEAVES = frozenset(("parameter", "constant"))
GROWING = frozenset((
    "broadcast", "iota", "broadcast_to", "tile", "repeat", "full", "zeros", "ones", "arange", "full_like", "zeros_like", "ones_like",
))
"""Operators whose result says less than its size: it is as cheap to make again as to read."""

KEPT = frozenset((*GROWING, "while", "conditional", "custom-call", "call", "fusion", "if", "fn", "global", "match"))


class FoldConstants(Pass):
    """Compute nodes whose operands are all constants, and write the result as one.

        a = f32[] constant(2)                               c = f32[] constant(6)
        b = f32[] constant(3)                      ->       ...
        c = f32[] multiply(a, b)

    ``max-elements`` bounds a result, so that the text does not grow without need. Elided values fold to nothing.
    """

    name: ClassVar[str] = "fold-constants"
    opt_level: ClassVar[int] = 2

    def __init__(self, max_elements: int = 4096) -> None:
        self.max_elements = max_elements

    def run(self, module: Module) -> Module:
        if module.format not in ("hlo", "relay"):
            return module
        folded = rewritten(module, self._rule)
        return rewritten(folded, lambda builder, node, operands: None)

    def _rule(self, builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        type = node.type
        if node.op.name in KEPT or node.op.name in LEAVES or not node.operands or node.op.effect is not Effect.PURE:
            return None
        if not isinstance(type, TensorType) or not type.is_static or type.elements > self.max_elements:
            return None
        sources = _sources(operands)
        if sources is None or (node.op.dialect == "relay" and not writable(type)):
            return None
        value = computed(node, operands, sources)
        if value is None or value.shape != type.shape:
            return None
        return builder.add(get("constant"), (), {"literal": Literal.of(value.astype(type.dtype.numpy()), type)}, type, name=node.name)


def writable(type: TensorType) -> bool:
    """Whether Relay text can say an array of this type: a list of numbers has one type only."""
    return type.rank == 0 or type.dtype.name in ("f32", "s32")


def _sources(operands: Sequence[Node]) -> list[Node] | None:
    """The constants that the operands are, tuples of constants looked into; None where one is something else."""
    sources: list[Node] = []
    for operand in operands:
        for leaf in operand.operands if operand.op.name == "tuple" else (operand,):
            if leaf.op.name != "constant" or leaf.attrs["literal"].elided or not isinstance(leaf.type, TensorType):
                return None
            sources.append(leaf)
    return sources


def computed(node: Node, operands: Sequence[Node], sources: Sequence[Node]) -> Array | None:
    """The value of a node over constants, by the reference interpreter; None where it has none."""
    import numpy as np

    from irscope.analysis.reference import evaluate
    from irscope.expand import expand

    graph = Graph("main")
    builder = Builder(graph)
    became = {source: copy_node(builder, source, []) for source in sources}
    inner = [became[o] if o in became else copy_node(builder, o, [became[p] for p in o.operands]) for o in operands]
    graph.root = copy_node(builder, node, inner)
    graph.root.loc = -1
    try:
        primitive = expand(Module("folded", "hlo" if node.op.dialect == "hlo" else "relay", {"main": graph}, "main"))
        return np.asarray(evaluate(primitive.main(), []))
    except (UserError, ValueError):
        return None
