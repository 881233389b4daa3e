"""Connectionist temporal classification (Graves et al., 2006): the loss of all alignments of a text with a sequence."""
from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.loss import reduced
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import S64
from irscope.ops.loops import repeat
from irscope.ops.tensors import Tensors

MEAN = 1


def _texts(t: Torch, targets: Node, lengths: Node, known: list[int] | None, batch: int) -> Node:
    """s64[batch, longest]: the texts, which torch also takes concatenated; the classes after an end are arbitrary."""
    targets = t.convert(targets, S64)
    if t.rank(targets) == 2:
        return targets
    longest = max(known, default=0) if known is not None else t.size_from_data(t.max(lengths, [0])) if batch else 0
    starts = t.sub(t.cumulative("add", lengths, 0, 0), lengths)
    at = t.add(t.unsqueeze(starts, 1), t.iota((batch, longest), 1, S64))
    if prod(t.shape(at)) == 0 or t.shape(targets) == (0,):
        return t.full((batch, longest), 0, S64)
    return t.take(targets, at, 0)


def _log_sum(t: Tensors, parts: list[Node]) -> Node:
    """log(sum(exp)), -inf where all are."""
    top = parts[0]
    for part in parts[1:]:
        top = t.maximum(top, part)
    safe = t.select(t.compare("EQ", top, t.like(top, float("-inf"))), t.like(top, 0), top)
    total = t.unary("exponential", t.sub(parts[0], safe))
    for part in parts[1:]:
        total = t.add(total, t.unary("exponential", t.sub(part, safe)))
    return t.add(t.unary("log", total), safe)


@dataclass(frozen=True, slots=True)
class CtcTexts:
    """The targets: the letters of all texts, and the numbers of steps and of letters of each text, the latter also as ints where known."""

    targets: Node
    inputs: Node
    lengths: Node
    known: list[int] | None
    blank: int


def losses(t: Torch, log: Node, wanted: CtcTexts) -> Node:
    """[batch]: -log of the probability of each text, from the logarithms ``log`` [time, batch, classes].

    The states are the text with blanks around every letter; a step stays, advances by one, or skips a blank between different letters.
    """
    steps, batch, _ = t.shape(log)
    blank, inputs, lengths = wanted.blank, wanted.inputs, wanted.lengths
    texts = _texts(t, wanted.targets, lengths, wanted.known, batch)
    longest = t.shape(texts)[1]
    n = 2 * longest + 1
    doubled = t.reshape(t.concat([t.full((batch, longest, 1), blank, S64), t.reshape(texts, (batch, longest, 1))], 2), (batch, 2 * longest))
    states = t.concat([doubled, t.full((batch, 1), blank, S64)], 1)
    infinite = t.array(float("-inf"), t.dtype(log))
    place = t.iota((batch, n), 1, S64)
    # Every step's scores of the states: f32[time, batch, states].
    wide = t.broadcast_to(t.unsqueeze(states, 0), (steps, batch, n))
    scores = t.gather_elements(log, wide, 2) if steps and n and batch else t.full((steps, batch, n), 0, t.dtype(log))
    two_before = t.pad(states, t.array(blank, S64), [0, 2], [0, -2]) if n > 2 else states
    letters = t.compare("EQ", t.binary("remainder", place, t.like(place, 2)), t.like(place, 1))
    skips = t.binary("and", t.binary("and", letters, t.compare("GE", place, t.like(place, 2))), t.compare("NE", states, two_before))
    # The initial state is to the left of the first: one step reaches states 0 and 1.
    start = t.select(t.compare("EQ", place, t.like(place, 0)), t.array(0, t.dtype(log)), infinite)

    def step(inner: Tensors, i: Node, state: list[Node]) -> list[Node]:
        alpha, all_scores, may_skip, ends = state
        zero, low = inner.array(0, S64), inner.array(float("-inf"), inner.dtype(alpha))
        now = inner.reshape(inner.dynamic_slice(all_scores, [i, zero, zero], (1, batch, n)), (batch, n))
        parts = [alpha]
        if n > 1:
            parts.append(inner.pad(alpha, low, [0, 1], [0, -1]))
            skipped = inner.pad(alpha, low, [0, 2], [0, -2])
            parts.append(inner.select(may_skip, skipped, inner.like(skipped, float("-inf"))))
        made = inner.add(_log_sum(inner, parts), now)
        running = inner.compare("LT", i, ends)
        return [inner.select(inner.reshape(running, (batch, 1)), made, alpha), all_scores, may_skip, ends]
    alpha = repeat(t, t.array(steps, S64), [start, scores, skips, inputs], step)[0]
    ends = t.unsqueeze(t.scale(lengths, 2), 1)
    last = t.binary("or", t.compare("EQ", place, ends), t.compare("EQ", place, t.plus(ends, -1)))
    final = t.select(last, alpha, infinite)
    top = t.max(final, [1], True)
    safe = t.select(t.compare("EQ", top, infinite), t.like(top, 0), top)
    total = t.sum(t.unary("exponential", t.sub(final, safe)), [1])
    return t.unary("negate", t.add(t.unary("log", total), t.reshape(safe, (batch,))))


def _loss(t: Torch, log: Node, wanted: CtcTexts, reduction: int, zero_infinity: bool) -> Node:
    single = t.rank(log) == 2
    if single:
        log = t.unsqueeze(log, 1)
    inputs, lengths = (t.reshape(t.convert(v, S64), (t.shape(log)[1],)) for v in (wanted.inputs, wanted.lengths))
    found = losses(t, log, replace(wanted, inputs=inputs, lengths=lengths))
    if zero_infinity:
        found = t.select(t.compare("EQ", found, t.like(found, float("inf"))), t.like(found, 0), found)
    if reduction == MEAN:
        found = t.div(found, t.convert(t.maximum(lengths, t.like(lengths, 1)), t.dtype(found)))
    return t.reshape(found, ()) if single and reduction == 0 else reduced(t, found, reduction)


@operator("ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, int reduction=1, "
          "bool zero_infinity=False)")
def ctc_loss(t: Torch, log: Node, targets: Node, inputs: list[int], lengths: list[int], blank: int, reduction: int, zero: bool) -> Node:
    return _loss(t, log, CtcTexts(targets, t.array(inputs, S64), t.array(lengths, S64), lengths, blank), reduction, zero)


@operator("ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, int reduction=1, "
          "bool zero_infinity=False)")
def ctc_loss_of_tensors(t: Torch, log: Node, targets: Node, inputs: Node, lengths: Node, blank: int, reduction: int, zero: bool) -> Node:
    return _loss(t, log, CtcTexts(targets, inputs, lengths, None, blank), reduction, zero)
