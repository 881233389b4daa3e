"""What layouts cost: a transpose keeps its elements where they are, and whoever wants them in order reads a copy.

XLA's layout assignment on the CPU gives every array the default layout but the results of transposes, which get the layout in which the
transpose moves nothing; each reader that needs the default layout gets a copy. A reshape that is left is a bitcast then
(``ReshapeDecomposer``); where it puts dimensions of size 1 between others, these become the outermost in memory unless a reader has asked
for the default layout before, which is not followed but told by the readers. All measured on the dumps of jaxlib 0.10.2.
"""
from __future__ import annotations

from irscope.fusion.canonicalise.terms import Body, Term
from irscope.fusion.canonicalise.values import is_floating
from irscope.fusion.dimensions import inverse, is_sorted
from irscope.fusion.xla.opcodes import ELEMENTWISE
from irscope.graph import Layout, TensorType, TupleType, Type
from irscope.ops import hlo
from irscope.ops.attributes import Transpose


def assign_layouts(body: Body) -> None:
    """Give every term a layout, put copies behind transposes, and make reshapes bitcasts."""
    moved: dict[Term, None] = {}
    for term in body.post_order():
        if term.op is hlo.transpose:
            _copy_out(body, term)
        elif term.op is hlo.reshape:
            wants_copy = _moves_units(body, term)
            made = body.make(hlo.bitcast, term.type, term.operands, {}, term)
            body.replace(term, made)
            if wants_copy:
                moved[made] = None
                _copy_for_readers(body, made)
    for term in body.terms:
        if term in moved:
            term.set_type(_units_outside(term))
        else:
            term.set_type(_transposed(term) if term.op is hlo.transpose else default_layout(term.type))


def _moves_units(body: Body, term: Term) -> bool:
    """Whether a reshape puts dimensions of size 1 between others, for readers that want the default layout then.

    Those are the result of the computation; a gather or scatter, where the other dimensions change too; several at once that compute.
    """
    operand = term.operands[0]
    units = [d for d, n in enumerate(term.dims) if n == 1]
    if operand.rank < 2 or len(units) <= operand.dims.count(1) or units == list(range(len(units))):
        return False
    if not term.users:
        return term is body.root
    if all(user is body.root and user.op is hlo.tuple for user in term.users):
        return True
    inserted = [n for n in operand.dims if n != 1] == [n for n in term.dims if n != 1]
    if len(term.users) == 1:
        return not inserted and all(user.op in (hlo.gather, hlo.scatter) for user in term.users)
    return is_floating(term.dtype) and all(user.op in ELEMENTWISE for user in term.users)


def _units_outside(term: Term) -> Type:
    """The type of an array whose dimensions of size 1 are the outermost in memory."""
    assert isinstance(term.type, TensorType)
    inner = [d for d in range(term.rank - 1, -1, -1) if term.dims[d] != 1]
    return TensorType(term.type.dtype, term.type.shape, Layout((*inner, *(d for d in range(term.rank - 1, -1, -1) if term.dims[d] == 1))))


def _copy_out(body: Body, term: Term) -> None:
    order = [d for d in Transpose.of(term).dimensions if term.operands[0].dims[d] != 1]
    if is_sorted(order):
        return
    _copy_for_readers(body, term)


def _copy_for_readers(body: Body, term: Term) -> None:
    """Give every reader a copy of its own."""
    users = list(term.users)
    is_root = body.root is term
    for user in users:
        user.replace_operand(term, body.make(hlo.copy, term.type, (term,), {}, term))
    if is_root:
        body.root = body.make(hlo.copy, term.type, (term,), {}, term)


def _transposed(term: Term) -> Type:
    """The type of a transpose whose operand has the default layout, with the layout in which nothing moves."""
    assert isinstance(term.type, TensorType)
    back = inverse(Transpose.of(term).dimensions)
    return TensorType(term.type.dtype, term.type.shape, Layout(tuple(back[d] for d in range(term.rank - 1, -1, -1))))


def default_layout(type: Type) -> Type:
    """The type with arrays in row-major order."""
    if isinstance(type, TensorType):
        return TensorType(type.dtype, type.shape, Layout(tuple(range(type.rank - 1, -1, -1))))
    if isinstance(type, TupleType):
        return TupleType(tuple(default_layout(e) for e in type.elements))
    return type
