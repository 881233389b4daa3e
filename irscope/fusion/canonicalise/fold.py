"""Constant folding: computes what depends on constants alone (XLA's ``HloConstantFolding``)."""
from __future__ import annotations

from typing import Any

from irscope.analysis.reference import evaluate
from irscope.expand import expand
from irscope.formats.hlo.dialect import HLO
from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction, has_effect
from irscope.fusion.canonicalise.values import array_of
from irscope.graph import Graph, Module, Node, TensorType
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast
from irscope.ops.attrs import Literal
from irscope.ops.faults import TypeFault
from irscope.source import UserError

MAX_FOLDED = 1 << 16
"""Elements of the largest result that is folded here; XLA folds up to 45 million."""
KEPT = hlo.named("broadcast iota constant parameter tuple get-tuple-element call fusion while conditional fft custom-call rng")


def fold_constants(rewriter: HloComputation) -> bool:
    """Constant folding: replace instructions over constants by their values."""
    changed = False
    for instr in rewriter.post_order():
        if instr.erased or instr.op in KEPT or not instr.operands or not instr.is_array or instr.elements > MAX_FOLDED or has_effect(instr):
            continue
        if not any(o.op is hlo.constant for o in instr.operands) or not all(_is_known(o) for o in instr.operands):
            continue
        value = value_of(instr)
        if value is not None:
            rewriter.become(instr, hlo.constant, (), {"literal": Literal.of(value, instr.type)})
            changed = True
    return changed


def _is_known(operand: HloInstruction) -> bool:
    """Whether an instruction is a constant, or a broadcast constant."""
    return operand.op is hlo.constant or (operand.op is hlo.broadcast and operand.operands[0].op is hlo.constant)


def _array(operand: HloInstruction) -> Any:
    if operand.op is not hlo.broadcast:
        return array_of(operand)
    source = operand.operands[0]
    array = array_of(source)
    if array is None or operand.elements > MAX_FOLDED:
        return None
    spread = dict(zip(Broadcast.of(operand).dimensions, source.dims, strict=True))
    return np.broadcast_to(array.reshape([spread.get(d, 1) for d in range(operand.rank)]), operand.dims)


def value_of(instr: HloInstruction) -> Any:
    """The value of an instruction over constants; None if the text elides one, or if it cannot be computed here."""
    graph = Graph("main")
    sources: list[Node] = []
    for operand in instr.operands:
        array = _array(operand)
        if array is None:
            return None
        node = Node(hlo.constant, f"c{len(sources)}", operand.type, (), {"literal": Literal.of(array, operand.type)})
        sources.append(graph.add(node))
    node = Node(instr.op, "r", instr.type, tuple(sources), instr.attrs, instr.bodies)
    graph.root = graph.add(node)
    assert isinstance(instr.type, TensorType)
    try:
        value = evaluate(expand(Module("folded", HLO, {"main": graph}, "main")).main(), [])
    except (UserError, TypeFault):
        return None
    return value.astype(instr.type.dtype.numpy()) if getattr(value, "shape", None) == instr.dims else None
