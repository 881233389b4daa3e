"""What a folder of torch.compile records: the kernels of each graph and their nodes, refusals of fusion, and the compilations.

``torch_compile_debug`` has the graphs; logs (``TORCH_LOGS``) and traces (``TORCH_TRACE``) beside it have the refusals, graph breaks,
recompiles, guards and times.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from irscope.fleet import compile_folder
from irscope.fleet.dump_folder import DumpedModule, DumpFolder, Stage
from irscope.fleet.files import head_of
from irscope.formats.detect import decode
from irscope.formats.inductor import is_record, is_trace
from irscope.formats.inductor.compilation import OUTPUT_CODE, Compilation, StageText, compilations_of
from irscope.formats.inductor.fusion_log import Decision, FusionRun
from irscope.formats.inductor.log_sections import read_log
from irscope.formats.inductor.provenance import Provenance, read_provenance
from irscope.formats.inductor.recorded_kernels import RecordedKernel, SavedTensor, fits, recorded_kernels, saved_tensors
from irscope.formats.inductor.scheduler import SchedulerNode, read_nodes
from irscope.formats.inductor.trace_records import read_trace
from irscope.formats.inductor.wrapper import OutputCode, read_code
from irscope.formats.syntax import SyntaxFault
from irscope.source import Finding, SourceText
from irscope.source.files import read_bytes

T = TypeVar("T")


@dataclass(slots=True)
class GraphRecord:
    """One compiled graph: ``before`` and ``after`` are its scheduler nodes before and after fusion, ``kernels`` the calls in order.

    ``saved`` are the tensors that a backward graph takes from the forward one. ``faults`` says which files could not be read.
    """

    name: str
    before: list[SchedulerNode] = field(default_factory=list)
    after: list[SchedulerNode] = field(default_factory=list)
    kernels: list[RecordedKernel] = field(default_factory=list)
    saved: list[SavedTensor] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


@dataclass(slots=True)
class CompileRecord:
    """The graphs of a folder by name, the runs of the fusion pass in the logs beside it, and the compilations.

    ``files`` are those logs and traces, ``findings`` their damaged records.
    """

    graphs: dict[str, GraphRecord] = field(default_factory=dict)
    runs: list[FusionRun] = field(default_factory=list)
    compilations: list[Compilation] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    @property
    def refusals(self) -> list[Decision]:
        """The refusals of all runs, each pair and reason once."""
        return list({(d.a, d.b, d.reason): d for run in self.runs for d in run.refusals()}.values())

    def run_of(self, graph: GraphRecord) -> FusionRun | None:
        """The run of the fusion pass that decided about a graph; None where no log has it."""
        return next((run for run in self.runs if fits(run, graph.before)), None)


def read_record(folder: DumpFolder) -> CompileRecord | None:
    """The record of a folder; None where torch.compile wrote nothing in it or beside it. Adds the stages of traces to its modules."""
    graphs = [module for module in folder.modules if compile_folder.aot_id(module.name)]
    logs = [file for file in folder.others if is_record(head_of(file))]
    if not graphs and not logs:
        return None
    record = CompileRecord(files=list(dict.fromkeys([*logs, *compile_folder.records_beside(folder.path)])))
    folder.others = [file for file in folder.others if file not in logs and not (graphs and compile_folder.repeats_stage(file))]
    for file in record.files:
        _read_file(file, record)
    for module in graphs:
        name = module.name if module.name not in record.graphs else f"{module.rank}/{module.name}"
        record.graphs[name] = _graph(name, module)
    if graphs:
        for module in graphs:
            _add_stages(module, record.compilations)
    else:
        folder.modules += modules_of_trace(record)
    return record


def _text(file: str) -> str:
    return decode(read_bytes(file), file).text


def _read_file(file: str, record: CompileRecord) -> None:
    """Add the content of a log or a trace."""
    source = SourceText(file, _text(file))
    if is_trace(source.text):
        _merge(record, compilations_of(read_trace(source, record.findings)))
        return
    log = read_log(source)
    record.runs += log.runs
    _merge(record, list(log.compilations.values()))


def _merge(record: CompileRecord, found: Sequence[Compilation]) -> None:
    """Add compilations. A log and a trace of one run have the same ones: that with more stages is kept, and completed by the other."""
    known = {(c.rank, c.compile_id): i for i, c in enumerate(record.compilations)}
    for compilation in found:
        at = known.get((compilation.rank, compilation.compile_id))
        if at is None:
            record.compilations.append(compilation)
            continue
        more, less = sorted((record.compilations[at], compilation), key=lambda one: -len(one.stages))
        more.breaks, more.recompiles = more.breaks or less.breaks, more.recompiles or less.recompiles
        more.guards = more.guards or less.guards
        record.compilations[at] = more


def _graph(name: str, module: DumpedModule) -> GraphRecord:
    """The record of one graph, from the files of its stages."""
    graph = GraphRecord(name)
    stages = {stage.name: stage for stage in module.stages}
    graph.before, graph.after = (_parsed(stages.get(stage), graph, lambda source, faults: read_nodes(source.text, faults)) or []
                                 for stage in (compile_folder.IR_BEFORE, compile_folder.IR_AFTER))
    code = _parsed(stages.get(compile_folder.CODE), graph, read_code)
    path = module.reports.get(compile_folder.PROVENANCE)
    if code is not None:
        _kernels(graph, code, read_provenance(_text(path)) if path else Provenance())
    return graph


def _kernels(graph: GraphRecord, code: OutputCode, provenance: Provenance) -> None:
    graph.kernels = recorded_kernels(graph.after, code, provenance)
    graph.saved = saved_tensors(code) if "backward" in graph.name else []


def _parsed(stage: Stage | None, graph: GraphRecord, parse: Callable[[SourceText, list[SyntaxFault]], T]) -> T | None:
    """What ``parse`` reads from the text of a stage; None where the folder has no such stage. Adds the faults to those of the graph."""
    if stage is None:
        return None
    faults: list[SyntaxFault] = []
    found = parse(SourceText(stage.path, stage.text or _text(stage.path)), faults)
    graph.faults += [f"{stage.name}: {fault.message}" for fault in faults]
    return found


# ---------------------------------------------------------------- stages that a trace records

EARLY = ("dynamo", "after pre-grad passes", "joint", "inference", "forward", "backward")
"""The stages that ``torch_compile_debug`` does not hold, in their order."""


def _add_stages(module: DumpedModule, compilations: Sequence[Compilation]) -> None:
    """Put the earlier stages of a graph before its files, where a trace has output code of the same name."""
    wanted = f"# AOT ID: ['{compile_folder.aot_id(module.name)}']"
    for compilation in compilations:
        if any(wanted in stage.text[:200] for stage in compilation.texts(OUTPUT_CODE)):
            other = "forward" if "backward" in module.name else "backward"
            texts = [text for name in EARLY if name != other for text in compilation.texts(name)[:1]]
            module.stages[:0] = [Stage(module.stages[0].path, text.name, (0, i), text.text) for i, text in enumerate(texts)]
            return


def modules_of_trace(record: CompileRecord) -> list[DumpedModule]:
    """The compilations as modules with the stages that the trace has; adds the records of their graphs."""
    modules = []
    for number, compilation in enumerate(record.compilations):
        if not compilation.stages:
            continue
        module = DumpedModule(number, compilation.compile_id, compilation.rank, label=compilation.title)
        file = record.files[0]
        module.stages = [Stage(file, name, (1, i), text.text) for i, (name, text) in enumerate(_numbered(compilation.stages))]
        modules.append(module)
        provenance = [*compilation.provenance, *[""] * len(compilation.stages)]
        for stage, mappings in zip(compilation.texts(OUTPUT_CODE), provenance, strict=False):
            faults: list[SyntaxFault] = []
            code = read_code(SourceText(file, stage.text), faults)
            if code is not None:
                graph = GraphRecord(code.aot_id or compilation.compile_id)
                _kernels(graph, code, read_provenance(mappings))
                record.graphs[graph.name] = graph
    return modules


def _numbered(stages: Sequence[StageText]) -> list[tuple[str, StageText]]:
    """The stages by name; a second one of the same name is numbered: a frame with a backward graph has two of the later ones."""
    count = Counter[str]()
    found = []
    for stage in stages:
        count[stage.name] += 1
        found.append((stage.name if count[stage.name] == 1 else f"{stage.name} ({count[stage.name]})", stage))
    return found
