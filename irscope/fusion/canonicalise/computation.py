"""HLO computations while XLA's passes rewrite them, and the builder of their instructions.

Each instruction keeps the nodes of the text that it stands for, and one that is replaced keeps its replacement, so that the text and
the result map to each other in both directions.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

from irscope.fusion.dimensions import is_sorted, without
from irscope.fusion.xla.effects import graph_has_side_effect
from irscope.fusion.xla.nodes import check
from irscope.fusion.xla.releases import GPU_REWRITING
from irscope.graph import DTYPES, NO_ATTRS, Graph, Op, TensorType, TupleType, Type
from irscope.graph.rewriter import Rewriter, RewrittenNode
from irscope.graph.walk import callees_first_of
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, CustomCall, GetTupleElement
from irscope.ops.attrs import Literal
from irscope.ops.building import combiner_body
from irscope.source import UserError

CONTROL = hlo.named("while conditional call")
"""Operators that run the computations that they name as a whole."""
MAX_INSTRUCTIONS = 500_000
"""The largest number of instructions that a module may have once its calls are inlined ..."""
COPIES = 20
MOST_COPIED = 20_000
"""... and how many times the instructions of its text that may be; small texts may have this many anyway."""

_types: dict[tuple[str, tuple[int, ...]], TensorType] = {}


def tensor_type(dtype: str, dims: Sequence[int]) -> TensorType:
    """The type of an array without a layout; equal types are one object."""
    key = (dtype, tuple(dims))
    found = _types.get(key)
    if found is None:
        if len(_types) > 100_000:
            _types.clear()
        found = _types[key] = TensorType(DTYPES[dtype], key[1])
    return found


class HloInstruction(RewrittenNode):
    """An HLO instruction. ``calls`` are the computations that a loop or branch runs; each instruction has its own copy."""

    __slots__ = ()
    calls: tuple[HloComputation, ...]

    @property
    def elements(self) -> int:
        """The number of elements of an array."""
        return prod(self.dims)


class HloComputation(Rewriter[HloInstruction]):
    """An HLO computation, and the builder of its instructions.

    ``on_gpu`` says that XLA's GPU compiler rewrites it, whose simplifier skips a few rules; ``rewriting`` says how the release rewrites
    that is followed. ``at`` is the instruction that is being rewritten: an instruction that is built without an origin gets the origin of
    ``at``.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.on_gpu = False
        self.rewriting = GPU_REWRITING
        self.at: HloInstruction

    @staticmethod
    def of(graph: Graph, budget: int = MAX_INSTRUCTIONS) -> HloComputation:
        """The instructions of a graph, without layouts; copies what loops, branches and calls run for each of them.

        Raises UserError if that makes more than ``budget`` instructions, or if the text elides an attribute that matters.
        """
        sizes = _sizes(graph)
        budget = min(budget, max(MOST_COPIED, COPIES * sum(len(each.nodes) for each in sizes)))
        if sizes[graph] > budget:
            raise UserError(f"written out, the calls of this module are more than {budget:,} instructions",
                            "give the dump from right before the fusion pass")
        made = HloComputation(graph.name)
        pending = [(made, graph)]
        while pending:
            rewriter, source = pending.pop()
            rewriter.loc = source.loc
            here = rewriter.of_node
            for node in source.nodes:
                check(node)
                attrs = {**node.attrs, "dimensions": Broadcast.of(node).dimensions} if node.op is hlo.broadcast else node.attrs
                operands = [here[o] for o in node.operands]
                instr = here[node] = HloInstruction(node.op, without_layout(node.type), operands, attrs, node.bodies, (node,))
                instr.label = node.name
                rewriter.instructions[instr] = None
                if node.op in CONTROL and all(b.root is not None for b in node.bodies):
                    instr.calls = tuple(HloComputation(b.name) for b in node.bodies)
                    instr.bodies = ()
                    pending += zip(instr.calls, node.bodies, strict=True)
            rewriter.params = [here[p] for p in source.params]
            rewriter.root = here[source.result()]
        return made

    # ---- building

    def make(self, op: Op, type: Type, operands: Iterable[HloInstruction], attrs: Mapping[str, Any] = NO_ATTRS,
             bodies: tuple[Graph, ...] = (), at: HloInstruction | None = None) -> HloInstruction:
        """Create an instruction with the origin of ``at``, by default the instruction that is being rewritten."""
        return self.add(HloInstruction(op, type, operands, attrs, bodies, (at or self.at).origin))

    def like(self, instr: HloInstruction, operands: Sequence[HloInstruction], dims: Sequence[int] | None = None,
             attrs: Mapping[str, Any] = NO_ATTRS) -> HloInstruction:
        """Copy an instruction with other operands and, if given, another shape and other attributes."""
        type = instr.type if dims is None else tensor_type(instr.dtype, dims)
        made = self.make(instr.op, type, operands, {**instr.attrs, **attrs} if attrs else instr.attrs, instr.bodies, instr)
        made.calls = instr.calls
        return made

    def constant(self, value: Any, dtype: str, at: HloInstruction | None = None) -> HloInstruction:
        """A scalar constant, or a constant array; an integer beyond 64 bits wraps, as it does where XLA counts elements."""
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
            value = value % (1 << 64) if DTYPES[dtype].is_integer else float(value)
        array = np.asarray(value)
        type = tensor_type(dtype, array.shape)
        return self.make(hlo.constant, type, (), {"literal": Literal.of(array.astype(type.dtype.numpy()), type)}, at=at)

    def full(self, value: Any, like: HloInstruction) -> HloInstruction:
        """An array (or scalar) filled with one value, of the shape of ``like``."""
        return self.spread(self.constant(value, like.dtype), like.dims)

    def iota(self, dtype: str, dims: Sequence[int], dimension: int) -> HloInstruction:
        """An iota along a dimension."""
        return self.make(hlo.iota, tensor_type(dtype, dims), (), {"iota_dimension": dimension})

    def broadcast(self, source: HloInstruction, dims: Sequence[int], dimensions: Sequence[int],
                  at: HloInstruction | None = None) -> HloInstruction:
        """Broadcast ``source`` to an array of ``dims``; ``dimensions`` are the positions of its own dimensions in the result."""
        return self.make(hlo.broadcast, tensor_type(source.dtype, dims), (source,), {"dimensions": tuple(dimensions)}, at=at)

    def spread(self, scalar: HloInstruction, dims: Sequence[int]) -> HloInstruction:
        """Broadcast a scalar to an array of ``dims``; returns it as it is if it has these dimensions already."""
        return scalar if scalar.dims == tuple(dims) else self.broadcast(scalar, dims, ())

    def reshape(self, source: HloInstruction, dims: Sequence[int]) -> HloInstruction:
        """Reshape ``source``; returns it as it is if it has that shape already."""
        return source if source.dims == tuple(dims) else self.make(hlo.reshape, tensor_type(source.dtype, dims), (source,))

    def transpose(self, source: HloInstruction, order: Sequence[int]) -> HloInstruction:
        """Transpose: result dimension i is dimension ``order[i]``; returns ``source`` if that changes nothing."""
        if is_sorted(order):
            return source
        type = tensor_type(source.dtype, [source.dims[d] for d in order])
        return self.make(hlo.transpose, type, (source,), {"dimensions": tuple(order)})

    def slice(self, source: HloInstruction, cut: Sequence[tuple[int, int, int]], at: HloInstruction | None = None) -> HloInstruction:
        """Slice each dimension from start to limit by stride."""
        type = tensor_type(source.dtype, [-(-(limit - start) // stride) for start, limit, stride in cut])
        return self.make(hlo.slice, type, (source,), {"slice": tuple(cut)}, at=at)

    def slice_along(self, source: HloInstruction, axis: int, start: int, limit: int, at: HloInstruction | None = None) -> HloInstruction:
        """Slice one dimension from start to limit."""
        return self.slice(source, [(start, limit, 1) if d == axis else (0, n, 1) for d, n in enumerate(source.dims)], at)

    def dynamic_slice(self, source: HloInstruction, starts: Sequence[HloInstruction], sizes: Sequence[int]) -> HloInstruction:
        """Slice these sizes at computed start indices."""
        return self.make(hlo.dynamic_slice, tensor_type(source.dtype, sizes), (source, *starts), {"dynamic_slice_sizes": tuple(sizes)})

    def pad(self, source: HloInstruction, value: HloInstruction, padding: Sequence[tuple[int, int, int]]) -> HloInstruction:
        """Pad each dimension in front, behind and between its elements with ``value``."""
        dims = [n + low + high + max(0, n - 1) * inner for n, (low, high, inner) in zip(source.dims, padding, strict=True)]
        return self.make(hlo.pad, tensor_type(source.dtype, dims), (source, value), {"padding": tuple(padding)})

    def concatenate(self, pieces: Sequence[HloInstruction], axis: int, at: HloInstruction | None = None) -> HloInstruction:
        """Concatenate pieces along one dimension; returns a single piece as it is."""
        first = pieces[0]
        dims = [sum(p.dims[axis] for p in pieces) if d == axis else n for d, n in enumerate(first.dims)]
        return first if len(pieces) == 1 else \
            self.make(hlo.concatenate, tensor_type(first.dtype, dims), pieces, {"dimensions": (axis,)}, at=at)

    def elementwise(self, op: Op, operands: Sequence[HloInstruction], dtype: str | None = None) -> HloInstruction:
        """An operator whose result has the shape of its operands."""
        return self.make(op, tensor_type(dtype or operands[0].dtype, operands[-1].dims), operands)

    def compare(self, left: HloInstruction, right: HloInstruction, direction: str) -> HloInstruction:
        """Compare two values; the result is of type pred."""
        return self.make(hlo.compare, tensor_type("pred", left.dims), (left, right), {"direction": direction})

    def convert(self, source: HloInstruction, dtype: str) -> HloInstruction:
        """Convert ``source`` to an element type; returns it as it is if it has that type already."""
        return source if source.dtype == dtype else self.make(hlo.convert, tensor_type(dtype, source.dims), (source,))

    def reduce(self, like: HloInstruction, source: HloInstruction, dimensions: Sequence[int]) -> HloInstruction:
        """Reduce ``source`` over some dimensions with the computation and the initial value of another reduction."""
        dims = without(source.dims, dimensions)
        return self.like(like, (source, like.operands[1]), dims, {"dimensions": tuple(dimensions)})

    def sum(self, source: HloInstruction, dimensions: Sequence[int]) -> HloInstruction:
        """The sums over these dimensions."""
        return self.make(hlo.reduce, tensor_type(source.dtype, without(source.dims, dimensions)), (source, self.constant(0, source.dtype)),
                         {"dimensions": tuple(dimensions)}, (combiner_body("add", DTYPES[source.dtype]),))

    def all(self, source: HloInstruction) -> HloInstruction:
        """Whether all elements of a pred array are true, as an instruction."""
        return self.make(hlo.reduce, tensor_type("pred", ()), (source, self.constant(True, "pred")),
                         {"dimensions": tuple(range(source.rank))}, (combiner_body("and", DTYPES["pred"]),))

    def tuple(self, parts: Sequence[HloInstruction], at: HloInstruction | None = None) -> HloInstruction:
        """A tuple of values."""
        return self.make(hlo.tuple, TupleType(tuple(part.type for part in parts)), parts, at=at)

    def element(self, source: HloInstruction, index: int, at: HloInstruction | None = None) -> HloInstruction:
        """An element of a tuple."""
        assert isinstance(source.type, TupleType)
        return self.make(hlo.get_tuple_element, source.type.elements[index], (source,), {"index": index}, at=at)

    # ---- tuples

    def reads_elements(self, instr: HloInstruction) -> bool:
        """Whether every user of a tuple takes an element of it."""
        return self.root is not instr and all(user.op is hlo.get_tuple_element for user in instr.users)

    def elements(self, source: HloInstruction, wanted: Sequence[int], at: HloInstruction | None = None) -> HloInstruction:
        """A tuple of some elements of another one."""
        return self.tuple([source.operands[i] if source.op is hlo.tuple else self.element(source, i, at or source) for i in wanted],
                          at or source)

    def renumber(self, instr: HloInstruction, wanted: Sequence[int]) -> None:
        """Reduce a tuple-shaped instruction to some of its elements; the others have no users."""
        assert isinstance(instr.type, TupleType)
        instr.set_type(TupleType(tuple(instr.type.elements[i] for i in wanted)))
        for user in list(instr.users):
            self.replace(user, self.element(instr, wanted.index(GetTupleElement.of(user).index), user))

    # ---- replacing

    def become(self, instr: HloInstruction, op: Op, operands: Sequence[HloInstruction], attrs: Mapping[str, Any] = NO_ATTRS) -> bool:
        """Replace an instruction by a new one of the same type."""
        return self.replace(instr, self.make(op, instr.type, operands, attrs, at=instr))

    def apply(self, rule: Rule, *ops: Op) -> bool:
        """Apply a rule once to each instruction with one of some operators; returns whether it changed any."""
        changed = False
        for instr in [i for i in self.instructions if i.op in ops]:
            self.at = instr
            changed = (not instr.erased and rule(self, instr)) or changed
        return changed

    def is_parameter(self, instruction: HloInstruction) -> bool:
        """Whether the instruction is a parameter."""
        return instruction.op is hlo.parameter

    def has_effect(self, instruction: HloInstruction) -> bool:
        """Whether the instruction must stay although it has no users."""
        return has_effect(instruction)


Rule = Callable[[HloComputation, HloInstruction], bool]
"""Rewrites one instruction if the rule applies; returns whether it changed anything."""


def _sizes(graph: Graph) -> dict[Graph, int]:
    """The number of nodes of a graph and of all that it calls, once all that calls, loops and branches run is copied for each of them."""
    sizes: dict[Graph, int] = {}
    for each in callees_first_of([graph]):
        sizes[each] = len(each.nodes) + sum(sizes[b] for node in each.nodes if node.op in CONTROL for b in node.bodies)
    return sizes


EFFECTS = hlo.named("rng rng-get-and-update-state infeed outfeed send send-done recv recv-done after-all all-reduce-start all-gather-start "
    "all-reduce-done all-gather-done collective-permute-start collective-permute-done copy-start copy-done partition-id")
"""Operators whose instructions stay even without users."""


def has_effect(instr: HloInstruction) -> bool:
    """Whether an instruction must stay although it has no users."""
    pending = [instr]
    while pending:
        each = pending.pop()
        if each.op in EFFECTS:
            return True
        if each.op is hlo.custom_call:
            if CustomCall.of(each).custom_call_has_side_effect:
                return True
        elif any(graph_has_side_effect(g) for g in each.bodies):
            return True
        else:
            pending += [inner for computation in each.calls for inner in computation.instructions]
    return False


def without_layout(type: Type) -> Type:
    """The type without layouts."""
    if isinstance(type, TensorType):
        return type if type.layout is None and not type.is_static else \
            tensor_type(type.dtype.name, type.dims()) if type.is_static else TensorType(type.dtype, type.shape)
    if isinstance(type, TupleType):
        return TupleType(tuple(without_layout(e) for e in type.elements))
    return type
