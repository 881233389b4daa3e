"""Computations of HLO while XLA's passes rewrite them, with what builds their instructions.

Each instruction remembers the nodes of the text that it stands for, and one that is replaced remembers by what: both ways between the text
and the result stay open.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

from irscope.fusion.dimensions import is_sorted, without
from irscope.fusion.xla.effects import graph_has_side_effect
from irscope.fusion.xla.instructions import check
from irscope.graph import DTYPES, NO_ATTRS, Graph, Node, Op, TensorType, TupleType, Type
from irscope.graph.rewriter import Instruction, Rewriter
from irscope.graph.walk import callees_first_of
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, CustomCall, GetTupleElement
from irscope.ops.attrs import Literal
from irscope.source import UserError

CONTROL = hlo.named("while conditional call")
"""What runs the computations that it names as they are."""
MAX_INSTRUCTIONS = 500_000
"""Instructions that a module may have when its calls are written out."""

_types: dict[tuple[str, tuple[int, ...]], TensorType] = {}


def tensor_type(dtype: str, dims: Sequence[int]) -> TensorType:
    """The type of an array without a layout; equal ones are one object."""
    key = (dtype, tuple(dims))
    found = _types.get(key)
    if found is None:
        if len(_types) > 100_000:
            _types.clear()
        found = _types[key] = TensorType(DTYPES[dtype], key[1])
    return found


class HloInstruction(Instruction):
    """An instruction of HLO. ``calls`` are the computations that a loop or branch runs, each a copy of its own."""

    __slots__ = ()
    calls: tuple[HloComputation, ...]

    @property
    def elements(self) -> int:
        """Elements of an array."""
        return prod(self.dims)


class HloComputation(Rewriter[HloInstruction]):
    """A computation of HLO with what builds its instructions.

    ``on_gpu`` says that XLA's GPU compiler rewrites it, whose simplifier leaves a few things as they are. ``at`` is the instruction that is
    being rewritten: what is built without naming another one stands for the same nodes of the text.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.on_gpu = False
        self.at: HloInstruction

    @staticmethod
    def of(graph: Graph, budget: int = MAX_INSTRUCTIONS) -> HloComputation:
        """The instructions of a graph, layouts left out; what loops, branches and calls run is copied for each of them.

        Raises UserError when that would make more than ``budget`` instructions, and where the text leaves out what decides.
        """
        if _size(graph) > budget:
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
                instr = here[node] = HloInstruction(node.op, without_layout(node.type), operands, attrs, node.bodies, node.name, (node,))
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
        """A new instruction that stands for what ``at`` stands for, which is the instruction that is being rewritten if not given."""
        return self.add(HloInstruction(op, type, operands, attrs, bodies, "", (at or self.at).origin))

    def like(self, instr: HloInstruction, operands: Sequence[HloInstruction], dims: Sequence[int] | None = None,
             attrs: Mapping[str, Any] = NO_ATTRS) -> HloInstruction:
        """A copy of an instruction over other operands, of another shape and with other attributes where they are given."""
        type = instr.type if dims is None else tensor_type(instr.dtype, dims)
        made = self.make(instr.op, type, operands, {**instr.attrs, **attrs} if attrs else instr.attrs, instr.bodies, instr)
        made.calls = instr.calls
        return made

    def constant(self, value: Any, dtype: str, at: HloInstruction | None = None) -> HloInstruction:
        """A scalar constant, or one of more dimensions for an array."""
        array = np.asarray(value)
        type = tensor_type(dtype, array.shape)
        return self.make(hlo.constant, type, (), {"literal": Literal.of(array.astype(type.dtype.numpy()), type)}, at=at)

    def full(self, value: Any, like: HloInstruction, at: HloInstruction | None = None) -> HloInstruction:
        """An array (or scalar) of one value, of the shape of ``like``."""
        return self.spread(self.constant(value, like.dtype, at), like.dims, at)

    def iota(self, dtype: str, dims: Sequence[int], dimension: int) -> HloInstruction:
        """Numbers that count along a dimension."""
        return self.make(hlo.iota, tensor_type(dtype, dims), (), {"iota_dimension": dimension})

    def broadcast(self, source: HloInstruction, dims: Sequence[int], dimensions: Sequence[int],
                  at: HloInstruction | None = None) -> HloInstruction:
        """``source`` repeated over an array of ``dims``, whose ``dimensions`` are those of ``source``."""
        return self.make(hlo.broadcast, tensor_type(source.dtype, dims), (source,), {"dimensions": tuple(dimensions)}, at=at)

    def spread(self, scalar: HloInstruction, dims: Sequence[int], at: HloInstruction | None = None) -> HloInstruction:
        """A scalar repeated over an array of ``dims``; itself where these are none, or its own."""
        return scalar if scalar.dims == tuple(dims) else self.broadcast(scalar, dims, (), at)

    def reshape(self, source: HloInstruction, dims: Sequence[int], at: HloInstruction | None = None) -> HloInstruction:
        """``source`` under another shape; itself where it has it already."""
        return source if source.dims == tuple(dims) else self.make(hlo.reshape, tensor_type(source.dtype, dims), (source,), at=at)

    def transpose(self, source: HloInstruction, order: Sequence[int], at: HloInstruction | None = None) -> HloInstruction:
        """Result dimension i is dimension ``order[i]``; ``source`` itself where that changes nothing."""
        if is_sorted(order):
            return source
        type = tensor_type(source.dtype, [source.dims[d] for d in order])
        return self.make(hlo.transpose, type, (source,), {"dimensions": tuple(order)}, at=at)

    def slice(self, source: HloInstruction, cut: Sequence[tuple[int, int, int]], at: HloInstruction | None = None) -> HloInstruction:
        """From start to limit by stride, for each dimension."""
        type = tensor_type(source.dtype, [-(-(limit - start) // stride) for start, limit, stride in cut])
        return self.make(hlo.slice, type, (source,), {"slice": tuple(cut)}, at=at)

    def slice_along(self, source: HloInstruction, axis: int, start: int, limit: int, at: HloInstruction | None = None) -> HloInstruction:
        """From start to limit along one dimension, the others whole."""
        return self.slice(source, [(start, limit, 1) if d == axis else (0, n, 1) for d, n in enumerate(source.dims)], at)

    def dynamic_slice(self, source: HloInstruction, starts: Sequence[HloInstruction], sizes: Sequence[int]) -> HloInstruction:
        """So many elements of each dimension, from places that are computed."""
        return self.make(hlo.dynamic_slice, tensor_type(source.dtype, sizes), (source, *starts), {"dynamic_slice_sizes": tuple(sizes)})

    def pad(self, source: HloInstruction, value: HloInstruction, padding: Sequence[tuple[int, int, int]]) -> HloInstruction:
        """``value`` in front, behind and between the elements of each dimension."""
        dims = [n + low + high + max(0, n - 1) * inner for n, (low, high, inner) in zip(source.dims, padding, strict=True)]
        return self.make(hlo.pad, tensor_type(source.dtype, dims), (source, value), {"padding": tuple(padding)})

    def concatenate(self, pieces: Sequence[HloInstruction], axis: int, at: HloInstruction | None = None) -> HloInstruction:
        """Pieces behind each other along one dimension; one piece is itself."""
        first = pieces[0]
        dims = [sum(p.dims[axis] for p in pieces) if d == axis else n for d, n in enumerate(first.dims)]
        return first if len(pieces) == 1 else \
            self.make(hlo.concatenate, tensor_type(first.dtype, dims), pieces, {"dimensions": (axis,)}, at=at)

    def elementwise(self, op: Op, operands: Sequence[HloInstruction], dtype: str | None = None) -> HloInstruction:
        """An operator whose result has the shape of its operands."""
        return self.make(op, tensor_type(dtype or operands[0].dtype, operands[-1].dims), operands)

    def compare(self, left: HloInstruction, right: HloInstruction, direction: str) -> HloInstruction:
        """Truth values."""
        return self.make(hlo.compare, tensor_type("pred", left.dims), (left, right), {"direction": direction})

    def convert(self, source: HloInstruction, dtype: str) -> HloInstruction:
        """``source`` in another element type; itself where it has it already."""
        return source if source.dtype == dtype else self.make(hlo.convert, tensor_type(dtype, source.dims), (source,))

    def reduce(self, like: HloInstruction, source: HloInstruction, dimensions: Sequence[int]) -> HloInstruction:
        """``source`` reduced over some dimensions by the computation and from the initial value of another reduction."""
        dims = without(source.dims, dimensions)
        return self.like(like, (source, like.operands[1]), dims, {"dimensions": tuple(dimensions)})

    def sum(self, source: HloInstruction, dimensions: Sequence[int]) -> HloInstruction:
        """The sums over these dimensions."""
        return self.make(hlo.reduce, tensor_type(source.dtype, without(source.dims, dimensions)), (source, self.constant(0, source.dtype)),
                         {"dimensions": tuple(dimensions)}, (_combining(hlo.add, source.dtype),))

    def all(self, source: HloInstruction) -> HloInstruction:
        """Whether all of some truth values hold."""
        return self.make(hlo.reduce, tensor_type("pred", ()), (source, self.constant(True, "pred")),
                         {"dimensions": tuple(range(source.rank))}, (_combining(hlo.and_, "pred"),))

    def tuple(self, parts: Sequence[HloInstruction], at: HloInstruction | None = None) -> HloInstruction:
        """Several values as one."""
        return self.make(hlo.tuple, TupleType(tuple(part.type for part in parts)), parts, at=at)

    def element(self, source: HloInstruction, index: int, at: HloInstruction | None = None) -> HloInstruction:
        """One of several values."""
        assert isinstance(source.type, TupleType)
        return self.make(hlo.get_tuple_element, source.type.elements[index], (source,), {"index": index}, at=at)

    # ---- tuples

    def reads_elements(self, instr: HloInstruction) -> bool:
        """Whether all that is read of a tuple are elements of it."""
        return self.root is not instr and all(user.op is hlo.get_tuple_element for user in instr.users)

    def elements(self, source: HloInstruction, wanted: Sequence[int], at: HloInstruction | None = None) -> HloInstruction:
        """A tuple of some elements of another."""
        return self.tuple([source.operands[i] if source.op is hlo.tuple else self.element(source, i, at or source) for i in wanted],
                          at or source)

    def renumber(self, instr: HloInstruction, wanted: Sequence[int]) -> None:
        """Make a tuple one of some of its elements; nothing reads the others."""
        assert isinstance(instr.type, TupleType)
        instr.set_type(TupleType(tuple(instr.type.elements[i] for i in wanted)))
        for user in list(instr.users):
            self.replace(user, self.element(instr, wanted.index(GetTupleElement.of(user).index), user))

    # ---- replacing

    def become(self, instr: HloInstruction, op: Op, operands: Sequence[HloInstruction], attrs: Mapping[str, Any] = NO_ATTRS) -> bool:
        """Replace an instruction by a new one of the same type."""
        return self.replace(instr, self.make(op, instr.type, operands, attrs, at=instr))

    def apply(self, rule: Rule, *ops: Op) -> bool:
        """Apply a rule once to each instruction of some operators; whether it changed any."""
        changed = False
        for instr in [i for i in self.instructions if i.op in ops]:
            self.at = instr
            changed = (not instr.erased and rule(self, instr)) or changed
        return changed

    def is_parameter(self, instruction: HloInstruction) -> bool:
        """Whether it is a parameter."""
        return instruction.op is hlo.parameter

    def has_effect(self, instruction: HloInstruction) -> bool:
        """Whether it must stay although it has no users."""
        return has_effect(instruction)


Rule = Callable[[HloComputation, HloInstruction], bool]
"""Rewrites one instruction, if it can; whether it changed anything."""


def _size(graph: Graph) -> int:
    """The nodes of a graph when what its calls, loops and branches run is copied for each of them."""
    sizes: dict[Graph, int] = {}
    for each in callees_first_of([graph]):
        sizes[each] = len(each.nodes) + sum(sizes[b] for node in each.nodes if node.op in CONTROL for b in node.bodies)
    return sizes[graph]


def _combining(op: Op, dtype: str) -> Graph:
    """What a reduction by one operator does with two values."""
    type = tensor_type(dtype, ())
    graph = Graph("combining")
    graph.params = [graph.add(Node(hlo.parameter, name, type, (), {"number": i})) for i, name in enumerate(("x", "y"))]
    graph.root = graph.add(Node(op, "both", type, tuple(graph.params)))
    return graph


EFFECTS = hlo.named("rng rng-get-and-update-state infeed outfeed send send-done recv recv-done after-all all-reduce-start all-gather-start "
    "all-reduce-done all-gather-done collective-permute-start collective-permute-done copy-start copy-done partition-id")
"""What stays even where nobody reads it."""


def has_effect(instr: HloInstruction) -> bool:
    """Whether an instruction must stay although nobody reads it."""
    if instr.op in EFFECTS:
        return True
    if instr.op is hlo.custom_call:
        return CustomCall.of(instr).custom_call_has_side_effect
    return any(has_effect(t) for b in instr.calls for t in b.instructions) or any(graph_has_side_effect(g) for g in instr.bodies)


def without_layout(type: Type) -> Type:
    """The type with its layouts left out."""
    if isinstance(type, TensorType):
        return type if type.layout is None and not type.is_static else \
            tensor_type(type.dtype.name, type.dims()) if type.is_static else TensorType(type.dtype, type.shape)
    if isinstance(type, TupleType):
        return TupleType(tuple(without_layout(e) for e in type.elements))
    return type
