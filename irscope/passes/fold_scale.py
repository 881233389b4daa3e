"""Scale folding: folds scales after a contraction with fixed weights into the weights, and merges the shifts."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.analysis.constant import known_early
from irscope.graph import Builder, Graph, Module, Node, Op, TensorType, copy_node, rewrite, see_through
from irscope.lazy import ml_dtypes, np
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Constant, Convolution, Dot
from irscope.passes.algebra.simplifier import of
from irscope.passes.base import Pass, per_graph
from irscope.passes.visitor import without_dead

SUMS = hlo.named("add subtract")
CONTRACTIONS = hlo.named("convolution dot")
MAX_SUMS = 16
"""Sums with constants between a contraction and its scale, each of which is computed again for each scale: layers have one or two."""


class FoldScale(Pass):
    """Multiply the fixed weights of a convolution or dot by the scale of its result, and merge the constants that are added to it.

        c = f32[1,8,8,64] convolution(x, w)                     w2 = f32[3,3,16,64] multiply(w, broadcast(s))
        m = f32[1,8,8,64] multiply(c, broadcast(s))     ->      c = f32[1,8,8,64] convolution(x, w2)
        ROOT r = f32[1,8,8,64] add(m, broadcast(b))             ROOT r = f32[1,8,8,64] add(c, broadcast(b))

    Batch normalisation in inference has this form. Applies if ``w`` and ``s`` are known at compile time and the intermediate result has
    no other user; rounding then happens elsewhere, within a few units in the last place. Weights stay unchanged whose type is not that of
    the scale, or that would leave its range of normal numbers; so do floats narrower than 16 bits, whose range is so small that a sum
    of constants may overflow too.
    """

    name = "fold-scale"

    def run(self, module: Module) -> Module:
        return per_graph(module, _fold) if module.is_primitive else module


def _fold(graph: Graph, became: dict[Graph, Graph]) -> Graph:
    known = known_early(graph)
    users = [len(u) for u in graph.users()]
    if graph.root is not None:
        users[graph.root.index] += 1
    folding = _Folding(known, users)
    made = see_through(rewrite(graph, folding.rule, became), graph)
    return without_dead(made)  # nodes that were folded, and those of a change that was given up


class _Folding:
    """``known`` and ``users`` describe the graph before; ``fixed`` and ``private`` hold the same for nodes built since."""

    def __init__(self, known: list[bool], users: list[int]) -> None:
        self.known = known
        self.users = users
        self.fixed: set[Node] = set()
        self.private: set[Node] = set()

    def rule(self, builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        made = self._ruled(builder, node, operands) or copy_node(builder, node, operands)
        if self.known[node.index]:
            self.fixed.add(made)
        if self.users[node.index] == 1:
            self.private.add(made)
        return made

    def _ruled(self, builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        if node.bodies or not isinstance(node.type, TensorType) or not node.type.dtype.is_float or node.type.dtype.bits < 16:
            return None
        if node.op is hlo.multiply:
            for x, s in (operands, reversed(operands)):
                if s in self.fixed and x not in self.fixed and s.op is hlo.broadcast:
                    return self._scaled(builder, x, s)
        if node.op in SUMS:
            x, shift = operands
            if node.op is hlo.add and x in self.fixed:
                x, shift = shift, x
            if shift in self.fixed and x not in self.fixed and x in self.private and x.op in SUMS \
                    and shift.op is hlo.broadcast:
                return self._joined(builder, x, shift, node.op)
        return None

    def _scaled(self, builder: Builder, x: Node, s: Node) -> Node | None:
        """``x * s`` with ``s`` folded into the weights that ``x`` is computed from, behind at most :data:`MAX_SUMS` sums."""
        sums: list[tuple[Node, Node]] = []
        while x in self.private and x.op in SUMS and len(sums) < MAX_SUMS:
            found = self._shifted(x)
            if found is None:
                return None
            sums.append((x, found[1]))
            x = found[0]
        made = self._with_weights_scaled(builder, x, s) if x in self.private else None
        for step, b in reversed(sums):
            shift = self._on_small(builder, hlo.multiply, b, s) if made is not None else None
            if made is None or shift is None:
                return None
            self.private.add(made)
            made = builder.add(step.op, (made, shift), step.attrs, step.type, name=step.name)
        return made

    def _shifted(self, x: Node) -> tuple[Node, Node] | None:
        """The value and the fixed broadcast of a sum, or of a difference from the value; None if it has none."""
        for y, b in (x.operands, x.operands[::-1]):
            if b in self.fixed and b.op is hlo.broadcast and y in self.private and (x.op is hlo.add or y is x.operands[0]):
                return y, b
        return None

    def _with_weights_scaled(self, builder: Builder, x: Node, s: Node) -> Node | None:
        """A contraction with ``s`` folded into its fixed weights."""
        if x.op not in CONTRACTIONS or x.operands[1] not in self.fixed:
            return None
        dimension = _weight_dimension(x, s)
        if dimension is None:
            return None
        weights, small = x.operands[1], s.operands[0]
        if not _stay_in_range(weights, small, dimension):
            return None
        factor = builder.add(hlo.broadcast, (small,), {"dimensions": () if dimension < 0 else (dimension,)}, weights.type)
        scaled_weights = builder.add(hlo.multiply, (weights, factor), type=weights.type, name=weights.name)
        self.fixed |= {factor, scaled_weights}
        return builder.add(x.op, (x.operands[0], scaled_weights), x.attrs, x.type, name=x.name)

    def _joined(self, builder: Builder, x: Node, shift: Node, op: Op) -> Node | None:
        """``(y + b) + c`` as ``y + (b + c)``, and the same for differences, if ``y`` is a contraction, whose order of summation is
        unspecified. Other values are rounded as written: programs use ``(y + 12582912) - 12582912`` to round to integers."""
        y, b = x.operands
        if b not in self.fixed and x.op is hlo.add:
            y, b = b, y
        if b not in self.fixed or y.op not in CONTRACTIONS or b.op is not hlo.broadcast:
            return None
        total = self._on_small(builder, op if x.op is hlo.add else hlo.subtract if op is hlo.add else hlo.add, b, shift)
        if total is None:
            return None
        return builder.add(x.op, (y, total), x.attrs, x.type, name=x.name)

    def _on_small(self, builder: Builder, op: Op, x: Node, y: Node) -> Node | None:
        """Arithmetic on two fixed broadcasts, moved before the broadcasts."""
        a, b = x.operands[0], y.operands[0]
        dims_a, dims_b = tuple(Broadcast.of(x).dimensions), tuple(Broadcast.of(y).dimensions)
        if dims_a != dims_b:
            if dims_a and dims_b:
                return None
            wide, dims = (a.type, dims_a) if dims_a else (b.type, dims_b)
            a, b = (n if n.type == wide else builder.add(hlo.broadcast, (n,), {"dimensions": ()}, wide) for n in (a, b))
        else:
            dims = dims_a
        small = builder.add(op, (a, b), type=a.type)
        made = builder.add(hlo.broadcast, (small,), {"dimensions": dims}, x.type)
        self.fixed |= {a, b, small, made}
        return made


def _weight_dimension(x: Node, s: Node) -> int | None:
    """The dimension of the weights that corresponds to the axis of a factor of the result; -1 for a scalar; None if there is none."""
    dims = tuple(Broadcast.of(s).dimensions)
    if not dims:
        return -1
    if len(dims) != 1:
        return None
    if x.op is hlo.convolution:
        conv = Convolution.of(x).dim_labels
        return conv.rhs_output if dims[0] == conv.out_feature and Convolution.of(x).batch_group_count == 1 else None
    taken = {*Dot.of(x).rhs_contracting_dims, *Dot.of(x).rhs_batch_dims}
    free = [d for d in range(of(x.operands[1]).rank) if d not in taken]
    first = of(x).rank - len(free)
    return free[dims[0] - first] if dims[0] >= first else None


def _stay_in_range(weights: Node, scale: Node, dimension: int) -> bool:
    """Whether weights and a scale along one of their dimensions (-1: a scalar) are of one type that holds the products.

    The largest of each channel decides: it must stay finite, and a normal number. Values that are not written out are trusted.
    """
    if of(weights).dtype is not of(scale).dtype:
        return False
    known = [Constant.of(node).known if node.op is hlo.constant else None for node in (weights, scale)]
    if known[0] is None or known[1] is None or not of(weights).elements:
        return True
    # The decimals of float64 reach further than those of any type but itself.
    values, factor = (np.abs(literal.value().astype(np.float64)) for literal in known if literal is not None)
    largest = values.max(axis=tuple(d for d in range(values.ndim) if d != dimension))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        products = largest * factor
    finfo: Any = ml_dtypes.finfo
    limits = finfo(of(weights).dtype.numpy())
    fits = (products <= float(limits.max)) & ((products >= float(limits.smallest_normal)) | (largest == 0) | (factor == 0))
    return bool(fits.all()) and bool(np.isfinite(largest).all() and np.isfinite(factor).all())
