"""What XLA's CPU compiler hands to a library before it fuses: products and large reductions go to YNNPACK (ynn_support.cc)."""
from __future__ import annotations

from collections import deque
from math import prod

from irscope.fusion.canonicalise.dots import free, places
from irscope.fusion.canonicalise.terms import Body, Term
from irscope.fusion.canonicalise.values import combiner
from irscope.fusion.xla.opcodes import ELEMENTWISE
from irscope.graph import Graph, Node
from irscope.ops import hlo
from irscope.ops.attributes import Convolution, Pad, Reduce, Windowed
from irscope.ops.attrs import Window

MIN_ELEMENTS = 4096
"""An instruction with no array of this size is not worth a call (``kMinElements``)."""
MIN_DOT = 8
"""A product in which no dimension is this large is not worth a call."""
MAX_MEMBERS = 64
"""Instructions that one call takes (``MaxFusionSize``)."""
DOT_TYPES = frozenset((("f64", "f64", "f64"), ("f32", "f32", "f32"), ("bf16", "bf16", "f32"), ("s8", "s8", "s32"), ("u8", "s8", "s32")))
"""Element types of both sides and the result that the library multiplies."""
CONVOLUTION_TYPES = frozenset((("f64", "f64", "f64"), ("f32", "f32", "f32"), ("s8", "s8", "s32")))
"""Element types of input, filter and result that the library convolves."""
MIN_CHANNELS = 16
"""A convolution with no more features than this on either side is not worth a call."""
ARITHMETIC = hlo.named("abs ceil convert cosine erf exponential exponential-minus-one floor log log-plus-one logistic negate "
                        "round-nearest-even rsqrt sign sine sqrt tanh tan add divide maximum minimum multiply power subtract")
"""Elementwise instructions that the library computes beside a reduction."""
ARITHMETIC_TYPES = frozenset(("f64", "f32", "bf16", "s8", "u8"))
MOVES = hlo.named("broadcast bitcast reshape pad constant")
"""What may stand between them."""


def takes_dot(term: Term) -> bool:
    """Whether the library computes a product (in canonical form, with default layouts)."""
    lhs, rhs = term.operands
    if (lhs.dtype, rhs.dtype, term.dtype) not in DOT_TYPES:
        return False
    lb, rb, lc, rc = places(term)
    mine, theirs = free(lhs, lb, lc), free(rhs, rb, rc)
    m, n, k = prod(lhs.dims[d] for d in mine), prod(rhs.dims[d] for d in theirs), prod(lhs.dims[d] for d in lc)
    if m == 1 or n == 1 or max(m, n, k) < MIN_DOT:
        return False
    # The contracted dimension must be the last of the left side; a right side with it last is multiplied transposed.
    return not mine or not lc or max(mine) < min(lc)


def takes_convolution(term: Term) -> bool:
    """Whether the library computes a convolution (in canonical form: batch, space, features)."""
    lhs, rhs = term.operands
    attrs = Convolution.of(term)
    window = attrs.window
    if window is None or len(window.size) != 2 or (lhs.dtype, rhs.dtype, term.dtype) not in CONVOLUTION_TYPES:
        return False
    if attrs.batch_group_count != 1 or max(lhs.dims[3], term.dims[3]) <= MIN_CHANNELS:
        return False
    if any(n != 1 for n in window.lhs_dilate) or any(window.rhs_reversal):
        return False
    return all(term.dims[d] <= lhs.dims[d] and rhs.dims[d - 1] <= lhs.dims[d] for d in (1, 2))


def takes_reduction(term: Term) -> bool:
    """Whether the library computes a reduction."""
    if not term.is_array or len(term.operands) != 2 or not is_large(term):
        return False
    if term.op is hlo.reduce:
        if not Reduce.of(term).dimensions:
            return False
    elif term.op is not hlo.reduce_window or (window := Windowed.of(term).window) is None or not _is_tiling(window):
        return False
    source, init = term.operands
    op = combiner(term.bodies[0] if term.bodies else None)
    if init.dtype != term.dtype:
        return False
    if op is hlo.add:
        return (source.dtype, term.dtype) in (("f64", "f64"), ("f32", "f32"), ("f16", "f32"), ("bf16", "f32"), ("s8", "s32"), ("u8", "s32"))
    return op in (hlo.maximum, hlo.minimum) and source.dtype == term.dtype and term.dtype in ("u8", "s8", "bf16", "f16", "f32", "f64")


def _is_tiling(window: Window) -> bool:
    """Whether windows lie side by side, at least along one dimension."""
    wide = [d for d, (n, s) in enumerate(zip(window.size, window.stride, strict=True)) if n > 1 or s > 1]
    return bool(wide) and all(window.size[d] in (1, window.stride[d]) and window.lhs_dilate[d] == window.rhs_dilate[d] == 1
                              and not window.rhs_reversal[d] for d in wide)


def is_large(term: Term) -> bool:
    """Whether the result or an operand has enough elements."""
    return any(t.is_array and t.elements >= MIN_ELEMENTS for t in (term, *term.operands))


def call_library(body: Body) -> None:
    """Wrap what the library computes into fusions of kind ``kCustom``; reductions come first and take their neighbours with them."""
    inside: set[Term] = set()
    order = body.post_order()[::-1]
    for term in order:
        if not term.erased and term not in inside and takes_reduction(term):
            members = _grown(body, term, inside)
            inside.update(members)
            wrap(body, members, members[-1])
    for term in order:
        if not term.erased and term not in inside and ((term.op is hlo.dot and takes_dot(term)) or
                                                     (term.op is hlo.convolution and takes_convolution(term))):
            wrap(body, [term], term)


def _grown(body: Body, start: Term, inside: set[Term]) -> list[Term]:
    """A reduction and its neighbours that the library takes too, the result last."""
    growth = _Growth(body, start, inside)
    while growth.grow():
        pass
    return [*(t for t in growth.members if t is not growth.root), growth.root]


class _Growth:
    """A library call in the making: an operand joins when nothing else reads it, a reader when it is the only one."""

    def __init__(self, body: Body, start: Term, inside: set[Term]) -> None:
        self.body, self.inside = body, inside
        self.members: dict[Term, None] = {start: None}
        self.root = start

    def grow(self) -> bool:
        """Take in neighbours, nearest first; whether any came."""
        self.queue: deque[tuple[Term, bool]] = deque()
        self.seen = set(self.members)
        before = len(self.members)
        for member in list(self.members):
            self._around(member, member is self.root)
        while self.queue and len(self.members) < MAX_MEMBERS:
            term, up = self.queue.popleft()
            if term in self.inside or not _joins(term):
                continue
            self.members[term] = None
            if not up:
                self.root = term
            self._around(term, not up)
        return len(self.members) > before

    def _around(self, term: Term, down: bool) -> None:
        for operand in dict.fromkeys(term.operands):
            if operand not in self.seen and operand is not self.body.root and all(u in self.members for u in operand.users):
                self.seen.add(operand)
                self.queue.append((operand, True))
        if down and len(term.users) == 1 and term is not self.body.root:
            user = next(iter(term.users))
            if user not in self.seen:
                self.seen.add(user)
                self.queue.append((user, False))


def _joins(term: Term) -> bool:
    """Whether the library computes a neighbour of a reduction."""
    if term.op in (hlo.parameter, hlo.tuple, hlo.get_tuple_element) or not term.is_array:
        return False
    if term.op in MOVES:
        return term.op is not hlo.pad or all(c == 0 for _, _, c in Pad.of(term).padding)
    if term.op is hlo.convolution:
        return takes_convolution(term)
    if term.op is hlo.dot:
        return takes_dot(term)
    if term.op in (hlo.reduce, hlo.reduce_window):
        return takes_reduction(term)
    return term.op in ELEMENTWISE and term.op in ARITHMETIC and is_large(term) and term.dtype in ARITHMETIC_TYPES \
        and all(o.dtype in ARITHMETIC_TYPES for o in term.operands)


def wrap(body: Body, members: list[Term], root: Term) -> None:
    """Replace terms, the root last, by a fusion that computes them."""
    mine = set(members)
    members = [*_operands_first(members[:-1]), root]
    operands = list(dict.fromkeys(o for m in members for o in m.operands if o not in mine))
    graph = Graph(f"{body.name}.ynnpack.{len(body.instructions)}")
    here: dict[Term, Node] = {}
    for operand in operands:
        node = Node(hlo.parameter, f"param_{len(graph.params)}", operand.type, (), {"number": len(graph.params)})
        here[operand] = graph.add(node)
        graph.params.append(node)
    origin: dict[Node, None] = {}
    for member in members:
        node = Node(member.op, member.name or f"{member.op}.{len(graph.nodes)}", member.type, tuple(here[o] for o in member.operands),
                    member.attrs, member.bodies, member.origin[0].loc if member.origin else -1, origin=member.origin)
        here[member] = graph.add(node)
        origin.update(dict.fromkeys(member.origin))
    graph.root = here[root]
    fusion = body.make(hlo.fusion, root.type, operands, {"kind": "kCustom"}, root, (graph,))
    fusion.origin = tuple(dict.fromkeys((*root.origin, *origin)))
    fusion.take_label(root)
    body.replace(root, fusion)
    for member in members:
        if member is not root and not member.users:
            member.replacement = fusion


def _operands_first(members: list[Term]) -> list[Term]:
    """A few terms in an order in which each stands behind what it reads."""
    done: dict[Term, None] = {}
    left = set(members)
    stack = list(reversed(members))
    while stack:
        top = stack[-1]
        todo = [o for o in top.operands if o in left and o not in done]
        if todo and top not in done:
            stack += todo
            continue
        stack.pop()
        done[top] = None
    return list(done)
