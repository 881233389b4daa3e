"""Rotary position embeddings: halves, or neighbours, rotated by an angle."""
from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.recognise.gelu import MULTIPLY
from irscope.analysis.recognise.parts import Composite, Oddity, Users, find, is_filled, patterns, reached
from irscope.analysis.values import COPIES, SPREADS, dims
from irscope.graph import Node
from irscope.graph.pattern import Pattern
from irscope.graph.walk import behind
from irscope.ops import hlo
from irscope.ops.attributes import Concatenate, Slice

ROPE = "rotary embedding"
SUMS = hlo.named("add subtract")
TURNED = patterns("add|subtract(multiply(x, cosine), multiply(halves, sine))", "subtract(multiply(halves, sine), multiply(x, cosine))",
                  through=COPIES)
PAIR = Pattern("subtract(multiply(a:slice(x), cosine), multiply(b:slice(x), sine))", SPREADS)
TWIN = patterns("add|subtract(multiply(a, sine), multiply(b, cosine))", "subtract(multiply(b, cosine), multiply(a, sine))", through=SPREADS)
"""If both subtract, the first is examined."""


def rotations_of_halves(node: Node, users: Users) -> Iterator[Composite]:
    """``x * cos + rotated(x) * sin`` where a node concatenates the halves of ``x`` in swapped order, one of them negated."""
    if len(node.operands) != 2:
        return
    parts = [behind(operand, COPIES) for operand in node.operands]
    slices = [behind(part.operands[0], COPIES) if part.op is hlo.negate else part for part in parts]
    if not all(s.op is hlo.slice for s in slices) or slices[0].operands[0] is not slices[1].operands[0]:
        return
    x = slices[0].operands[0]
    if dims(node) != dims(x) or not dims(x):
        return
    turned = next((sum_ for sum_ in reached(users, node, MULTIPLY, SUMS) if find(sum_, TURNED, halves=node, x=x)), None)
    if turned is not None:
        yield Composite(ROPE, turned, (node, x), _odd_halves(node, x, slices, [part for part in parts if part.op is hlo.negate]))


def _odd_halves(node: Node, x: Node, slices: list[Node], negated: list[Node]) -> Oddity | None:
    axis = Concatenate.of(node).axis
    size = dims(x)[axis]
    whole = ((x, "is turned"),)
    rotate = "rotate_half: concatenate((-x2, x1))"
    if len(negated) != 1:
        says = "neither half is negated" if not negated else "both halves are negated"
        return Oddity(node, f"{says}, so nothing is rotated", rotate, True, whole)
    if axis != len(dims(x)) - 1:
        says = f"the halves are those of axis {axis} instead of the last one"
        return Oddity(node, says, "rotate the features of each head, which are along the last axis", others=whole)
    first, last = (0, size // 2, 1), (size // 2, size, 1)
    cuts = [Slice.of(one).slice[axis] for one in slices]
    if cuts == [first, last]:
        return Oddity(node, f"the halves are in the same order as in %{x.name}", rotate, True, whole)
    if cuts[0] == cuts[1]:
        return Oddity(slices[1], f"%{slices[1].name} is the same half of %{x.name} as %{slices[0].name}", rotate, True, whole)
    if cuts != [last, first]:
        uneven = next(one for one, cut in zip(slices, cuts, strict=True) if cut not in (first, last))
        return Oddity(uneven, f"%{uneven.name} is no half of %{x.name}", "cut the features in the middle", others=whole)
    if negated[0] is not behind(node.operands[0], COPIES):
        return Oddity(negated[0], f"%{negated[0].name} negates the first half: it rotates the other way", rotate)
    return None


def rotations_of_pairs(node: Node, users: Users) -> Iterator[Composite]:
    """``x1 * c - x2 * s`` beside ``x1 * s + x2 * c``, where ``x1`` and ``x2`` are cut from one value."""
    one = PAIR.match(node, is_filled, lambda found: bool(Slice.of(found["a"]).slice != Slice.of(found["b"]).slice))
    if one is None:
        return
    names = {name: one[name] for name in ("a", "b", "sine", "cosine")}
    for twin in reached(users, one["a"], MULTIPLY, SUMS, past=SPREADS):
        if (twin.op is hlo.add or twin.index > node.index) and find(twin, TWIN, **names):
            odd = None if twin.op is hlo.add else Oddity(
                twin, f"both %{node.name} and %{twin.name} subtract, so nothing is rotated", "x1 * sin + x2 * cos", True)
            yield Composite(ROPE, twin, (node, one["a"], one["b"]), odd)
            return
