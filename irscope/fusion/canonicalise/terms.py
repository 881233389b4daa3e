"""Terms: the instructions of a computation while XLA's rewriting is done to them.

A graph never changes; what is rewritten is a :class:`Body` of :class:`Term` objects, which know who reads them. Each term remembers the
nodes of the text that it stands for, and a term that is replaced remembers by what: both ways between the text and the result stay open.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

from irscope.fusion.xla.effects import graph_has_side_effect
from irscope.fusion.xla.instructions import check
from irscope.graph import DTYPES, NO_ATTRS, Graph, Node, Op, TensorType, TupleType, Type
from irscope.graph.rewriter import Instruction, Rewriter
from irscope.graph.walk import callees_first_of
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, CustomCall
from irscope.ops.attrs import Literal
from irscope.source import UserError

CONTROL = hlo.named("while conditional call")
"""What runs the computations that it names as they are."""
MAX_TERMS = 500_000
"""Terms that a module may have when its calls are written out."""

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


class Term(Instruction):
    """An instruction of HLO. ``calls`` are the computations that a loop or branch runs, each a copy of its own."""

    __slots__ = ()
    calls: tuple[Body, ...]

    @property
    def elements(self) -> int:
        """Elements of an array."""
        return prod(self.dims)


class Body(Rewriter[Term]):
    """A computation of HLO with what builds its instructions.

    ``on_gpu`` says that XLA's GPU compiler rewrites it, whose simplifier leaves a few things as they are.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.on_gpu = False

    @staticmethod
    def of(graph: Graph, budget: int = MAX_TERMS) -> Body:
        """The terms of a graph, layouts left out; what loops, branches and calls run is copied for each of them.

        Raises UserError when that would make more than ``budget`` terms, and where the text leaves out what decides.
        """
        if _size(graph) > budget:
            raise UserError(f"written out, the calls of this module are more than {budget:,} instructions",
                            "give the dump from right before the fusion pass")
        made = Body(graph.name)
        pending = [(made, graph)]
        while pending:
            body, source = pending.pop()
            body.loc = source.loc
            here = body.of_node
            for node in source.nodes:
                check(node)
                attrs = {**node.attrs, "dimensions": Broadcast.of(node).dimensions} if node.op is hlo.broadcast else node.attrs
                term = Term(node.op, without_layout(node.type), [here[o] for o in node.operands], attrs, node.bodies, node.name,
                            (node,))
                here[node] = term
                body.instructions[term] = None
                if node.op in CONTROL and all(b.root is not None for b in node.bodies):
                    term.calls = tuple(Body(b.name) for b in node.bodies)
                    term.bodies = ()
                    pending += zip(term.calls, node.bodies, strict=True)
            body.params = [here[p] for p in source.params]
            body.root = here[source.result()]
        return made

    # ---- making

    def make(self, op: Op, type: Type, operands: Iterable[Term], attrs: Mapping[str, Any] = NO_ATTRS, at: Term | None = None,
             bodies: tuple[Graph, ...] = ()) -> Term:
        """A new term that stands for what ``at`` stands for."""
        return self.add(Term(op, type, operands, attrs, bodies, "", at.origin if at is not None else ()))

    def constant(self, value: Any, dtype: str, at: Term) -> Term:
        """A scalar constant."""
        type = tensor_type(dtype, ())
        return self.make(hlo.constant, type, (), {"literal": Literal.of(np.asarray(value).astype(type.dtype.numpy()), type)}, at)

    def broadcast(self, source: Term, dims: Sequence[int], dimensions: Sequence[int], at: Term) -> Term:
        """``source`` spread over an array of ``dims``."""
        return self.make(hlo.broadcast, tensor_type(source.dtype, dims), (source,), {"dimensions": tuple(dimensions)}, at)

    def full(self, value: Any, like: Term, at: Term) -> Term:
        """An array (or scalar) of one value, of the shape of ``like``."""
        scalar = self.constant(value, like.dtype, at)
        return scalar if not like.dims else self.broadcast(scalar, like.dims, (), at)

    def reshape(self, source: Term, dims: Sequence[int], at: Term) -> Term:
        """``source`` under another shape."""
        return self.make(hlo.reshape, tensor_type(source.dtype, dims), (source,), NO_ATTRS, at)

    def transpose(self, source: Term, order: Sequence[int], at: Term) -> Term:
        """Result dimension i is dimension ``order[i]``."""
        return self.make(hlo.transpose, tensor_type(source.dtype, [source.dims[d] for d in order]), (source,),
                         {"dimensions": tuple(order)}, at)

    def elementwise(self, op: Op, operands: Sequence[Term], at: Term, dtype: str | None = None) -> Term:
        """An operator whose result has the shape of its operands."""
        return self.make(op, tensor_type(dtype or operands[0].dtype, operands[-1].dims), operands, NO_ATTRS, at)

    def compare(self, left: Term, right: Term, direction: str, at: Term) -> Term:
        """Truth values."""
        return self.make(hlo.compare, tensor_type("pred", left.dims), (left, right), {"direction": direction}, at)

    def convert(self, source: Term, dtype: str, at: Term) -> Term:
        """``source`` in another element type; itself where it has it already."""
        return source if source.dtype == dtype else self.make(hlo.convert, tensor_type(dtype, source.dims), (source,), NO_ATTRS, at)

    def sum(self, source: Term, dimensions: Sequence[int], at: Term) -> Term:
        """The sums over these dimensions."""
        dims = [n for d, n in enumerate(source.dims) if d not in dimensions]
        return self.make(hlo.reduce, tensor_type(source.dtype, dims), (source, self.constant(0, source.dtype, at)),
                         {"dimensions": tuple(dimensions)}, at, (_combining(hlo.add, source.dtype),))

    def all(self, source: Term, at: Term) -> Term:
        """Whether all of some truth values hold."""
        return self.make(hlo.reduce, tensor_type("pred", ()), (source, self.constant(True, "pred", at)),
                         {"dimensions": tuple(range(source.rank))}, at, (_combining(hlo.and_, "pred"),))

    def vector(self, values: Sequence[int], dtype: str, at: Term) -> Term:
        """A constant of one dimension."""
        type = tensor_type(dtype, (len(values),))
        return self.make(hlo.constant, type, (), {"literal": Literal.of(np.asarray(values).astype(type.dtype.numpy()), type)}, at)

    def like(self, term: Term, operands: Sequence[Term], dims: Sequence[int] | None = None) -> Term:
        """A copy of a term over other operands, of another shape where one is given."""
        type = term.type if dims is None else tensor_type(term.dtype, dims)
        made = self.make(term.op, type, operands, term.attrs, term, term.bodies)
        made.calls = term.calls
        return made

    # ---- replacing

    def become(self, term: Term, op: Op, operands: Sequence[Term], attrs: Mapping[str, Any] = NO_ATTRS,
               dims: Sequence[int] | None = None) -> bool:
        """Replace a term by a new one of the same element type, and of the same shape where no other is given."""
        type = term.type if dims is None else tensor_type(term.dtype, dims)
        return self.replace(term, self.make(op, type, operands, attrs, term))

    def is_parameter(self, instruction: Term) -> bool:
        """Whether it is a parameter."""
        return instruction.op is hlo.parameter

    def has_effect(self, instruction: Term) -> bool:
        """Whether it must stay although it has no users."""
        return has_effect(instruction)


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


def has_effect(term: Term) -> bool:
    """Whether a term must stay although nobody reads it."""
    if term.op in EFFECTS:
        return True
    if term.op is hlo.custom_call:
        return CustomCall.of(term).custom_call_has_side_effect
    return any(has_effect(t) for b in term.calls for t in b.instructions) or any(graph_has_side_effect(g) for g in term.bodies)


def without_layout(type: Type) -> Type:
    """The type with its layouts left out."""
    if isinstance(type, TensorType):
        return type if type.layout is None and not type.is_static else \
            tensor_type(type.dtype.name, type.dims()) if type.is_static else TensorType(type.dtype, type.shape)
    if isinstance(type, TupleType):
        return TupleType(tuple(without_layout(e) for e in type.elements))
    return type
