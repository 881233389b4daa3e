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
from irscope.graph.walk import callees_first_of, post_order
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


class Term:
    """One instruction. ``users`` is an ordered set; ``dims`` and ``dtype`` are those of an array, empty for anything else.

    ``origin`` are the nodes of the text that it stands for; ``into`` is what replaced it; ``gone`` says that nothing reads it any more.
    ``inner`` are the bodies that a loop or branch runs, each a copy of its own; ``bodies`` the graphs that are applied to elements.
    """

    __slots__ = ("attrs", "bodies", "dims", "dtype", "gone", "inner", "into", "is_array", "name", "op", "operands", "origin", "type",
                 "users")

    def __init__(self, op: Op, type: Type, operands: Iterable[Term] = (), attrs: Mapping[str, Any] = NO_ATTRS,
                 bodies: tuple[Graph, ...] = (), origin: tuple[Node, ...] = ()) -> None:
        self.op = op
        self.operands = list(operands)
        self.users: dict[Term, None] = {}
        self.attrs = attrs
        self.bodies = bodies
        self.inner: tuple[Body, ...] = ()
        self.name = ""
        self.origin = origin
        self.into: Term | None = None
        self.gone = False
        self.set_type(type)
        for operand in self.operands:
            operand.users[self] = None

    def set_type(self, type: Type) -> None:
        """Take another type."""
        self.type = type
        self.is_array = isinstance(type, TensorType)
        self.dims: tuple[int, ...] = ()
        self.dtype = ""
        if isinstance(type, TensorType):
            self.dims = tuple(d if isinstance(d, int) else d.bound or 1 for d in type.shape)
            self.dtype = type.dtype.name

    @property
    def elements(self) -> int:
        """Elements of an array."""
        return prod(self.dims)

    @property
    def rank(self) -> int:
        return len(self.dims)

    def operand(self, op: Op, number: int = 0) -> Term | None:
        """An operand if it is of this opcode."""
        if number >= len(self.operands) or self.operands[number].op != op:
            return None
        return self.operands[number]

    def set_operand(self, number: int, new: Term) -> None:
        """Read ``new`` as operand ``number``."""
        old = self.operands[number]
        self.operands[number] = new
        if old not in self.operands:
            old.users.pop(self, None)
        new.users[self] = None

    def replace_operand(self, old: Term, new: Term) -> None:
        """Read ``new`` wherever ``old`` was read."""
        for number, operand in enumerate(self.operands):
            if operand is old:
                self.set_operand(number, new)

    def final(self) -> Term:
        """What stands for this term after all that replaced it."""
        term = self
        while term.into is not None:
            term = term.into
        return term

    def __repr__(self) -> str:
        return f"%{self.name} = {self.type} {self.op}({', '.join('%' + o.name for o in self.operands)})"


class Body:
    """The terms of one computation, the root among them, and the parameters by number. ``touched`` is what changed since it was emptied.

    ``on_gpu`` says that XLA's GPU compiler rewrites it, whose simplifier leaves a few things as they are.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.terms: dict[Term, None] = {}
        self.params: list[Term] = []
        self.root: Term
        self.loc = -1
        self.on_gpu = False
        self.touched: dict[Term, None] = {}
        self.of_node: dict[Node, Term] = {}

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
                term = Term(node.op, without_layout(node.type), [here[o] for o in node.operands], attrs, node.bodies, (node,))
                term.name = node.name
                here[node] = term
                body.terms[term] = None
                if node.op in CONTROL and all(b.root is not None for b in node.bodies):
                    term.inner = tuple(Body(b.name) for b in node.bodies)
                    term.bodies = ()
                    pending += zip(term.inner, node.bodies, strict=True)
            body.params = [here[p] for p in source.params]
            body.root = here[source.result()]
        return made

    def everything(self) -> list[Body]:
        """This body and all that its loops and branches run, inner ones first."""
        found = [self]
        for body in found:
            found += [inner for term in body.terms for inner in term.inner]
        return found[::-1]

    # ---- making

    def make(self, op: Op, type: Type, operands: Iterable[Term], attrs: Mapping[str, Any] = NO_ATTRS, at: Term | None = None,
             bodies: tuple[Graph, ...] = ()) -> Term:
        """A new term that stands for what ``at`` stands for."""
        term = Term(op, type, operands, attrs, bodies, at.origin if at is not None else ())
        self.terms[term] = None
        self.touched[term] = None
        return term

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
        made.inner = term.inner
        return made

    # ---- replacing

    def replace(self, old: Term, new: Term) -> bool:
        """Everybody who read ``old`` reads ``new``, which takes its name if it has none; ``old`` is dropped, with what only it needed."""
        for user in list(old.users):
            user.operands = [new if o is old else o for o in user.operands]
            new.users[user] = None
            self.touched[user] = None
        old.users.clear()
        if self.root is old:
            self.root = new
        old.into = new
        if not new.name:
            new.name, old.name = old.name, ""
            if new.origin[:1] != old.origin[:1]:
                new.origin = tuple(dict.fromkeys((*old.origin, *new.origin)))
        self.touched[new] = None
        if old.op is not hlo.parameter:
            self._remove(old)
            for operand in dict.fromkeys(old.operands):
                self.drop(operand)
        return True

    def become(self, term: Term, op: Op, operands: Sequence[Term], attrs: Mapping[str, Any] = NO_ATTRS,
               dims: Sequence[int] | None = None) -> bool:
        """Replace a term by a new one of the same element type, and of the same shape where no other is given."""
        type = term.type if dims is None else tensor_type(term.dtype, dims)
        return self.replace(term, self.make(op, type, operands, attrs, term))

    def drop(self, term: Term) -> None:
        """Take a term out that nobody reads, and what is then read by nobody, but for parameters and effects."""
        stack = [term]
        while stack:
            dead = stack.pop()
            if dead.gone or dead.users or dead is self.root or dead.op is hlo.parameter or has_effect(dead):
                continue
            self._remove(dead)
            stack += dict.fromkeys(dead.operands)

    def _remove(self, dead: Term) -> None:
        dead.gone = True
        self.terms.pop(dead, None)
        self.touched.pop(dead, None)
        for operand in dead.operands:
            operand.users.pop(dead, None)
            self.touched[operand] = None

    def sweep(self) -> bool:
        """Drop everything that neither the root nor an effect needs."""
        before = len(self.terms)
        for term in list(self.terms):
            self.drop(term)
        return len(self.terms) != before

    # ---- walking

    def post_order(self) -> list[Term]:
        """Operands before users, depth first from each term that nobody reads, in the order of the text."""
        return post_order((term for term in self.terms if not term.users), lambda term: term.operands)


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
    return any(has_effect(t) for b in term.inner for t in b.terms) or any(graph_has_side_effect(g) for g in term.bodies)


def without_layout(type: Type) -> Type:
    """The type with its layouts left out."""
    if isinstance(type, TensorType):
        return type if type.layout is None and not type.is_static else \
            tensor_type(type.dtype.name, type.dims()) if type.is_static else TensorType(type.dtype, type.shape)
    if isinstance(type, TupleType):
        return TupleType(tuple(without_layout(e) for e in type.elements))
    return type
