"""The points of a pointwise kernel, which one iteration computes: loads with their strides over the loops, arithmetic, row reductions.

A group whose data movement is all strides needs no index arithmetic: every load is a walk over the loops' space
(see :mod:`irscope.fusion.views`). :func:`trace` finds these walks; it returns None for a group that moves elements in other ways.
A point's ``level`` is the number of leading axes that it depends on: values that are invariant in the inner loops are computed outside
them.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod

from irscope.fusion.drafts import dims_of
from irscope.fusion.views import VIEWS, Chain, Permute, Repeat, Reshape, Strides, access, row_major, seen_through
from irscope.graph import Node
from irscope.lower.storage import Storage
from irscope.lower.templates import Problem
from irscope.lower.values import is_scalar_constant
from irscope.ops import hlo
from irscope.ops.attributes import DynamicSlice, Iota, Reduce


@dataclass(slots=True, eq=False)
class Point:
    """One value of an iteration.

    ``kind`` is ``load`` (``walk`` over the memory of ``node``, from its element 0 on), ``count`` (``walk`` is the value), ``constant``,
    ``scalar`` (``node`` of ``args``), ``reduce`` (``args``: element, init), ``part`` of a dynamic slice (``args``: starts; ``steps``:
    stride and highest start of each). ``stage`` is the number of row reductions that must be done before it can be computed, ``cone`` the
    simple operations from loads to here.
    """

    kind: str
    node: Node
    args: tuple[Point, ...] = ()
    walk: Strides = field(default_factory=lambda: Strides((), ()))
    steps: tuple[tuple[int, int], ...] = ()
    level: int = 0
    stage: int = 0
    cone: int = 0


Output = tuple[Node, Point, Strides]
"""An output, its value, and its walk over the space."""


@dataclass(slots=True, eq=False)
class PointTrace:
    """All points of a group in topological order, and the outputs with their walks over the space.

    ``rows`` leading axes of ``space`` are rows; the others are one row (none in a group without reductions).
    """

    space: tuple[int, ...]
    rows: int
    points: list[Point]
    outputs: list[Output]

    def walks(self) -> list[Strides]:
        """Every walk over the space."""
        return [p.walk for p in self.points if p.kind in ("load", "count", "part")] + [walk for _, _, walk in self.outputs]


def trace(problem: Problem) -> PointTrace | None:
    """The points of a group over as few axes as possible, or None when strides do not describe all of its data movement.

    The axes of a map are ordered by the strides of its last output, slowest first.
    """
    found = _Tracer(problem).run()
    if found is None or problem.group.kind != "map":
        return None if found is None else merged(found)
    strides = found.outputs[-1][2].strides
    order = tuple(sorted(range(len(strides)), key=lambda d: (-abs(strides[d]), d)))
    return merged(found if order == tuple(range(len(order))) else _reordered(found, order))


Want = tuple[Node, Chain | None]


class _Tracer:
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        group = problem.group
        self.group = group
        self.inside = set(group.nodes)
        self.space, self.rows = group.space, group.rows if group.kind == "rows" else len(group.space)
        if group.kind == "reduction":
            assert group.anchor is not None
            shape, reduced = dims_of(group.anchor.operands[0]), sorted(Reduce.of(group.anchor).dimensions)
            self.order = tuple(d for d in range(len(shape)) if d not in reduced) + tuple(reduced)
            self.rows = len(shape) - len(reduced)
            self.space = tuple(shape[d] for d in self.order)
        self.known: dict[Want, Point] = {}
        self.reduced: dict[Node, Point] = {}
        self.points: list[Point] = []
        self._listed: set[Point] = set()

    def run(self) -> PointTrace | None:
        outputs: list[Output] = []
        for node in self.group.outputs:
            chain = self.group.chains.get(node)
            if self.group.kind == "reduction":
                chain = Chain(Repeat(self.space))
            point = self._point((node, chain))
            storage = self.problem.outs[node].seen_through(chain)
            if point is None or storage is None:
                return None
            outputs.append((node, point, _from_first(self.problem.outs[node], storage)))
        return PointTrace(self.space, self.rows, self.points, outputs)

    def _point(self, wanted: Want) -> Point | None:
        """The point of a node seen through a chain, after the points that it needs."""
        stack = [wanted]
        while stack:
            top = stack[-1]
            if top in self.known:
                stack.pop()
                continue
            needed = self._needs(*top)
            if needed is None:
                return None
            missing = [want for want in needed if want not in self.known]
            if missing:
                stack.extend(missing)
                continue
            point = self._make(top, [self.known[want] for want in needed])
            if point is None:
                return None
            self.known[top] = point
            if point not in self._listed:
                self._listed.add(point)
                self.points.append(point)
            stack.pop()
        return self.known[wanted]

    def _needs(self, node: Node, chain: Chain | None) -> list[Want] | None:
        """The points that a point reads; None where this form of kernel cannot contain it."""
        if node not in self.inside or node.op is hlo.iota:
            return []
        everywhere = Chain(Repeat(self.space))
        if node.op in VIEWS:
            return [(node.operands[0], Chain(node, chain))]
        if node.op.scalar is not None:
            return [(o, chain if dims_of(o) == dims_of(node) else everywhere) for o in node.operands]
        if node.op is hlo.reduce and len(node.operands) == 2 and self.group.kind in ("rows", "reduction"):
            return [(node.operands[0], self._row(node.operands[0])), (node.operands[1], everywhere)]
        if node.op is hlo.dynamic_slice and all(dims_of(o) == () for o in node.operands[1:]):
            return [(o, everywhere) for o in node.operands[1:]]
        return None

    def _row(self, x: Node) -> Chain | None:
        """The chain from the space to the operand of a reduction."""
        if self.group.kind == "reduction":
            return None if self.order == tuple(range(len(self.order))) else Chain(Permute(self.order))
        return None if dims_of(x) == self.space else Chain(Reshape(self.space))

    def _make(self, want: Want, args: list[Point]) -> Point | None:
        node, chain = want
        if is_scalar_constant(node):
            return Point("constant", node)
        if node not in self.inside:
            return self._load(node, chain)
        if node.op is hlo.iota:
            dims = dims_of(node)
            along = tuple(1 if d == Iota.of(node).iota_dimension else 0 for d in range(len(dims)))
            walk = seen_through(chain, Strides(dims, along))
            return None if walk is None else Point("count", node, (), walk, level=level_of(walk))
        if node.op in VIEWS:
            return args[0]
        if node.op is hlo.reduce:
            walk = access(chain, node)
            # The reduction must be read once per row: with the rows in order, and with one value for the whole row.
            if walk is None or level_of(walk) > self.rows or not _same_rows(walk, self.rows, prod(dims_of(node))):
                return None
            # Any view of it is then the same value.
            return self.reduced.setdefault(node, Point("reduce", node, tuple(args), level=self.rows, stage=args[0].stage + 1))
        if node.op is hlo.dynamic_slice:
            return self._part(node, chain, args)
        return Point("scalar", node, tuple(args), level=max((a.level for a in args), default=0),
                     stage=max((a.stage for a in args), default=0), cone=min(node.op.weight + sum(a.cone for a in args), 1_000_000))

    def _load(self, node: Node, chain: Chain | None) -> Point | None:
        storage = self.problem.ins.get(node)
        seen = None if storage is None else storage.seen_through(chain)
        if storage is None or seen is None:
            return None
        walk = _from_first(storage, seen)
        return Point("load", node, (), walk, level=level_of(walk))

    def _part(self, node: Node, chain: Chain | None, starts: list[Point]) -> Point | None:
        """A dynamic slice: its operand's strides, from a computed offset."""
        storage = self.problem.ins.get(node.operands[0])
        if storage is None:
            return None
        sizes = DynamicSlice.of(node).dynamic_slice_sizes
        walk = seen_through(chain, Strides(tuple(sizes), storage.strides))
        if walk is None:
            return None
        steps = tuple((s, n - size) for s, n, size in zip(storage.strides, storage.shape, sizes))
        return Point("part", node, tuple(starts), walk, steps, max([level_of(walk), *(s.level for s in starts)]),
                     max((s.stage for s in starts), default=0))


def _from_first(storage: Storage, seen: Storage) -> Strides:
    """A walk over a stored value, counted from the value's element 0."""
    return Strides(seen.shape, seen.strides, seen.offset - storage.offset)


def level_of(walk: Strides) -> int:
    """How many leading axes a walk depends on."""
    return max((d + 1 for d, (n, s) in enumerate(zip(walk.shape, walk.strides)) if s and n > 1), default=0)


def _same_rows(walk: Strides, rows: int, elements: int) -> bool:
    """Whether a walk over the space reads a row's value in that row."""
    shape = walk.shape[:rows]
    plain = all(s == w or n == 1 for n, s, w in zip(shape, walk.strides[:rows], row_major(shape)))
    return plain and walk.offset == 0 and prod(shape) == elements


def merged(trace: PointTrace) -> PointTrace:
    """The same points over as few axes as possible: drops axes of size 1, and merges neighbours that every walk traverses in one run."""
    keep = [d for d, n in enumerate(trace.space) if n != 1]
    rows = sum(d < trace.rows for d in keep)
    joins: list[list[int]] = []
    walks = trace.walks()
    for place, d in enumerate(keep):
        if joins and place != rows and all(w.strides[joins[-1][-1]] == w.strides[d] * trace.space[d] for w in walks):
            joins[-1].append(d)
        else:
            joins.append([d])
    split = sum(join[0] < trace.rows for join in joins)
    space = tuple(prod(trace.space[d] for d in join) for join in joins)

    def over(walk: Strides) -> Strides:
        return Strides(space, tuple(walk.strides[join[-1]] for join in joins), walk.offset)

    return _rebuilt(trace, space, split, over)


def _reordered(trace: PointTrace, order: tuple[int, ...]) -> PointTrace:
    """The same points with the axes in another order; only for groups without reductions."""
    return _rebuilt(trace, tuple(trace.space[d] for d in order), trace.rows, lambda walk: walk.transposed(order))


def _rebuilt(trace: PointTrace, space: tuple[int, ...], rows: int, over: Callable[[Strides], Strides]) -> PointTrace:
    """The same points over another space; ``over`` converts a walk to that space."""
    made: dict[Point, Point] = {}
    for point in trace.points:
        args = tuple(made[a] for a in point.args)
        walk = over(point.walk) if point.kind in ("load", "count", "part") else point.walk
        level = rows if point.kind == "reduce" else max([level_of(walk), *(a.level for a in args)])
        made[point] = replace(point, args=args, walk=walk, level=level)
    return PointTrace(space, rows, list(made.values()), [(node, made[point], over(walk)) for node, point, walk in trace.outputs])


def lies_across(trace: PointTrace) -> bool:
    """Whether the elements of a row are strided while those of neighbouring rows are contiguous: a sum over a channels-last image.

    Then vectors over the rows are better for one reduction and its epilogue.
    """
    if not 0 < trace.rows < len(trace.space):
        return False
    reduces = [p for p in trace.points if p.kind == "reduce"]
    if len(reduces) != 1 or any(p.stage and p.level > trace.rows for p in trace.points):
        return False
    walks = [p.walk.strides for p in trace.points if p.kind == "load" and p.level > trace.rows]
    outs = [walk.strides for _, _, walk in trace.outputs]
    return all(w[-1] not in (0, 1) and w[trace.rows - 1] == 1 for w in walks) and all(w[trace.rows - 1] == 1 for w in outs) and bool(walks)
