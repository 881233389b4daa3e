"""What each pass of a compilation changed, from the texts that the compiler wrote between them."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from irscope.analysis.calls import is_fusion
from irscope.analysis.cost import is_kernel
from irscope.analysis.survey import Survey
from irscope.fleet.dump_folder import DumpedModule, Stage
from irscope.fleet.pool import map_files
from irscope.ops.attributes import Fusion
from irscope.query.stages import Figures, StageChange
from irscope.source import UserError
from irscope.source.budget import fresh_budget


def figures_of_stages(stages: Sequence[Stage]) -> Iterator[Figures]:
    """The figures of each stage, in order. Stages that are files go through :func:`map_files`; texts that a file records are read here."""
    files = map_files(_figures_of_file, _died, [stage.path for stage in stages if not stage.text])
    for stage in stages:
        yield _figures(stage) if stage.text else next(files)


def _figures_of_file(file: str) -> Figures:
    return _figures(Stage(file, "", (0, 0)))


def _figures(stage: Stage) -> Figures:
    """The figures of the first module of a stage."""
    try:
        with fresh_budget(stage.path):
            reading = stage.read()
            return Figures.of(Survey(reading.module())) if reading.modules else Figures(error="no module in it")
    except UserError as error:
        return Figures(error=error.message)


@dataclass(slots=True)
class Fusions:
    """The fusions that a compiler made: how many of each kind, the operations inside them, and those outside."""

    kinds: Counter[str]
    inside: int
    alone: Counter[str]


def fusions_of(survey: Survey) -> Fusions:
    """The fusions of a module that was optimised; leaves and renamings do not count as operations."""
    found = Fusions(Counter(), 0, Counter())
    for graph in survey.calls.order:
        if graph in survey.calls.scalar:
            continue
        for node in graph.nodes:
            if not is_kernel(node):
                continue
            if graph in survey.calls.fused:
                found.inside += not is_fusion(node)
            elif is_fusion(node):
                found.kinds[Fusion.kind.given(node) or "?"] += 1
            else:
                found.alone[node.op.name] += 1
    return found


def timeline(module: DumpedModule) -> list[StageChange]:
    """The stages of a module with their figures, each compared with the one before."""
    steps: list[StageChange] = []
    before: Counter[str] = Counter()
    for stage, figures in zip(module.stages, figures_of_stages(module.stages), strict=True):
        if figures.error:
            steps.append(StageChange(stage.words(), figures))
            continue
        steps.append(StageChange(stage.words(), figures, figures.ops - before if steps else Counter(), before - figures.ops))
        before = figures.ops
    return steps


def _died(file: str, why: str) -> Figures:
    return Figures(error=why or "the process that read it died (out of memory?)")
