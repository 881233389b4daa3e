"""Aliasing: the operands of concatenations, pads, updates and copies of views are written straight into the memory of the result."""
from __future__ import annotations

from typing import TYPE_CHECKING

from irscope.fusion import Group
from irscope.fusion.drafts import dims_of
from irscope.fusion.views import VIEWS, Strides, before, stored
from irscope.graph import Builder, Graph, Node, TensorType
from irscope.lower.program import Step
from irscope.lower.storage import Storage
from irscope.lower.templates import Problem
from irscope.lower.values import is_scalar_constant, tensor_of
from irscope.ops import hlo
from irscope.ops.attributes import Concatenate, Pad

if TYPE_CHECKING:
    from irscope.lower.buffer_assignment import BufferAssignment
    from irscope.lower.lowering import GraphLowering, Lowering


def can_alias_operands(node: Node) -> bool:
    """Whether a node's operands can be written straight into its result: a concatenation, or padding that cuts nothing off."""
    return node.op is hlo.concatenate or (node.op is hlo.pad and all(min(low, high) >= 0 for low, high, _ in Pad.of(node).padding))


def is_update(node: Node) -> bool:
    """Whether a node is its first operand with a part overwritten."""
    return node.op is hlo.dynamic_update_slice and all(dims_of(start) == () for start in node.operands[2:])


def alias_operands(assignment: BufferAssignment, node: Node) -> None:
    """Let the operands that only this node reads whole be written into its memory at once."""
    whole = assignment.known[node]
    if node.op is hlo.pad and any(hole for _, _, hole in Pad.of(node).padding):
        return
    behind = [stored(operand) for operand in node.operands]
    for operand, part in _parts(node, whole):
        if behind.count(stored(operand)) == 1:
            _alias(assignment, operand, part, assignment.overwritten_at.get(node))


def _alias(assignment: BufferAssignment, node: Node, target: Storage, overwritten_at: int | None) -> None:
    """Let a value, or the stored value that it shows, be written where it is wanted, if it is still open where that lies."""
    wanted = target.walk()
    shown = node
    while shown.op in VIEWS and not assignment.movable(shown):
        inner = before(shown, wanted)
        if inner is None:
            return
        shown, wanted = shown.operands[0], inner
    if assignment.is_read_before(shown, overwritten_at) and (shown is node or assignment.sole_reader(shown) is not None):
        assignment.claim(shown, target.under(wanted), overwritten_at)


def is_view_copy(group: Group) -> bool:
    """Whether a group only shows its one input under another shape or order."""
    return (group.kind == "map" and len(group.inputs) == 1 and len(group.outputs) == 1
            and all(node.op in (hlo.reshape, hlo.transpose) for node in group.nodes))


def alias_shown(assignment: BufferAssignment, group: Group) -> None:
    """Let the source of a copied view be written into the memory of the result, in the result's order: then there is nothing to copy."""
    source, output = group.inputs[0], group.outputs[0]
    if assignment.sole_reader(source) is not None:
        _alias(assignment, output, assignment.known[output], assignment.overwritten_at.get(output))


def is_aliased(graph: GraphLowering, group: Group) -> bool:
    """Whether the result of a group that copies a view shares the memory of its input already."""
    source, output = group.inputs[0], group.outputs[0]
    chain: list[Node] = []
    node = output
    while node is not source:
        chain.append(node)
        node = node.operands[0]
    seen: Storage | None = graph.storage_of(source)
    for step in reversed(chain):
        seen = seen.through(step) if seen is not None else None
    target = graph.storage_of(output)
    return seen is not None and seen.is_same_place(target)


def build(graph: GraphLowering, node: Node) -> None:
    """Append what fills the room between the parts, and copies of the parts that are not there yet."""
    whole = graph.storage_of(node)
    if not whole.elements:
        return
    if node.op is hlo.pad:
        for frame in _frame(node, whole):
            _fill(graph, node.operands[1], frame)
    for operand, part in _parts(node, whole):
        graph.lowering.copy(graph.steps, graph.storage_of(operand), part)


def alias_updated(assignment: BufferAssignment, node: Node, number: int) -> None:
    """Let the operand of an update share the memory of the result, when nothing reads it afterwards."""
    x = node.operands[0]
    behind = [stored(o) for o in node.operands[1:]]
    if assignment.is_read_before(x, number + 1) and x not in behind:
        assignment.claim(x, assignment.known[node], number)


def update(graph: GraphLowering, node: Node) -> None:
    """Append what writes the new part, after what it is written into was copied, unless it lives there already."""
    x, part, *starts = node.operands
    target = graph.storage_of(node)
    graph.lowering.copy(graph.steps, graph.storage_of(x), target)
    if not dims_of(part) or graph.storage_of(part).elements:
        inputs = list(dict.fromkeys([part, *(s for s in starts if not is_scalar_constant(s))]))
        graph.kernels_into(Group("update", [node], [node], inputs, node, dims_of(part)), {node: target})


def copy(lowering: Lowering, steps: list[Step], source: Storage, target: Storage) -> None:
    """Append a kernel that copies between places with strides."""
    node, operand = _identity(source)
    group = Group("map", [node], [node], [operand], None, source.shape)
    options = lowering.options
    problem = Problem(group, {operand: source}, {node: target}, {}, "copy", options.lanes, options.threads, options=options.data())
    assert lowering.launch(steps, problem)


def _identity(storage: Storage) -> tuple[Node, Node]:
    """A graph of one reshape to the same shape: what a copy computes."""
    graph = Graph("copy")
    builder = Builder(graph)
    type = TensorType(storage.dtype, storage.shape)
    operand = builder.param(hlo.parameter, type, "x")
    return builder.add(hlo.reshape, (operand,), {}, type, name="copy"), operand


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
    problem = Problem(group, ins, {node: target}, {}, "fill", options.lanes, options.threads, options=options.data())
    assert graph.lowering.launch(graph.steps, problem)


def _frame(node: Node, whole: Storage) -> list[Storage]:
    """What padding adds: a slab before and one after the operand along each dimension; everything when there are holes inside too."""
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


def _parts(node: Node, whole: Storage) -> list[tuple[Node, Storage]]:
    """The operands of a concatenation or padding with their places in the result."""
    if node.op is hlo.pad:
        operand = node.operands[0]
        cut = [(low, low + (n - 1) * (hole + 1) + 1 if n else low, hole + 1)
               for n, (low, _, hole) in zip(dims_of(operand), Pad.of(node).padding)]
        return [(operand, whole.under(whole.walk().sliced(cut)))]
    axis, at = Concatenate.of(node).axis, 0
    found: list[tuple[Node, Storage]] = []
    for operand in node.operands:
        size = dims_of(operand)[axis]
        cut = [(at, at + size, 1) if d == axis else (0, n, 1) for d, n in enumerate(whole.shape)]
        found.append((operand, whole.under(Strides(whole.shape, whole.strides, whole.offset).sliced(cut))))
        at += size
    return found
