"""Sorts: of one element, and of values that nobody reads (XLA's ``SortSimplifier``)."""
from __future__ import annotations

from irscope.fusion.canonicalise.terms import Body, Term
from irscope.graph import Graph, Node, TupleType
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement, Sort, TopK


def sort(body: Body, term: Term) -> bool:
    """Sorting one element changes nothing; values that nobody reads are not sorted along."""
    source = term.operands[0]
    if not source.elements or source.dims[Sort.of(term).axis] > 1:
        return _drop_unread(body, term)
    if len(term.operands) == 1:
        return body.replace(term, source)
    return body.replace(term, body.make(hlo.tuple, term.type, term.operands, {}, term))


def _drop_unread(body: Body, term: Term) -> bool:
    if not isinstance(term.type, TupleType) or body.root is term or not term.bodies:
        return False
    if any(user.op is not hlo.get_tuple_element for user in term.users):
        return False
    compared = {place // 2 for place in _read(term.bodies[0])}
    wanted = compared | {GetTupleElement.of(u).index for u in term.users}
    count = len(term.operands)
    if len(wanted) == count:
        return False
    kept = [place for place in range(count) if place in wanted]
    comparator = _narrowed(term.bodies[0], [place for k in kept for place in (2 * k, 2 * k + 1)])
    operands = [term.operands[place] for place in kept]
    type = operands[0].type if len(kept) == 1 else TupleType(tuple(o.type for o in operands))
    made = body.make(hlo.sort, type, operands, term.attrs, term, (comparator,))
    made.take_label(term)
    for user in list(term.users):
        place = kept.index(GetTupleElement.of(user).index)
        body.replace(user, made if len(kept) == 1 else body.make(hlo.get_tuple_element, user.type, (made,), {"index": place}, user))
    return True


def _read(comparator: Graph) -> list[int]:
    """The numbers of the parameters that a comparator reads."""
    used = {operand for node in comparator.nodes for operand in node.operands} | {comparator.root}
    return [number for number, param in enumerate(comparator.params) if param in used]


def _narrowed(comparator: Graph, kept: list[int]) -> Graph:
    """A comparator with only these parameters; it reads no other."""
    made = Graph(comparator.name, loc=comparator.loc)
    here: dict[Node, Node] = {}
    number_of = {comparator.params[place]: number for number, place in enumerate(kept)}
    for node in comparator.nodes:
        if node in number_of or node not in comparator.params:
            attrs = {**node.attrs, "number": number_of[node]} if node in number_of else node.attrs
            here[node] = made.add(Node(node.op, node.name, node.type, tuple(here[o] for o in node.operands), attrs, node.bodies, node.loc,
                                       origin=node.origin))
    made.params = [here[comparator.params[place]] for place in kept]
    made.root = here[comparator.result()]
    return made


def call_top(body: Body) -> None:
    """The largest elements of rows are the work of a function of XLA's runtime (``TopkRewriter``)."""
    for term in [t for t in body.instructions if t.op is hlo.topk and TopK.of(t).largest]:
        body.become(term, hlo.custom_call, term.operands, {"custom_call_target": "TopK"})
