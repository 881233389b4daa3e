"""The dots, convolutions and reductions that XLA's CPU compiler offloads to YNNPACK before it fuses (ynn_support.cc)."""
from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from math import prod

from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction
from irscope.fusion.canonicalise.dots import free, places
from irscope.fusion.canonicalise.values import combiner
from irscope.fusion.xla.opcodes import ELEMENTWISE
from irscope.fusion.xla.releases import Library
from irscope.graph import Graph, Node, Op
from irscope.graph.walk import post_order
from irscope.ops import hlo
from irscope.ops.attributes import Convolution, Pad, Reduce, Windowed
from irscope.ops.attrs import Window

MIN_ELEMENTS = 4096
"""Elements below which no array of an instruction makes a call worthwhile (``kMinElements``)."""
MIN_DOT = 8
"""The size that a dimension of a dot needs to make a call worthwhile."""
MAX_MEMBERS = 64
"""The most instructions in one call (``MaxFusionSize``)."""
DOT_TYPES = frozenset((("f64", "f64", "f64"), ("f32", "f32", "f32"), ("bf16", "bf16", "f32"), ("s8", "s8", "s32"), ("u8", "s8", "s32")))
"""Element types of both sides and the result of dots that the library supports."""
NARROW_DOT_TYPES = DOT_TYPES | {("bf16", "bf16", "bf16")}
"""The same since jaxlib 0.11."""
SUM_TYPES = frozenset((("f64", "f64"), ("f32", "f32"), ("f16", "f32"), ("bf16", "f32"), ("s8", "s32"), ("u8", "s32")))
"""Element types of the operand and of the sum of reductions that it supports."""
CONVOLUTION_TYPES = frozenset((("f64", "f64", "f64"), ("f32", "f32", "f32"), ("s8", "s8", "s32")))
"""Element types of input, filter and result of convolutions that it supports."""
MIN_CHANNELS = 16
"""A convolution with no more features than this on either side is not worth a call."""
ARITHMETIC = hlo.named("abs ceil convert cosine erf exponential exponential-minus-one floor log log-plus-one logistic negate "
                        "round-nearest-even rsqrt sign sine sqrt tanh tan add divide maximum minimum multiply power subtract")
"""Elementwise instructions that the library computes next to a reduction."""
ARITHMETIC_TYPES = frozenset(("f64", "f32", "bf16", "s8", "u8"))
REDUCTIONS = hlo.named("reduce reduce-window")
LONG_SUM = 32 * 1024
"""Elements from which on jaxlib 0.9.2 called the library for a reduction."""
BEFORE_NO_SUM = hlo.named("multiply bitcast broadcast slice concatenate convert reshape")
"""Operators whose result jaxlib 0.9.2 did not hand to the library to be reduced: it could fuse them itself."""
MOVES = hlo.named("broadcast bitcast reshape pad constant")
"""Movement that it accepts between them."""


def takes_dot(instr: HloInstruction) -> bool:
    """Whether the library computes a dot (in canonical form, with default layouts)."""
    lhs, rhs = instr.operands
    return (lhs.dtype, rhs.dtype, instr.dtype) in NARROW_DOT_TYPES and _is_worth(instr)


def takes_wide_dot(instr: HloInstruction) -> bool:
    """Whether the library computes a dot in jaxlib 0.10.2."""
    lhs, rhs = instr.operands
    return (lhs.dtype, rhs.dtype, instr.dtype) in DOT_TYPES and _is_worth(instr)


def _is_worth(instr: HloInstruction) -> bool:
    """Whether a dot is large enough, and has its dimensions where the library wants them."""
    lhs, rhs = instr.operands
    lb, rb, lc, rc = places(instr)
    mine, theirs = free(lhs, lb, lc), free(rhs, rb, rc)
    m, n, k = prod(lhs.dims[d] for d in mine), prod(rhs.dims[d] for d in theirs), prod(lhs.dims[d] for d in lc)
    if m == 1 or n == 1 or max(m, n, k) < MIN_DOT:
        return False
    # The contracting dimension must be the last of the left side; if it is the last of the right side, the call transposes that.
    return not mine or not lc or max(mine) < min(lc)


def takes_convolution(instr: HloInstruction) -> bool:
    """Whether the library computes a convolution (in canonical form: batch, space, features)."""
    lhs, rhs = instr.operands
    attrs = Convolution.of(instr)
    window = attrs.window
    if window is None or len(window.size) != 2 or (lhs.dtype, rhs.dtype, instr.dtype) not in CONVOLUTION_TYPES:
        return False
    if attrs.batch_group_count != 1 or max(lhs.dims[3], instr.dims[3]) <= MIN_CHANNELS:
        return False
    if any(n != 1 for n in window.lhs_dilate) or any(window.rhs_reversal):
        return False
    return all(instr.dims[d] <= lhs.dims[d] and rhs.dims[d - 1] <= lhs.dims[d] for d in (1, 2))


def takes_reduction(instr: HloInstruction) -> bool:
    """Whether the library computes a reduction."""
    if not instr.is_array or len(instr.operands) != 2 or not is_large(instr):
        return False
    if instr.op is hlo.reduce:
        if not Reduce.of(instr).dimensions:
            return False
    elif instr.op is not hlo.reduce_window or (window := Windowed.of(instr).window) is None or not _is_tiling(window):
        return False
    source, init = instr.operands
    op = combiner(instr.bodies[0] if instr.bodies else None)
    if init.dtype != instr.dtype:
        return False
    if op is hlo.add:
        return (source.dtype, instr.dtype) in SUM_TYPES
    return op in (hlo.maximum, hlo.minimum) and source.dtype == instr.dtype and (instr.dtype in ARITHMETIC_TYPES or instr.dtype == "f16")


def _is_tiling(window: Window) -> bool:
    """Whether windows do not overlap, at least along one dimension."""
    wide = [d for d, (n, s) in enumerate(zip(window.size, window.stride, strict=True)) if n > 1 or s > 1]
    return bool(wide) and all(window.size[d] in (1, window.stride[d]) and window.lhs_dilate[d] == window.rhs_dilate[d] == 1
                              and not window.rhs_reversal[d] for d in wide)


def is_large(instr: HloInstruction) -> bool:
    """Whether the result or an operand has enough elements."""
    return any(t.is_array and t.elements >= MIN_ELEMENTS for t in (instr, *instr.operands))


def takes_long_sum(instr: HloInstruction) -> bool:
    """Whether the library computes a reduction in jaxlib 0.9.2 (``IsReduceOpOffloadedToYnn`` there)."""
    if not instr.is_array or len(instr.operands) != 2 or not Reduce.of(instr).dimensions:
        return False
    source, init = instr.operands
    return (instr.dtype == init.dtype == "f32" and source.elements >= LONG_SUM and source.op not in BEFORE_NO_SUM
            and combiner(instr.bodies[0] if instr.bodies else None) in (hlo.add, hlo.maximum, hlo.minimum))


_BESIDE = {hlo.convolution: takes_convolution, hlo.reduce: takes_reduction, hlo.reduce_window: takes_reduction}
TAKES: Mapping[Library, Mapping[Op, Callable[[HloInstruction], bool]]] = {
    Library.NONE: {},
    Library.LONG_SUMS: {hlo.reduce: takes_long_sum},
    Library.WIDE: {hlo.dot: takes_wide_dot, **_BESIDE},
    Library.ALL: {hlo.dot: takes_dot, **_BESIDE},
}
"""Whether the library computes an instruction, by operator, of what XLA's releases hand to it."""


def takes(library: Library, instr: HloInstruction) -> bool:
    """Whether XLA hands an instruction to the library."""
    test = TAKES[library].get(instr.op)
    return test is not None and test(instr)


def call_library(rewriter: HloComputation) -> None:
    """Wrap what the library computes into fusions of kind ``kCustom``; starts with reductions, which take in their neighbours."""
    inside: set[HloInstruction] = set()
    library = rewriter.rewriting.library
    order = rewriter.post_order()[::-1]
    for instr in order:
        if instr.op in REDUCTIONS and not instr.erased and instr not in inside and takes(library, instr):
            members = _Growth(rewriter, instr, inside).members_to_root() if library in (Library.WIDE, Library.ALL) else [instr]
            inside.update(members)
            wrap(rewriter, members, members[-1])
    for instr in order:
        if instr.op in (hlo.dot, hlo.convolution) and not instr.erased and instr not in inside and takes(library, instr):
            wrap(rewriter, [instr], instr)


class _Growth:
    """A library call under construction: it takes in an operand without other users, or a user that is the only one."""

    def __init__(self, rewriter: HloComputation, start: HloInstruction, inside: set[HloInstruction]) -> None:
        self.rewriter, self.inside = rewriter, inside
        self.members: dict[HloInstruction, None] = {start: None}
        self.root = start

    def members_to_root(self) -> list[HloInstruction]:
        """The reduction and its neighbours that the library computes too, the result last."""
        while self._grow():
            pass
        return [*(member for member in self.members if member is not self.root), self.root]

    def _grow(self) -> bool:
        """Take in neighbours, nearest first; returns whether there were any."""
        self.queue: deque[tuple[HloInstruction, bool]] = deque()
        self.seen = set(self.members)
        before = len(self.members)
        for member in list(self.members):
            self._around(member, member is self.root)
        while self.queue and len(self.members) < MAX_MEMBERS:
            instr, up = self.queue.popleft()
            if instr in self.inside or not _joins(instr, self.rewriter.rewriting.library):
                continue
            self.members[instr] = None
            if not up:
                self.root = instr
            self._around(instr, not up)
        return len(self.members) > before

    def _around(self, instr: HloInstruction, down: bool) -> None:
        for operand in dict.fromkeys(instr.operands):
            if operand not in self.seen and operand is not self.rewriter.root and all(u in self.members for u in operand.users):
                self.seen.add(operand)
                self.queue.append((operand, True))
        if down and len(instr.users) == 1 and instr is not self.rewriter.root:
            user = next(iter(instr.users))
            if user not in self.seen:
                self.seen.add(user)
                self.queue.append((user, False))


def _joins(instr: HloInstruction, library: Library) -> bool:
    """Whether the library computes a neighbour of a reduction."""
    if instr.op in (hlo.parameter, hlo.tuple, hlo.get_tuple_element) or not instr.is_array:
        return False
    if instr.op in MOVES:
        return instr.op is not hlo.pad or all(c == 0 for _, _, c in Pad.of(instr).padding)
    if instr.op in TAKES[library]:
        return takes(library, instr)
    return instr.op in ELEMENTWISE and instr.op in ARITHMETIC and is_large(instr) and instr.dtype in ARITHMETIC_TYPES \
        and all(o.dtype in ARITHMETIC_TYPES for o in instr.operands)


def wrap(rewriter: HloComputation, members: list[HloInstruction], root: HloInstruction) -> None:
    """Replace instructions, the root last, by a fusion that computes them."""
    mine = set(members)
    inner = set(members[:-1])
    members = [*post_order(members[:-1], lambda member: [o for o in reversed(member.operands) if o in inner]), root]
    operands = list(dict.fromkeys(o for m in members for o in m.operands if o not in mine))
    graph = Graph(f"{rewriter.name}.ynnpack.{len(rewriter.instructions)}")
    here: dict[HloInstruction, Node] = {}
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
    fusion = rewriter.make(hlo.fusion, root.type, operands, {"kind": "kCustom"}, (graph,), root)
    fusion.origin = tuple(dict.fromkeys((*root.origin, *origin)))
    fusion.take_label(root)
    rewriter.replace(root, fusion)
    for member in members:
        if member is not root and not member.users:
            member.replacement = fusion
