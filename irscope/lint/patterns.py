"""Known composites recognised by their structure: softmax, normalisation, GELU; each with the nodes that decide whether it is one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from irscope.graph import Graph, Node
from irscope.lint.context import Context
from irscope.lint.values import SPREADS, behind, cone, dims, number, reduces

NEAR = 12
"""How many nodes back a part of a pattern may stand."""


@dataclass(frozen=True, slots=True)
class Softmax:
    """``exp / sum(exp)`` of ``exp = exponential(x - shift)``; ``largest`` is the reduction that gives the shift, if there is one."""

    result: Node
    exponential: Node
    total: Node
    largest: Node | None

    @property
    def axes(self) -> tuple[int, ...]:
        return _axes(self.total)


@dataclass(frozen=True, slots=True)
class Normalisation:
    """``(x - mean) * rsqrt(variance + epsilon)``: ``root`` is the rsqrt or sqrt, ``mean`` and ``spread`` the sums."""

    root: Node
    mean: Node
    spread: Node
    epsilon: bool


@dataclass(frozen=True, slots=True)
class Gelu:
    """``x/2 * (1 + f(scale * ...))``; ``scale`` multiplies inside ``function`` (tanh or erf), ``cubic`` is the weight of x cubed."""

    function: Node
    scale: float
    cubic: float | None


def softmaxes(context: Context) -> Iterator[tuple[Softmax, Graph]]:
    """Every softmax, with its graph."""
    for node, graph in context.primitives("divide"):
        if len(node.operands) != 2:
            continue
        total = behind(node.operands[1], SPREADS)
        top = behind(node.operands[0], SPREADS)
        if top.op.name == "exponential" and top.operands and reduces(total, "add") and behind(total.operands[0], SPREADS) is top:
            shift = behind(top.operands[0], SPREADS)
            largest = None
            if shift.op.name == "subtract" and len(shift.operands) == 2:
                near = (n for n in cone(shift.operands[1], NEAR) if reduces(n, "maximum"))
                largest = next((n for n in near if dims(n.operands[0]) == dims(top)), None)
            yield Softmax(node, top, total, largest), graph


def normalisations(context: Context) -> Iterator[tuple[Normalisation, Graph]]:
    """Every division by the root of a mean square of differences from a mean."""
    for node, graph in context.primitives("rsqrt", "sqrt"):
        if not node.operands:
            continue
        at, epsilon = behind(node.operands[0], SPREADS), False
        for _ in range(NEAR):
            if at.op.name in ("add", "maximum") and any(number(o) is not None for o in at.operands):
                epsilon = True
            elif at.op.name not in ("multiply", "divide") or not any(number(o) is not None for o in at.operands):
                break
            at = behind(next((o for o in at.operands if number(o) is None), at.operands[0]), SPREADS)
        if not reduces(at, "add"):
            continue
        square = behind(at.operands[0], SPREADS)
        if square.op.name != "multiply" or behind(square.operands[0], SPREADS) is not behind(square.operands[1], SPREADS):
            continue
        difference = behind(square.operands[0], SPREADS)
        if difference.op.name != "subtract":
            continue
        mean = next((n for n in cone(difference.operands[1], NEAR) if reduces(n, "add") and dims(n.operands[0]) == dims(difference)), None)
        if mean is not None and behind(mean.operands[0], SPREADS) is behind(difference.operands[0], SPREADS):
            yield Normalisation(node, mean, at, epsilon), graph


def gelus(context: Context) -> Iterator[tuple[Gelu, Graph]]:
    """Every ``tanh(a * (x + b * x^3))`` and every ``1 + erf(a * x)`` that is multiplied by ``x``."""
    for node, graph in context.primitives("tanh"):
        scale, inner = _scaled(node.operands[0])
        if scale is None or inner.op.name != "add":
            continue
        for x, term in (inner.operands, inner.operands[::-1]):
            weight, cube = _scaled(term)
            if weight is not None and _is_cube(cube, x):
                yield Gelu(node, scale, weight), graph
                break
    for node, graph in context.primitives("erf"):
        scale, x = _scaled(node.operands[0])
        if scale is None:
            continue
        for plus in context.users(node, graph):
            if plus.op.name == "add" and any(number(o) == 1 for o in plus.operands):
                products = [u for u in context.users(plus, graph) if u.op.name == "multiply"]
                if any(behind(o, SPREADS) is x or x in cone(o, 4) for u in products for o in u.operands if o is not plus):
                    yield Gelu(node, scale, None), graph
                    break


def _axes(reduce: Node) -> tuple[int, ...]:
    shape = dims(reduce.operands[0])
    return tuple(sorted(d for d in reduce.attrs.get("dimensions", ()) if d < len(shape) and shape[d] != 1))


def _scaled(node: Node) -> tuple[float | None, Node]:
    """The factor and the rest of ``factor * rest`` or ``rest / divisor``; None where there is no factor."""
    node = behind(node, ("convert", "copy"))
    if node.op.name == "divide":
        divisor = number(node.operands[1])
        return (1 / divisor if divisor else None), node.operands[0]
    if node.op.name == "multiply":
        for factor, rest in (node.operands, node.operands[::-1]):
            value = number(factor)
            if value is not None:
                return value, rest
    return None, node


def _is_cube(node: Node, x: Node) -> bool:
    """Whether the value is ``x`` to the third power, in one of its spellings."""
    node = behind(node, ("convert", "copy"))
    if node.op.name == "power":
        return node.operands[0] is x and number(node.operands[1]) == 3
    if node.op.name != "multiply":
        return False
    for one, two in (node.operands, node.operands[::-1]):
        if one is x and two.op.name == "multiply" and two.operands[0] is x and two.operands[1] is x:
            return True
    return False
