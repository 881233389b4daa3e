"""Float normalisation: computes in a wider type, between two conversions, what the CPU cannot compute in bf16 or 8-bit floats.

XLA's ``FloatNormalization`` and ``ChangeOpDataType``; in bf16, dots and reductions that a library computes stay narrow.
"""
from __future__ import annotations

from irscope.fusion.canonicalise.computation import CONTROL, HloComputation, HloInstruction, tensor_type
from irscope.fusion.canonicalise.values import combiner, is_floating
from irscope.fusion.canonicalise.ynnpack import takes
from irscope.graph import Graph, Node, TensorType, TupleType
from irscope.ops import hlo

WIDER = {"bf16": "f32", "f8e5m2": "f16", "f8e4m3": "f16", "f8e4m3fn": "f16", "f8e4m3b11fnuz": "f16", "f8e5m2fnuz": "f16",
         "f8e4m3fnuz": "f16", "f8e3m4": "f16", "s4": "s8", "u4": "u8", "f4e2m1fn": "f16", "f8e8m0fnu": "f32"}
"""The type in which each narrow type is computed."""
PASSES = hlo.named("call conditional custom-call domain get-tuple-element tuple while opt-barrier parameter constant count-leading-zeros "
    "shift-right-logical shift-right-arithmetic bitcast-convert convert fusion after-all")
"""Operators that accept values of any type."""

NARROW = hlo.named("abs negate sign clamp maximum minimum select broadcast concatenate copy dynamic-slice dynamic-update-slice gather pad "
    "reshape reverse scatter slice sort transpose")
"""Operators that jaxlib 0.11.2 and later compute in bf16, and 0.10.2 and earlier in f32."""
REDUCTIONS = hlo.named("reduce reduce-window")


def normalise_floats(rewriter: HloComputation) -> None:
    """Float normalisation: compute in a wider type what is not supported in a narrow one."""
    for narrow, wide in WIDER.items():
        if any(t.dtype == narrow if t.is_array else
               any(leaf.dtype.name == narrow for leaf in t.type.leaves() if isinstance(leaf, TensorType)) for t in rewriter.instructions):
            for instr in rewriter.post_order():
                rewriter.at = instr
                _normalise(rewriter, instr, narrow, wide)


def _normalise(rewriter: HloComputation, instr: HloInstruction, narrow: str, wide: str) -> None:
    if instr.op in PASSES or instr.op in CONTROL:
        return
    if narrow == "bf16" and ((instr.op in NARROW and rewriter.rewriting.keeps_narrow)
                             or ((instr.op is hlo.dot or instr.op in REDUCTIONS) and takes(rewriter.rewriting.library, instr))):
        return
    if instr.op in REDUCTIONS and instr.dtype == narrow:
        instr.bodies = tuple(_rounding(graph, narrow, wide) for graph in instr.bodies)
    for number, operand in enumerate(list(instr.operands)):
        if operand.dtype == narrow:
            instr.set_operand(number, rewriter.convert(operand, wide))
    if instr.is_array and instr.dtype == narrow:
        _narrow_result(rewriter, instr, narrow, wide)
    elif isinstance(instr.type, TupleType) and any(isinstance(e, TensorType) and e.dtype.name == narrow for e in instr.type.elements):
        elements = [tensor_type(wide, e.dims()) if isinstance(e, TensorType) and e.dtype.name == narrow else e for e in instr.type.elements]
        instr.set_type(TupleType(tuple(elements)))
        for part in list(instr.users):
            if part.op is hlo.get_tuple_element and part.dtype == narrow:
                _narrow_result(rewriter, part, narrow, wide)


def _rounding(graph: Graph, narrow: str, wide: str) -> Graph:
    """The reducer of two narrow values by one operation, on wide ones: it rounds each result."""
    op = combiner(graph)
    if not op:
        return graph
    type = tensor_type(wide, ())
    made = Graph("rounding")
    made.params = [made.add(Node(hlo.parameter, name, type, (), {"number": i})) for i, name in enumerate(("x", "y"))]
    both = made.add(Node(op, "both", type, tuple(made.params)))
    rounded = made.add(Node(hlo.convert, "rounded", tensor_type(narrow, ()), (both,)))
    made.root = made.add(Node(hlo.convert, "result", type, (rounded,)))
    return made


def _narrow_result(rewriter: HloComputation, instr: HloInstruction, narrow: str, wide: str) -> None:
    """Widen the result of an instruction, and narrow it again for its users."""
    users = list(instr.users)
    was_root = rewriter.root is instr
    rewriter.at = instr
    instr.set_type(tensor_type(wide, instr.dims))
    back = rewriter.convert(instr, narrow)
    for user in users:
        if user.op is hlo.convert and user.dtype == wide:
            rewriter.replace(user, instr)
            continue
        user.replace_operand(instr, back)
    if was_root:
        rewriter.root = back


def widen_half_product(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Compute a dot or convolution of f16 in f32."""
    if instr.dtype != "f16":
        return False
    for number, operand in enumerate(list(instr.operands)):
        if operand.dtype == "f16":
            instr.set_operand(number, rewriter.convert(operand, "f32"))
    _narrow_result(rewriter, instr, "f16", "f32")
    return True


def join_conversions(rewriter: HloComputation) -> None:
    """Merge consecutive conversions between floats (``SimplifyFPConversions``)."""
    for instr in rewriter.post_order():
        if instr.op is not hlo.convert or instr.erased or not is_floating(instr.dtype):
            continue
        source = instr
        while source.op is hlo.convert and is_floating(source.operands[0].dtype):
            source = source.operands[0]
        if source is not instr and source is not instr.operands[0]:
            rewriter.at = instr
            rewriter.replace(instr, rewriter.convert(source, instr.dtype))
