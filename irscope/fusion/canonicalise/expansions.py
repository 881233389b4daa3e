"""Operators that XLA writes out before it simplifies: the logistic function, batch normalisation, maps."""
from __future__ import annotations

from irscope.fusion.canonicalise.normalisations import expand_normalisations
from irscope.fusion.canonicalise.terms import Body, Term
from irscope.ops import hlo


def expand_operators(body: Body) -> None:
    """Write out what is no instruction of XLA's CPU emitter."""
    for term in [t for t in body.instructions if t.op is hlo.logistic]:
        x = term.operands[0]
        one = body.full(1, term, term)
        lower = body.elementwise(hlo.add, (one, body.elementwise(hlo.exponential, (body.elementwise(hlo.negate, (x,), term),), term)), term)
        body.become(term, hlo.divide, (one, lower))
    expand_normalisations(body)
    for term in [t for t in body.instructions if t.op is hlo.map and t.bodies]:
        _inline(body, term)


def _inline(body: Body, term: Term) -> None:
    """A map of one operator is that operator on arrays (``MapInliner``)."""
    graph = term.bodies[0]
    root, params = graph.result(), list(graph.params)
    if root in params:
        body.replace(term, term.operands[params.index(root)])
    elif root.operands and all(o in params for o in root.operands):
        body.become(term, root.op, [term.operands[params.index(o)] for o in root.operands], root.attrs)
