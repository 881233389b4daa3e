"""Counts the scalar operations of a kernel's loops, and those that its nodes take when each is computed once.

    for i0 in 0..64 step 1:                 64 trips
      for i1 in 0..128 step 16:             64 * 8 trips
        v0 = load.16 x[i0*128 + i1]
        store.16 y[i0*128 + i1] = v0 * v0   one multiplication and one store of 16 lanes: 64 * 8 * 32 operations

Both counts include arithmetic, comparisons, conversions and stores, one per lane; a fused multiply-add is two. Loads, addresses,
selections, masks and moves between registers are free. An expression counts where code generation computes it: in the innermost loop
that changes it.
"""
from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import cast

from irscope.fusion import Group
from irscope.fusion.drafts import dims_of
from irscope.graph import Graph, Node, TensorType
from irscope.graph.dtypes import PRED
from irscope.lower.build import KernelBuilder
from irscope.lower.inline import NoScalarMeaning
from irscope.lower.templates import Problem
from irscope.lower.tile import Assign, Declare, Expr, For, GatherLoad, Kernel, Let, Load, Stmt, Store, While
from irscope.lower.traversal import Visitor, fold, visits, walk
from irscope.ops import hlo
from irscope.ops.attributes import Windowed
from irscope.ops.convolution import Conv
from irscope.ops.costs import result_elements

SMALL = 1 << 16
"""Operations of a kernel that runs in some microseconds: padding to vectors and tiles may be most of them."""

MOST_PADDED = 32.0
"""Padding of vectors and tiles explains no more than this: a group that computes more is split when it is lowered."""

_BOUNDS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "min": min, "max": max, "floordiv": operator.floordiv,
    "floormod": operator.mod,
}
"""The operations that are evaluated in the bounds of loops."""
_FREE = frozenset("const var reg lane splat shuffle bitcast complex real imag select".split())


# ---- a kernel


def operations(kernel: Kernel) -> float:
    """The operations of one call. Loops whose end depends on data count once (:func:`has_open_loops`)."""
    return _Count().kernel(kernel)


def has_open_loops(kernel: Kernel) -> bool:
    """Whether the end of a loop depends on data."""
    return any(isinstance(statement, While) for statement in walk(kernel.body))


class _Count(Visitor):
    """One walk over a kernel.

    ``times[d]`` is how often the statements at depth ``d`` run, ``level`` the depth at which a variable is set, ``middle`` the value of a
    loop's variable in the middle of the loop.
    """

    def __init__(self) -> None:
        self.times = [1.0]
        self.level: dict[Expr, int] = {}
        self.middle: dict[Expr, int] = {}
        self.address: set[Expr] = set()  # integers that depend on no memory: addresses and masks
        self.known: list[dict[Expr, int]] = [{}]  # for each open block the expressions that were computed since it began: their depth
        self.total = 0.0

    def kernel(self, kernel: Kernel) -> float:
        self.block(kernel.body)
        return self.total

    @visits(Stmt)
    def other(self, s: Stmt) -> None:
        for block in s.blocks():
            self.inside(block, 1 if s.trips is None else s.trips)

    @visits(Let)
    def let(self, s: Let) -> None:
        self.value(s.value)
        self.level[s.var] = len(self.times) - 1
        if s.value in self.address:
            self.address.add(s.var)

    @visits(Load, GatherLoad)
    def load(self, s: Load | GatherLoad) -> None:
        self.level[s.var] = len(self.times) - 1

    @visits(Store)
    def store(self, s: Store) -> None:
        self.value(s.value)
        self.total += self.times[-1] * s.value.lanes

    @visits(Declare, Assign)
    def set(self, s: Declare | Assign) -> None:
        for value in s.operands():
            self.value(value)

    @visits(For)
    def for_(self, s: For) -> None:
        low, high = self.number(s.low), self.number(s.high)
        trips = max(0, -(-(high - low) // s.step)) if low is not None and high is not None else 1
        self.middle[s.var] = (low or 0) + trips // 2 * s.step
        self.inside(s.body, trips, s.var)

    def inside(self, body: list[Stmt], trips: float, var: Expr | None = None) -> None:
        """Count the statements of a block, which run ``trips`` times in each run of the enclosing block."""
        if not trips:
            return
        self.times.append(self.times[-1] * trips)
        self.known.append({})
        if var is not None:
            self.level[var] = len(self.times) - 1
            self.address.add(var)
        self.block(body)
        self.times.pop()
        self.known.pop()

    def value(self, root: Expr) -> None:
        """Count the operations of an expression that were not counted before."""
        depth = len(self.times) - 1
        stack = [root]
        while stack:
            x = stack[-1]
            if self._computed(x) is not None:
                stack.pop()
                continue
            waiting = [a for a in x.args if self._computed(a) is None]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            if x.op == "var":
                at = self.level.get(x, 0)
            elif x.op == "reg":
                at = depth
            else:
                at = max((self._computed(a) or 0 for a in x.args), default=0)
            self.known[at][x] = at
            if x.op not in ("var", "reg") and not x.dtype.is_float and all(a in self.address for a in x.args):
                self.address.add(x)
            else:
                self.total += self.times[at] * _weight(x)

    def _computed(self, x: Expr) -> int | None:
        if x.op == "reg":
            return len(self.times) - 1
        for block in reversed(self.known):
            if x in block:
                return block[x]
        return None

    def number(self, root: Expr) -> int | None:
        """A loop bound, evaluated in the middle of the enclosing loops; None where it depends on data."""
        return fold(root, {}, self._number)

    def _number(self, x: Expr, args: list[int | None]) -> int | None:
        if x.op == "var":
            return self.middle.get(x)
        if x.constant is not None:
            return x.constant
        numbers = [a for a in args if a is not None]
        if len(numbers) != 2 or len(args) != 2 or (x.op.startswith("floor") and not numbers[1]):
            return None
        rule = _BOUNDS.get(x.op)
        return None if rule is None else rule(*numbers)


def _weight(x: Expr) -> int:
    if x.op in _FREE or (x.dtype is PRED and not x.op.startswith("cmp.")):
        return 0
    lanes = x.args[0].lanes if x.op.startswith("reduce.") else x.lanes
    return 2 * lanes if x.op == "fma" else lanes


# ---- nodes


def operations_of(group: Group) -> float:
    """The operations of a group's nodes when each is computed once, and of storing the results."""
    stores = sum(leaf.elements for node in group.outputs for leaf in node.type.leaves() if isinstance(leaf, TensorType))
    return stores + sum(node_operations(node) for node in group.nodes)


def padding(problem: Problem) -> float:
    """By how much vectors along the columns of a product, or the features of a convolution, raise the operations of a group.

    The columns of a product are the contiguous dimension of its result. The zeros between the elements of a dilated image are
    multiplied like elements. A row of a ragged product is compared with every group, and its products count as if it belonged to each.
    """
    anchor, lanes, holes = problem.group.anchor, problem.lanes, 1
    if anchor is not None and anchor.op is hlo.ragged_dot:
        return float(max(1, dims_of(anchor.operands[2])[-1]))
    if anchor is None or anchor.op not in (hlo.dot, hlo.convolution):
        return 1.0
    if anchor.op is hlo.dot:
        placed = next(iter(problem.outs.values()))
        columns = next((n for n, stride in zip(placed.shape, placed.strides) if stride == 1 and n > 1), 1)
    else:
        conv = Conv.of(anchor)
        groups = max(conv.feature_groups, conv.batch_groups)
        columns = conv.outputs // groups if conv.outputs > groups else conv.outputs
        holes = prod(conv.window.lhs_dilate)
    return -(-columns // lanes) * lanes / max(1, columns) * holes


def node_operations(node: Node) -> float:
    """The operations of the tile IR to compute a node once: its declared count, or that of one element times its elements."""
    declared = float(node.op.cost(node)) if node.op.cost is not None else 0.0
    if node.op is hlo.convolution:
        declared = max(declared, _taps(node))
    if node.op is hlo.reduce_window:
        window = Windowed.of(node).window
        taps = prod(window.size) if window is not None else 1
        declared = max(declared, result_elements(node) * taps * _body_operations(node.bodies[0]))
    if node.op is hlo.reduce:
        return max(declared, prod(dims_of(node.operands[0])) * _body_operations(node.bodies[0]))
    if node.op.scalar is not None and isinstance(node.type, TensorType):
        return max(declared, node.type.elements * _scalar_operations(node))
    complex = next((leaf.dtype.is_complex for leaf in node.type.leaves() if isinstance(leaf, TensorType)), False)
    return declared * (4.0 if complex else 1.0)


def _taps(node: Node) -> float:
    """Two operations per tap of a convolution, also beyond the border of the image, which a declared cost omits."""
    conv = Conv.of(node)
    return 2.0 * result_elements(node) * prod(conv.window.size) / prod(conv.window.lhs_dilate) * conv.features


def _scalar_operations(node: Node) -> float:
    """The operations of one element of a pointwise node."""
    k = KernelBuilder("once")
    assert node.op.scalar is not None
    args = [k.variable(f"x{n}", o.type.dtype) for n, o in enumerate(node.operands) if isinstance(o.type, TensorType)]
    return _built(k, [cast(Expr, node.op.scalar(k, node, *args))])


def _body_operations(body: Graph) -> float:
    """The operations of one run of a body on single values; at least one."""
    k = KernelBuilder("once")
    types = [leaf for param in body.params for leaf in param.type.leaves()]
    args = [k.variable(f"x{n}", t.dtype) for n, t in enumerate(types) if isinstance(t, TensorType)]
    try:
        return max(1.0, _built(k, k.inline(body, args)))
    except NoScalarMeaning:
        return 1.0


def _built(k: KernelBuilder, values: list[Expr]) -> float:
    """The operations that a kernel under construction has so far, with these values."""
    for value in values:
        for part in (k.real(value), k.imag(value)) if value.dtype.is_complex else (value,):
            k.let(part)
    return _Count().kernel(k.kernel)
