"""Rotary position embeddings: halves, or neighbours, turned by an angle."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.graph import Graph, Node
from irscope.lint.patterns.composite import Composite, Odd
from irscope.lint.patterns.parts import other, readers
from irscope.lint.values import COPIES, SPREADS, behind, dims
from irscope.lint.view import ModuleView
from irscope.ops import hlo
from irscope.ops.attributes import Concatenate, Slice

ROPE = "rotary embedding"
SUMS = hlo.named("add subtract")


def found(view: ModuleView) -> Iterator[Composite]:
    """``x * cos + rotated(x) * sin`` with the halves of ``x`` put together the other way round, one of them negated."""
    for node, graph in view.primitives(hlo.concatenate):
        if len(node.operands) == 2 and graph not in view.inlined:
            yield from _of_halves(view, graph, node)
    for node, graph in view.primitives(hlo.subtract):
        if graph not in view.inlined:
            yield from _of_pairs(view, graph, node)


def _of_halves(view: ModuleView, graph: Graph, node: Node) -> Iterator[Composite]:
    parts = [behind(operand, COPIES) for operand in node.operands]
    slices = [behind(part.operands[0], COPIES) if part.op is hlo.negate else part for part in parts]
    if not all(s.op is hlo.slice for s in slices) or slices[0].operands[0] is not slices[1].operands[0]:
        return
    x = slices[0].operands[0]
    if dims(node) != dims(x) or not dims(x):
        return
    sum_ = _turned(view, graph, node, x)
    if sum_ is not None:
        negated = [part for part in parts if part.op is hlo.negate]
        yield Composite(ROPE, graph, sum_, (node, x), _odd_halves(node, x, slices, negated))


def _turned(view: ModuleView, graph: Graph, node: Node, x: Node) -> Node | None:
    """The sum of what was put together, times something, and the value itself, times something."""
    for product, _ in readers(view, graph, node, COPIES):
        if product.op is not hlo.multiply:
            continue
        for sum_, by in readers(view, graph, product, COPIES):
            if sum_.op in SUMS and len(sum_.operands) == 2:
                rest = behind(other(sum_, by), COPIES)
                if rest.op is hlo.multiply and any(behind(o, COPIES) is behind(x, COPIES) for o in rest.operands):
                    return sum_
    return None


def _odd_halves(node: Node, x: Node, slices: list[Node], negated: list[Node]) -> Odd | None:
    axis = Concatenate.of(node).axis
    size = dims(x)[axis]
    if len(negated) != 1:
        says = "neither half is negated" if not negated else "both halves are negated"
        return Odd(node, f"{says}, so that nothing is turned", "rotate_half: concatenate((-x2, x1))", True, ((x, "is turned"),))
    if axis != len(dims(x)) - 1:
        says = f"the halves are those of axis {axis} and not of the last one"
        return Odd(node, says, "turn the features of each head, which lie along the last axis", others=((x, "is turned"),))
    starts = [Slice.of(one).slice[axis] for one in slices]
    if starts != [(size // 2, size, 1), (0, size // 2, 1)]:
        if starts == [(0, size // 2, 1), (size // 2, size, 1)]:
            says = f"the halves stand as they stood in %{x.name}"
            return Odd(node, says, "rotate_half: concatenate((-x2, x1))", True, ((x, "is turned"),))
        wanted = zip(slices, (size // 2, 0), strict=True)
        uneven = next((one for one, start in wanted if Slice.of(one).slice[axis][0] != start), slices[0])
        return Odd(uneven, f"%{uneven.name} is no half of %{x.name}", "cut the features in the middle", others=((x, "is turned"),))
    if negated[0] is not behind(node.operands[0], COPIES):
        return Odd(negated[0], f"%{negated[0].name} negates the first half: it turns the other way", "rotate_half: concatenate((-x2, x1))")
    return None


def _of_pairs(view: ModuleView, graph: Graph, node: Node) -> Iterator[Composite]:
    """``x1 * c - x2 * s`` beside ``x1 * s + x2 * c``, where ``x1`` and ``x2`` are cut from one value."""
    one = _products(node)
    if one is None:
        return
    (a, c), (b, s) = one
    for product, by in readers(view, graph, a):
        if product.op is not hlo.multiply or behind(other(product, by), SPREADS) is not s:
            continue
        for twin, _ in readers(view, graph, product):
            two = _products(twin)
            if two is None or twin.op not in SUMS or (twin.op is hlo.subtract and twin.index <= node.index):
                continue  # of two that subtract, the first is looked at
            if {(id(value), id(angle)) for value, angle in two} == {(id(a), id(s)), (id(b), id(c))}:
                yield Composite(ROPE, graph, twin, (node, a, b), _odd_pair(node, twin))
                return


def _odd_pair(node: Node, twin: Node) -> Odd | None:
    if twin.op is hlo.add:
        return None
    return Odd(twin, f"both %{node.name} and %{twin.name} subtract, so that nothing is turned", "x1 * sin + x2 * cos", True)


def _products(node: Node) -> tuple[tuple[Node, Node], tuple[Node, Node]] | None:
    """The two products of a sum or difference, each as the value that was cut out and what it is multiplied by."""
    pairs = []
    for operand in node.operands:
        product = behind(operand, COPIES)
        if product.op is not hlo.multiply or len(product.operands) != 2:
            return None
        pairs.append([behind(o, SPREADS) for o in product.operands])
    for one in (pairs[0], pairs[0][::-1]):
        for two in (pairs[1], pairs[1][::-1]) if len(pairs) == 2 else ():
            cut = one[0].op is two[0].op is hlo.slice and one[0].operands[0] is two[0].operands[0]
            if cut and Slice.of(one[0]).slice != Slice.of(two[0]).slice:
                return (one[0], one[1]), (two[0], two[1])
    return None
