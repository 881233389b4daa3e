"""Equal terms are made one: XLA's ``HloCSE``."""
from __future__ import annotations

from typing import Any

from irscope.fusion.canonicalise.terms import Body, Term, has_effect
from irscope.fusion.canonicalise.values import scalar_of
from irscope.graph import Graph
from irscope.ops import hlo
from irscope.ops.attributes import Constant, Iota

NEVER = hlo.named("parameter rng rng-bit-generator rng-get-and-update-state infeed outfeed send recv while conditional custom-call")
"""What XLA never makes one although it looks alike."""


def share(body: Body) -> bool:
    """Keep the first of each set of equal terms."""
    known: dict[Any, Term] = {}
    graphs: dict[Graph, str] = {}
    changed = False
    for term in body.post_order():
        if term.erased or term.op in NEVER or term.calls or has_effect(term) or (not term.operands and term.op is not hlo.constant):
            continue
        key = _key(term, graphs)
        if key is None:
            continue
        first = known.setdefault(key, term)
        if first is not term:
            body.replace(term, first)
            changed = True
    return changed


def _key(term: Term, graphs: dict[Graph, str]) -> Any:
    if term.op is hlo.constant:
        value = scalar_of(term)
        if value is None or value != value:
            return ("constant", id(Constant.of(term).literal))
        return ("constant", term.type, repr(value))
    return (term.op, term.type, tuple(map(_same, term.operands)), _attrs(term), tuple(_text(g, graphs) for g in term.bodies))


def _same(operand: Term) -> Any:
    """What two operands have in common that count as one: counts alike are kept apart, but not what reads them."""
    return (operand.type, Iota.of(operand).iota_dimension) if operand.op is hlo.iota else id(operand)


def _attrs(term: Term) -> Any:
    return tuple(sorted((k, str(v)) for k, v in term.attrs.items() if k not in ("literal", "control_predecessors", "operand_precision")))


def _text(graph: Graph, graphs: dict[Graph, str]) -> str:
    """What a called computation does, in words that are equal for equal ones."""
    found = graphs.get(graph)
    if found is None:
        places = {node: i for i, node in enumerate(graph.nodes)}
        found = graphs[graph] = " ".join(f"{n.op.name}{n.type}{[places[o] for o in n.operands]}{sorted(map(str, n.attrs.items()))}"
                                         for n in graph.nodes)
    return found
