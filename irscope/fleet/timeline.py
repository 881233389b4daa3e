"""What each pass of a compilation changed, from the texts that the compiler wrote between them."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from irscope.analysis.calls import is_fusion
from irscope.analysis.cost import is_kernel
from irscope.analysis.survey import Survey
from irscope.fleet.dump_folder import DumpedModule, Stage
from irscope.fleet.pool import map_files
from irscope.formats.detect import read, read_data
from irscope.graph import Reading
from irscope.ops.attributes import Fusion
from irscope.source import SourceText, UserError
from irscope.source.budget import fresh_budget
from irscope.source.files import read_bytes


@dataclass(slots=True)
class Figures:
    """The figures of one stage; ``error`` says why there are none."""

    nodes: int = 0
    kernels: float = 0.0
    fusions: float = 0.0
    flops: float = 0.0
    bytes: float = 0.0
    peak: int = 0
    ops: Counter[str] = field(default_factory=Counter)
    error: str = ""

    def key(self) -> tuple[object, ...]:
        """Equal for copies of one module, as the ranks of a job write them."""
        return self.nodes, self.kernels, self.flops, self.bytes, tuple(sorted(self.ops.items()))


@dataclass(slots=True)
class StageChange:
    """A stage and what changed since the one before: operators that came and went."""

    stage: Stage
    figures: Figures
    came: Counter[str]
    went: Counter[str]

    @property
    def changed(self) -> bool:
        return bool(self.came or self.went)


def figures_of(files: Sequence[str], jobs: int | None = None) -> Iterator[Figures]:
    """The figures of each file, in order."""
    return map_files(figures_of_file, _died, files, jobs)


def figures_of_stages(stages: Sequence[Stage], jobs: int | None = None) -> Iterator[Figures]:
    """The figures of each stage, in order: of files, and of texts that a file records."""
    files = figures_of([stage.path for stage in stages if not stage.text], jobs)
    for stage in stages:
        yield _figures_of_text(stage) if stage.text else next(files)


def _figures_of_text(stage: Stage) -> Figures:
    try:
        with fresh_budget(stage.path):
            return _figures(read(SourceText(stage.path, stage.text)))
    except UserError as error:
        return Figures(error=error.message)


def figures_of_file(file: str) -> Figures:
    """The figures of the first module in a file."""
    try:
        with fresh_budget(file):
            return _figures(read_data(read_bytes(file), file))
    except UserError as error:
        return Figures(error=error.message)


def _figures(reading: Reading) -> Figures:
    if not reading.modules:
        return Figures(error="no module in it")
    survey = Survey(reading.module())
    totals = survey.totals
    peak = survey.memory.graphs[survey.entry].peak if survey.entry is not None else 0
    return Figures(survey.n_nodes, totals.kernels, totals.fusions, totals.flops, totals.bytes, peak, survey.ops)


@dataclass(slots=True)
class Fusions:
    """The fusions that a compiler made: how many of each kind, the operations inside them, and those that stand alone."""

    kinds: Counter[str]
    inside: int
    alone: Counter[str]


def fusions_of(survey: Survey) -> Fusions:
    """The fusions of a module that was optimised; leaves and renamings are no operations."""
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


def timeline(module: DumpedModule, jobs: int | None = None) -> list[StageChange]:
    """The stages of a module with their figures, each compared with the one before."""
    steps: list[StageChange] = []
    before: Counter[str] = Counter()
    for stage, figures in zip(module.stages, figures_of_stages(module.stages, jobs), strict=True):
        if figures.error:
            steps.append(StageChange(stage, figures, Counter(), Counter()))
            continue
        steps.append(StageChange(stage, figures, figures.ops - before if steps else Counter(), before - figures.ops))
        before = figures.ops
    return steps


def _died(file: str, why: str) -> Figures:
    return Figures(error=why or "the process that read it died (out of memory?)")
