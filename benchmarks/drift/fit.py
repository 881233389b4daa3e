"""The row of ``irscope/fusion/xla/releases.py`` that fits a release best, made of the values that other rows have."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import cache, partial
from pathlib import Path
from typing import TypeVar

from benchmarks.release_agreement import compare, read
from irscope.api import load
from irscope.fusion.canonicalise import canonicalise, run_cpu
from irscope.fusion.xla.releases import CPU_RELEASES, CpuRelease, Rewriting
from irscope.fusion.xla.stage import computations
from irscope.fusion.xla_cpu import XlaCpuPolicy
from irscope.graph import Module, TensorType
from irscope.ops import hlo

Row = TypeVar("Row", CpuRelease, Rewriting)


def fitted(programs: list[Path], nearest: CpuRelease, name: str) -> CpuRelease:
    """A row for the release ``name``: the nearest one, with every value of another row that makes more programs exact."""
    rewriting = _climb(nearest.rewriting, [row.rewriting for row in CPU_RELEASES.values()], lambda one: rewritten_alike(programs, one))
    start = replace(nearest, name=name, rewriting=rewriting)
    return _climb(start, list(CPU_RELEASES.values()), lambda one: decided_alike(programs, one), skip=("name", "rewriting"))


def decided_alike(programs: list[Path], row: CpuRelease) -> int:
    """On how many edges a row decides as the log of each program says."""
    policy = XlaCpuPolicy(row)
    return sum(compare(program, policy).right for program in programs)


def rewritten_alike(programs: list[Path], rewriting: Rewriting) -> int:
    """Of how many programs the early text becomes one of the same operators and types as the text before fusion."""
    rewrite = partial(run_cpu, rewriting=rewriting)
    return sum(forms(canonicalise(early(program), rewrite).module) == forms(read(program)[0]) for program in programs)


@cache
def early(program: Path) -> Module:
    """The text of a program as jax gave it to XLA."""
    return load(program / "raw.hlo").module()


def forms(module: Module) -> Counter[tuple[str, str]]:
    """The operators of a module with the types of their results, layouts left out."""
    nodes = (node for graph in computations(module) for node in graph.nodes if node.op is not hlo.parameter)
    return Counter((n.op.name, f"{n.type.dtype.name}{n.type.shape}" if isinstance(n.type, TensorType) else "tuple") for n in nodes)


def differences(row: CpuRelease, base: CpuRelease) -> str:
    """A row as the source may have it: as a change of another row."""
    other = f"CPU_RELEASES[{base.name!r}]"
    changes = [f"name={row.name!r}", *_changes(row, base, skip=("name", "rewriting"))]
    inner = list(_changes(row.rewriting, base.rewriting))
    if inner:
        changes.append(f"rewriting=replace({other}.rewriting, {', '.join(inner)})")
    return f"replace({other}, {', '.join(changes)})"


def _changes(row: Row, base: Row, skip: tuple[str, ...] = ()) -> Iterator[str]:
    for field in fields(row):
        if field.name not in skip and getattr(row, field.name) != getattr(base, field.name):
            yield f"{field.name}={getattr(row, field.name)!r}"


def _climb(start: Row, rows: list[Row], score: Callable[[Row], int], skip: tuple[str, ...] = ()) -> Row:
    """The row with the best score that changes of one field at a time lead to, with values of other rows."""
    best, points = start, score(start)
    while True:
        tried = {replace(best, **{field.name: getattr(row, field.name)}) for field in fields(best) if field.name not in skip
                 for row in rows} - {best}
        ranked = max(((score(one), repr(one), one) for one in tried), key=lambda found: found[:2], default=None)
        if ranked is None or ranked[0] <= points:
            return best
        points, _, best = ranked
