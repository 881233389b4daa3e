"""Emits the value of any node of a group at an index by pulling its operands: all templates use it for pointwise work and data movement.

    pull = Pull(k, problem)
    with k.loop(0, n) as i:
        pull.store(output, [i], pull.value(output, [i]))

Indices are integer values of the builder. The last one may be a vector (:meth:`Pull.lanes`): then all that depends on it is a vector, and
memory is read by vector loads where the elements are contiguous, by one scalar load where they are the same, and by gathers otherwise.
Computed values are reused while the block that computed them is open.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.fusion.drafts import dims_of
from irscope.graph import Node
from irscope.lower.build import KernelBuilder
from irscope.lower.call import KernelOperands
from irscope.lower.statements import BlockScope
from irscope.lower.templates import Problem
from irscope.lower.tile import Expr
from irscope.lower.values import is_scalar_constant, scalar_value, tensor_of
from irscope.lower.view import View
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, GetTupleElement, Reverse, Slice, Transpose
from irscope.ops.movement import reindexed

Index = tuple[Expr, ...]
Lanes = tuple[Expr, int] | None
"""A vector of indices as (first, step); None when the lanes are not evenly spaced."""


class Pull:
    """The group of one problem inside one kernel. Declares its operands: ``views`` has one for each input and output."""

    def __init__(self, k: KernelBuilder, problem: Problem) -> None:
        self.k = k
        self.problem = problem
        self.inside = set(problem.group.nodes)
        self.call = KernelOperands(k, problem)
        self.views = self.call.views
        self._known: dict[tuple[Node, Index], tuple[Any, BlockScope]] = {}
        self._reshaped: dict[tuple[Index, tuple[int, ...]], tuple[Index, tuple[int, ...]]] = {}
        self._mirrors: dict[tuple[Expr, int], Expr] = {}
        self._lanes: dict[Expr, Lanes] = {}

    # ---- values

    def value(self, node: Node, index: Sequence[object]) -> Any:
        """The element of ``node`` at ``index``; a list for an operator with several results."""
        want = (node, self._index(index))
        stack: list[tuple[Node, Index]] = [want]
        while stack:
            top = stack[-1]
            if self._found(top) is not None:
                stack.pop()
                continue
            node, at = top
            if node not in self.inside or node in self.problem.ins:
                self._keep(top, self._outside(node, at))
            elif node.op is hlo.get_tuple_element:
                source = (node.operands[0], at)
                values = self._found(source)
                if values is None:
                    stack.append(source)
                else:
                    self._keep(top, values[GetTupleElement.of(node).index])
            elif node.op in _MOVES:
                source = (node.operands[0], self._index(self._moved(node, at)))
                value = self._found(source)
                if value is None:
                    stack.append(source)
                else:
                    self._keep(top, value)
            elif node.op.scalar is not None:
                sources = [(o, at if dims_of(o) == dims_of(node) else ()) for o in node.operands]
                missing = [s for s in sources if self._found(s) is None]
                if missing:
                    stack.extend(missing)
                else:
                    self._keep(top, node.op.scalar(self.k, node, *(self._found(s) for s in sources)))
            else:
                self._keep(top, self._element(node, at))
        return self._found(want)

    def give(self, node: Node, index: Sequence[object], value: object) -> None:
        """Set a node's value at an index: the one that an anchor computed."""
        self._keep((node, self._index(index)), value)

    def store(self, node: Node, index: Sequence[object], value: Expr, mask: Expr | None = None, nontemporal: bool = False) -> None:
        """Write an element of an output, or a vector along the last index."""
        view = self.views[node]
        base, step = self.place(view, self._index(index))
        if value.lanes > 1 and step != 1:
            raise ValueError(f"a vector of %{node.name} is not contiguous")
        self.k.store(view.buffer, base, value, mask, nontemporal)

    def lanes(self, base: object, count: int) -> Expr:
        """The vector of indices base, base + 1, ..., to pass as the last index."""
        return self.k.splat(self.k.as_index(base), count) + self.k.lane(count) if count > 1 else self.k.as_index(base)

    # ---- memory

    def load(self, node: Node, index: Sequence[object], mask: Expr | None = None) -> Expr:
        """An element of an input, or a vector along the last index."""
        at = self._index(index)
        lanes = max((i.lanes for i in at), default=1)
        view = self.views[node]
        buffer = view.buffer
        base, step = self.place(view, at)
        if step is None:
            return self.k.gather(buffer, base, mask)
        if lanes == 1 or step == 0:
            return self.k.load(buffer, base)
        if step == 1:
            return self.k.load(buffer, base, lanes, mask)
        return self.k.gather(buffer, self.k.splat(base, lanes) + self.k.lane(lanes) * step, mask)

    def place(self, view: View, index: Index) -> tuple[Expr, int | None]:
        """An element's index in its buffer and the stride from lane to lane; (indices, None) when the lanes have no constant stride."""
        base: Expr = self.k.index(view.offset)
        step = 0
        scattered: Expr | None = None
        for i, stride, size in zip(index, view.strides, view.shape):
            if size == 1 or stride == 0:
                continue
            if i.lanes == 1:
                base = base + i * stride
                continue
            along = along_lanes(self.k, i, self._lanes)
            if along is None:
                scattered = i * stride if scattered is None else scattered + i * stride
            else:
                base = base + along[0] * stride
                step += along[1] * stride
        if scattered is None:
            return base, step
        lanes = scattered.lanes
        return scattered + self.k.splat(base, lanes) + self.k.lane(lanes) * step, None

    # ---- parts

    def _index(self, index: Sequence[Any]) -> Index:
        return tuple(i if isinstance(i, Expr) else self.k.index(i) for i in index)

    def _found(self, key: tuple[Node, Index]) -> Any:
        found = self._known.get(key)
        return found[0] if found is not None and self.k.is_open(found[1]) else None

    def _keep(self, key: tuple[Node, Index], value: object) -> None:
        self._known[key] = (value, self.k.scope_token())

    def _outside(self, node: Node, at: Index) -> Any:
        if node in self.views:
            return self.load(node, at)
        if is_scalar_constant(node):
            return self.k.const(scalar_value(node), tensor_of(node).dtype)
        raise KeyError(f"%{node.name} is neither computed nor read by the kernel of {self.problem.group}")

    def _moved(self, node: Node, at: Index) -> Sequence[Expr]:
        """The index into its operand at which a view node reads its element."""
        match node.op:
            case hlo.broadcast:
                return [at[d] for d in Broadcast.of(node).dimensions]
            case hlo.reshape:
                return self._reindexed(at, dims_of(node), dims_of(node.operands[0]))
            case hlo.transpose:
                order = Transpose.of(node).dimensions
                return [at[order.index(d)] for d in range(len(order))]
            case hlo.slice:
                return [i * step + start for i, (start, _, step) in zip(at, Slice.of(node).slice)]
            case _:
                turned = Reverse.of(node).dimensions
                return [self._mirrored(i, n) if d in turned else i for d, (i, n) in enumerate(zip(at, dims_of(node)))]

    def _mirrored(self, i: Expr, n: int) -> Expr:
        """An index from the other end of a dimension of ``n``. Mirrored twice, it is the original index again, as in :meth:`_reindexed`."""
        found = self._mirrors.get((i, n))
        if found is None:
            found = i * -1 + (n - 1)
            self._mirrors[found, n] = i
        return found

    def _reindexed(self, at: Index, dims: tuple[int, ...], wanted: tuple[int, ...]) -> Index:
        """Convert an index into one shape to an index into another. Reshaped there and back, it is the original index, although vector
        arithmetic does not simplify to it: an anchor's value is known only at that index."""
        first, shape = self._reshaped.get((at, dims), (at, dims))
        made = first if shape == wanted else self._index(reindexed(self.k, shape, wanted, first))
        self._reshaped[made, wanted] = first, shape
        return made

    def _element(self, node: Node, at: Index) -> Any:
        """Compute an element by the operator's own ``scalar`` or ``element``; such operators nest only a few deep in one kernel."""
        if node.op.element is None:
            raise TypeError(f"{node.op.name} has no meaning by element")
        return node.op.element(self.k, node, at, lambda i, index: self.value(node.operands[i], index))


_MOVES = hlo.named("reshape transpose slice reverse broadcast")


def along_lanes(k: KernelBuilder, index: Expr, known: dict[Expr, Lanes] | None = None) -> Lanes:
    """A vector of indices as (first, step), or None when the lanes are not evenly spaced. ``known`` caches the results.

    Views nest in hundreds, and so do the expressions of their indices.
    """
    known = {} if known is None else known
    stack = [index]
    while stack:
        x = stack[-1]
        waiting = [a for a in x.args if a not in known] if x.op in ("add", "sub", "mul") and x not in known else []
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        if x not in known:
            known[x] = _lanes_of(k, x, known)
    return known[index]


def _lanes_of(k: KernelBuilder, index: Expr, known: dict[Expr, Lanes]) -> Lanes:
    """:func:`along_lanes` of an expression whose operands are ``known``."""
    if index.op == "lane":
        return k.index(0), 1
    if index.op == "splat":
        return index.args[0], 0
    if index.op not in ("add", "sub", "mul"):
        return None
    left, right = known[index.args[0]], known[index.args[1]]
    if left is None or right is None:
        return None
    if index.op == "add":
        return left[0] + right[0], left[1] + right[1]
    if index.op == "sub":
        return left[0] - right[0], left[1] - right[1]
    for factor, other in ((left, right), (right, left)):
        if factor[1] == 0 and factor[0].constant is not None:
            return other[0] * factor[0].constant, other[1] * factor[0].constant
    return None
