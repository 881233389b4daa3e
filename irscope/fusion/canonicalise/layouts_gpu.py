"""Layouts of XLA's GPU compiler: it writes every array row by row, so that a transpose is one and a reshape is a bitcast."""
from __future__ import annotations

from irscope.fusion.canonicalise.dimensions import is_sorted
from irscope.fusion.canonicalise.layouts import default_layout
from irscope.fusion.canonicalise.terms import Body, Term


def lay_out(body: Body) -> None:
    """Give every term the default layout; what moves nothing in memory becomes a bitcast (``LayoutNormalization``)."""
    for term in body.post_order():
        if term.op == "reshape" or (term.op == "transpose" and moves_nothing(term)):
            body.replace(term, body.make("bitcast", term.type, term.operands, {}, term))
    for term in body.terms:
        term.set_type(default_layout(term.type))


def moves_nothing(transpose: Term) -> bool:
    """Whether a transpose only moves dimensions of size 1."""
    return is_sorted([d for d in transpose.attrs["dimensions"] if transpose.operands[0].dims[d] != 1])
