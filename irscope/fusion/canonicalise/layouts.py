"""Layout assignment: a transpose keeps its elements in place, and a user that needs the default layout reads a copy.

XLA's layout assignment on the CPU gives every array the default layout except results of transposes, which get the layout that
makes the transpose a bitcast; each user that needs the default layout gets a copy. A remaining reshape becomes a bitcast
(``ReshapeDecomposer``); if it puts dimensions of size 1 between others, these become the outermost in memory unless a user requested
the default layout before, which is inferred from the users here. All of this was measured on dumps of jaxlib 0.10.2.
"""
from __future__ import annotations

from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction
from irscope.fusion.canonicalise.values import is_floating
from irscope.fusion.dimensions import inverse, is_sorted
from irscope.fusion.xla.opcodes import ELEMENTWISE
from irscope.graph import Layout, TensorType, TupleType, Type
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Transpose


def assign_layouts(rewriter: HloComputation) -> None:
    """Give every instruction a layout, insert copies after transposes, and turn reshapes into bitcasts."""
    moved: set[HloInstruction] = set()
    for instr in rewriter.post_order():
        rewriter.at = instr
        if instr.op is hlo.transpose and not moves_nothing(instr):
            _copy_for_readers(rewriter, instr)
        elif instr.op is hlo.reshape:
            wants_copy = _moves_units(rewriter, instr)
            made = rewriter.make(hlo.bitcast, instr.type, instr.operands)
            rewriter.replace(instr, made)
            if wants_copy:
                moved.add(made)
                _copy_for_readers(rewriter, made)
    for instr in rewriter.instructions:
        instr.set_type(_layout_with_units_outside(instr) if instr in moved else
                       _transposed_layout(instr) if instr.op is hlo.transpose else default_layout(instr.type))


def _moves_units(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Whether a reshape puts dimensions of size 1 between others, and has users that need the default layout then.

    Those are the root; a gather or scatter, if the other dimensions change too; several elementwise users at once.
    """
    operand = instr.operands[0]
    units = [d for d, n in enumerate(instr.dims) if n == 1]
    if operand.rank < 2 or len(units) <= operand.dims.count(1) or units == list(range(len(units))):
        return False
    if not instr.users:
        return instr is rewriter.root
    if all(user is rewriter.root and user.op is hlo.tuple for user in instr.users):
        return True
    inserted = [n for n in operand.dims if n != 1] == [n for n in instr.dims if n != 1]
    if len(instr.users) == 1:
        return not inserted and all(user.op in (hlo.gather, hlo.scatter) for user in instr.users)
    return is_floating(instr.dtype) and all(user.op in ELEMENTWISE for user in instr.users)


def _layout_with_units_outside(instr: HloInstruction) -> Type:
    """The type of an array with its dimensions of size 1 outermost in memory."""
    assert isinstance(instr.type, TensorType)
    order = sorted(range(instr.rank), key=lambda d: (instr.dims[d] == 1, -d))
    return TensorType(instr.type.dtype, instr.type.shape, Layout(tuple(order)))


def _copy_for_readers(rewriter: HloComputation, instr: HloInstruction) -> None:
    """Insert a separate copy for every user."""
    users = list(instr.users)
    is_root = rewriter.root is instr
    for user in users:
        user.replace_operand(instr, rewriter.make(hlo.copy, instr.type, (instr,)))
    if is_root:
        rewriter.root = rewriter.make(hlo.copy, instr.type, (instr,))


def _transposed_layout(instr: HloInstruction) -> Type:
    """The type of a transpose whose operand has the default layout, with the layout that makes it a bitcast."""
    assert isinstance(instr.type, TensorType)
    back = inverse(Transpose.of(instr).dimensions)
    return TensorType(instr.type.dtype, instr.type.shape, Layout(tuple(back[d] for d in range(instr.rank - 1, -1, -1))))


def default_layout(type: Type) -> Type:
    """The type with arrays in row-major order."""
    if isinstance(type, TensorType):
        return TensorType(type.dtype, type.shape, Layout(tuple(range(type.rank - 1, -1, -1))))
    if isinstance(type, TupleType):
        return TupleType(tuple(default_layout(e) for e in type.elements))
    return type


def lay_out(rewriter: HloComputation) -> None:
    """Give every instruction the default layout; turns what moves nothing in memory into a bitcast (``LayoutNormalization``)."""
    for instr in rewriter.post_order():
        if instr.op is hlo.reshape or (instr.op is hlo.transpose and moves_nothing(instr)):
            rewriter.become(instr, hlo.bitcast, instr.operands)
    for instr in rewriter.instructions:
        instr.set_type(default_layout(instr.type))


def sink_transposes(rewriter: HloComputation) -> bool:
    """Sink transposes of call results below elementwise operations. In XLA such a transpose is a layout at first (``GpuLayoutAssignment``),
    which a user of the result adopts unless another operand has a different layout."""
    called = {t for t in rewriter.instructions if t.op is hlo.transpose and t.operands[0].op is hlo.get_tuple_element
              and t.operands[0].operands[0].op is hlo.custom_call}
    changed = False
    for instr in rewriter.post_order():
        if instr.op not in ELEMENTWISE or not instr.is_array or instr.erased:
            continue
        turned = next((o for o in instr.operands if o in called), None)
        if turned is None or moves_nothing(turned):
            continue
        order = Transpose.of(turned).dimensions
        if not all(_lies_alike(o, order) for o in instr.operands):
            continue
        dims = turned.operands[0].dims
        rewriter.at = instr
        operands = [o.operands[0] if o.op is hlo.transpose else
                    rewriter.broadcast(o.operands[0], dims, [order[d] for d in Broadcast.of(o).dimensions]) for o in instr.operands]
        made = rewriter.like(instr, operands, dims)
        made.take_label(instr)
        back = rewriter.transpose(made, order)
        called.add(back)
        rewriter.replace(instr, back)
        instr.replacement = made
        changed = True
    return changed


def _lies_alike(operand: HloInstruction, order: tuple[int, ...]) -> bool:
    if operand.op is hlo.broadcast:
        return is_sorted([order[d] for d in Broadcast.of(operand).dimensions])
    return operand.op is hlo.transpose and Transpose.of(operand).dimensions == order


def moves_nothing(transpose: HloInstruction) -> bool:
    """Whether a transpose moves only dimensions of size 1."""
    return is_sorted([d for d in Transpose.of(transpose).dimensions if transpose.operands[0].dims[d] != 1])
