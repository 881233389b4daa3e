"""Sorts: simplifies sorts of one element and of unused values (XLA's ``SortSimplifier``), and expands stable ones."""
from __future__ import annotations

from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction, tensor_type
from irscope.fusion.canonicalise.ynnpack import wrap
from irscope.graph import Graph, Node, TupleType
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement, Iota, Sort, TopK


def sort(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Remove a sort of one element, and the unused operands of a sort."""
    source = instr.operands[0]
    if not source.elements or source.dims[Sort.of(instr).axis] > 1:
        return _drop_unread(rewriter, instr)
    return rewriter.replace(instr, source) if len(instr.operands) == 1 else rewriter.become(instr, hlo.tuple, instr.operands)


def _drop_unread(rewriter: HloComputation, instr: HloInstruction) -> bool:
    if not isinstance(instr.type, TupleType) or not instr.bodies or not rewriter.reads_elements(instr):
        return False
    comparator = instr.bodies[0]
    read = {operand for node in comparator.nodes for operand in node.operands} | {comparator.root}
    compared = {number // 2 for number, param in enumerate(comparator.params) if param in read}
    kept = sorted(compared | {GetTupleElement.of(u).index for u in instr.users})
    if len(kept) == len(instr.operands):
        return False
    comparator = _narrow(comparator, [place for k in kept for place in (2 * k, 2 * k + 1)])
    operands = [instr.operands[place] for place in kept]
    type = operands[0].type if len(kept) == 1 else TupleType(tuple(o.type for o in operands))
    made = rewriter.make(hlo.sort, type, operands, instr.attrs, (comparator,))
    made.take_label(instr)
    for user in list(instr.users):
        place = kept.index(GetTupleElement.of(user).index)
        rewriter.replace(user, made if len(kept) == 1 else rewriter.element(made, place, user))
    return True


def _narrow(comparator: Graph, kept: list[int]) -> Graph:
    """A copy of a comparator with only the parameters at the positions ``kept``, numbered in that order; it uses no other."""
    made = Graph(comparator.name, loc=comparator.loc)
    here: dict[Node, Node] = {}
    number_of = {comparator.params[place]: number for number, place in enumerate(kept)}
    dropped = {*comparator.params} - number_of.keys()
    for node in comparator.nodes:
        if node not in dropped:
            attrs = {**node.attrs, "number": number_of[node]} if node in number_of else node.attrs
            here[node] = made.add(Node(node.op, node.name, node.type, tuple(here[o] for o in node.operands), attrs, node.bodies, node.loc,
                                       origin=node.origin))
    made.params = [here[comparator.params[place]] for place in kept]
    made.root = here[comparator.result()]
    return made


def call_top(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Replace a topk of the largest elements by a call of XLA's runtime function (``TopkRewriter``)."""
    return TopK.of(instr).largest and rewriter.become(instr, hlo.custom_call, instr.operands, {"custom_call_target": "TopK"})


def order_sort(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Expand a stable sort: an unstable one that compares an iota where values tie (``StableSortExpander``, ``SortIotaFusion``)."""
    attrs = Sort.of(instr)
    along = attrs.axis
    if not attrs.is_stable or not instr.bodies or any(
            o.op is hlo.iota and Iota.of(o).iota_dimension == along and o.dtype in ("s16", "s32", "s64") for o in instr.operands):
        return False
    count = rewriter.iota("s32", instr.operands[0].dims, along)
    parts = tuple(o.type for o in instr.operands)
    unstable = {k: v for k, v in instr.attrs.items() if k != "is_stable"}
    made = rewriter.make(hlo.sort, TupleType((*parts, count.type)), (*instr.operands, count), unstable, (_widen(instr.bodies[0]),))
    made.take_label(instr)
    if instr.is_array:
        rewriter.replace(instr, rewriter.element(made, 0))
    else:
        for user in list(instr.users):
            if user.op is hlo.get_tuple_element:
                user.set_operand(0, made)
        if instr.users or rewriter.root is instr:
            rewriter.become(instr, hlo.tuple, [rewriter.element(made, i) for i in range(len(parts))])
    instr.replacement = made
    wrap(rewriter, [count, made], made)
    return True


def _widen(comparator: Graph) -> Graph:
    """A copy of a comparator with two more parameters, which it does not use."""
    made = _narrow(comparator, list(range(len(comparator.params))))
    made.name = f"{comparator.name}.stable"
    for side in ("left", "right"):
        made.params.append(made.add(Node(hlo.parameter, f"{side}.place", tensor_type("s32", ()), (), {"number": len(made.params)})))
    return made
