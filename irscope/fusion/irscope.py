"""irscope's own fusion policy: which nodes each kernel of irscope's compiler computes.

The policy visits nodes from the last to the first, so that it knows every kernel that reads a node:

* movement (reshape, transpose, slice, reverse, broadcast), iota and scalars are computed in each kernel that reads them; where no strides
  describe the movement, a kernel that keeps values for a row or a tile reads it from memory, and a separate kernel writes it there;
* a pointwise node fuses into the one kernel that reads it, unless that would compute its elements more than once; if several kernels
  read it, one of them computes it and stores it beside its own result, provided that this closes no cycle;
* a contraction, convolution or window takes the pointwise kernel that reads it as its epilogue, so results are finished in registers;
* reductions over trailing axes and the nodes around them become one kernel over rows (softmax, layer normalisation);
* two contractions with only a softmax between them become one kernel (:mod:`irscope.fusion.attention`);
* concatenation and padding are buffers that other kernels write into; sort, scatter, loops and library calls are never fused.

The policy repeats no work but a few simple operations (:data:`irscope.fusion.fits.MAX_REPEATED`), so every edge that is not fused has
one of the reasons in :mod:`irscope.fusion.verdicts`. A plan relies on how it is lowered: rows and tiles need loads whose addresses
are strides over their loops, because then each value is computed once and kept. :mod:`irscope.lower.work` counts the actual work.
"""
from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from math import prod

from irscope.fusion.attention import fuse_attention
from irscope.fusion.drafts import BEHIND, MOVED, WHOLE, Draft, Drafts, Reach, dims_of
from irscope.fusion.fits import MULTIPLIERS, epilogue_fits, leading, moving_fits, pointwise_fits, row_fits
from irscope.fusion.plan import Group, JudgedLater, Plan
from irscope.fusion.verdicts import Refusal, verdicts
from irscope.fusion.views import VIEWS, Chain, Repeat, Reshape, Strides, access
from irscope.graph import Effect, Graph, Kind, Node, TensorType, TupleType, live
from irscope.ops import hlo
from irscope.ops.attributes import Reduce

MAX_INLINE = 64
"""Concatenations and paddings of at most this many elements are computed inside the kernel that reads them."""

MAX_STEPS = 32
"""Consecutive views that a kernel reads through; when a program is compiled, passes have merged them already."""

MAX_WAYS = 8
"""Ways in which one kernel reads a value that it computes for each of them. Where a value is combined with a view of itself, the ways
double, and at the next such step again."""

STRUCTURE = hlo.named("parameter constant tuple get-tuple-element")
PLACES = hlo.named("concatenate pad")


class IrscopePolicy:
    """The policy ``irscope``: the kernels of irscope's own compiler."""

    name = "irscope"

    def plan(self, graph: Graph) -> Plan:
        """The kernels of irscope's compiler, with verdicts on the edges."""
        planner, groups = _planned(graph, thorough=False)
        if groups is None:
            planner, groups = _planned(graph, thorough=True)
        assert groups is not None, "kernels that wait for each other"
        refusals = {(node, planner.drafts.group_of[draft]): refusal for (node, draft), refusal in planner.refusals.items()}
        return JudgedLater(graph, fuse_attention(graph, groups), lambda plan, apart: verdicts(plan, refusals, apart))


def _planned(graph: Graph, thorough: bool) -> tuple[_Planner, list[Group] | None]:
    """The planner of a graph, and its kernels; None for the kernels if the bounded search for cycles missed one."""
    planner = _Planner(graph, thorough)
    planner.run()
    return planner, planner.drafts.groups()


class _Planner:
    """Plans one graph; ``drafts`` holds the kernels so far and the users of each node."""

    def __init__(self, graph: Graph, thorough: bool) -> None:
        self.graph = graph
        self.alive = live(graph)
        self.drafts = Drafts(graph, thorough)
        self.refusals: dict[tuple[Node, Draft], Refusal] = {}

    def run(self) -> None:
        root = self.graph.result()
        for result in root.operands if root.op is hlo.tuple else (root,):
            self.drafts.store(result)
        for node in reversed(self.graph.nodes):
            if self.alive[node.index]:
                self.visit(node)

    # ---- one node

    def visit(self, node: Node) -> None:
        """Choose the kernel of a node; all kernels that read it are known."""
        op = node.op
        if op in (hlo.parameter, hlo.constant):
            return
        if op is hlo.tuple:
            self._tuple(node)
        elif op is hlo.get_tuple_element:
            self._part(node)
        elif op is hlo.reduce:
            self._reduce(node)
        elif not isinstance(node.type, TensorType) or op.effect is not Effect.PURE or not node.type.is_static:
            self._alone(node)
        elif (is_free(node) or op.scalar is not None) and any(len(ways) > MAX_WAYS for ways in self.drafts.readers(node).values()):
            self._start("map", node)
            for reader in self.drafts.readers(node):
                self.refusals[node, reader] = Refusal.READ_TWICE
        elif is_free(node):
            self._free(node)
        elif op.scalar is not None:
            self._pointwise(node)
        elif op in MULTIPLIERS and not (op.whole is not None and op.whole(node)):
            self._multiplier(node)
        elif op in (hlo.gather, hlo.dynamic_slice) or (op in PLACES and node.type.elements <= MAX_INLINE):
            self._moving(node)
        else:
            self._alone(node)

    def _tuple(self, node: Node) -> None:
        """A tuple costs nothing, but its elements must be in memory for its user (a loop, the caller)."""
        for operand in node.operands:
            self.drafts.store(operand)
            for reader in self.drafts.readers(node):
                self.drafts.reach(operand, reader, BEHIND)

    def _part(self, node: Node) -> None:
        """An element of several results: the one kernel of the operator stores them all."""
        source = node.operands[0]
        if source.op not in STRUCTURE:
            draft = self.drafts.of_source(source)
            if isinstance(node.type, TensorType):
                draft.outputs.setdefault(node, None)
            draft.nodes[node] = None
            for reader in self.drafts.readers(node):
                self.refusals[node, reader] = Refusal.SEVERAL_RESULTS

    def _free(self, node: Node) -> None:
        """Movement and iota: each kernel that reads one reads through it."""
        drafts = self.drafts
        in_memory = any(reach in (WHOLE, BEHIND) for reaches in drafts.readers(node).values() for reach in reaches)
        if drafts.is_stored(node) or (in_memory and not node.operands):
            self._start("map", node)
            return
        unstrided = [draft for draft, reaches in drafts.readers(node).items() if any(_breaks_strides(node, reach) for reach in reaches)]
        stored = any(draft.kind != "map" for draft in unstrided)
        if stored:
            self._start("map", node)
        for draft, reaches in drafts.readers(node).items():
            if draft in unstrided and stored:
                self.refusals[node, draft] = Refusal.REORDERED
                continue
            draft.moved = draft.moved or draft in unstrided
            if any(reach not in (WHOLE, BEHIND) for reach in reaches):
                draft.free[node] = None
            for operand in node.operands:
                for reach in reaches:
                    drafts.reach(operand, draft, Chain(node, reach) if isinstance(reach, Chain | None) and node.op in VIEWS
                                 else _scalar_step(operand, draft, reach))

    def _pointwise(self, node: Node) -> None:
        """Fuse a pointwise node into the kernel that reads it, store it beside that kernel's result, or start a kernel."""
        draft = self._home(node, lambda draft, reach: pointwise_fits(node, draft, reach))
        if draft is None:
            self._start("map", node)
        else:
            draft.nodes[node] = None
            self._operands(node, draft, self.drafts.readers(node)[draft])

    def _multiplier(self, node: Node) -> None:
        """A contraction, convolution or window: takes the one pointwise kernel over its result as epilogue."""
        kind = MULTIPLIERS[node.op]
        draft = self._home(node, lambda draft, reach: epilogue_fits(node, draft, reach)) or self._start(kind, node, reach_operands=False)
        draft.kind, draft.anchor = kind, node
        draft.nodes[node] = None
        for operand in node.operands:
            self.drafts.reach(operand, draft, WHOLE)

    def _reduce(self, node: Node) -> None:
        """A reduction: a kernel over rows if the reduced axes are the last ones, else a kernel over the kept axes."""
        if isinstance(node.type, TupleType) or len(node.operands) != 2:
            self._variadic_reduction(node)
        elif _is_trailing(node):
            self._rows(node)
        else:
            self._strided_reduction(node)

    def _moving(self, node: Node) -> None:
        """A gather or dynamic slice, or a small concatenation: computed where it is read, once for each element."""
        draft = self._home(node, lambda draft, reach: moving_fits(node, draft, reach))
        if draft is None:
            draft = self._start("map", node, reach_operands=False)
            reaches: list[Reach] = [None]
        else:
            reaches = list(self.drafts.readers(node)[draft])
            draft.nodes[node] = None
        sliced = node.op is hlo.dynamic_slice
        draft.moved = draft.moved or not sliced
        for number, operand in enumerate(node.operands):
            if number == 0 and node.op in (hlo.gather, hlo.dynamic_slice):
                self.drafts.reach(operand, draft, WHOLE)
            elif sliced:
                self.drafts.reach(operand, draft, Chain(Repeat(draft.space)) if dims_of(operand) == () else WHOLE)
            else:
                for _ in reaches:
                    self.drafts.reach(operand, draft, MOVED)

    def _alone(self, node: Node) -> None:
        """Start a kernel for one node, which reads its whole operands from memory."""
        draft = self.drafts.of_source(node) if isinstance(node.type, TupleType) else self._start("whole", node, reach_operands=False)
        draft.anchor = node
        for operand in node.operands:
            self.drafts.reach(operand, draft, WHOLE)
        for reader in self.drafts.readers(node):
            self.refusals[node, reader] = Refusal.STANDS_ALONE

    # ---- rows and reductions

    def _rows(self, node: Node) -> None:
        x, init = node.operands
        kept, whole = dims_of(node), dims_of(x)
        rows, columns = prod(kept), prod(whole) // max(1, prod(kept))
        # Loops over a row's axes as they are: movement may have strides along each of them, and none along all of them merged.
        axes = whole[len(kept):] if whole[:len(kept)] == kept else (columns,)
        draft = self._home(node, lambda draft, reach: row_fits(node, draft, reach, rows, columns))
        if draft is None:
            draft = self.drafts.new("rows", (*kept, *axes))
            draft.rows = len(kept)
            draft.outputs[node] = Chain(Repeat(draft.space))
            for reader in self.drafts.readers(node):
                self.refusals.setdefault((node, reader), Refusal.STANDS_ALONE)
        elif draft.kind == "map" and prod(draft.space) == rows:
            draft.rows = len(draft.space)
            self.drafts.widen(draft, axes)
        elif draft.kind == "map":
            draft.rows = leading(draft.space, rows)
        draft.kind = "rows"
        if draft.anchor is None:
            draft.anchor = node
        draft.nodes[node] = None
        self.drafts.reach(x, draft, None if dims_of(x) == draft.space else Chain(Reshape(draft.space)))
        self.drafts.reach(init, draft, Chain(Repeat(draft.space)))

    def _strided_reduction(self, node: Node) -> None:
        x, init = node.operands
        draft = self._home(node, lambda draft, reach: epilogue_fits(node, draft, reach)) \
            or self._start("reduction", node, reach_operands=False)
        draft.kind, draft.anchor = "reduction", node
        draft.nodes[node] = None
        self.drafts.reach(x, draft, MOVED)
        self.drafts.reach(init, draft, Chain(Repeat(draft.space)) if dims_of(init) == () else WHOLE)

    def _variadic_reduction(self, node: Node) -> None:
        """Several results of one traversal: a separate kernel, which computes its operands on the fly."""
        draft = self.drafts.of_source(node)
        draft.kind, draft.anchor = "reduction", node
        draft.space = dims_of(next(iter(draft.outputs))) if draft.outputs else ()
        for operand in node.operands:
            self.drafts.reach(operand, draft, Chain(Repeat(draft.space)) if dims_of(operand) == () else MOVED)
        for reader in self.drafts.readers(node):
            self.refusals[node, reader] = Refusal.STANDS_ALONE

    # ---- which kernel may take a node

    def _home(self, node: Node, fits: Callable[[Draft, Reach], Refusal | None]) -> Draft | None:
        """The kernel that can compute a node: its only reader, or the first of several that may store it for the others."""
        readers = self.drafts.readers(node)
        only = len(readers) == 1 and not self.drafts.is_stored(node)
        found: Draft | None = None
        for draft, reaches in readers.items():
            refusal = next((r for r in (fits(draft, reach) for reach in reaches) if r is not None), None)
            if refusal is None and len(reaches) > 1 and node.op.weight > 1 and not only:
                refusal = Refusal.READ_TWICE
            if refusal is None and not only:
                refusal = self._cannot_store_too(node, draft, reaches)
            if refusal is None and found is None:
                found = draft
            else:
                self.refusals[node, draft] = refusal or Refusal.STORED_FOR_OTHERS
        if found is not None and not only:
            found.outputs.setdefault(node, next(r for r in readers[found] if isinstance(r, Chain | None)))
        return found

    def _cannot_store_too(self, node: Node, draft: Draft, reaches: list[Reach]) -> Refusal | None:
        """Why a kernel cannot store the node beside its own result."""
        if draft.kind == "whole":
            return Refusal.READ_WHOLE
        reach = reaches[0]
        walk = access(reach, node) if isinstance(reach, Chain | None) else None
        if walk is None:
            return Refusal.MOVED
        split = draft.rows if draft.kind == "rows" and prod(dims_of(node)) < prod(draft.space) else len(draft.space)
        once = not any(s for s, n in zip(walk.strides[split:], draft.space[split:]) if n > 1)
        if not once or not Strides(walk.shape[:split], walk.strides[:split], walk.offset).is_plain():
            return Refusal.OTHER_LOOPS
        if prod(draft.space[:split]) != prod(dims_of(node)):
            return Refusal.OTHER_LOOPS
        if self.drafts.reaches([r for r in self.drafts.readers(node) if r is not draft], draft):
            return Refusal.CYCLE
        return None

    def _start(self, kind: str, node: Node, reach_operands: bool = True) -> Draft:
        """Start a kernel with one node, which it stores."""
        draft = self.drafts.new(kind, dims_of(node) if isinstance(node.type, TensorType) else ())
        if isinstance(node.type, TensorType):
            draft.outputs[node] = None
        draft.nodes[node] = None
        if reach_operands:
            self._operands(node, draft, [None])
        return draft

    def _operands(self, node: Node, draft: Draft, reaches: list[Reach]) -> None:
        for operand in node.operands:
            for reach in reaches:
                if node.op in VIEWS and isinstance(reach, Chain | None):
                    self.drafts.reach(operand, draft, Chain(node, reach))
                elif dims_of(operand) == dims_of(node):
                    self.drafts.reach(operand, draft, reach)
                else:
                    self.drafts.reach(operand, draft, _scalar_step(operand, draft, reach))


def is_free(node: Node) -> bool:
    """Whether a node costs nothing where it is read: a view, an iota, or another leaf without operands."""
    return node.op in VIEWS or node.op is hlo.iota or (node.op.kind is Kind.LEAF and not node.operands)


def _breaks_strides(node: Node, reach: Reach) -> bool:
    """Whether a kernel's loops walk a view by strides, but not the view's operand, as with a reshape of a transpose.

    A kernel that keeps what it computed for the rest of a row or tile can then only read the view from memory. The same holds for more
    than :data:`MAX_STEPS` nested views.
    """
    if node.op not in VIEWS or not isinstance(reach, Chain | None):
        return False
    way = [node, *islice(reach or (), MAX_STEPS + 1)]
    steps = len(way) - 1
    if not any(isinstance(step, Reshape) or (isinstance(step, Node) and step.op is hlo.reshape) for step in way):
        return steps == MAX_STEPS  # a reshape by itself may need a copy
    if steps > MAX_STEPS or access(reach, node) is None:
        return False
    through, source = Chain(node, reach), node.operands[0]
    if steps < MAX_STEPS and access(through, source) is not None:
        return False
    while source.op in VIEWS and steps < MAX_STEPS:
        through, source, steps = Chain(source, through), source.operands[0], steps + 1
    return steps >= MAX_STEPS or access(through, source) is None


def _scalar_step(operand: Node, draft: Draft, reach: Reach) -> Reach:
    """How a kernel reads an operand without strides: a scalar as one value for all loops, anything else element by element."""
    if reach in (WHOLE, BEHIND):
        return BEHIND
    return Chain(Repeat(draft.space)) if dims_of(operand) == () else MOVED


def _is_trailing(node: Node) -> bool:
    """Whether the reduced axes come after all kept axes (axes of size 1 do not count, dynamic ones do)."""
    of, reduced = node.operands[0].type, set(Reduce.of(node).dimensions)
    shape = [d if isinstance(d, int) else 2 for d in of.shape] if isinstance(of, TensorType) else []
    kept = [d for d, n in enumerate(shape) if d not in reduced and n > 1]
    gone = [d for d in reduced if d < len(shape) and shape[d] > 1]
    return not kept or not gone or max(kept) < min(gone)


POLICY = IrscopePolicy()
