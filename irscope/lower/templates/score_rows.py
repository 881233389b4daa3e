"""The exponentials of attention: a block of scores in scratch memory, row by row."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf

from irscope.graph.dtypes import F32
from irscope.graph.node import Index
from irscope.lower.build import KernelBuilder
from irscope.lower.templates.rows_nest import fold_lanes
from irscope.lower.tile import Expr
from irscope.lower.view import Address

IN_REGISTERS = 12
"""The most vectors of a row that are kept in registers, so that none is read twice."""


@dataclass(frozen=True, slots=True)
class ScoreRows:
    """Rows of scores in vectors of ``lanes``, ``pitch`` elements apart. The lanes beyond the last key hold -inf."""

    k: KernelBuilder
    first: Address
    pitch: int
    lanes: int

    def exponentials(self, row: Index, count: int, shift: Callable[[Expr], Expr]) -> Expr:
        """Replace the scores of ``count`` keys by exponentials; returns their sum.

        ``shift`` returns what is subtracted from the scores before; it gets their maximum.
        """
        k, lanes = self.k, self.lanes
        vectors = -(-count // lanes)
        base = self.first + row * self.pitch
        if vectors <= IN_REGISTERS:
            values = [(base + v * lanes).load(lanes) for v in range(vectors)]
            by = shift(k.let(fold_lanes(k, _tree(self.larger, values), self.larger)))
            powers = [k.unary("exp", k.binary("sub", value, by)) for value in values]
            for v, power in enumerate(powers):
                (base + v * lanes).store(power)
            return k.reduce("add", _tree(partial(k.binary, "add"), powers))
        chains = min(4, vectors)
        low = k.splat(k.const(-inf, F32), lanes)
        highest = [k.reg(F32, low) for _ in range(chains)]
        self._sweep(vectors, chains, lambda at, c: highest[c].set(self.larger((base + at).load(lanes), highest[c].get())))
        by = shift(k.let(fold_lanes(k, _tree(self.larger, [h.get() for h in highest]), self.larger)))
        sums = [k.reg(F32, k.splat(k.const(0, F32), lanes)) for _ in range(chains)]

        def exponential(at: Expr, c: int) -> None:
            e = k.unary("exp", k.binary("sub", (base + at).load(lanes), by))
            (base + at).store(e)
            sums[c].set(k.binary("add", sums[c].get(), e))

        self._sweep(vectors, chains, exponential)
        return k.reduce("add", _tree(partial(k.binary, "add"), [s.get() for s in sums]))

    def larger(self, x: Expr, y: Expr) -> Expr:
        """The larger of two scores, either if one is not a number: then the sum of the row's exponentials is not a number anyway."""
        return self.k.select(self.k.compare("GT", x, y), x, y)

    def _sweep(self, vectors: int, chains: int, work: Callable[[Expr, int], None]) -> None:
        """Emit ``work(element, chain)`` for every vector of a row, several chains at a time."""
        k, lanes = self.k, self.lanes
        whole = vectors // chains * chains
        with k.loop(0, whole * lanes, chains * lanes) as i:
            for c in range(chains):
                work(i + c * lanes, c)
        for v in range(whole, vectors):
            work(k.index(v * lanes), v - whole)


def _tree(combine: Callable[[Expr, Expr], Expr], values: list[Expr]) -> Expr:
    while len(values) > 1:
        values = [combine(a, b) for a, b in zip(values[::2], values[1::2])] + values[len(values) // 2 * 2:]
    return values[0]
