"""Counts of n-grams."""
from __future__ import annotations

from itertools import pairwise

from irscope.formats.onnx.algebra import Onnx, bounded
from irscope.formats.onnx.declarations import Attributes
from irscope.formats.onnx.operators import operator
from irscope.graph import Node
from irscope.graph.dtypes import F32, S64
from irscope.ops.faults import TypeFault

MODES = ("TF", "IDF", "TFIDF")


@operator("TfIdfVectorizer(X: int[1-2]; max_gram_length: int!, max_skip_count: int!, min_gram_length: int!, mode: str!, "
          "ngram_counts: ints!, ngram_indexes: ints!, pool_int64s: ints=None, pool_strings: strs=None, weights: floats=None)")
def tf_idf(t: Onnx, a: Attributes, x: Node) -> Node:
    """How often each n-gram of a pool of integers occurs in each row, with gaps of up to ``max_skip_count``; or a weight where it does."""
    if a.pool_int64s is None or a.mode not in MODES:
        raise TypeFault("the pool has strings, which are not computed, or the mode is not TF, IDF or TFIDF")
    grams = _grams(a)
    if not grams or len(grams) != len(a.ngram_indexes) or min(a.ngram_indexes) < 0:
        raise TypeFault(f"the pool has {len(grams)} n-grams, ngram_indexes {len(a.ngram_indexes)} places")
    if a.weights and len(a.weights) != len(grams):
        raise TypeFault(f"{len(a.weights)} weights for {len(grams)} n-grams")
    rows = t.reshape(t.convert(x, S64), (1, *t.shape(x)) if t.rank(x) == 1 else t.shape(x))
    n = t.shape(rows)[1]
    width = bounded(max(a.ngram_indexes) + 1, "a row of counts")
    bounded(16 * sum(size * _gaps(a, size, n) for size, _ in grams), "counting n-grams")
    columns: dict[int, Node] = {}
    for (size, gram), place in zip(grams, a.ngram_indexes, strict=True):
        if a.min_gram_length <= size <= a.max_gram_length:
            count = _occurrences(t, rows, gram, _gaps(a, size, n), n)
            columns[place] = t.add(columns[place], count) if place in columns else count
    parts, end = [], 0
    for place in sorted(columns):
        parts += [t.full((t.shape(rows)[0], place - end), 0, F32), columns[place]]
        end = place + 1
    made = t.concat([*parts, t.full((t.shape(rows)[0], width - end), 0, F32)], 1)
    if a.mode != "TF":
        weights = [1.0] * width
        for i, place in enumerate(a.ngram_indexes):
            weights[place] = a.weights[i] if a.weights else 1.0
        if a.mode == "IDF":
            made = t.minimum(made, t.like(made, 1))
        made = t.mul(made, t.array(weights, F32))
    return t.reshape(made, (width,)) if t.rank(x) == 1 else made


def _grams(a: Attributes) -> list[tuple[int, list[int]]]:
    """The n-grams of the pool, in order, with their sizes. Raises TypeFault where the pool ends inside of one."""
    made, starts = [], [*a.ngram_counts, len(a.pool_int64s)]
    for size, (low, high) in enumerate(pairwise(starts), 1):
        if not 0 <= low <= high or (high - low) % size:
            raise TypeFault(f"ngram_counts {a.ngram_counts} do not cut a pool of {len(a.pool_int64s)} into n-grams")
        made += [(size, a.pool_int64s[i:i + size]) for i in range(low, high, size)]
    return made


def _gaps(a: Attributes, size: int, n: int) -> int:
    """The number of gaps with which n-grams of a size occur in a row of n elements."""
    if size == 1:
        return min(n, 1)
    return max(0, min(int(a.max_skip_count) + 1, (n - 1) // (size - 1)))


def _occurrences(t: Onnx, rows: Node, gram: list[int], gaps: int, n: int) -> Node:
    """How often a gram occurs in each row, over all gaps."""
    total = t.full((t.shape(rows)[0], 1), 0, F32)
    for gap in range(1, gaps + 1):
        reach = (len(gram) - 1) * gap + 1
        hit: Node | None = None
        for k, value in enumerate(gram):
            part = t.slice_dim(rows, 1, k * gap, k * gap + n - reach + 1)
            here = t.compare("EQ", part, t.like(part, value))
            hit = here if hit is None else t.binary("and", hit, here)
        assert hit is not None
        total = t.add(total, t.sum(t.convert(hit, F32), [1], True))
    return total
