"""Softmax, and the attention around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from irscope.graph import Graph, Kind, Node
from irscope.lint.patterns.composite import Composite, Odd
from irscope.lint.patterns.parts import NEAR, axes_text, long_axes
from irscope.lint.values import SPREADS, behind, cone, dims, reduces
from irscope.lint.view import ModuleView
from irscope.ops import hlo
from irscope.ops.attributes import Dot, Reduce

STEPS = 4
"""Operators between a softmax and the product that reads it, at most."""


@dataclass(frozen=True, slots=True)
class Softmax:
    """``exp / sum(exp)`` of ``exp = exponential(x - shift)``; ``largest`` is the reduction that gives the shift, if there is one."""

    result: Node
    exponential: Node
    total: Node
    largest: Node | None

    @property
    def axes(self) -> tuple[int, ...]:
        return long_axes(self.total)


def softmaxes(view: ModuleView) -> Iterator[tuple[Softmax, Graph]]:
    """Every softmax, with its graph."""
    for node, graph in view.primitives(hlo.divide):
        if len(node.operands) != 2:
            continue
        total = behind(node.operands[1], SPREADS)
        top = behind(node.operands[0], SPREADS)
        if top.op is hlo.exponential and top.operands and reduces(total, hlo.add) and behind(total.operands[0], SPREADS) is top:
            shift = behind(top.operands[0], SPREADS)
            largest = None
            if shift.op is hlo.subtract and len(shift.operands) == 2:
                near = (n for n in cone(shift.operands[1], NEAR) if reduces(n, hlo.maximum))
                largest = next((n for n in near if dims(n.operands[0]) == dims(top)), None)
            yield Softmax(node, top, total, largest), graph


def found(view: ModuleView) -> Iterator[Composite]:
    """Softmaxes, and attentions by the softmax in them."""
    for softmax, graph in softmaxes(view):
        if graph in view.inlined:
            continue
        parts = tuple(part for part in (softmax.exponential, softmax.total, softmax.largest) if part is not None)
        yield Composite("softmax", graph, softmax.result, parts, _shift(softmax))
        yield from _attention(view, graph, softmax)


def _shift(softmax: Softmax) -> Odd | None:
    """A maximum that is taken over other axes than the sum."""
    if softmax.largest is None:
        return None
    shift = tuple(sorted(Reduce.of(softmax.largest).dimensions))
    axes = tuple(sorted(Reduce.of(softmax.total).dimensions))
    if shift == axes:
        return None
    wrong = not set(axes) <= set(shift)
    says = f"it sums over {axes_text(axes)} and takes its maximum over {axes_text(shift)}"
    says += ": the shift changes along the sum, and the result is wrong" if wrong else ""
    others = ((softmax.total, "is the sum"),)
    return Odd(softmax.largest, says, "take both over the same axes: softmax(x, axis=...)", wrong, others)


def _attention(view: ModuleView, graph: Graph, softmax: Softmax) -> Iterator[Composite]:
    """The product behind a softmax sums over the softmax's axis, and nothing scales in between."""
    at, scale = softmax.result, None
    for _ in range(STEPS):
        user = view.only_user(at, graph)
        if user is None:
            return
        if user.op is hlo.dot:
            yield Composite("attention", graph, user, (softmax.result,), _product(softmax, at, user, scale))
            return
        if user.op is hlo.multiply and any(behind(o, SPREADS).op.kind is Kind.LEAF for o in user.operands):
            scale = user
        elif user.op is not hlo.convert:
            return
        at = user


def _product(softmax: Softmax, at: Node, product: Node, scale: Node | None) -> Odd | None:
    others = ((softmax.result, "is the softmax"),)
    summed = tuple(sorted(Dot.of(product).contracting_dims[product.operands[0] is not at]))
    if dims(at) == dims(softmax.result) and len(summed) == 1 and len(softmax.axes) == 1 and summed != softmax.axes:
        says = f"the softmax is over {axes_text(softmax.axes)} and the product sums over {axes_text(summed)}"
        return Odd(product, says, "take the softmax over the axis of the keys, which the product with the values sums over", True, others)
    if scale is None:
        return None
    return Odd(scale, f"%{scale.name} scales behind the softmax", "scale the queries, or the result", others=others)
