"""What decides on a computation whether releases of XLA's CPU compiler fuse it differently, and what of a module they rewrite differently.

Releases for which these answers are equal need to be planned once.
"""
from __future__ import annotations

from collections.abc import Iterable

from irscope.fusion.xla.cpu_rules import MAX_REDUCTIONS, inefficient_concatenation, is_expensive, major_reduction
from irscope.fusion.xla.instructions import Computation
from irscope.fusion.xla.releases import CpuRelease, Rewriting
from irscope.fusion.xla.shifted import shifted_by_their_maximum
from irscope.graph import Node, TensorType
from irscope.ops import hlo

Answers = tuple[object, ...]
CALLED = hlo.named("dot convolution reduce reduce-window ragged-dot select-and-scatter batch-norm-training batch-norm-grad topk cholesky "
                   "triangular-solve scan")
"""Operators that a library may compute, or that are expanded to such."""
DIVIDED = hlo.named("divide batch-norm-training batch-norm-grad batch-norm-inference logistic")
"""Divisions, and what is expanded to them."""
REASSOCIATED = DIVIDED | hlo.named("add multiply subtract")
"""Sums and products, and what becomes one."""
UNEQUAL = hlo.named("divide remainder convert")
"""Operators of whose cost releases think differently."""


def decisive(computation: Computation, release: CpuRelease) -> Answers:
    """What the tests of a release that others do not make say of the instructions of a computation."""
    numbered = list(enumerate(computation.instructions))
    place = {instruction: number for number, instruction in numbered}
    reductions = [number for number, i in numbered if i.op is hlo.reduce]
    return (
        tuple(n for n, i in numbered if inefficient_concatenation(i, release.concatenations)),
        tuple(n for n, i in numbered if i.op in UNEQUAL and is_expensive(i, release)),
        release.reduction_limit and len(reductions) > MAX_REDUCTIONS,
        release.major_reductions and any(major_reduction(i) for _, i in numbered),
        tuple(place[i] for i in shifted_by_their_maximum(computation.instructions)) if release.stores_shifted else ())


def rewritten_alike(rewriting: Rewriting, nodes: Iterable[Node]) -> Answers:
    """What of a release's rewriting matters for some operators."""
    nodes = list(nodes)
    ops = {node.op for node in nodes}
    narrow = any(isinstance(node.type, TensorType) and node.type.dtype.name == "bf16" for node in nodes)
    return (rewriting.library if ops & CALLED else None, rewriting.columns and hlo.dot in ops, rewriting.sums_products and hlo.dot in ops,
            rewriting.inverts and bool(ops & DIVIDED),
            rewriting.opens_barriers and hlo.opt_barrier in ops, rewriting.keeps_narrow and narrow,
            rewriting.reassociates and bool(ops & REASSOCIATED), frozenset() if hlo.exponential not in ops else rewriting.without)
