"""The dimension orders that the readers of a value prefer."""
from __future__ import annotations

from irscope.fusion import Group
from irscope.fusion.drafts import dims_of
from irscope.fusion.views import VIEWS, Chain, Permute, Repeat, Reshape, Strides, access, before
from irscope.graph import Node
from irscope.lower.storage import LayoutConstraint

Order = tuple[int, ...]


def order_for(view: Node) -> Order | None:
    """The dimension order of a stored value that saves the copy of a view of it; None where no copy is needed, or no order saves it."""
    chain: Chain | None = None
    node = view
    while node.op in VIEWS:
        chain, node = Chain(node, chain), node.operands[0]
    return _order_over(node, chain, dims_of(view)) if access(chain, node) is None else None


def orders_of_reads(group: Group) -> dict[Node, set[Order]]:
    """For each input that a map reads element by element, the orders in which its loops traverse it (none: no order is better)."""
    found: dict[Node, set[Order]] = {}
    inside = set(group.nodes)
    seen: set[tuple[Node, Chain | None]] = set()
    stack: list[tuple[Node, Chain | None]] = [(node, group.chains.get(node)) for node in group.outputs]
    while stack:
        want = stack.pop()
        if want in seen:
            continue
        seen.add(want)
        node, chain = want
        if node not in inside:
            orders = found.setdefault(node, set())
            order = _order_over(node, chain, group.space)
            if order is not None:
                orders.add(order)
        elif node.op in VIEWS:
            stack.append((node.operands[0], Chain(node, chain)))
        elif node.op.scalar is not None:
            stack.extend((o, chain if dims_of(o) == dims_of(node) else Chain(Repeat(group.space))) for o in node.operands)
    return found


def dense_order(strides: Strides) -> Order | None:
    """The dimensions from the slowest to the fastest, where strides describe an array without gaps; None otherwise."""
    order = tuple(sorted(range(len(strides.strides)), key=lambda d: (-strides.strides[d], d)))
    dense, _, _ = LayoutConstraint.dense(order).layout(strides.shape)
    return order if all(a == b or n == 1 for a, b, n in zip(dense, strides.strides, strides.shape)) else None


def _order_over(node: Node, chain: Chain | None, space: tuple[int, ...]) -> Order | None:
    """The order of a node's dimensions in which loops over a space traverse it; None where they repeat or skip elements."""
    walk = access(chain, node)
    if walk is not None and walk.is_plain():
        return tuple(range(len(dims_of(node))))
    wanted: Strides | None = Strides.plain(space)
    for step in reversed(list(chain or ())):
        if wanted is None or isinstance(step, Repeat | Reshape):
            return None
        if isinstance(step, Permute):
            wanted = wanted.transposed([step.order.index(d) for d in range(len(step.order))])
        else:
            wanted = before(step, wanted)
    return None if wanted is None else dense_order(wanted)
