"""Layer normalisation and root-mean-square normalisation."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.graph import Graph, Node, Op
from irscope.lint.patterns.composite import Composite, Odd
from irscope.lint.patterns.parts import NEAR, axes_text, readers, squared, summed, terms
from irscope.lint.values import SPREADS, behind, cone, dims, number, reduces
from irscope.lint.view import ModuleView
from irscope.ops import hlo
from irscope.ops.attributes import Reduce

LAYER, RMS = "layer normalisation", "RMS normalisation"
ADDS = hlo.named("add maximum")
"""How a small number is put under a root."""


def found(view: ModuleView) -> Iterator[Composite]:
    """Every division of a value, or of its difference from its mean, by the root of its mean square."""
    for root, graph in view.primitives(hlo.rsqrt, hlo.sqrt):
        if root.operands and graph not in view.inlined:
            yield from _behind(view, graph, root)


def _behind(view: ModuleView, graph: Graph, root: Node) -> Iterator[Composite]:
    at, inside = _without_epsilon(behind(root.operands[0], SPREADS))
    spread, count = summed(at)
    if spread is None:
        return
    x = squared(spread.operands[0])
    if x is None:
        return
    result, outside = _normalised(view, graph, root, x)
    if result is None:
        return
    if x.op is hlo.subtract and len(x.operands) == 2:
        mean = next((n for n in cone(x.operands[1], NEAR) if reduces(n, hlo.add) and dims(n.operands[0]) == dims(x)), None)
        if mean is None or behind(mean.operands[0], SPREADS) is not behind(x.operands[0], SPREADS):
            return
        odd = _other_axes(mean, spread) or _odd_root(root, inside, outside) or _odd_count(root, spread, count)
        yield Composite(LAYER, graph, result, (root, mean, spread), odd)
    elif count > 1:
        yield Composite(RMS, graph, result, (root, spread), _odd_root(root, inside, outside) or _odd_count(root, spread, count))


def _without_epsilon(node: Node) -> tuple[Node, bool]:
    """The mean square under a root, and whether a small number is added to it."""
    if node.op in ADDS and len(node.operands) == 2 and any(number(o) is not None for o in node.operands):
        return next((o for o in node.operands if number(o) is None), node.operands[0]), True
    return node, False


def _normalised(view: ModuleView, graph: Graph, root: Node, x: Node) -> tuple[Node | None, Node | None]:
    """Where the value is divided by the root, and what adds to the root before, if anything does."""
    outside = None
    for user, operand in readers(view, graph, root):
        if user.op is hlo.add and root.op is hlo.sqrt and any(number(o) is not None for o in user.operands):
            outside = user
            for behind_it, by in readers(view, graph, user):
                if _divides(behind_it, by, x, hlo.sqrt):
                    return behind_it, outside
        elif _divides(user, operand, x, root.op):
            return user, None
    return None, None


def _divides(user: Node, operand: Node, x: Node, root: Op) -> bool:
    """Whether ``user`` is the value times the inverse root, or over the root."""
    if root is hlo.rsqrt and user.op is hlo.multiply:
        rest = [o for o in user.operands if o is not operand]
    elif root is hlo.sqrt and user.op is hlo.divide and user.operands[1] is operand:
        rest = [user.operands[0]]
    else:
        return False
    sources = (x, behind(x.operands[0], SPREADS)) if x.op is hlo.subtract and x.operands else (x,)
    return any(behind(o, SPREADS) is source or _same_difference(behind(o, SPREADS), x) for o in rest for source in sources)


def _same_difference(node: Node, x: Node) -> bool:
    """Whether a node is the difference from the mean, computed once more (jnp.var takes its own mean)."""
    if node.op is not hlo.subtract or x.op is not hlo.subtract or behind(node.operands[0], SPREADS) is not behind(x.operands[0], SPREADS):
        return False
    one, two = (summed(difference.operands[1])[0] for difference in (node, x))
    return one is not None and two is not None and behind(one.operands[0], SPREADS) is behind(two.operands[0], SPREADS)


def _other_axes(mean: Node, spread: Node) -> Odd | None:
    one, two = (tuple(sorted(Reduce.of(n).dimensions)) for n in (mean, spread))
    if one == two or dims(mean.operands[0]) != dims(spread.operands[0]):
        return None
    says = f"its mean is over {axes_text(one)} and its variance over {axes_text(two)}"
    return Odd(spread, says, "take both over the same axes", True, ((mean, "is the mean's sum"),))


def _odd_root(root: Node, inside: bool, outside: Node | None) -> Odd | None:
    if outside is not None and not inside:
        return Odd(outside, f"%{outside.name} adds epsilon behind the root", "add it to the mean square, before the root")
    if not inside and root.op is hlo.rsqrt:
        says = f"nothing is added under the root %{root.name}: where all elements are equal it divides by zero"
        return Odd(root, says, "add a small number to the mean square before the root")
    return None


def _odd_count(root: Node, spread: Node, count: float) -> Odd | None:
    """A divisor that is not the number of terms: that less one is the unbiased variance, which no fused kernel takes."""
    n = terms(spread)
    if n < 3 or abs(count - n) < 0.5 or abs(count - (n - 1)) > 0.5:
        return None
    says = f"the sum %{spread.name} of {n} squares is divided by {count:.6g}, as an unbiased variance is"
    return Odd(spread, says, "divide by the number of terms: var(x, correction=0)", others=((root, "is the root"),))
