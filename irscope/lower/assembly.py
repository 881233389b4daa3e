"""Assembly: the steps that write the parts of a value that aliasing has not already placed in its memory."""
from __future__ import annotations

from irscope.fusion import Group
from irscope.fusion.drafts import dims_of
from irscope.graph import Builder, Graph, Node
from irscope.lower.aliasing import can_alias_operands, is_update, parts_of
from irscope.lower.graph_lowering import GraphLowering
from irscope.lower.storage import Storage
from irscope.lower.templates import Problem
from irscope.lower.values import is_scalar_constant, tensor_of
from irscope.ops import hlo
from irscope.ops.attributes import Pad


def join(graph: GraphLowering, node: Node) -> bool:
    """Append the fills between the parts, and copies of the parts that are not in place yet."""
    if not can_alias_operands(node):
        return False
    whole = graph.storage_of(node)
    if not whole.elements:
        return True
    if node.op is hlo.pad:
        for frame in _frame(node, whole):
            _fill(graph, node.operands[1], frame)
    for operand, part in parts_of(node, whole):
        graph.lowering.copy(graph.steps, graph.storage_of(operand), part)
    return True


def update(graph: GraphLowering, node: Node) -> bool:
    """Append the write of the new part, after a copy of the value that it updates, unless that is in place already."""
    if not is_update(node):
        return False
    x, part, *starts = node.operands
    target = graph.storage_of(node)
    graph.lowering.copy(graph.steps, graph.storage_of(x), target)
    if not dims_of(part) or graph.storage_of(part).elements:
        inputs = list(dict.fromkeys([part, *(s for s in starts if not is_scalar_constant(s))]))
        graph.kernels_into(Group("update", [node], [node], inputs, node, dims_of(part)), {node: target})
    return True


def _fill(graph: GraphLowering, value: Node, target: Storage) -> None:
    """Append a kernel that writes one value everywhere."""
    made = Graph("fill")
    builder = Builder(made)
    type = tensor_of(value)
    operand = value if value.op is hlo.constant else builder.param(hlo.parameter, type, "value")
    node = Node(hlo.broadcast, "fill", type.with_shape(target.shape), (operand,), {"dimensions": ()})
    made.add(node)
    group = Group("map", [node], [node], [operand], None, target.shape)
    options = graph.lowering.options
    ins = {} if value.op is hlo.constant else {operand: graph.storage_of(value)}
    problem = Problem(group, ins, {node: target}, {}, "fill", graph.lowering.machine, options.threads, precision=options.precision)
    assert graph.lowering.launch(graph.steps, problem)


def _frame(node: Node, whole: Storage) -> list[Storage]:
    """The elements that padding adds: a slab before and after the operand along each dimension; with interior padding, everything."""
    padding, dims = Pad.of(node).padding, dims_of(node.operands[0])
    if any(hole for _, _, hole in padding):
        return [whole]
    slabs: list[Storage] = []
    for d, (low, high, _) in enumerate(padding):
        inner = [(a, a + n, 1) for n, (a, _, _) in zip(dims[:d], padding[:d])]
        outer = [(0, n, 1) for n in whole.shape[d + 1:]]
        for begin, end in ((0, low), (whole.shape[d] - high, whole.shape[d])):
            if end > begin:
                slabs.append(whole.under(whole.walk().sliced([*inner, (begin, end, 1), *outer])))
    return [slab for slab in slabs if slab.elements]
