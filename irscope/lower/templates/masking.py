"""The scores that a mask excludes, as linear inequalities over their indices: a causal mask keeps ``query - key >= 0``.

    keep = compare(iota along the queries, iota along the keys), direction=GE
    scores = select(keep, s, -inf)

A block of scores is excluded where an inequality holds for none of its indices.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

from irscope.analysis.values import number
from irscope.fusion import Group
from irscope.fusion.drafts import dims_of
from irscope.fusion.views import VIEWS, Chain, Strides, seen_through
from irscope.graph import Node, TensorType
from irscope.graph.dtypes import S32, S64
from irscope.graph.node import Index
from irscope.lower.build import KernelBuilder
from irscope.lower.tile import Expr
from irscope.ops import hlo
from irscope.ops.attributes import Compare, Iota

MOST_NODES = 64
"""The most nodes of a mask, or of one side of a comparison, that are examined: masks are small."""
MOST_COUNT = 1 << 24
"""Larger dimensions and constants are not examined, so that no sum of ``MOST_NODES`` of them overflows."""
OPPOSITE = {"GE": "LT", "LT": "GE", "GT": "LE", "LE": "GT", "EQ": "NE", "NE": "EQ"}


@dataclass(frozen=True, slots=True)
class Linear:
    """``sum(factors * index) + constant`` of an index of the scores."""

    factors: tuple[int, ...]
    constant: int = 0

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """``self + factor * other``."""
        return Linear(tuple(a + factor * b for a, b in zip(self.factors, other.factors)), self.constant + factor * other.constant)

    def largest(self, k: KernelBuilder, box: Sequence[tuple[Index, Index]]) -> Expr:
        """The largest value in a box, given by the first and the last index along each dimension."""
        found = k.index(self.constant)
        for factor, ends in zip(self.factors, box, strict=True):
            if factor:
                found = found + ends[factor > 0] * factor
        return found


@dataclass(frozen=True, slots=True)
class Mask:
    """Scores are ``fill`` where one of ``needs`` is negative, and may be elsewhere."""

    fill: float
    needs: tuple[Linear, ...]

    def excludes(self, k: KernelBuilder, box: Sequence[tuple[Index, Index]]) -> Expr:
        """Whether all scores of a box are known to be ``fill``."""
        found = k.pred(False)
        for linear in self.needs:
            found = k.binary("or", found, k.compare("LT", linear.largest(k, box), k.index(0)))
        return found


def mask_of(scores: Node, group: Group) -> Mask | None:
    """The mask of scores whose last step is a selection between them and a number; None where no block is known to be excluded.

    Only nodes of the group are examined: what else a mask is computed from, a kernel does not depend on.
    """
    if scores.op is not hlo.select or dims_of(scores.operands[0]) != dims_of(scores):
        return None
    keep, kept, other = scores.operands
    fill, holds = (number(other), True) if number(other) is not None else (number(kept), False)
    needs = _Conditions(set(group.nodes), dims_of(scores)).of(keep, holds)
    return Mask(fill, tuple(needs)) if needs and fill is not None and not isnan(fill) else None


@dataclass(frozen=True, slots=True)
class _Conditions:
    """Reads a mask of scores of a shape from the nodes ``inside`` of the group."""

    inside: set[Node]
    shape: tuple[int, ...]

    def of(self, keep: Node, holds: bool) -> list[Linear]:
        """Values that are not negative where a pred is ``holds``. There may be more conditions, of another form."""
        found: list[Linear] = []
        stack: list[tuple[Node, Chain | None, bool]] = [(keep, None, holds)]
        for _ in range(MOST_NODES):
            if not stack:
                break
            node, chain, value = stack.pop()
            if node not in self.inside:
                continue
            if node.op in VIEWS:
                stack.append((node.operands[0], Chain(node, chain), value))
            elif node.op is hlo.not_:
                stack.append((node.operands[0], chain, not value))
            elif node.op is (hlo.and_ if value else hlo.or_):
                stack += [(operand, chain, value) for operand in node.operands]
            elif node.op is hlo.compare:
                a, b = (self.linear(operand, chain) for operand in node.operands)
                direction = Compare.of(node).direction
                if a is not None and b is not None:
                    found += _not_negative(a, b, direction if value else OPPOSITE[direction])
        return found

    def linear(self, value: Node, chain: Chain | None) -> Linear | None:
        """An integer, which the chain leads to from the scores, as a linear function of their index, or None."""
        zero = Linear((0,) * len(self.shape))
        total, stack = zero, [(value, chain, 1)]
        for _ in range(MOST_NODES):
            if not stack:
                return total
            node, at, sign = stack.pop()
            term = self._term(node, at)
            if term is not None:
                total = total.plus(term, sign)
            elif node not in self.inside or not _is_count(node):
                return None
            elif node.op in VIEWS:
                stack.append((node.operands[0], Chain(node, at), sign))
            elif node.op in hlo.named("add subtract convert"):
                signs = (sign, -sign if node.op is hlo.subtract else sign)
                stack += [(operand, at, by) for operand, by in zip(node.operands, signs)]
            else:
                return None
        return None

    def _term(self, node: Node, chain: Chain | None) -> Linear | None:
        """A number, or a node that counts along a dimension; None for all others."""
        constant = number(node)
        if constant is not None and abs(constant) <= MOST_COUNT and constant.is_integer():
            return Linear((0,) * len(self.shape), int(constant))
        if node.op is not hlo.iota or not _is_count(node) or node not in self.inside:
            return None
        own = dims_of(node)
        walked = seen_through(chain, Strides(own, tuple(int(d == Iota.of(node).iota_dimension) for d in range(len(own)))))
        return Linear(walked.strides, walked.offset) if walked is not None and walked.shape == self.shape else None


def _is_count(node: Node) -> bool:
    """Whether a value has an index type, and dimensions small enough to add up their indices in it."""
    return isinstance(node.type, TensorType) and node.type.dtype in (S32, S64) and max(dims_of(node), default=1) <= MOST_COUNT


def _not_negative(a: Linear, b: Linear, direction: str) -> list[Linear]:
    """Values that are not negative where a comparison of two integers holds."""
    above, below, one = a.plus(b, -1), b.plus(a, -1), Linear((0,) * len(a.factors), 1)
    return {"GE": [above], "GT": [above.plus(one, -1)], "LE": [below], "LT": [below.plus(one, -1)], "EQ": [above, below]}.get(direction, [])
