"""Effects of TorchScript's statements: which only construct values, and which may write in place to values that others read."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate

from irscope.formats.torchscript.attributes import GetAttr
from irscope.formats.torchscript.operators import overloads
from irscope.graph import Graph, Node
from irscope.graph.walk import callees_first_of
from irscope.ops.sets import hlo, torchscript

CONSTANT, LIST = torchscript("prim::Constant"), torchscript("prim::ListConstruct")
BUILDING = hlo("parameter tuple get-tuple-element constant") | torchscript(
    "prim::Constant prim::ListConstruct prim::TupleConstruct prim::ListUnpack prim::TupleUnpack prim::TupleIndex prim::GetAttr "
    "prim::NumToTensor prim::unchecked_cast prim::device prim::dtype prim::ConstantChunk prim::FusionGroup aten::Int aten::Float "
    "aten::Bool aten::ScalarImplicit"
)
"""Lines of the language itself that read and build values."""
HOLDING = hlo("tuple get-tuple-element") | torchscript(
    "prim::ListConstruct prim::TupleConstruct prim::ListUnpack prim::TupleUnpack prim::TupleIndex prim::unchecked_cast prim::ConstantChunk"
)
"""Those whose results hold, or are, tensors of their operands."""
ATTRIBUTE = torchscript("prim::GetAttr")


def may_write(node: Node) -> bool:
    """Whether a statement may modify a value in place: operators that end in ``_``, and unknown operators."""
    return node.op not in BUILDING and _may_write(node.op.name)


@cache
def _may_write(name: str) -> bool:
    found = overloads(name)
    return found is None or any(choice.style not in ("pure", "view") for choice in found.choices)


def writes_before(nodes: Sequence[Node]) -> list[int]:
    """By index, how many statements up to and including this one may write."""
    return list(accumulate(int(may_write(node)) for node in nodes))


def written_values(graph: Graph, is_entry: bool) -> list[bool] | None:
    """By index, whether a statement may write in place to the memory of a node's result or of one of its operands; None if none writes.

    Values share memory where one is a view of the other or holds it, where attributes have the same name, and where they are parameters
    of a block, which may be called with views of one tensor. Inputs of the entry are different tensors.
    """
    targets = [_targets(node) for node in graph.nodes]
    if not any(targets):
        return None
    root = _memory(graph, targets, is_entry)
    written = {root(operand.index) for operands in targets for operand in operands}
    return [any(root(value.index) in written for value in (node, *node.operands)) for node in graph.nodes]


def returned_values(graph: Graph) -> list[bool]:
    """By index, whether the memory of a node's result may be returned: a caller, or the statement around a block, may write to it."""
    if graph.root is None:
        return [False] * len(graph.nodes)
    root = _memory(graph, [()] * len(graph.nodes), True)
    result = root(graph.root.index)
    return [root(node.index) == result for node in graph.nodes]


def _memory(graph: Graph, targets: Sequence[Sequence[Node]], is_entry: bool) -> Callable[[int], int]:
    """A function from the index of a value to the number of its memory, which values share that are views of each other."""
    nodes = graph.nodes
    above = list(range(len(nodes)))

    def root(index: int) -> int:
        while above[index] != index:
            above[index] = index = above[above[index]]
        return index

    attributes: dict[object, int] = {}
    for node in nodes:
        if node.op in ATTRIBUTE:
            above[root(node.index)] = root(attributes.setdefault(GetAttr.of(node).name, node.index))
        for operand in (*_shared(node), *targets[node.index]):
            above[root(node.index)] = root(operand.index)
    if not is_entry:
        for param in graph.params:
            above[root(param.index)] = root(graph.params[0].index)
    return root


def _targets(node: Node) -> Sequence[Node]:
    """The operands that a statement may write to."""
    if node.op in BUILDING:
        return ()
    if node.bodies and not any(_targets(inner) for body in callees_first_of(node.bodies) for inner in body.nodes if not inner.bodies):
        return ()
    name = node.op.name
    found = overloads(name) or overloads(name.removesuffix("_"))
    if found is None or len(node.operands) > max(len(choice.schema.arguments) for choice in found.choices):
        return [operand for operand in node.operands if not small_value(operand)]  # unknown, or with an argument out=
    return node.operands[:1] if name.endswith("_") and not name.endswith("__") else ()


def _shared(node: Node) -> Sequence[Node]:
    """The operands whose memory a result may share."""
    if node.op in HOLDING or node.bodies:
        return [operand for operand in node.operands if not small_value(operand)]
    found = overloads(node.op.name)
    return node.operands[:1] if found is not None and any(choice.style in ("view", "alias") for choice in found.choices) else ()


def small_value(node: Node) -> bool:
    """Whether a node is a constant, or a list of constants that is not empty."""
    return node.op in CONSTANT or (node.op in LIST and bool(node.operands) and all(o.op in CONSTANT for o in node.operands))


def remove_unused_values(graph: Graph) -> None:
    """Remove the constants and lists of constants of a graph that nothing uses, in place."""
    nodes = graph.nodes
    uses = [0] * len(nodes)
    for node in nodes:
        for operand in node.operands:
            uses[operand.index] += 1
    kept = [True] * len(nodes)
    for node in reversed(nodes):
        if not uses[node.index] and small_value(node):
            kept[node.index] = False
            for operand in node.operands:
                uses[operand.index] -= 1
    graph.hold([node for node in nodes if kept[node.index]])
