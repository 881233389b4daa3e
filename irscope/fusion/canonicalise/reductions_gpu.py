"""What XLA's GPU compiler does to reductions, sorts and conversions when all else is simplified."""
from __future__ import annotations

from math import prod

from irscope.fusion.canonicalise.terms import Body, tensor_type
from irscope.fusion.canonicalise.values import is_floating
from irscope.fusion.canonicalise.ynnpack import wrap
from irscope.graph import Graph, Node, TupleType
from irscope.ops import hlo
from irscope.ops.attributes import Iota, Reduce, Sort

SMALL = 8
"""Elements of the longest stretch up to which a reduction of several stretches stays one (``ReductionSplitter``)."""


def split_apart(body: Body) -> None:
    """A reduction over dimensions that do not lie together is one over the longest stretch and one over the rest."""
    pending = [t for t in body.instructions if t.op is hlo.reduce and t.is_array]
    while pending:
        term = pending.pop()
        source, init = term.operands
        reduced = set(Reduce.of(term).dimensions)
        stretches: list[list[int]] = [[]]
        for d, size in enumerate(source.dims):
            if d in reduced:
                stretches[-1].append(d)
            elif size != 1 and stretches[-1]:
                stretches.append([])
        stretches = [s for s in stretches if prod(source.dims[d] for d in s) > 1]
        longest = max(stretches, key=lambda s: prod(source.dims[d] for d in s), default=[])
        if len(stretches) < 2 or prod(source.dims[d] for d in longest) <= SMALL:
            continue
        left = [d for d in range(source.rank) if d not in longest]
        first = body.make(hlo.reduce, tensor_type(term.dtype, [source.dims[d] for d in left]), (source, init),
                          {**term.attrs, "dimensions": tuple(longest)}, term, term.bodies)
        rest = tuple(i for i, d in enumerate(left) if d in reduced)
        last = body.make(hlo.reduce, term.type, (first, init), {**term.attrs, "dimensions": rest}, term, term.bodies)
        body.replace(term, last)
        pending.append(last)


def order_sorts(body: Body) -> None:
    """A stable sort compares places too, where values are equal; it counts them itself (``StableSortExpander``, ``SortIotaFusion``)."""
    for term in [t for t in body.instructions if t.op is hlo.sort and Sort.of(t).is_stable]:
        along = Sort.of(term).axis
        source = term.operands[0]
        if any(o.op is hlo.iota and Iota.of(o).iota_dimension == along and o.dtype in ("s16", "s32", "s64") for o in term.operands) or \
                not term.bodies:
            continue
        count = body.make(hlo.iota, tensor_type("s32", source.dims), (), {"iota_dimension": along}, term)
        parts = tuple(o.type for o in term.operands)
        attrs = {k: v for k, v in term.attrs.items() if k != "is_stable"}
        made = body.make(hlo.sort, TupleType((*parts, count.type)), (*term.operands, count), attrs, term, (_wider(term.bodies[0]),))
        made.take_label(term)
        if term.is_array:
            body.replace(term, body.make(hlo.get_tuple_element, term.type, (made,), {"index": 0}, term))
        else:
            for user in list(term.users):
                if user.op is hlo.get_tuple_element:
                    user.set_operand(0, made)
            if term.users or body.root is term:
                whole = [body.make(hlo.get_tuple_element, part, (made,), {"index": i}, term) for i, part in enumerate(parts)]
                body.replace(term, body.make(hlo.tuple, term.type, whole, {}, term))
        term.replacement = made
        wrap(body, [count, made], made)


def _wider(comparator: Graph) -> Graph:
    """A comparator with two more parameters, which it does not read."""
    made = Graph(f"{comparator.name}.stable")
    here: dict[Node, Node] = {}
    for node in comparator.nodes:
        here[node] = made.add(Node(node.op, node.name, node.type, tuple(here[o] for o in node.operands), node.attrs, node.bodies, node.loc))
    made.params = [here[p] for p in comparator.params]
    for side in ("left", "right"):
        made.params.append(made.add(Node(hlo.parameter, f"{side}.place", tensor_type("s32", ()), (), {"number": len(made.params)})))
    made.root = here[comparator.result()]
    return made


def join_conversions(body: Body) -> None:
    """A float that is converted to a float and on to another is converted at once (``SimplifyFPConversions``)."""
    for term in body.post_order():
        if term.op is not hlo.convert or term.erased or not is_floating(term.dtype):
            continue
        source = term
        while source.op is hlo.convert and is_floating(source.operands[0].dtype):
            source = source.operands[0]
        if source is not term and source is not term.operands[0]:
            body.replace(term, body.convert(source, term.dtype, term))
