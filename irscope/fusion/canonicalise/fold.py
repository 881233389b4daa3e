"""What depends on constants alone is computed: XLA's ``HloConstantFolding``."""
from __future__ import annotations

from typing import Any

from irscope.analysis.reference import evaluate
from irscope.expand import expand
from irscope.formats.hlo.dialect import HLO
from irscope.fusion.canonicalise.terms import Body, Term, has_effect
from irscope.fusion.canonicalise.values import array_of
from irscope.graph import Graph, Module, Node, TensorType
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast
from irscope.ops.attrs import Literal
from irscope.source import UserError

MAX_FOLDED = 1 << 16
"""Elements of a result up to which it is computed here; XLA computes more, up to 45 million."""
KEPT = hlo.named("broadcast iota constant parameter tuple get-tuple-element call fusion while conditional fft custom-call rng")


def fold_constants(body: Body) -> bool:
    """Replace terms over constants by their values."""
    changed = False
    for term in body.post_order():
        if term.erased or term.op in KEPT or not term.operands or not term.is_array or term.elements > MAX_FOLDED or has_effect(term):
            continue
        if not any(o.op is hlo.constant for o in term.operands) or not all(_is_known(o) for o in term.operands):
            continue
        value = value_of(term)
        if value is not None:
            literal = Literal.of(value, term.type)
            body.replace(term, body.make(hlo.constant, term.type, (), {"literal": literal}, term))
            changed = True
    return changed


def _is_known(operand: Term) -> bool:
    """Whether a term is a constant, or one repeated."""
    return operand.op is hlo.constant or (operand.op is hlo.broadcast and operand.operands[0].op is hlo.constant)


def _array(operand: Term) -> Any:
    if operand.op is not hlo.broadcast:
        return array_of(operand)
    source = operand.operands[0]
    array = array_of(source)
    if array is None or operand.elements > MAX_FOLDED:
        return None
    spread = dict(zip(Broadcast.of(operand).dimensions, source.dims, strict=True))
    return np.broadcast_to(array.reshape([spread.get(d, 1) for d in range(operand.rank)]), operand.dims)


def value_of(term: Term) -> Any:
    """What a term over constants gives; None where the text elides one, or it cannot be computed here."""
    graph = Graph("main")
    sources: list[Node] = []
    for operand in term.operands:
        array = _array(operand)
        if array is None:
            return None
        node = Node(hlo.constant, f"c{len(sources)}", operand.type, (), {"literal": Literal.of(array, operand.type)})
        sources.append(graph.add(node))
    node = Node(term.op, "r", term.type, tuple(sources), term.attrs, term.bodies)
    graph.root = graph.add(node)
    assert isinstance(term.type, TensorType)
    try:
        value = evaluate(expand(Module("folded", HLO, {"main": graph}, "main")).main(), [])
    except (UserError, ValueError):
        return None
    return value.astype(term.type.dtype.numpy()) if getattr(value, "shape", None) == term.dims else None
