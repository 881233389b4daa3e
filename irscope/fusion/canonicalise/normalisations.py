"""Batch normalisation, written out as XLA's ``BatchNormExpander`` writes it."""
from __future__ import annotations

from irscope.fusion.canonicalise.terms import Body, Term


def expand_normalisations(body: Body) -> None:
    """Write out every batch normalisation of one body."""
    for term in list(body.terms):
        match term.op:
            case "batch-norm-training":
                _training(body, term)
            case "batch-norm-inference":
                _inference(body, term)
            case "batch-norm-grad":
                _gradient(body, term)


class _Steps:
    """Arithmetic between arrays of the shape of ``x`` and vectors along its feature axis."""

    def __init__(self, body: Body, term: Term) -> None:
        self.body, self.term = body, term
        self.x = term.operands[0]
        self.axis: int = term.attrs["feature_index"]
        self.others = [d for d in range(self.x.rank) if d != self.axis]

    def do(self, op: str, *operands: Term) -> Term:
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
        return self.do("add", variance, self.body.full(self.term.attrs["epsilon"], variance, self.term))

    def normalised(self, mean: Term, variance: Term) -> Term:
        """The result of both forward operators."""
        scale, offset = self.term.operands[1:3]
        centred = self.do("subtract", self.x, self.spread(mean))
        scaled = self.do("multiply", centred, self.do("rsqrt", self.safe(self.spread(variance))))
        return self.do("add", self.do("multiply", scaled, self.spread(scale)), self.spread(offset))


def _training(body: Body, term: Term) -> None:
    """Mean and variance of x itself, the variance as the mean of squares without the square of the mean."""
    steps = _Steps(body, term)
    mean = steps.do("divide", steps.sum(steps.x), steps.count(term.operands[1]))
    squares = steps.do("divide", steps.sum(steps.do("multiply", steps.x, steps.x)), steps.count(term.operands[1]))
    variance = steps.do("subtract", squares, steps.do("multiply", mean, mean))
    body.replace(term, body.make("tuple", term.type, (steps.normalised(mean, variance), mean, variance), {}, term))


def _inference(body: Body, term: Term) -> None:
    """With known statistics scale and offset are joined first: x a + (offset - mean a), where a = scale / deviation."""
    steps = _Steps(body, term)
    scale, offset, mean, variance = term.operands[1:]
    factor = steps.do("multiply", scale, steps.do("rsqrt", steps.safe(variance)))
    shift = steps.do("subtract", offset, steps.do("multiply", mean, factor))
    body.replace(term, steps.do("add", steps.do("multiply", steps.x, steps.spread(factor)), steps.spread(shift)))


def _gradient(body: Body, term: Term) -> None:
    """The gradients for x, scale and offset."""
    steps = _Steps(body, term)
    scale, mean, variance, out = term.operands[1:]
    centred = steps.do("subtract", steps.x, steps.spread(mean))
    safe = steps.safe(steps.spread(variance))
    factor = steps.do("divide", steps.do("multiply", steps.spread(scale), steps.do("rsqrt", safe)), steps.count(steps.x))
    total = steps.sum(out)
    along = steps.sum(steps.do("multiply", out, centred))
    first = steps.do("subtract", steps.do("multiply", out, steps.count(steps.x)), steps.spread(total))
    second = steps.do("divide", steps.do("multiply", steps.spread(along), centred), safe)
    gradient = steps.do("multiply", factor, steps.do("subtract", first, second))
    for_scale = steps.do("multiply", along, steps.do("rsqrt", steps.safe(variance)))
    body.replace(term, body.make("tuple", term.type, (gradient, for_scale, total), {}, term))
