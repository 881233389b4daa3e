"""The order in which kernels run: that of four topological orders which holds the least memory at once.

``reorder_for_peak_memory`` of torch/_inductor/memory.py: the order of the scheduler, the kernel that leaves the least memory first, the
readers of the oldest values first, and depth first from the kernels that touch least. The first of the smallest peaks is taken.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import prod

from irscope.fusion.inductor.kernels import Kernel, size_of
from irscope.fusion.inductor.values import Buffer
from irscope.graph import Node
from irscope.graph.walk import post_order
from irscope.ops import hlo
from irscope.source.budget import tick


@dataclass(slots=True, eq=False)
class HeldMemory:
    """The memory of one buffer, in bytes: ``taken`` when it is created, ``freed`` after its last reader; a ``result`` is never freed."""

    taken: int
    freed: int
    result: bool
    readers: dict[Task, None] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Task:
    """One kernel: the buffers that it writes and reads, and the kernels that it waits for and that wait for it.

    ``size``: the bytes that it takes; ``touched``: these, and the bytes of all that it reads.
    """

    kernel: Kernel
    index: int
    written: list[HeldMemory] = field(default_factory=list)
    read: dict[HeldMemory, None] = field(default_factory=dict)
    before: dict[Task, None] = field(default_factory=dict)
    after: dict[Task, None] = field(default_factory=dict)
    size: int = 0
    touched: int = 0


def in_memory_order(kernels: Sequence[Kernel], buffers: dict[str, Buffer], results: Iterable[Buffer],
                    saved: Iterable[Node]) -> list[Kernel]:
    """The kernels, topologically sorted already, in the order in which Inductor runs them.

    ``saved`` are the inputs that are freed after their last reader.
    """
    tasks, given = _tasks(kernels, buffers, {b.name for b in results}, set(saved))
    orders: tuple[Callable[[], list[Task]], ...] = (
        lambda: tasks, lambda: _least_memory_first(tasks, given), lambda: _oldest_first(tasks), lambda: _smallest_first(tasks))
    best = min((order() for order in orders), key=lambda order: _peak(order, given))
    return [task.kernel for task in best]


def _tasks(kernels: Sequence[Kernel], buffers: dict[str, Buffer], results: set[str],
           saved: set[Node]) -> tuple[list[Task], list[HeldMemory]]:
    """The kernels with what they hold, and the memory of the inputs that are freed."""
    tasks = [Task(kernel, index) for index, kernel in enumerate(kernels)]
    written = [(buffer, task) for task in tasks for buffer in task.kernel.buffers]
    writer = {buffer.name: task for buffer, task in written}
    held = {buffer.name: made for (buffer, _), made in zip(written, _memory([b for b, _ in written], results), strict=True)}
    for buffer, task in written:
        task.written.append(held[buffer.name])
    given = _freed_inputs(tasks, buffers, saved)
    held.update(given)
    for task in tasks:
        tick()
        for name in dict.fromkeys(d.buffer for d in task.kernel.reads if d.buffer in held and d.buffer not in task.kernel.names):
            held[name].readers[task] = None
            if name in writer:
                task.before[writer[name]] = None
                writer[name].after[task] = None
    for buffer, _ in reversed(written):
        place = updated_in(buffer)
        if place is not None and place.name in writer:
            own, kept = held[buffer.name], held[place.name]
            kept.result = kept.result or own.result
            kept.readers.update((reader, None) for reader in own.readers if reader is not writer[place.name])
    for one in held.values():
        for reader in one.readers:
            reader.read[one] = None
    for task in tasks:
        task.size = sum(made.taken for made in task.written)
        task.touched = task.size + sum(one.freed for one in task.read)
    return tasks, list(given.values())


def _memory(written: list[Buffer], results: set[str]) -> Iterator[HeldMemory]:
    """The memory of each buffer. That of the several results of a call is taken by the call; an update in place takes none."""
    parts: dict[str, int] = {}
    for buffer in written:
        if buffer.part:
            call = buffer.reads[0].name
            parts[call] = parts.get(call, 0) + _bytes(buffer)
    for buffer in written:
        size = 0 if updated_in(buffer) is not None else _bytes(buffer)
        yield HeldMemory(parts.get(buffer.name, 0 if buffer.part else size), 0 if buffer.name in parts else size, buffer.name in results)


def updated_in(buffer: Buffer) -> Buffer | None:
    """The buffer that a scatter writes into; None for anything else."""
    if buffer.node.op is not hlo.scatter or buffer.kind not in ("scatter", "extern"):
        return None
    alike = (read for read in buffer.reads if read.shape == buffer.shape and read.itemsize == buffer.itemsize and read.kind != "input")
    return next(alike, None)


def _bytes(buffer: Buffer) -> int:
    return prod(buffer.shape) * buffer.itemsize


def _freed_inputs(tasks: list[Task], buffers: dict[str, Buffer], saved: set[Node]) -> dict[str, HeldMemory]:
    """The memory of the inputs that are freed, each as large as its last reader makes it."""
    found: dict[str, HeldMemory] = {}
    for task in tasks if saved else ():
        for read in task.kernel.reads:
            buffer = buffers[read.buffer]
            if buffer.kind == "input" and buffer.node in saved:
                size = size_of(read, buffers)
                found[read.buffer] = HeldMemory(size, size, False)
    return found


def _peak(order: list[Task], given: list[HeldMemory]) -> int:
    """The most bytes that are held at once."""
    step = {task: i for i, task in enumerate(order)}
    change = [0] * (len(order) + 1)
    for start, one in (*((0, one) for one in given), *((step[task], one) for task in order for one in task.written)):
        change[start] += one.taken
        if not one.result:
            change[max((step[reader] for reader in one.readers), default=start) + 1] -= one.freed
    most = now = 0
    for bytes in change:
        now += bytes
        most = max(most, now)
    return most


class _Ready:
    """The kernels that may run next, by the bytes that they take; within one size those come first that leave the least memory."""

    def __init__(self) -> None:
        self._heaps: dict[int, list[tuple[int, int, Task]]] = {}
        self._free: dict[Task, int] = {}

    def put(self, task: Task, free: int) -> None:
        """Add a kernel, or give it a new number of bytes that it frees."""
        self._free[task] = free
        heappush(self._heaps.setdefault(task.size, []), (-free, task.index, task))

    def pop(self, gap: int) -> tuple[Task, int]:
        """The kernel to run next, and what it frees: of those that fit below the peak so far the one that leaves the least memory."""
        best: tuple[tuple[int, int, int], Task] | None = None
        for size in list(self._heaps):
            tick()
            heap = self._heaps[size]
            while heap and self._free.get(heap[0][2]) != -heap[0][0]:
                heappop(heap)
            if not heap:
                del self._heaps[size]
                continue
            key = (size if size > gap else 0, size + heap[0][0], heap[0][1])
            if best is None or key < best[0]:
                best = key, heap[0][2]
        assert best is not None
        return best[1], self._free.pop(best[1])


def _least_memory_first(tasks: list[Task], given: list[HeldMemory]) -> list[Task]:
    """``topological_sort_lpmf``: a kernel that fits below the peak so far and leaves the least memory, else the smallest."""
    waiting = {task: len(task.before) for task in tasks}
    live = sum(one.freed for one in given)
    most = max(live, sum(one.freed for task in tasks for one in task.written if one.result))
    users = {one: len(one.readers) + one.result for task in tasks for one in (*task.written, *task.read)}
    free = {task: sum(one.freed for one in task.read if users[one] == 1) + sum(one.freed for one in task.written if not users[one])
            for task in tasks}
    ready = _Ready()
    for task in tasks:
        if not waiting[task]:
            ready.put(task, free[task])
    order: dict[Task, None] = {}
    while len(order) < len(tasks):
        task, freed = ready.pop(most - live)
        order[task] = None
        live += task.size
        most = max(most, live)
        live -= freed
        for one in task.read:
            users[one] -= 1
            if users[one] == 1:
                for reader in one.readers:
                    free[reader] += one.freed
                    if not waiting[reader] and reader not in order:
                        ready.put(reader, free[reader])
        for reader in task.after:
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.put(reader, free[reader])
    return list(order)


def _oldest_first(tasks: list[Task]) -> list[Task]:
    """``topological_sort_bfs``: the kernels whose operands were computed earliest."""
    waiting = {task: len(task.before) for task in tasks}
    order: dict[Task, int] = {}
    ready: list[tuple[list[int], int, Task]] = [([], task.index, task) for task in tasks if not task.before]
    while ready:
        tick()
        task = heappop(ready)[2]
        order[task] = len(order)
        for reader in task.after:
            waiting[reader] -= 1
            if not waiting[reader]:
                heappush(ready, (sorted(order[one] for one in reader.before), reader.index, reader))
    return list(order)


def _smallest_first(tasks: list[Task]) -> list[Task]:
    """``topological_sort_dfs``: depth first to the operands, those that touch least first."""
    def by_size(some: Iterable[Task]) -> list[Task]:
        tick()
        return sorted(some, key=lambda task: (task.touched, task.index))

    return post_order(by_size(tasks), lambda task: by_size(task.before))
