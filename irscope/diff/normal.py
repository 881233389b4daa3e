"""The normal form in which texts of different dialects are compared.

A compiler that translates a dialect into another one simplifies on the way: jaxlib folds constants, drops identities and parts of a loop's
state. Both texts are therefore simplified until they no longer change; what is then the same graph computes the same.
"""
from __future__ import annotations

from collections.abc import Sequence

from irscope.diff.identities import RULES
from irscope.diff.states import with_plain_states
from irscope.expand import expand
from irscope.graph import UNKNOWN, Builder, Module, Node, callees_first, rewrite_module
from irscope.ops import infer
from irscope.passes import pass_named
from irscope.passes.algebra.arithmetic import POINTWISE
from irscope.passes.algebra.simplifier import Simplifier, is_static_tensor
from irscope.passes.base import rewritten
from irscope.passes.fold_constants import GROWING, KEPT, FoldConstants
from irscope.passes.translate import plain_constants

PASSES = ("share-equal", "remove-dead")
ROUNDS = 6
"""How often the passes run at most."""


def normal_form(module: Module) -> Module:
    """The module in normal form. Raises UserError for one that cannot be expanded."""
    module = rewrite_module(expand(module, outline=True), _without_layout)
    if module.dialect.translate is not None:
        module = rewrite_module(module, module.dialect.translate)
    plain = plain_constants()
    for _ in range(ROUNDS):
        before = _size(module)
        module = rewritten(module, Simplifier(RULES, is_static_tensor, POINTWISE).rule)
        module = _folded(module)
        for name in PASSES:
            module = pass_named(name).run(module)
        module = with_plain_states(rewrite_module(module, plain))
        if _size(module) == before:
            break
    return pass_named("remove-dead").run(pass_named("share-equal").run(module))


def _size(module: Module) -> int:
    """The number of nodes, regions included."""
    return sum(len(graph.nodes) for graph in callees_first(module))


def _folded(module: Module) -> Module:
    """Constant folding through broadcasts: which text shows a value as a broadcast and which as a constant is chance."""
    fold = FoldConstants()
    fold.kept = KEPT - GROWING
    return fold.run(module)


def _without_layout(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
    """Drop layouts from the types: values that differ only in their layout are equal."""
    return builder.copy(node, operands, infer.plain(node.type)) if not node.bodies and node.type is not UNKNOWN else None
