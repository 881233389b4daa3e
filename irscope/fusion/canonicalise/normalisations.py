"""Batch normalisation, written out as XLA's ``BatchNormExpander`` writes it."""
from __future__ import annotations

from irscope.fusion.canonicalise.terms import Body, Term
from irscope.graph import Op
from irscope.ops import hlo
from irscope.ops.attributes import BatchNorm


def expand_normalisations(body: Body) -> None:
    """Write out every batch normalisation of one body."""
    for term in list(body.instructions):
        match term.op:
            case hlo.batch_norm_training:
                _training(body, term)
            case hlo.batch_norm_inference:
                _inference(body, term)
            case hlo.batch_norm_grad:
                _gradient(body, term)


class _Steps:
    """Arithmetic between arrays of the shape of ``x`` and vectors along its feature axis."""

    def __init__(self, body: Body, term: Term) -> None:
        self.body, self.term = body, term
        self.x = term.operands[0]
        self.axis = BatchNorm.of(term).feature_index
        self.others = [d for d in range(self.x.rank) if d != self.axis]

    def do(self, op: Op, *operands: Term) -> Term:
        return self.body.elementwise(op, operands, self.term)

    def spread(self, vector: Term) -> Term:
        return self.body.broadcast(vector, self.x.dims, (self.axis,), self.term)

    def sum(self, array: Term) -> Term:
        return self.body.sum(array, self.others, self.term)

    def count(self, like: Term) -> Term:
        """How many elements a feature has, as an array."""
        return self.body.full(self.x.elements // max(1, self.x.dims[self.axis]), like, self.term)

    def safe(self, variance: Term) -> Term:
        """The variance, kept from zero."""
        return self.do(hlo.add, variance, self.body.full(BatchNorm.of(self.term).epsilon, variance, self.term))

    def normalised(self, mean: Term, variance: Term) -> Term:
        """The result of both forward operators."""
        scale, offset = self.term.operands[1:3]
        centred = self.do(hlo.subtract, self.x, self.spread(mean))
        scaled = self.do(hlo.multiply, centred, self.do(hlo.rsqrt, self.safe(self.spread(variance))))
        return self.do(hlo.add, self.do(hlo.multiply, scaled, self.spread(scale)), self.spread(offset))


def _training(body: Body, term: Term) -> None:
    """Mean and variance of x itself, the variance as the mean of squares without the square of the mean."""
    steps = _Steps(body, term)
    mean = steps.do(hlo.divide, steps.sum(steps.x), steps.count(term.operands[1]))
    squares = steps.do(hlo.divide, steps.sum(steps.do(hlo.multiply, steps.x, steps.x)), steps.count(term.operands[1]))
    variance = steps.do(hlo.subtract, squares, steps.do(hlo.multiply, mean, mean))
    body.replace(term, body.make(hlo.tuple, term.type, (steps.normalised(mean, variance), mean, variance), {}, term))


def _inference(body: Body, term: Term) -> None:
    """With known statistics scale and offset are joined first: x a + (offset - mean a), where a = scale / deviation."""
    steps = _Steps(body, term)
    scale, offset, mean, variance = term.operands[1:]
    factor = steps.do(hlo.multiply, scale, steps.do(hlo.rsqrt, steps.safe(variance)))
    shift = steps.do(hlo.subtract, offset, steps.do(hlo.multiply, mean, factor))
    body.replace(term, steps.do(hlo.add, steps.do(hlo.multiply, steps.x, steps.spread(factor)), steps.spread(shift)))


def _gradient(body: Body, term: Term) -> None:
    """The gradients for x, scale and offset."""
    steps = _Steps(body, term)
    scale, mean, variance, out = term.operands[1:]
    centred = steps.do(hlo.subtract, steps.x, steps.spread(mean))
    safe = steps.safe(steps.spread(variance))
    factor = steps.do(hlo.divide, steps.do(hlo.multiply, steps.spread(scale), steps.do(hlo.rsqrt, safe)), steps.count(steps.x))
    total = steps.sum(out)
    along = steps.sum(steps.do(hlo.multiply, out, centred))
    first = steps.do(hlo.subtract, steps.do(hlo.multiply, out, steps.count(steps.x)), steps.spread(total))
    second = steps.do(hlo.divide, steps.do(hlo.multiply, steps.spread(along), centred), safe)
    gradient = steps.do(hlo.multiply, factor, steps.do(hlo.subtract, first, second))
    for_scale = steps.do(hlo.multiply, along, steps.do(hlo.rsqrt, steps.safe(variance)))
    body.replace(term, body.make(hlo.tuple, term.type, (gradient, for_scale, total), {}, term))
