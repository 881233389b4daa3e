"""Matrix products as einsum: a letter for each dimension, by which products in a row are put into another order and priced."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from irscope.analysis.values import dims
from irscope.graph import Node
from irscope.ops import hlo
from irscope.ops.attributes import Dot, Transpose

Letters = tuple[int, ...]
"""A name for each dimension of a value; dimensions that meet in a product share one."""


@dataclass(frozen=True, slots=True)
class Chain:
    """``outer = (a inner b) outer c``: two products in a row, with the letters of the three factors and of the result.

    Transposes between the products only move letters.
    """

    inner: Node
    outer: Node
    factors: tuple[Node, Node, Node]
    letters: tuple[Letters, Letters, Letters]
    result: Letters
    sizes: Mapping[int, int]

    def flops(self, first: int, second: int) -> float:
        """Multiplications and additions if two of the factors (by index) are multiplied first."""
        (last,) = {0, 1, 2} - {first, second}
        one, two, three = (self.letters[i] for i in (first, second, last))
        return self._product({*one, *two}) + self._product({*contracted(one, two, {*three, *self.result}), *three})

    def _product(self, letters: set[int]) -> float:
        return 2.0 * prod(self.sizes[letter] for letter in letters)


def contracted(one: Letters, two: Letters, needed: set[int]) -> Letters:
    """The letters of a product in the order of ``dot``: batch, free of the left operand, free of the right one."""
    both = [letter for letter in one if letter in two]
    batch = [letter for letter in both if letter in needed]
    return (*batch, *(letter for letter in one if letter not in both), *(letter for letter in two if letter not in both))


def dot_attrs(one: Letters, two: Letters, needed: set[int]) -> dict[str, tuple[int, ...]]:
    """The attributes of the ``dot`` of two values with these letters, which keeps the letters that are needed."""
    both = [letter for letter in one if letter in two]
    batch, summed = ([letter for letter in both if (letter in needed) is kept] for kept in (True, False))
    return {
        "lhs_batch_dims": tuple(map(one.index, batch)), "rhs_batch_dims": tuple(map(two.index, batch)),
        "lhs_contracting_dims": tuple(map(one.index, summed)), "rhs_contracting_dims": tuple(map(two.index, summed)),
    }


def chain(outer: Node, side: int) -> Chain | None:
    """The products in a row that end in ``outer`` whose operand ``side`` is a product, behind transposes; None where it is none."""
    at = outer.operands[side]
    moved: list[Node] = []
    while at.op is hlo.transpose:
        moved.append(at)
        at = at.operands[0]
    if at.op is not hlo.dot or len(at.operands) != 2:
        return None
    a, b = at.operands
    c = outer.operands[1 - side]
    if not all(dims(node) for node in (a, b, c)):
        return None
    first = tuple(range(len(dims(a))))
    second = _partner(at, 0, first, len(first))
    inner = contracted(first, second, {first[d] for d in Dot.of(at).lhs_batch_dims})
    for node in reversed(moved):
        inner = tuple(inner[d] for d in Transpose.of(node).dimensions)
    third = _partner(outer, side, inner, len(first) + len(dims(b)))
    batch = {inner[d] for d in Dot.of(outer).batch_dims[side]}
    result = contracted(*((inner, third) if side == 0 else (third, inner)), batch)
    sizes = {letter: n for node, letters in ((a, first), (b, second), (c, third)) for letter, n in zip(letters, dims(node), strict=True)}
    return Chain(at, outer, (a, b, c), (first, second, third), result, sizes)


def _partner(product: Node, side: int, known: Letters, fresh: int) -> Letters:
    """The letters of the other operand of a product whose operand ``side`` has known letters; new ones count from ``fresh``."""
    attrs = Dot.of(product)
    met = zip((*attrs.batch_dims[1 - side], *attrs.contracting_dims[1 - side]), (*attrs.batch_dims[side], *attrs.contracting_dims[side]),
              strict=True)
    given = {theirs: known[mine] for theirs, mine in met}
    return tuple(given.get(d, fresh + d) for d in range(len(dims(product.operands[1 - side]))))
