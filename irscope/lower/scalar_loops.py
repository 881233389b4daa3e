"""Finds kernels that work element by element: those without a vector statement."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from irscope.lower.program import Program
from irscope.lower.tile import Kernel, Stmt, While


@dataclass(frozen=True, slots=True)
class ScalarLoop:
    """A kernel whose loops have only scalar statements. ``nodes`` are the user's; ``steps`` is how often its innermost statements run,
    where the bounds of its loops are constant; ``waits``: whether a loop's end depends on data."""

    kernel: str
    nodes: tuple[str, ...]
    steps: int
    waits: bool


def scalar_loops(program: Program) -> list[ScalarLoop]:
    """The kernels of a program that compute without vectors, each once, in the order in which they run first."""
    found = []
    for kernel in dict.fromkeys(launch.kernel for launch in program.launches()):
        statements = list(_walk(kernel))
        if statements and not any(_lanes(stmt) > 1 for stmt, _ in statements):
            waits = any(isinstance(stmt, While) for stmt, _ in statements)
            found.append(ScalarLoop(kernel.name, kernel.origin, max(times for _, times in statements), waits))
    return found


def _walk(kernel: Kernel) -> Iterator[tuple[Stmt, int]]:
    """Every statement with how often it runs; loops of unknown length count once."""
    stack: list[tuple[Stmt, int]] = [(stmt, 1) for stmt in kernel.body]
    while stack:
        stmt, times = stack.pop()
        yield stmt, times
        trips = stmt.trips
        stack += [(inner, times if trips is None else times * trips) for block in stmt.blocks() for inner in block]


def _lanes(stmt: Stmt) -> int:
    """The widest vector of a statement's own value."""
    return max((x.lanes for x in (stmt.result, *stmt.operands()) if x is not None), default=1)
