"""Copies between orders of dimensions, for the edges of a net: an input into room for its padding, a result into the caller's order."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from irscope.graph import DType, Node
from irscope.lower.build import KernelBuilder
from irscope.lower.call import KernelOperands
from irscope.lower.storage import LayoutConstraint
from irscope.lower.templates import KernelOperand, LaunchStage, Problem
from irscope.lower.templates.pack import transposed
from irscope.lower.templates.shares import runs
from irscope.lower.view import Address, View


@dataclass(slots=True)
class Edges:
    """The copies before and after a kernel, as stages. ``problem`` is the problem of the kernel between them."""

    problem: Problem
    before: list[LaunchStage] = field(default_factory=list)
    after: list[LaunchStage] = field(default_factory=list)

    def frame(self, node: Node, order: tuple[int, ...], room: Sequence[tuple[int, int]], holes: Sequence[int]) -> KernelOperand:
        """A separate operand for one position that reads an input: a copy in another order, with zeros around it and between its elements.
        Other readers of the input still read the original.

        ``holes`` is the distance of elements along each dimension (1: nothing between).
        """
        problem, storage = self.problem, self.problem.ins[node]
        constraint = LayoutConstraint(order, tuple(low for low, _ in room), tuple(high for _, high in room))
        shape = tuple((n - 1) * hole + 1 for n, hole in zip(storage.shape, holes))
        made = constraint.storage(node.name, storage.dtype, shape, any(hole > 1 for hole in holes))
        kept = replace(made, shape=storage.shape, strides=tuple(s * hole for s, hole in zip(made.strides, holes)))
        self.before.append(_copying(f"{problem.name}_frame", problem, node, (KernelOperand(storage, node), "x"),
                                    (KernelOperand(kept), "framed")))
        return KernelOperand(made, around=True)

    def leave(self, orders: Mapping[Node, tuple[int, ...]]) -> None:
        """Have outputs written into private memory in other orders, and copied from there to their own storage."""
        problem, outs = self.problem, dict(self.problem.outs)
        for node, order in orders.items():
            storage = problem.outs[node]
            outs[node] = LayoutConstraint.dense(order).storage(node.name, storage.dtype, storage.shape)
            self.after.append(_copying(f"{problem.name}_relay", problem, node, (KernelOperand(outs[node]), "x"),
                                       (KernelOperand(storage, node), "y")))
        self.problem = replace(problem, outs=outs, apart=problem.apart | frozenset(orders))


def _copying(name: str, problem: Problem, node: Node, source: tuple[KernelOperand, str], target: tuple[KernelOperand, str]) -> LaunchStage:
    """The stage that copies one operand to another; each with the name of its buffer."""
    k = KernelBuilder(name, lanes=problem.lanes)
    call, storage = KernelOperands(k), source[0].storage
    copy(k, call.bind(source[0], "in", source[1]), call.bind(target[0], "out", target[1]), _lanes(storage.dtype, problem.lanes))
    return call.stage(k.finish(bytes=2.0 * storage.elements * storage.dtype.storage, origin=(node.name,)))


def copy(k: KernelBuilder, source: View, target: View, lanes: int) -> None:
    """Copy an array: by vectors where one dimension is contiguous on both sides, by transposed squares where each has
    its own, else element by element."""
    dims = [d for d, n in enumerate(source.shape) if n > 1]
    along = next((d for d in dims if source.strides[d] == target.strides[d] == 1), None)
    if along is not None:
        _runs(k, source, target, along, lanes)
        return
    across = next((d for d in dims if source.strides[d] == 1), None)
    down = next((d for d in dims if target.strides[d] == 1), None)
    if across is not None and down is not None and lanes > 1:
        _squares(k, source, target, across, down, lanes)
        return
    with ExitStack() as stack:
        at, to = _enter(k, stack, source, target, ())
        to.store(at.load())


def _enter(k: KernelBuilder, stack: ExitStack, source: View, target: View, without: Sequence[int]) -> tuple[Address, Address]:
    """Open loops over all dimensions but some, the target's slowest outermost; returns the addresses on both sides."""
    at, to, shape = source.origin, target.origin, source.shape
    for d in sorted((d for d in range(len(shape)) if d not in without), key=lambda d: -abs(target.strides[d])):
        i = stack.enter_context(k.par(0, shape[d]))
        at, to = at + i * source.strides[d], to + i * target.strides[d]
    return at, to


def _runs(k: KernelBuilder, source: View, target: View, along: int, lanes: int) -> None:
    with ExitStack() as stack:
        at, to = _enter(k, stack, source, target, (along,))
        size = source.shape[along]
        whole = size // lanes * lanes
        with k.loop(0, whole, lanes) as i:
            (to + i).store((at + i).load(lanes))
        if whole < size:
            mask = k.first_lanes(size - whole, lanes)
            (to + whole).store((at + whole).load(lanes, mask), mask)


def _squares(k: KernelBuilder, source: View, target: View, across: int, down: int, lanes: int) -> None:
    """Copy by squares: lines of the source run along ``across``, those of the target along ``down``."""
    shape = source.shape

    def square(at: Address, to: Address, wide: int, high: int) -> None:
        read = k.first_lanes(wide, lanes) if wide < lanes else None
        write = k.first_lanes(high, lanes) if high < lanes else None
        empty = k.splat(k.const(0, source.dtype), lanes)
        lines = [(at + r * source.strides[down]).load(lanes, read) if r < high else empty for r in range(lanes)]
        for c, line in enumerate(transposed(k, lines)[:wide]):
            (to + c * target.strides[across]).store(line, write)

    with ExitStack() as stack:
        at, to = _enter(k, stack, source, target, (across, down))
        for first_down, count_down, high in runs(shape[down], lanes):
            for first, count, wide in runs(shape[across], lanes):
                with k.loop(first_down, first_down + count_down, high) as r, k.loop(first, first + count, wide) as c:
                    square(at + r * source.strides[down] + c, to + r + c * target.strides[across], wide, high)


def _lanes(dtype: DType, lanes: int) -> int:
    return max(1, 4 * lanes // dtype.storage) if dtype.storage >= 4 else lanes
