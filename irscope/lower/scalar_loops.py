"""Which kernels of a program work element by element: those without one vector among their statements."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from irscope.lower.program import Program
from irscope.lower.tile import Assign, For, GatherLoad, If, Kernel, Let, Load, Stmt, Store, While


@dataclass(frozen=True, slots=True)
class ScalarLoop:
    """A kernel whose loops hold scalars alone. ``nodes`` are the user's nodes; ``steps`` how often its innermost statements run, as far as
    the bounds of its loops are numbers; ``waits`` whether a loop's end depends on data."""

    kernel: str
    nodes: tuple[str, ...]
    steps: int
    waits: bool


def scalar_loops(program: Program) -> list[ScalarLoop]:
    """The kernels of a program that compute without vectors, each once, in the order in which they run first."""
    found = []
    for kernel in dict.fromkeys(launch.kernel for launch in program.launches()):
        if kernel.body and not any(_lanes(stmt) > 1 for stmt, _ in _walk(kernel)):
            steps = max(times for _, times in _walk(kernel))
            found.append(ScalarLoop(kernel.name, kernel.origin, steps, any(isinstance(stmt, While) for stmt, _ in _walk(kernel))))
    return found


def _walk(kernel: Kernel) -> Iterator[tuple[Stmt, int]]:
    """Every statement with how often it runs; loops of unknown length count once."""
    stack: list[tuple[Stmt, int]] = [(stmt, 1) for stmt in kernel.body]
    while stack:
        stmt, times = stack.pop()
        yield stmt, times
        if isinstance(stmt, For):
            low, high = stmt.low.constant, stmt.high.constant
            trips = max(0, -(-(high - low) // stmt.step)) if low is not None and high is not None else 1
            stack += [(inner, times * trips) for inner in stmt.body]
        elif isinstance(stmt, While):
            stack += [(inner, times) for inner in (*stmt.head, *stmt.body)]
        elif isinstance(stmt, If):
            stack += [(inner, times) for inner in (*stmt.then, *stmt.otherwise)]


def _lanes(stmt: Stmt) -> int:
    """The widest vector of a statement's own value."""
    if isinstance(stmt, (Load, GatherLoad, Let)):
        return stmt.var.lanes
    return stmt.value.lanes if isinstance(stmt, (Store, Assign)) else 1
