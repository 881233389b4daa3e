"""A folder of dumps: its modules, what the compiler did to one of them stage by stage, and the compiler's own account of it."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from irscope.analysis.survey import Survey
from irscope.api.compile_folders import record_json, record_lines
from irscope.api.loading import load
from irscope.api.watching import Watcher
from irscope.fleet.buffers import parse_buffer_assignment, parse_memory_usage
from irscope.fleet.compile_record import CompileRecord, read_record
from irscope.fleet.dump_folder import LOWERED, OPTIONS, DumpedModule, DumpFolder, Stage, read_folder
from irscope.fleet.files import no_dump
from irscope.fleet.timeline import figures_of_stages, fusions_of, timeline
from irscope.graph import BufferAssignment
from irscope.query.stages import Figures
from irscope.render.folder import ModuleRow, fusion_lines, memory_lines, module_lines, timeline_lines
from irscope.render.paint import Paint
from irscope.render.units import plural
from irscope.source import UserError, did_you_mean
from irscope.source.files import read_bytes

INSIDE = {LOWERED: "as the framework lowered it", OPTIONS: "options of the compiler"}
SORTS = ("parameter", "output", "temporary", "constant", "thread-local")


@dataclass(frozen=True, slots=True)
class Folder:
    """The modules of a folder with the figures of their last stages, and the module that is shown (``chosen``)."""

    path: str
    modules: list[DumpedModule]
    figures: list[Figures]
    chosen: DumpedModule
    record: CompileRecord | None = None

    def as_json(self) -> dict[str, Any]:
        """What json has of the folder beside the chosen module."""
        return record_json(self.record) if self.record is not None else {}

    def lines(self, survey: Survey, paint: Paint) -> Iterator[str]:
        """The report on the folder, which comes before the chosen module. ``survey`` is of the last stage of that module."""
        ranks = len({m.rank for m in self.modules})
        title = f"{self.path}: {plural(len(self.modules), 'module')}" + (f" of {ranks} ranks" if ranks > 1 else "")
        yield from (paint(title, "bold"), *module_lines(_rows(self.modules, self.figures, self.chosen), paint))
        if len(self.chosen.stages) > 1:
            yield from ("", paint(f"{self.chosen.title}: what the compiler did", "bold"), *timeline_lines(timeline(self.chosen), paint))
        yield from _fusion_lines(self.chosen, survey, paint)
        yield from (paint(f"{words}: {self.chosen.inside[name]}", "dim") for name, words in INSIDE.items() if name in self.chosen.inside)
        memory = report_lines(self.chosen.reports, paint)
        yield from ["", *memory] if memory else []
        if self.record is not None:
            yield from record_lines(self.record, self.chosen, paint)
        yield ""


def open_folder(path: str, wanted: str | None, watch: Watcher) -> Folder:
    """A folder of dumps. Raises UserError where it holds none, or not the module that is wanted."""
    folder = read_folder(path)
    record = read_record(folder)
    modules = _modules(folder)
    if not modules:
        raise no_dump([path], folder.skipped)
    figures = list(watch.track(figures_of_stages([m.last for m in modules]), "reading", len(modules)))
    return Folder(path, modules, figures, _chosen(modules, figures, wanted), record)


def folder_timelines(path: str, paint: Paint) -> Iterator[str]:
    """The timelines of all modules of a folder of which several stages were written."""
    for module in read_folder(path).modules:
        if len(module.stages) > 1:
            yield from ("", paint(f"{module.title}: what each pass changed", "bold"), *timeline_lines(timeline(module), paint))


def _modules(folder: DumpFolder) -> list[DumpedModule]:
    """The modules of a dump; in a folder that XLA did not write, each file is one."""
    others = [DumpedModule(-1, path.removeprefix(folder.path).lstrip("/"), "", [Stage(path, "", (2, 0))]) for path in folder.others]
    return folder.modules + others


def _chosen(modules: list[DumpedModule], figures: list[Figures], wanted: str | None) -> DumpedModule:
    """The module of that name or number; without one the costliest, since the newest is usually trivial. Raises UserError if unknown."""
    if wanted is None:
        cost = [(f.flops + f.bytes, -i) for i, f in enumerate(figures)]
        return modules[max(range(len(modules)), key=lambda i: cost[i])]
    for module in modules:
        if wanted in (module.title, module.name, str(module.id), f"{module.id:04d}", f"module_{module.id:04d}"):
            return module
    names = [m.name for m in modules]
    raise UserError(f"there is no module {wanted}", did_you_mean(wanted, names) or "there are " + ", ".join(dict.fromkeys(names)))


def _fusion_lines(chosen: DumpedModule, survey: Survey, paint: Paint) -> list[str]:
    """How the operations were fused; empty unless the last stage is the optimised text and has fusions."""
    found = fusions_of(survey)
    if not chosen.last.is_last or not found.kinds:
        return []
    first = chosen.stages[0]
    before = None
    if first.is_first and (modules := load(first.path).modules):
        unfused = fusions_of(Survey(modules[0]))
        before = unfused.inside + unfused.alone.total() + unfused.kinds.total()
    return ["", *fusion_lines(before, found.kinds, found.inside, found.alone, paint)]


def report_lines(reports: Mapping[str, str], paint: Paint, buffers: BufferAssignment | None = None) -> list[str]:
    """XLA's own account of memory, from the reports beside a module or from its proto; nothing where there are none."""
    return text_lines({kind: read_bytes(path).decode("utf-8", "replace") for kind, path in reports.items()}, paint, buffers)


def text_lines(texts: Mapping[str, str], paint: Paint, buffers: BufferAssignment | None = None) -> list[str]:
    """As :func:`report_lines`, from the texts of the reports by kind."""
    if "buffer-assignment" in texts:
        return buffer_lines(parse_buffer_assignment(texts["buffer-assignment"]), paint, "buffer-assignment report")
    if buffers is not None and not texts:
        return buffer_lines(buffers, paint, "buffer assignment of the proto")
    if spaces := parse_memory_usage(texts.get("memory-usage-report", "")):
        return list(memory_lines(spaces, [], paint, "memory-usage report"))
    return []


def buffer_lines(found: BufferAssignment, paint: Paint, where: str) -> list[str]:
    """An assignment of buffers: bytes by sort, and the largest values."""
    return list(memory_lines({sort: found.bytes_of(sort) for sort in SORTS}, found.largest(5), paint, where))


def _rows(modules: list[DumpedModule], figures: list[Figures], chosen: DumpedModule) -> list[ModuleRow]:
    """One row per module, the costliest first; equal modules of several ranks share a row."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, (module, figure) in enumerate(zip(modules, figures, strict=True)):
        key: tuple[object, ...] = (module.name, figure.key()) if module.rank and not figure.error else (i,)
        groups.setdefault(key, []).append(i)
    first = _first_nodes(modules)
    rows: list[ModuleRow] = []
    for same in groups.values():
        i = next((k for k in same if modules[k] is chosen), same[0])
        module, figure = modules[i], figures[i]
        is_chosen = any(modules[k] is chosen for k in same)
        rows.append(ModuleRow(module.title, len(module.stages), first.get(i), figure, len(same), is_chosen))
    return sorted(rows, key=lambda row: -(row.figures.flops + row.figures.bytes))


def _first_nodes(modules: list[DumpedModule]) -> dict[int, int]:
    """The number of instructions before optimisation, by the index of the module, where that stage was dumped."""
    firsts = [(i, m.stages[0]) for i, m in enumerate(modules) if len(m.stages) > 1 and m.stages[0].is_first]
    figured = figures_of_stages([stage for _, stage in firsts])
    return {i: figures.nodes for (i, _), figures in zip(firsts, figured, strict=True) if not figures.error}
