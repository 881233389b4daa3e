"""Softmax: exponentials of differences from the maximum, divided by their sum."""
from __future__ import annotations

from dataclasses import dataclass

from irscope.analysis.recognise.parts import NEAR, Oddity, axes_text, find, patterns
from irscope.analysis.values import SPREADS, cone, dims, reduces
from irscope.graph import Node
from irscope.graph.walk import behind
from irscope.ops import hlo
from irscope.ops.attributes import Reduce

SOFTMAX = patterns("divide(exponentials:exponential(x), total:reduce(exponentials, zero))", through=SPREADS)


@dataclass(frozen=True, slots=True)
class Softmax:
    """``result = exponential / total`` where ``total`` sums ``exponential``.

    ``difference`` is the ``subtract`` that is the exponential's operand, ``largest`` the reduction that it subtracts; None where there
    is none.
    """

    result: Node
    exponential: Node
    total: Node
    difference: Node | None
    largest: Node | None

    @property
    def axes(self) -> tuple[int, ...]:
        """The summed axes, without those of length 1."""
        shape = dims(self.total.operands[0])
        return tuple(sorted(d for d in Reduce.of(self.total).dimensions if d < len(shape) and shape[d] != 1))


def softmax(node: Node) -> Softmax | None:
    """The softmax whose result a division is, or None."""
    found = find(node, SOFTMAX)
    if found is None or not reduces(found["total"], hlo.add):
        return None
    exponential = found["exponentials"]
    difference = behind(exponential.operands[0], SPREADS)
    if difference.op is not hlo.subtract or len(difference.operands) != 2:
        return Softmax(node, exponential, found["total"], None, None)
    near = (n for n in cone(difference.operands[1], NEAR) if reduces(n, hlo.maximum))
    largest = next((n for n in near if dims(n.operands[0]) == dims(exponential)), None)
    return Softmax(node, exponential, found["total"], difference, largest)


def odd_shift(found: Softmax) -> Oddity | None:
    """A maximum over other axes than the sum."""
    if found.largest is None:
        return None
    shift, axes = (tuple(sorted(Reduce.of(reduction).dimensions)) for reduction in (found.largest, found.total))
    if shift == axes:
        return None
    wrong = not set(axes) <= set(shift)
    says = f"it sums over {axes_text(axes)} and takes its maximum over {axes_text(shift)}"
    says += ": the shift changes along the sum, and the result is wrong" if wrong else ""
    others = ((found.total, "is the sum"),)
    return Oddity(found.largest, says, "take both over the same axes: softmax(x, axis=...)", wrong, others)
