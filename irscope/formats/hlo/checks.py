"""The checks of XLA's parser on single instructions beyond their attributes: variable operand counts, and required types."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from irscope.formats.hlo.assembly import UNDEFINED, Assembly
from irscope.formats.hlo.faults import (
    ATTRIBUTE_VALUE,
    DEVICES,
    MISPLACED_ATTRIBUTE,
    MISSING_ATTRIBUTE,
    OPERAND_COUNT,
    OPERAND_TYPE,
    RESULT_TYPE,
    Fault,
    Span,
)
from irscope.formats.hlo.types import compatible
from irscope.graph import Node, TensorType, TupleType

Check = Callable[[Assembly, Node], None]
"""Reports what is wrong with an instruction."""


def check(assembly: Assembly, node: Node) -> None:
    """Check one instruction and report what is wrong."""
    for operand in node.operands:
        if operand.op is UNDEFINED:
            return  # already reported; consequences would be noise
    for name in node.attrs.get("control_predecessors", ()):
        assembly.operand(name, node.loc)
    groups = node.attrs.get("replica_groups")
    if groups is not None and not groups.fits:
        dims, devices = "x".join(map(str, groups.dims)), prod(groups.reshape)
        _tell(assembly, node, DEVICES, f"the replica groups of {node.op.name} are {dims}, but made of {devices} devices")
    asks = LOOKS.get(node.op.name)
    if asks is not None:
        spoilt = assembly.faults.spoilt
        asks(assembly, node)
        if assembly.faults.spoilt != spoilt:
            assembly.spoil(node)


def _tell(assembly: Assembly, node: Node, fault: Fault, message: str, help: str = "") -> None:
    assembly.tell(fault, message, Span(node.loc, len(node.name), node.name), help)


def _count(assembly: Assembly, node: Node, ok: bool, wanted: str) -> bool:
    if not ok:
        _tell(assembly, node, OPERAND_COUNT, f"{node.op.name} takes {wanted}, but has {len(node.operands)}")
    return ok


def _rank(node: Node) -> int | None:
    return node.type.rank if isinstance(node.type, TensorType) else None


def _one_dimension(assembly: Assembly, node: Node) -> None:
    dimensions = node.attrs.get("dimensions")
    if dimensions is not None and len(dimensions) != 1:
        _tell(assembly, node, ATTRIBUTE_VALUE, f"{node.op.name} takes one dimension, not {len(dimensions)}")


def _broadcast(assembly: Assembly, node: Node) -> None:
    if "dimensions" not in node.attrs and _rank(node.operands[0]) != 0:
        _tell(assembly, node, MISSING_ATTRIBUTE, "broadcast needs the attribute dimensions, because its operand is not a scalar",
              "dimensions={...} names the result dimension of each operand dimension")


def _tuple(assembly: Assembly, node: Node) -> None:
    if not isinstance(node.type, TupleType):
        if isinstance(node.type, TensorType):
            _tell(assembly, node, RESULT_TYPE, f"tuple gives a tuple, not {node.type}")
    else:
        n = len(node.type.elements)
        _count(assembly, node, len(node.operands) == n, f"{n} operands for its type {node.type}")


def _at_least(least: int, step: int, wanted: str) -> Check:
    """A check of the operand count: ``least``, or more by a multiple of ``step``."""
    def look(assembly: Assembly, node: Node) -> None:
        n = len(node.operands)
        _count(assembly, node, n >= least and (n - least) % step == 0, wanted)
    return look


_some = _at_least(1, 1, "at least one operand")


def _gives(parts: str) -> Check:
    """A check that the result is a tuple with at least one element."""
    def look(assembly: Assembly, node: Node) -> None:
        if not isinstance(node.type, TupleType) or not node.type.elements:
            _tell(assembly, node, RESULT_TYPE, f"{node.op.name} gives a tuple {parts}, not {node.type}")
    return look


def _dynamic_slice(assembly: Assembly, node: Node) -> None:
    fixed = 1 if node.op.name == "dynamic-slice" else 2
    n = len(node.operands)
    if not _count(assembly, node, n >= fixed, f"at least {fixed} operands"):
        return
    rank = _rank(node.operands[0])
    vector = n == fixed + 1 and _rank(node.operands[fixed]) == 1
    if rank is not None and not vector:
        _count(assembly, node, n == fixed + rank, f"{fixed + rank} operands (a start index for each of {rank} dimensions)")


def _conditional(assembly: Assembly, node: Node) -> None:
    if not _count(assembly, node, len(node.operands) >= 1, "a predicate or index, and an operand for each branch"):
        return
    first = node.operands[0].type
    if not isinstance(first, TensorType) or first.shape or first.dtype.name not in ("pred", "s32"):
        _tell(assembly, node, OPERAND_TYPE, f"the first operand of conditional must be pred[] or s32[], not {first}")
        return
    if len(node.operands) != len(node.bodies) + 1:
        _count(assembly, node, False, f"{len(node.bodies) + 1} operands (one for each of {len(node.bodies)} branches after the first)")


def check_branches(assembly: Assembly, node: Node, at: dict[str, int]) -> None:
    """Check that a predicate has true_computation and false_computation, and an index has branch_computations."""
    first = node.operands[0].type if node.operands else None
    if not isinstance(first, TensorType) or first.dtype.name not in ("pred", "s32"):
        return
    pair = ("true_computation", "false_computation")
    wanted, other = (pair, ("branch_computations",)) if first.dtype.name == "pred" else (("branch_computations",), pair)
    for name in other:
        if name in at:
            message = f'unexpected attribute "{name}": the first operand of this conditional is {first}'
            assembly.tell(MISPLACED_ATTRIBUTE, message, Span(at[name], len(name), node.name), f"it takes {' and '.join(wanted)}")
    for name in wanted:
        if name not in at:
            _tell(assembly, node, MISSING_ATTRIBUTE, f"conditional on {first} needs the attribute {name}")


def _done(assembly: Assembly, node: Node) -> None:
    start = node.operands[0]
    if start.op.name in ("send", "recv") and start.attrs.get("channel_id") != node.attrs.get("channel_id"):
        own, other = (n.attrs.get("channel_id", "none") for n in (node, start))
        _tell(assembly, node, ATTRIBUTE_VALUE, f"{node.op.name} names channel {own}, but %{start.name} is on channel {other}",
              "both ends of a transfer carry the same channel_id")


def _permute(assembly: Assembly, node: Node) -> None:
    pairs = node.attrs.get("source_target_pairs", ())
    if any(len(pair) != 2 for pair in pairs):
        _tell(assembly, node, ATTRIBUTE_VALUE, "source_target_pairs lists pairs {source,target}")
    if "slice_sizes" in node.attrs:
        _count(assembly, node, len(node.operands) == 4, "four operands when it has slice_sizes")
    else:
        _some(assembly, node)


def _all_reduce(assembly: Assembly, node: Node) -> None:
    if node.attrs.get("use_global_device_ids") and "channel_id" not in node.attrs and "mode" not in node.attrs:
        _tell(assembly, node, ATTRIBUTE_VALUE, "use_global_device_ids=true needs a channel_id")
    if node.op.name == "reduce-scatter":
        _has_dimension(assembly, node)


def _has_dimension(assembly: Assembly, node: Node) -> None:
    if not node.attrs.get("dimensions", (0,)):
        _tell(assembly, node, ATTRIBUTE_VALUE, f"{node.op.name} takes a dimension, and dimensions={{}} has none")


def _element(assembly: Assembly, node: Node) -> None:
    index = node.attrs.get("index", 0)
    if index < 0:
        _tell(assembly, node, ATTRIBUTE_VALUE, f"elements of a tuple are numbered from 0, and index={index} is none of them")


def _custom_call(assembly: Assembly, node: Node) -> None:
    constraints = node.attrs.get("operand_layout_constraints")
    if constraints is None:
        return
    if len(constraints) != len(node.operands):
        _count(assembly, node, False, f"{len(constraints)} operands, by its operand_layout_constraints,")
        return
    for number, (wanted, operand) in enumerate(zip(constraints, node.operands, strict=True)):
        if not compatible(wanted, operand.type):
            _tell(assembly, node, OPERAND_TYPE,
                  f"operand_layout_constraints want {wanted} for operand {number}, but %{operand.name} is {operand.type}")


def _scan(assembly: Assembly, node: Node) -> None:
    body = node.bodies[0] if node.bodies else None
    if body is not None and not body.notes.get("missing") and len(body.params) != len(node.operands):
        _count(assembly, node, False, f"{len(body.params)} operands, as many as the parameters of {body.name},")
    _one_dimension(assembly, node)
    carries = node.attrs.get("num_carries", 0)
    if not 0 <= carries <= len(node.operands):
        _tell(assembly, node, ATTRIBUTE_VALUE, f"num_carries={carries}, but scan has {len(node.operands)} operands")
        return
    dimensions = node.attrs.get("dimensions") or (0,)
    rank = _rank(node.operands[0]) if len(node.operands) > carries else None
    if dimensions[0] < 0 or (rank is not None and dimensions[0] >= rank):
        _tell(assembly, node, ATTRIBUTE_VALUE, f"scan runs over dimension {dimensions[0]}, but its first operand has {rank} dimensions")


LOOKS: dict[str, Check] = {opcode: check for check, opcodes in (
    (_at_least(2, 2, "an even number of operands: the arrays, then as many start values"), "reduce reduce-window"),
    (_at_least(3, 2, "an odd number of operands: the arrays, the indices, as many updates"), "scatter"),
    (_some, "dynamic-reshape rng-bit-generator"), (_one_dimension, "concatenate sort all-to-all ragged-all-to-all"),
    (_gives("of data and token"), "infeed"), (_gives("(data, u32[], token[])"), "recv"), (_broadcast, "broadcast"), (_tuple, "tuple"),
    (_dynamic_slice, "dynamic-slice dynamic-update-slice"), (_conditional, "conditional"), (_done, "send-done recv-done"),
    (_permute, "collective-permute collective-permute-start"),
    (_all_reduce, "all-reduce all-reduce-start reduce-scatter"),
    (_has_dimension, "all-gather all-gather-start get-dimension-size set-dimension-size"),
    (_element, "get-tuple-element"), (_custom_call, "custom-call"), (_scan, "scan"),
) for opcode in opcodes.split()}
"""The checks by opcode, of instructions that need more than the checks of their attributes."""


def surely_right(opcode: str, attrs: Mapping[str, Any]) -> bool:
    """Whether the attributes alone show that the check of an opcode finds nothing, so that instructions need no check."""
    look, dimensions = LOOKS[opcode], attrs.get("dimensions", (0,))
    if look is _one_dimension:
        return len(dimensions) == 1
    if look is _all_reduce:
        named = "channel_id" in attrs or "mode" in attrs or not attrs.get("use_global_device_ids")
        return named and (opcode != "reduce-scatter" or bool(dimensions))
    if look is _has_dimension:
        return bool(dimensions)
    if look is _element:
        return bool(attrs["index"] >= 0)
    return look is _broadcast and "dimensions" in attrs
