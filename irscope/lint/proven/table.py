"""The candidates for a fix: for each reason of a refusal, the changes that may help, the smallest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from irscope.lint.edits import Edit
from irscope.lint.proven.changes import barriers, duplicates, equivalents, movement, pieces, products, reductions
from irscope.lint.proven.site import RefusedEdge

EVERY = "*"
"""Stands for all rules of a policy."""


@dataclass(frozen=True, slots=True)
class FixCandidate:
    """A change that may have an edge fused.

    ``name`` is a noun phrase for a sentence ("tried: ..."), ``how`` the instruction in the terms of each framework (``jax``, ``torch``,
    ``relay``; "" for all others), with ``{p}`` and ``{c}`` for the two ends and ``{x}`` for what is replaced. ``change`` returns the edit,
    or None where it does not apply. ``rules`` are the reasons of refusal that it may remove, by compiler or for all.
    """

    key: str
    name: str
    how: Mapping[str, str]
    change: Callable[[RefusedEdge], Edit | None]
    rules: Mapping[str, tuple[str, ...]]

    def answers(self, compiler: str, rule: str) -> bool:
        """Whether the candidate is for this reason of refusal."""
        wanted = (*self.rules.get(compiler, ()), *self.rules.get(EVERY, ()))
        return rule in wanted or EVERY in wanted


LIBRARY = ("library-call", "not-loop-fusible", "no-case", "consumer-not-fusible", "operand-not-fusible", "producer-not-fusible",
           "extern-kernel", "stands-alone", "one-anchor", "two-complex", "opaque", "not-tried", "scatter-result", "several-results")
"""Refusals because one end is no loop."""
REPEATED = ("can-not-duplicate", "expensive-twice", "not-profitable", "too-many-copies", "shifted-by-its-maximum", "slower",
            "code-duplication", "multi-consumer", "path", "output", "stored-for-others", "repeated-work", "read-twice", "cycle",
            "intermediate-node", "peak-memory", "")
"""Refusals because the producer would be computed more than once."""
SHAPES = ("concatenate", "not-tiled", "bitcast-consumer", "only-bitcast-users", "complex-into-shape", "injective-into-reduce",
          "injective-into-complex", "prologue", "reordered", "reshaped", "moved", "no-shared-data", "other-loops", "reads-whole",
          "index-mismatch", "iteration-space-mismatch", "concatenation")
"""Refusals because of a movement between the two."""
REDUCED = ("reduce-epilogue", "reduce-after-reduce", "too-many-reductions", "major-reduction", "shared-memory", "reduce-out", "other-loops",
           "reduction-then-other-loops", "iteration-space-mismatch", "long-row")
"""Refusals because of reductions."""

TABLE: tuple[FixCandidate, ...] = (
    FixCandidate(
        "remove-barrier", "no barrier between them",
        {"jax": "remove the jax.lax.optimization_barrier between {p} and {c}", "": "remove the barrier between {p} and {c}"},
        barriers.without_barrier, {EVERY: (EVERY,)}),
    FixCandidate(
        "cast-after", "the cast after the reader",
        {"jax": "apply {c} before the .astype of {p}", "torch": "apply {c} before the .to(dtype) of {p}",
         "": "apply {c} before the cast {p}"},
        movement.cast_after, {EVERY: (EVERY,)}),
    FixCandidate(
        "cast-before", "the cast before the movement",
        {"jax": "apply the .astype of {c} before {p}", "torch": "apply the .to(dtype) of {c} before {p}",
         "": "apply the cast {c} before {p}"},
        movement.cast_before, {EVERY: (EVERY,)}),
    FixCandidate(
        "merge-reductions", "one reduction over both sets of axes",
        {"": "reduce once, over the axes of {p} and of {c} together"},
        reductions.merge_reductions, {EVERY: (*REDUCED, *LIBRARY, *REPEATED)}),
    FixCandidate(
        "reduce-unmoved", "a reduction without the movement",
        {"": "leave out {p}, and let {c} reduce the axes of what {p} reads"},
        movement.reduce_without_movement, {EVERY: (*REDUCED, *LIBRARY, *SHAPES, *REPEATED)}),
    FixCandidate(
        "product-unmoved", "a product without the transpose",
        {"jax": "leave out {p}: let {c} contract the axes of what it reads (jnp.einsum, lax.dot_general)",
         "torch": "leave out {p}: let {c} contract the axes of what it reads (torch.einsum)",
         "": "leave out {p}: let {c} contract the other axis"},
        movement.multiply_without_transpose, {EVERY: (*LIBRARY, *SHAPES, *REPEATED)}),
    FixCandidate(
        "product-swapped", "a product with its sides swapped",
        {"": "swap the two sides of {p}, so that its result needs no {c}"},
        movement.swap_product, {EVERY: (*LIBRARY, *SHAPES, *REPEATED)}),
    FixCandidate(
        "product-reordered", "another order of the two products",
        {"": "multiply the operands of {c} first: A @ (B @ v) for (A @ B) @ v"},
        products.reorder_products, {EVERY: (*LIBRARY, *REPEATED, *SHAPES, *REDUCED)}),
    FixCandidate(
        "slice-before", "the slice before the producer",
        {"": "slice what {p} reads, and compute only the part that {c} takes"},
        pieces.slice_before, {EVERY: (EVERY,)}),
    FixCandidate(
        "scatter-into", "a scatter into the other summand",
        {"jax": "scatter into the other operand of {c}: y.at[i].add(u) for zeros.at[i].add(u) + y",
         "": "scatter into the other operand of {c}"},
        equivalents.scatter_into, {EVERY: (EVERY,)}),
    FixCandidate(
        "movement-after", "the movement after the reader",
        {"": "apply {c} before {p}: move the result instead of the operand"},
        movement.movement_after, {EVERY: (*LIBRARY, *SHAPES, *REPEATED, *REDUCED)}),
    FixCandidate(
        "movement-before", "the movement before the producer",
        {"": "move the operands of {p} instead of its result, which {c} moves"},
        movement.movement_before, {EVERY: (*LIBRARY, *SHAPES, *REPEATED, *REDUCED)}),
    FixCandidate(
        "reader-before-movement", "what follows the movement before it",
        {"": "apply what reads {c} to {p} itself, and move its result"},
        movement.reader_before_movement, {EVERY: (*LIBRARY, *SHAPES, *REPEATED, *REDUCED)}),
    FixCandidate(
        "scale-after-product", "the scale after the product",
        {"": "scale the result of {c} instead of its operand (which {p} scales)"},
        products.scale_after_product, {EVERY: (*LIBRARY, *SHAPES, *REPEATED)}),
    FixCandidate(
        "scale-before-sum", "the scale before the sum",
        {"": "scale what {p} sums instead of its result (which {c} scales)"},
        reductions.scale_before_sum, {EVERY: (*REDUCED, *LIBRARY, *REPEATED)}),
    FixCandidate(
        "reduce-pieces", "a reduction of each piece",
        {"": "reduce each piece of {p} and combine the results, instead of {c} over all of it"},
        pieces.reduce_pieces, {EVERY: (*SHAPES, *LIBRARY, *REPEATED)}),
    FixCandidate(
        "choose-pieces", "a choice among padded pieces",
        {"jax": "write {x} as jnp.where(index < n, jnp.pad(a, ...), jnp.pad(b, ...)), which is computed in its reader",
         "torch": "write {x} as torch.where(index < n, F.pad(a, ...), F.pad(b, ...)), which is computed in its reader",
         "": "write {x} as a choice among the padded pieces by their index"},
        pieces.choose_pieces, {EVERY: ("too-many-copies", *SHAPES, *LIBRARY)}),
    FixCandidate(
        "apply-to-pieces", "the reader on each piece",
        {"": "apply {c} to each piece, before {p}"},
        pieces.apply_to_pieces, {EVERY: ("too-many-copies", *SHAPES, *LIBRARY)}),
    FixCandidate(
        "reciprocal", "a multiplication by the reciprocal",
        {"": "multiply by the reciprocal instead of dividing in {x} (the last digit may differ)"},
        equivalents.multiply_by_reciprocal, {EVERY: REPEATED}),
    FixCandidate(
        "sum-of-products", "a sum of products instead of the product",
        {"jax": "write {x} as jnp.sum(a * b, axis), which is computed with its neighbours",
         "torch": "write {x} as (a * b).sum(dim), which is computed with its neighbours",
         "": "write {x} as a sum of products"},
        products.sum_products, {EVERY: (*LIBRARY, *REPEATED, *REDUCED)}),
    FixCandidate(
        "duplicate", "a second computation",
        {"": "compute {p} a second time for {c}"},
        duplicates.duplicate, {EVERY: (*REPEATED, "root")}),
    FixCandidate(
        "duplicate-behind-barrier", "a second computation behind a barrier",
        {"jax": "compute {p} a second time for {c}, from operands that jax.lax.optimization_barrier returns (or under jax.checkpoint)",
         "": "compute {p} a second time for {c}, from operands behind an optimization barrier"},
        duplicates.duplicate_behind_barrier, {"xla-cpu": (*REPEATED, "root"), "xla-gpu": (*REPEATED, "root")}),
)
"""In the order in which they are tried."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A candidate that applies: its edit, and the edge of the text that it is about."""

    candidate: FixCandidate
    edit: Edit
    step: RefusedEdge


def proposals(edge: RefusedEdge) -> Iterator[Proposal]:
    """The candidates that apply to an edge, in the order of the table; of an edge that is a path in the text, to its first step."""
    steps = list(edge.steps())
    for candidate in TABLE:
        if candidate.answers(edge.compiler, edge.rule):
            found = (Proposal(candidate, edit, step) for step in steps if (edit := candidate.change(step)) is not None)
            yield from islice(found, 1)
