"""Layouts of XLA's GPU compiler: it writes every array row by row, so that a transpose is one and a reshape is a bitcast."""
from __future__ import annotations

from irscope.fusion.canonicalise.layouts import default_layout
from irscope.fusion.canonicalise.terms import Body, Term
from irscope.fusion.dimensions import is_sorted
from irscope.fusion.xla.opcodes import ELEMENTWISE
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Transpose


def lay_out(body: Body) -> None:
    """Give every term the default layout; what moves nothing in memory becomes a bitcast (``LayoutNormalization``)."""
    for term in body.post_order():
        if term.op is hlo.reshape or (term.op is hlo.transpose and moves_nothing(term)):
            body.replace(term, body.make(hlo.bitcast, term.type, term.operands, {}, term))
    for term in body.instructions:
        term.set_type(default_layout(term.type))


def sink_transposes(body: Body) -> bool:
    """Elementwise work on the result of a call is done as cuDNN gives it, and transposed then: what is called a transpose is a layout
    first (``GpuLayoutAssignment``), and what reads it takes it over, where nothing else that it reads lies otherwise."""
    called = {t for t in body.instructions if t.op is hlo.transpose and t.operands[0].op is hlo.get_tuple_element
              and t.operands[0].operands[0].op is hlo.custom_call}
    changed = False
    for term in body.post_order():
        if term.op not in ELEMENTWISE or not term.is_array or term.erased:
            continue
        turned = next((o for o in term.operands if o in called), None)
        if turned is None or moves_nothing(turned):
            continue
        order = Transpose.of(turned).dimensions
        if not all(_lies_alike(o, order) for o in term.operands):
            continue
        dims = turned.operands[0].dims
        operands = [_as_it_lies(body, o, order, dims, term) for o in term.operands]
        made = body.like(term, operands, dims)
        made.take_label(term)
        back = body.transpose(made, order, term)
        called.add(back)
        body.replace(term, back)
        term.replacement = made
        changed = True
    return changed


def _lies_alike(operand: Term, order: tuple[int, ...]) -> bool:
    if operand.op is hlo.broadcast:
        return is_sorted([order[d] for d in Broadcast.of(operand).dimensions])
    return operand.op is hlo.transpose and Transpose.of(operand).dimensions == order


def _as_it_lies(body: Body, operand: Term, order: tuple[int, ...], dims: tuple[int, ...], at: Term) -> Term:
    if operand.op is hlo.transpose:
        return operand.operands[0]
    return body.broadcast(operand.operands[0], dims, [order[d] for d in Broadcast.of(operand).dimensions], at)


def moves_nothing(transpose: Term) -> bool:
    """Whether a transpose only moves dimensions of size 1."""
    return is_sorted([d for d in Transpose.of(transpose).dimensions if transpose.operands[0].dims[d] != 1])
