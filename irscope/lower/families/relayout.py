"""Copies between orders of dimensions, for the edges of a net: an input into room for its padding, a result into the caller's order."""
from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from irscope.graph import DType, Node
from irscope.lower.build import KernelBuilder
from irscope.lower.families import Arg, Around, Problem, Stage, Temp
from irscope.lower.families.micro import first_lanes
from irscope.lower.families.pack import transposed
from irscope.lower.program import Slot
from irscope.lower.storage import Storage, Wish
from irscope.lower.tile import Buffer, Expr


@dataclass(slots=True)
class Edges:
    """What has to be copied around a kernel: stages before and after, and the memory that stands for values meanwhile.

    """

    problem: Problem
    before: list[Stage]
    after: list[Stage]
    instead: dict[Node, Arg]

    def arguments(self) -> list[Arg]:
        """The arguments of the kernel between the copies."""
        return [self.instead.get(a, a) if isinstance(a, Node) else a for a in self.problem.arguments()]

    def image(self, k: KernelBuilder, node: Node) -> tuple[Buffer, Arg, int]:
        """A buffer for an input and the zeros around it, its argument, and where the input's element 0 lies in it."""
        storage = self.problem.ins[node]
        buffer = k.buffer("image", storage.dtype, storage.shape, "in", storage.span_with_room, storage.dtype.storage)
        return buffer, self.instead.get(node, Around(node)), storage.first + storage.lead


@dataclass(slots=True)
class Place:
    """A buffer walked by strides from ``base``."""

    buffer: Buffer
    strides: tuple[int, ...]
    base: int = 0


def copy(k: KernelBuilder, shape: Sequence[int], source: Place, target: Place, lanes: int) -> None:
    """Copy an array: by vectors where both sides have a dimension in common that is side by side, by transposed squares where each has
    its own, else element by element."""
    dims = [d for d, n in enumerate(shape) if n > 1]
    along = next((d for d in dims if source.strides[d] == target.strides[d] == 1), None)
    if along is not None:
        _runs(k, shape, source, target, along, lanes)
        return
    across = next((d for d in dims if source.strides[d] == 1), None)
    down = next((d for d in dims if target.strides[d] == 1), None)
    if across is not None and down is not None and lanes > 1:
        _squares(k, shape, source, target, across, down, lanes)
        return
    with ExitStack() as stack:
        at, to, _ = _enter(k, stack, shape, source, target, ())
        k.store(target.buffer, to, k.load(source.buffer, at))


def _enter(k: KernelBuilder, stack: ExitStack, shape: Sequence[int], source: Place, target: Place,
           without: Sequence[int]) -> tuple[Any, Any, None]:
    """Loops over all dimensions but some, the target's slowest outside: (source index, target index)."""
    at, to = k.index(source.base), k.index(target.base)
    for d in sorted((d for d in range(len(shape)) if d not in without), key=lambda d: -abs(target.strides[d])):
        i = stack.enter_context(k.par(0, shape[d]))
        at, to = at + i * source.strides[d], to + i * target.strides[d]
    return at, to, None


def _runs(k: KernelBuilder, shape: Sequence[int], source: Place, target: Place, along: int, lanes: int) -> None:
    with ExitStack() as stack:
        at, to, _ = _enter(k, stack, shape, source, target, (along,))
        whole = shape[along] // lanes * lanes
        with k.loop(0, whole, lanes) as i:
            k.store(target.buffer, to + i, k.load(source.buffer, at + i, lanes))
        if whole < shape[along]:
            mask = first_lanes(k, shape[along] - whole, lanes)
            k.store(target.buffer, to + whole, k.load(source.buffer, at + whole, lanes, mask), mask)


def _squares(k: KernelBuilder, shape: Sequence[int], source: Place, target: Place, across: int, down: int, lanes: int) -> None:
    """Lines of the source run along ``across``, those of the target along ``down``."""
    def square(at: Any, to: Any, wide: int, high: int) -> None:
        read = first_lanes(k, wide, lanes) if wide < lanes else None
        write = first_lanes(k, high, lanes) if high < lanes else None
        empty = k.splat(k.const(0, source.buffer.dtype), lanes)
        lines: list[Expr] = [k.load(source.buffer, at + r * source.strides[down], lanes, read) if r < high else empty for r in range(lanes)]
        for c, line in enumerate(transposed(k, lines)[:wide]):
            k.store(target.buffer, to + c * target.strides[across], line, write)

    def pieces(size: int) -> list[tuple[int, int, int]]:
        whole = size // lanes * lanes
        return [p for p in ((0, whole, lanes), (whole, size - whole, size - whole)) if p[1]]

    with ExitStack() as stack:
        at, to, _ = _enter(k, stack, shape, source, target, (across, down))
        for first_down, count_down, high in pieces(shape[down]):
            for first, count, wide in pieces(shape[across]):
                with k.loop(first_down, first_down + count_down, high) as r, k.loop(first, first + count, wide) as c:
                    square(at + r * source.strides[down] + c, to + r + c * target.strides[across], wide, high)


def framed(problem: Problem, node: Node, order: tuple[int, ...], room: Sequence[tuple[int, int]],
           holes: Sequence[int]) -> tuple[Stage, Temp, Storage]:
    """A stage that copies an input into memory of its own, in another order, with zeros around it and between its elements.

    ``holes`` is how far elements are apart along each dimension (1: nothing between). Gives that memory, and its Storage, holes and all.
    """
    storage = problem.ins[node]
    wish = Wish(order, tuple(low for low, _ in room), tuple(high for _, high in room))
    shape = tuple((n - 1) * hole + 1 for n, hole in zip(storage.shape, holes))
    temp, made = _temp(node.name, storage, shape, wish, any(hole > 1 for hole in holes))
    k = KernelBuilder(f"{problem.name}_frame", lanes=problem.lanes, tuned=True)
    source = Place(k.buffer("x", storage.dtype, storage.shape, "in", storage.span, storage.dtype.storage), storage.strides, storage.first)
    strides = tuple(stride * hole for stride, hole in zip(made.strides, holes))
    target = Place(k.buffer("framed", storage.dtype, shape, "out", temp.elements), strides, made.offset)
    copy(k, storage.shape, source, target, _lanes(storage.dtype, problem.lanes))
    moved = 2.0 * prod(storage.shape) * storage.dtype.storage
    return Stage(k.finish(bytes=moved, origin=(node.name,)), [node, temp]), temp, made


def relaid(problem: Problem, node: Node, order: tuple[int, ...]) -> tuple[Stage, Temp, Storage]:
    """An output in memory of its own and another order, and the stage that copies it from there to where it belongs."""
    storage = problem.outs[node]
    rank = len(storage.shape)
    temp, made = _temp(node.name, storage, storage.shape, Wish(order, (0,) * rank, (0,) * rank), False)
    k = KernelBuilder(f"{problem.name}_relay", lanes=problem.lanes, tuned=True)
    source = Place(k.buffer("x", storage.dtype, storage.shape, "in", temp.elements), made.strides)
    target = Place(k.buffer("y", storage.dtype, storage.shape, "out", storage.span, storage.dtype.storage), storage.strides, storage.first)
    copy(k, storage.shape, source, target, _lanes(storage.dtype, problem.lanes))
    moved = 2.0 * prod(storage.shape) * storage.dtype.storage
    return Stage(k.finish(bytes=moved, origin=(node.name,)), [temp, node]), temp, made


def with_storage(problem: Problem, ins: dict[Node, Storage], outs: dict[Node, Storage]) -> Problem:
    """The problem with other places for some values."""
    return replace(problem, ins={n: ins.get(n, s) for n, s in problem.ins.items()},
                   outs={n: outs.get(n, s) for n, s in problem.outs.items()})


def _temp(name: str, storage: Storage, shape: tuple[int, ...], wish: Wish, holes: bool) -> tuple[Temp, Storage]:
    strides, offset, elements = wish.layout(shape)
    zeroed = holes or wish.has_halo
    slot = Slot(name, storage.dtype, elements, "temp", zeroed=zeroed)
    made = Storage(slot, storage.dtype, shape, strides, offset, tuple(zip(wish.low, wish.high)))
    return Temp(name, storage.dtype, elements, zeroed), made


def _lanes(dtype: DType, lanes: int) -> int:
    return max(1, 4 * lanes // dtype.storage) if dtype.storage >= 4 else lanes
