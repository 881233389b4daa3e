"""The row of ``irscope/fusion/xla/releases.py`` that fits a release best, made of the values that other rows have."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from benchmarks.release_agreement import compare, read
from irscope.api import load
from irscope.fusion.canonicalise import canonicalise, run_cpu
from irscope.fusion.canonicalise.pipeline import run_gpu
from irscope.fusion.policy import AsWritten
from irscope.fusion.xla.early_gpu import with_kernels
from irscope.fusion.xla.gpu_device import Device, device_named
from irscope.fusion.xla.releases import CPU_RELEASES, GPU_RELEASES, GPU_REWRITING, CpuRelease, GpuRelease, Rewriting
from irscope.fusion.xla.stage import computations
from irscope.fusion.xla_cpu import XlaCpuPolicy
from irscope.fusion.xla_gpu import XlaGpuPolicy
from irscope.graph import Module, TensorType
from irscope.ops import hlo

Row: TypeAlias = CpuRelease | GpuRelease
Forms: TypeAlias = Counter[tuple[str, str]]
Rewrite: TypeAlias = Callable[[Any, Any], None]
Part = TypeVar("Part", CpuRelease, GpuRelease, Rewriting)


def policy_of(row: Row) -> AsWritten:
    """The policy that a row makes."""
    return XlaCpuPolicy(row) if isinstance(row, CpuRelease) else XlaGpuPolicy(row)


def fitted(programs: list[Path], nearest: Row, name: str, device: str | None) -> Row:
    """A row for the release ``name``: the nearest one, with every value of another row that makes more programs exact."""
    rows = {"xla-cpu": CPU_RELEASES, "xla-gpu": GPU_RELEASES}["xla-cpu" if isinstance(nearest, CpuRelease) else "xla-gpu"]
    known = [row.rewriting for row in (*rows.values(), *CPU_RELEASES.values()) if row.rewriting is not None]
    rewriting = nearest.rewriting
    if rewriting is not None:
        rewriting = _climb(rewriting, known, lambda one: rewritten_alike(programs, replace(nearest, rewriting=one), device))
    start = replace(nearest, name=name, rewriting=rewriting)
    skip = ("name", "rewriting", "dump", "more", "by_priority")
    return _climb(start, list(rows.values()), lambda one: decided_alike(programs, one, device), skip=skip)


def decided_alike(programs: list[Path], row: Row, device: str | None) -> int:
    """On how many edges a row decides as the log of each program says."""
    policy = policy_of(row)
    return sum(compare(program, policy, device).right for program in programs)


def rewritten_alike(programs: list[Path], row: Row, device: str | None) -> int:
    """Of how many programs the early text becomes one of the same operators and types as the text before fusion."""
    rewriting = row.rewriting or GPU_REWRITING
    if isinstance(row, CpuRelease):
        rewrite = partial(run_cpu, rewriting=rewriting)
        return sum(forms(canonicalise(early(program), rewrite).module) == forms(read(program)[0]) for program in programs)
    chosen = device_named(device)
    return sum(_forms_gpu(early(program), chosen, rewriting) == forms(read(program)[0], inlined=True) for program in programs)


def _forms_gpu(module: Module, device: Device, rewriting: Rewriting) -> Forms:
    """The operators of an early text before XLA's GPU fusion, with those inside its Triton kernels."""
    rewrite: Rewrite = lambda body, kept: run_gpu(body, device, kept, rewriting)  # noqa: E731
    return forms(with_kernels(canonicalise(module, rewrite), device)[0].module, inlined=True)


@cache
def early(program: Path) -> Module:
    """The text of a program as jax gave it to XLA."""
    return load(program / "raw.hlo").module()


def forms(module: Module, inlined: bool = False) -> Forms:
    """The operators of a module with the types of their results, layouts left out; ``inlined``: with those of kernels, without bitcasts."""
    graphs = list(computations(module))
    if inlined:
        graphs += [node.bodies[0] for graph in graphs for node in graph.nodes if node.op is hlo.fusion]
    aside = (hlo.parameter, hlo.bitcast, hlo.fusion) if inlined else (hlo.parameter,)
    nodes = (node for graph in graphs for node in graph.nodes if node.op not in aside)
    return Counter((n.op.name, f"{n.type.dtype.name}{n.type.shape}" if isinstance(n.type, TensorType) else "tuple") for n in nodes)


def differences(row: Row, base: Row) -> str:
    """A row as the source may have it: as a change of another row."""
    other = f"{'CPU' if isinstance(base, CpuRelease) else 'GPU'}_RELEASES[{base.name!r}]"
    changes = [f"name={row.name!r}", *_changes(row, base, skip=("name", "rewriting"))]
    inner = list(_changes(row.rewriting, base.rewriting)) if row.rewriting is not None and base.rewriting is not None else []
    if inner:
        changes.append(f"rewriting=replace({other}.rewriting, {', '.join(inner)})")
    return f"replace({other}, {', '.join(changes)})"


def _changes(row: Part | Row, base: Part | Row, skip: tuple[str, ...] = ()) -> Iterator[str]:
    for field in fields(row):
        if field.name not in skip and getattr(row, field.name) != getattr(base, field.name):
            yield f"{field.name}={getattr(row, field.name)!r}"


def _climb(start: Part, rows: list[Part], score: Callable[[Part], int], skip: tuple[str, ...] = ()) -> Part:
    """The row with the best score that changes of one field at a time lead to, with values of other rows."""
    best, points = start, score(start)
    while True:
        tried = {replace(best, **{field.name: getattr(row, field.name)}) for field in fields(best) if field.name not in skip
                 for row in rows} - {best}
        ranked = max(((score(one), repr(one), one) for one in tried), key=lambda found: found[:2], default=None)
        if ranked is None or ranked[0] <= points:
            return best
        points, _, best = ranked
