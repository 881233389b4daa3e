"""Narrow floats: what the CPU cannot compute in bf16 or 8-bit floats is computed wider, between two conversions.

XLA's ``FloatNormalization`` and ``ChangeOpDataType``; in bf16, products and reductions that a library takes stay narrow.
"""
from __future__ import annotations

from irscope.fusion.canonicalise.terms import CONTROL, Body, Term, tensor_type
from irscope.fusion.canonicalise.values import combiner
from irscope.fusion.canonicalise.ynnpack import takes_dot, takes_reduction
from irscope.graph import Graph, Node, TensorType, TupleType, Type
from irscope.ops import hlo

WIDER = {"bf16": "f32", "f8e5m2": "f16", "f8e4m3": "f16", "f8e4m3fn": "f16", "f8e4m3b11fnuz": "f16", "f8e5m2fnuz": "f16",
         "f8e4m3fnuz": "f16", "f8e3m4": "f16", "s4": "s8", "u4": "u8", "f4e2m1fn": "f16", "f8e8m0fnu": "f32"}
"""What each narrow type is computed in."""
PASSES = hlo.named("call conditional custom-call domain get-tuple-element tuple while opt-barrier parameter constant count-leading-zeros "
    "shift-right-logical shift-right-arithmetic bitcast-convert convert fusion after-all")
"""What takes values of any type."""

REDUCTIONS = hlo.named("reduce reduce-window")


def normalise_floats(body: Body) -> None:
    """Compute in a wider type what cannot be computed in a narrow one."""
    for narrow, wide in WIDER.items():
        if any(t.dtype == narrow or any(leaf.dtype.name == narrow for leaf in t.type.leaves() if isinstance(leaf, TensorType))
               for t in body.terms):
            for term in body.post_order():
                _normalise(body, term, narrow, wide)


def _normalise(body: Body, term: Term, narrow: str, wide: str) -> None:
    if term.op in PASSES or term.op in CONTROL:
        return
    if narrow == "bf16" and ((term.op is hlo.dot and takes_dot(term)) or (term.op in REDUCTIONS and takes_reduction(term))):
        return
    if term.op in REDUCTIONS and term.dtype == narrow:
        term.bodies = tuple(_rounding(graph, narrow, wide) for graph in term.bodies)
    for number, operand in enumerate(list(term.operands)):
        if operand.dtype == narrow:
            term.set_operand(number, body.convert(operand, wide, term))
    if term.is_array and term.dtype == narrow:
        _narrow_result(body, term, narrow, wide)
    elif isinstance(term.type, TupleType) and any(isinstance(e, TensorType) and e.dtype.name == narrow for e in term.type.elements):
        _narrow_parts(body, term, narrow, wide)


def _rounding(graph: Graph, narrow: str, wide: str) -> Graph:
    """What combines two narrow values by one operation, over wide ones: each result is rounded."""
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


def _narrow_result(body: Body, term: Term, narrow: str, wide: str) -> None:
    """Give a term the wide type; its readers read it narrowed."""
    users = list(term.users)
    was_root = body.root is term
    term.set_type(tensor_type(wide, term.dims))
    back = body.convert(term, narrow, term)
    for user in users:
        if user.op is hlo.convert and user.dtype == wide:
            body.replace(user, term)
            continue
        user.replace_operand(term, back)
    if was_root:
        body.root = back


def _narrow_parts(body: Body, term: Term, narrow: str, wide: str) -> None:
    assert isinstance(term.type, TupleType)
    elements: list[Type] = [tensor_type(wide, e.dims()) if isinstance(e, TensorType) and e.dtype.name == narrow else e
                            for e in term.type.elements]
    term.set_type(TupleType(tuple(elements)))
    for part in list(term.users):
        if part.op is hlo.get_tuple_element and part.dtype == narrow:
            _narrow_result(body, part, narrow, wide)


def widen_half_products(body: Body) -> None:
    """Products and convolutions of f16 are computed in f32."""
    for term in [t for t in body.terms if t.op in (hlo.dot, hlo.convolution) and t.dtype == "f16"]:
        for number, operand in enumerate(list(term.operands)):
            if operand.dtype == "f16":
                term.set_operand(number, body.convert(operand, "f32", term))
        _narrow_result(body, term, "f16", "f32")
