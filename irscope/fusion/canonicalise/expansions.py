"""Operators that XLA expands before it simplifies: the logistic function, maps, batch normalisation (``BatchNormExpander``)."""
from __future__ import annotations

from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction, Rule
from irscope.graph import Op
from irscope.ops import hlo
from irscope.ops.attributes import BatchNorm


def expand_logistic(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Expand logistic(x) to 1 / (1 + exp(-x)) (``LogisticExpander``)."""
    one = rewriter.full(1, instr)
    exponential = rewriter.elementwise(hlo.exponential, (rewriter.elementwise(hlo.negate, instr.operands),))
    return rewriter.become(instr, hlo.divide, (one, rewriter.elementwise(hlo.add, (one, exponential))))


def inline_map(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Replace a map of one operator by that operator on arrays (``MapInliner``)."""
    graph = next(iter(instr.bodies), None)
    if graph is None:
        return False
    root, params = graph.result(), list(graph.params)
    if root in params:
        return rewriter.replace(instr, instr.operands[params.index(root)])
    return bool(root.operands) and all(o in params for o in root.operands) \
        and rewriter.become(instr, root.op, [instr.operands[params.index(o)] for o in root.operands], root.attrs)


class _Steps:
    """Arithmetic between arrays of the shape of ``x`` and vectors along its feature axis."""

    def __init__(self, rewriter: HloComputation, instr: HloInstruction) -> None:
        self.rewriter, self.instr = rewriter, instr
        self.x = instr.operands[0]
        self.axis = BatchNorm.of(instr).feature_index
        self.others = [d for d in range(self.x.rank) if d != self.axis]

    def do(self, op: Op, *operands: HloInstruction) -> HloInstruction:
        return self.rewriter.elementwise(op, operands)

    def spread(self, vector: HloInstruction) -> HloInstruction:
        return self.rewriter.broadcast(vector, self.x.dims, (self.axis,))

    def sum(self, array: HloInstruction) -> HloInstruction:
        return self.rewriter.sum(array, self.others)

    def count(self, like: HloInstruction) -> HloInstruction:
        """The number of elements of a feature, as an array."""
        return self.rewriter.full(self.x.elements // max(1, self.x.dims[self.axis]), like)

    def safe(self, variance: HloInstruction) -> HloInstruction:
        """The variance plus epsilon, so that it is not zero."""
        return self.do(hlo.add, variance, self.rewriter.full(BatchNorm.of(self.instr).epsilon, variance))

    def normalised(self, mean: HloInstruction, variance: HloInstruction) -> HloInstruction:
        """The result of both forward operators."""
        scale, offset = self.instr.operands[1:3]
        centred = self.do(hlo.subtract, self.x, self.spread(mean))
        scaled = self.do(hlo.multiply, centred, self.do(hlo.rsqrt, self.safe(self.spread(variance))))
        return self.do(hlo.add, self.do(hlo.multiply, scaled, self.spread(scale)), self.spread(offset))


def expand_training(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Expand training: mean and variance of x itself, the variance as the mean of squares minus the square of the mean."""
    steps = _Steps(rewriter, instr)
    mean = steps.do(hlo.divide, steps.sum(steps.x), steps.count(instr.operands[1]))
    squares = steps.do(hlo.divide, steps.sum(steps.do(hlo.multiply, steps.x, steps.x)), steps.count(instr.operands[1]))
    variance = steps.do(hlo.subtract, squares, steps.do(hlo.multiply, mean, mean))
    return rewriter.replace(instr, rewriter.make(hlo.tuple, instr.type, (steps.normalised(mean, variance), mean, variance)))


def expand_inference(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Expand inference with known statistics: x a + (offset - mean a), where a = scale / deviation, computed once for each feature."""
    steps = _Steps(rewriter, instr)
    scale, offset, mean, variance = instr.operands[1:]
    factor = steps.do(hlo.multiply, scale, steps.do(hlo.rsqrt, steps.safe(variance)))
    shift = steps.do(hlo.subtract, offset, steps.do(hlo.multiply, mean, factor))
    return rewriter.replace(instr, steps.do(hlo.add, steps.do(hlo.multiply, steps.x, steps.spread(factor)), steps.spread(shift)))


def expand_gradient(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Expand the gradients for x, scale and offset."""
    steps = _Steps(rewriter, instr)
    scale, mean, variance, out = instr.operands[1:]
    centred = steps.do(hlo.subtract, steps.x, steps.spread(mean))
    safe = steps.safe(steps.spread(variance))
    factor = steps.do(hlo.divide, steps.do(hlo.multiply, steps.spread(scale), steps.do(hlo.rsqrt, safe)), steps.count(steps.x))
    total = steps.sum(out)
    along = steps.sum(steps.do(hlo.multiply, out, centred))
    first = steps.do(hlo.subtract, steps.do(hlo.multiply, out, steps.count(steps.x)), steps.spread(total))
    second = steps.do(hlo.divide, steps.do(hlo.multiply, steps.spread(along), centred), safe)
    gradient = steps.do(hlo.multiply, factor, steps.do(hlo.subtract, first, second))
    for_scale = steps.do(hlo.multiply, along, steps.do(hlo.rsqrt, steps.safe(variance)))
    return rewriter.replace(instr, rewriter.make(hlo.tuple, instr.type, (gradient, for_scale, total)))


NORMALISATIONS: dict[Op, Rule] = {
    hlo.batch_norm_training: expand_training, hlo.batch_norm_inference: expand_inference, hlo.batch_norm_grad: expand_gradient}


def expand_operators(rewriter: HloComputation) -> None:
    """Expand the operators that XLA's CPU emitter does not have."""
    rewriter.apply(expand_logistic, hlo.logistic)
    rewriter.apply(lambda rewriter, instr: NORMALISATIONS[instr.op](rewriter, instr), *NORMALISATIONS)
    rewriter.apply(inline_map, hlo.map)
