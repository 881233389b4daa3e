"""The epilogue of an anchor: computes the pointwise nodes of the group in registers, before the results are stored."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from irscope.fusion.drafts import dims_of
from irscope.fusion.views import VIEWS, Chain, Repeat, Strides, seen_through
from irscope.graph import Node, TensorType
from irscope.graph.node import Index
from irscope.lower.build import KernelBuilder
from irscope.lower.pull import Pull
from irscope.lower.templates import Problem
from irscope.lower.tile import Expr
from irscope.lower.values import is_scalar_constant
from irscope.ops import hlo
from irscope.ops.attributes import Iota
from irscope.ops.attrs import ConvDims

Walk = tuple[int, ...]


def walks(problem: Problem) -> tuple[list[Walk], list[Walk]] | None:
    """The strides of the epilogue's accesses over the anchor's dimensions, as (written, read); None where strides do not describe one.

    A node that counts (iota) walks the one dimension that it counts along.
    """
    group, anchor = problem.group, problem.group.anchor
    assert anchor is not None
    shape = dims_of(anchor)
    written: list[Walk] = []
    read: set[Walk] = set()
    inside = set(group.nodes)
    seen: set[tuple[Node, Chain | None]] = set()
    for output in group.outputs:
        if dims_of(output) != shape:
            return None
        written.append(problem.outs[output].strides)
        stack: list[tuple[Node, Chain | None]] = [(output, None)]
        while stack:
            node, chain = stack.pop()
            if (node, chain) in seen or node is anchor:
                continue
            seen.add((node, chain))
            if node not in inside:
                found = problem.ins[node].seen_through(chain) if node in problem.ins else None
                if found is not None:
                    read.add(found.strides)
                elif not is_scalar_constant(node):
                    return None
            elif node.op is hlo.iota:
                own = dims_of(node)
                counted = tuple(int(d == Iota.of(node).iota_dimension) for d in range(len(own)))
                walked = seen_through(chain, Strides(own, counted))
                if walked is None:
                    return None
                read.add(walked.strides)
            elif node.op in VIEWS:
                stack.append((node.operands[0], Chain(node, chain)))
            elif node.op.scalar is not None:
                stack.extend((o, chain if dims_of(o) == dims_of(node) else Chain(Repeat(shape))) for o in node.operands)
            elif node.operands:
                return None
    return written, sorted(read)


class Epilogue(Pull):
    """Applies the rest of the group to results of the anchor and stores its outputs. Lanes are along dimension ``axis`` of the anchor."""

    def __init__(self, k: KernelBuilder, problem: Problem, axis: int) -> None:
        super().__init__(k, problem)
        self.axis = axis
        self.mask: Expr | None = None

    def __call__(self, value: Expr, index: Sequence[Index], mask: Expr | None = None) -> None:
        """The anchor's value at ``index``, or its values from there along the axis; ``mask`` says which of them exist."""
        anchor = self.problem.group.anchor
        assert anchor is not None and isinstance(anchor.type, TensorType)
        at = list(index)
        if at:
            at[self.axis] = self.lanes(at[self.axis], value.lanes)
        self.mask = mask
        self.give(anchor, at, self.k.convert(value, anchor.type.dtype))
        for output in self.problem.group.outputs:
            self.store(output, at, self.k.splat(self.value(output, at), value.lanes), mask)

    def of_image(self, dims: ConvDims) -> Callable[[Expr, Sequence[Index], Expr | None], None]:
        """The same as a function for the loops of a convolution: it takes a value, its (batch, spatial indices, feature), and a mask."""
        order = (dims.out_batch, *dims.out_spatial, dims.out_feature)

        def finish(value: Expr, place: Sequence[Index], mask: Expr | None) -> None:
            self(value, [place[order.index(d)] for d in range(len(order))], mask)
        return finish

    def load(self, node: Node, index: Sequence[object], mask: Expr | None = None) -> Expr:
        """Load an input; masked-off lanes are not read."""
        return super().load(node, index, mask if mask is not None else self.mask)
