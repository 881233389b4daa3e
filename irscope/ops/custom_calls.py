"""Custom calls: the meaning of known target functions.

A known target expands to other operators (``expand``): an annotation to its operand, ``TopK`` to topk, LAPACK and GPU libraries to
factorizations, contractions and convolutions. An unknown one stays, as an opaque node with its name and declared type.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from irscope.graph import Builder, Node, Op, TensorType, TupleType, Type
from irscope.graph.dtypes import U64
from irscope.graph.node import Run
from irscope.lazy import Array
from irscope.ops import infer, lapack, vendor_calls
from irscope.ops.attributes import CustomCall
from irscope.ops.calls import WrittenCall
from irscope.ops.faults import TypeFault
from irscope.ops.registry import declare, get
from irscope.ops.shapes import fits
from irscope.source import UserError

Meaning = Callable[[WrittenCall], Node | None]


def _same(call: WrittenCall) -> Node | None:
    """An annotation: the value of the operand, or the tuple of the operands."""
    if not _keeps(call.node, [o.type for o in call.operands]):
        return None
    return call.operands[0] if fits(call.operands[0].type, call.node.type) else call.add("tuple", call.operands, {}, call.node.type)


def _keeps(node: Node, given: Sequence[Type]) -> bool:
    """Whether a call returns its operand, or its operands as a tuple, as far as the types show."""
    t = node.type
    if given and fits(given[0], t):
        return True
    return isinstance(t, TupleType) and len(t.elements) == len(given) and all(map(fits, given, t.elements))


def _topk(call: WrittenCall) -> Node | None:
    t = call.node.type
    if not isinstance(t, TupleType) or len(t.elements) != 2 or not isinstance(t.elements[0], TensorType):
        return None
    return call.add("topk", call.operands[:1], {"k": t.elements[0].dims()[-1], "largest": True}, t)


def _approx_top_k(call: WrittenCall) -> Node | None:
    """The exact answer: the first elements of the sorted operands. Approximate ones are for TPUs alone."""
    options, count = call.options(), len(call.operands) // 2
    k, dim = options["top_k"], options["reduction_dim"]
    types = call.types()
    if not call.node.bodies or len(types) != count or any(t.dims()[dim] != k for t in types):
        return None
    attrs = {"dimensions": (dim,), "is_stable": True}
    made = call.builder.add(get("sort"), call.operands[:count], attrs, bodies=call.node.bodies)
    sorted_ = [made] if count == 1 else [call.element(made, i) for i in range(count)]
    first = [call.add("slice", [x], {"slice": tuple((0, size, 1) for size in t.dims())}, t) for x, t in zip(sorted_, types, strict=True)]
    return call.result(first)


_ANNOTATIONS = """
Sharding SPMDFullToShardShape SPMDShardToFullShape ShardBarrierFrom ShardBarrierTo LayoutConstraint AssumeGatherIndicesInBound
xla.sdy.FuncResultSharding xla.sdy.GlobalToLocalShape xla.sdy.LocalToGlobalShape xla.sdy.Sharding xla.sdy.ShardingGroup
xla.sdy.PropagationBarrier annotate_device_placement MoveToDevice MoveToHost PinToDevice PinToDeviceSram PinToHost
__xla_internal_call_marker_before
__xla_internal_call_marker_after
""".split()

MEANINGS: Mapping[str, Meaning] = {
    **dict.fromkeys(_ANNOTATIONS, _same),
    "TopK": _topk,
    "ApproxTopK": _approx_top_k,
    **lapack.MEANINGS,
    **vendor_calls.MEANINGS,
}
"""The expansion of each known target; it returns None where it does not support the form of a call."""


def target_of(node: Node) -> str:
    """The name of the function that a custom call calls."""
    return CustomCall.of(node).custom_call_target


def _custom_call_type(node: Node) -> Type:
    target = target_of(node)
    if target == "GetRngSeed":
        if node.operands:
            raise TypeFault(f"custom-call to GetRngSeed must have 0 operands, but has {len(node.operands)}")
        if not isinstance(node.type, TensorType) or node.type.dtype is not U64:
            raise TypeFault(f"custom-call to GetRngSeed must return U64 type, but is declared {infer.plain(node.type)}")
    pairs = len(CustomCall.of(node).output_to_operand_aliasing)
    if target in ("Pin", "Unpin") and pairs != 1:
        raise TypeFault(f"custom-call to {target} must have one output-to-operand aliasing pair, but has {pairs}")
    return infer.plain(node.type)


def _custom_call_expand(builder: Builder, node: Node, operands: Sequence[Node], raw: Mapping[str, str]) -> Node | None:
    meaning = MEANINGS.get(target_of(node))
    if meaning is None or (meaning is not _same and not all(isinstance(o.type, TensorType) for o in operands)):
        return None
    try:
        return meaning(WrittenCall(builder, node, operands, raw))
    except (TypeFault, AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError):
        return None  # the library's configuration is external text: this form of it is not supported


def _custom_call_reference(run: Run, node: Node, *operands: Array) -> object:
    """Runs annotations only: they may also occur in the bodies of reducers, which are run unexpanded."""
    if MEANINGS.get(target_of(node)) is not _same or not _keeps(node, [o.type for o in node.operands]):
        raise UserError(f"%{node.name} = custom-call(...) cannot be run: irscope knows no values for it")
    return operands[0] if fits(node.operands[0].type, node.type) else tuple(operands)


def _custom_call_cost(node: Node) -> float:
    cost = _COSTS.get(target_of(node))
    return cost(node) if cost is not None else 0.0


_COSTS: Mapping[str, Callable[[Node], float]] = {**lapack.COSTS, **vendor_calls.COSTS}


custom_call = declare(Op(
    "custom-call", doc="An external function, by name. Annotations, LAPACK and GPU libraries are known; others keep their declared type.",
    infer=_custom_call_type, reference=_custom_call_reference, expand=_custom_call_expand, cost=_custom_call_cost,
    acts=lambda node: CustomCall.of(node).custom_call_has_side_effect))

