"""Layer normalisation and root-mean-square normalisation."""
from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.recognise.parts import NEAR, Composite, Oddity, Users, axes_text, find, patterns, readers, squared, summed, terms
from irscope.analysis.values import SPREADS, cone, dims, reduces
from irscope.graph import Node
from irscope.graph.walk import behind
from irscope.ops import hlo
from irscope.ops.attributes import Reduce

LAYER, RMS = "layer normalisation", "RMS normalisation"
WITH_EPSILON = patterns("add|maximum(mean, epsilon)", through=SPREADS)
"""The forms of adding a small number under a root."""
BEHIND_ROOT = patterns("add(sqrt, epsilon)", through=SPREADS)
DIVIDED = {hlo.rsqrt: patterns("multiply(value, root)", through=()), hlo.sqrt: patterns("divide(value, root)", through=())}


def normalisations(root: Node, users: Users) -> Iterator[Composite]:
    """The division of a value, or of its difference from its mean, by the root of its mean square; the node is the root."""
    mean_square = behind(root.operands[0], SPREADS) if root.operands else root
    inside = find(mean_square, WITH_EPSILON, "epsilon")
    spread, count = summed(inside["mean"] if inside else mean_square)
    x = None if spread is None else squared(spread.operands[0])
    if spread is None or x is None:
        return
    result, outside = _division(users, root, x)
    if result is None:
        return
    odd_root = _odd_root(root, inside is not None, outside)
    if x.op is hlo.subtract and len(x.operands) == 2:
        mean = next((n for n in cone(x.operands[1], NEAR) if reduces(n, hlo.add) and dims(n.operands[0]) == dims(x)), None)
        if mean is not None and behind(mean.operands[0], SPREADS) is behind(x.operands[0], SPREADS):
            odd = _odd_axes(mean, spread) or odd_root or _odd_count(root, spread, count)
            yield Composite(LAYER, result, (root, mean, spread), odd)
    elif count > 1:
        yield Composite(RMS, result, (root, spread), odd_root or _odd_count(root, spread, count))


def _division(users: Users, root: Node, x: Node) -> tuple[Node | None, Node | None]:
    """The division of the value by the root, and the node that adds to the root before it, if any."""
    for user, operand in readers(users, root):
        if root.op is hlo.sqrt and find(user, BEHIND_ROOT, "epsilon"):
            for divided, sum_ in readers(users, user):
                if _divides(divided, sum_, x, root):
                    return divided, user
        elif _divides(user, operand, x, root):
            return user, None
    return None, None


def _divides(user: Node, operand: Node, x: Node, root: Node) -> bool:
    """Whether ``user`` is the value times the inverse root, or over the root."""
    found = find(user, DIVIDED[root.op], root=operand)
    if found is None:
        return False
    value = behind(found["value"], SPREADS)
    sources = (x, behind(x.operands[0], SPREADS)) if x.op is hlo.subtract and x.operands else (x,)
    return any(value is source for source in sources) or _is_same_difference(value, x)


def _is_same_difference(node: Node, x: Node) -> bool:
    """Whether a node is the difference from the mean, recomputed (jnp.var computes its own mean)."""
    if node.op is not hlo.subtract or x.op is not hlo.subtract or behind(node.operands[0], SPREADS) is not behind(x.operands[0], SPREADS):
        return False
    one, two = (summed(difference.operands[1])[0] for difference in (node, x))
    return one is not None and two is not None and behind(one.operands[0], SPREADS) is behind(two.operands[0], SPREADS)


def _odd_axes(mean: Node, spread: Node) -> Oddity | None:
    one, two = (tuple(sorted(Reduce.of(n).dimensions)) for n in (mean, spread))
    if one == two or dims(mean.operands[0]) != dims(spread.operands[0]):
        return None
    says = f"its mean is over {axes_text(one)} and its variance over {axes_text(two)}"
    return Oddity(spread, says, "take both over the same axes", True, ((mean, "is the mean's sum"),))


def _odd_root(root: Node, inside: bool, outside: Node | None) -> Oddity | None:
    if outside is not None and not inside:
        return Oddity(outside, f"%{outside.name} adds epsilon after the root", "add it to the mean square, before the root")
    if not inside and root.op is hlo.rsqrt:
        says = f"nothing is added under the root %{root.name}: where all elements are equal it divides by zero"
        return Oddity(root, says, "add a small number to the mean square before the root")
    return None


def _odd_count(root: Node, spread: Node, count: float) -> Oddity | None:
    """A divisor that is not the number of terms: one less is the unbiased variance, which no fused kernel supports."""
    n = terms(spread)
    if n < 3 or abs(count - n) < 0.5 or abs(count - (n - 1)) > 0.5:
        return None
    says = f"the sum %{spread.name} of {n} squares is divided by {count:.6g}, as an unbiased variance is"
    return Oddity(spread, says, "divide by the number of terms: var(x, correction=0)", others=((root, "is the root"),))
