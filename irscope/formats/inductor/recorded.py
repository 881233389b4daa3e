"""From a trace or a log to modules: one for each output code, else one for each compilation; each keeps what the record says of it."""
from __future__ import annotations

from irscope.formats.export import read as read_fx
from irscope.formats.inductor.code import module_of_code
from irscope.formats.inductor.compilation import OUTPUT_CODE, Compilation, StageText, compilations_of
from irscope.formats.inductor.dialect import INDUCTOR
from irscope.formats.inductor.findings import BAD_RECORD
from irscope.formats.inductor.fusion_log import FusionRun
from irscope.formats.inductor.ir import extern_op, module_of, result_of, scheduler_op
from irscope.formats.inductor.layouts import BUFFER
from irscope.formats.inductor.log_sections import Log, Section, read_log
from irscope.formats.inductor.scheduler import read_nodes
from irscope.formats.inductor.trace_records import read_trace
from irscope.formats.inductor.wrapper import read_code
from irscope.formats.syntax import SyntaxFault
from irscope.graph import NO_ATTRS, Graph, Module, Node, Reading
from irscope.ops import get
from irscope.source import Finding, Severity, SourceText

_GRAPH = "(torch.nn.Module):"
CODE_BEGINS = ("# AOT ID", "from ctypes", "import torch")


def read_trace_text(source: SourceText) -> Reading:
    """The modules of a structured trace. Not ok only where no record could be read."""
    reading = Reading(source, INDUCTOR.name)
    trace = read_trace(source, reading.findings)
    for compilation in compilations_of(trace):
        reading.modules += modules_of(compilation, source, reading.findings)
    if not trace.records:
        reading.findings.append(Finding(*BAD_RECORD, Severity.ERROR, "no record of this trace could be read", source, 0,
                                        help="TORCH_TRACE=DIR writes one; give the whole file"))
        reading.ok = False
    if not reading.modules and reading.ok:
        reading.modules.append(_empty("trace", source))
    _mark_first(reading, source)
    return reading


def read_log_text(source: SourceText) -> Reading:
    """The modules of a log: output code, IR before and after fusion, and the nodes that the fusion pass lists."""
    reading = Reading(source, INDUCTOR.name)
    log = read_log(source)
    for section in log.sections:
        made = _of_section(section, source, reading.findings)
        if made is not None:
            made.attrs["compilation"] = log.compilation(section.rank, section.compile_id, section.offset)
            reading.modules.append(made)
    for number, run in enumerate(log.runs):
        reading.modules.append(_of_run(run, number, source, log))
    if _GRAPH in source.text:
        reading.modules += read_fx(source).modules
    held = {id(module.attrs.get("compilation")) for module in reading.modules}
    reading.modules += [_empty(c.title, source, c) for c in log.compilations.values() if id(c) not in held]
    if not reading.modules:
        reading.modules.append(_empty("log", source))
    _mark_first(reading, source)
    return reading


def _mark_first(reading: Reading, source: SourceText) -> None:
    """Mark the first module of each compilation as the one that tells of it, and keep the text that the record stands in."""
    seen: set[int] = set()
    for module in reading.modules:
        compilation = module.attrs.get("compilation")
        if isinstance(compilation, Compilation) and id(compilation) not in seen:
            seen.add(id(compilation))
            compilation.source = source
            module.attrs["tells_compilation"] = True


def modules_of(compilation: Compilation, source: SourceText, findings: list[Finding]) -> list[Module]:
    """The output codes of a compilation as modules, or one without nodes."""
    modules = []
    for stage in compilation.texts(OUTPUT_CODE):
        module = _code_module(stage, f"{source.name} {compilation.title}", findings)
        if module is not None:
            module.attrs["compilation"] = compilation
            modules.append(module)
    return modules or [_empty(compilation.title, source, compilation)]


def _code_module(stage: StageText, name: str, findings: list[Finding]) -> Module | None:
    """The module of output code inside a record; its places are those of the payload."""
    inner = SourceText(f"{name} {stage.name}", stage.text)
    faults: list[SyntaxFault] = []
    code = read_code(inner, faults)
    findings += [Finding(*BAD_RECORD, Severity.WARNING, f"output code in a record: {f.message}", inner, f.offset, f.length) for f in faults]
    if code is None or not code.functions:
        return None
    return module_of_code(code, inner, f"{code.aot_id or 'output_code'}")


def _of_section(section: Section, source: SourceText, findings: list[Finding]) -> Module | None:
    if section.tag == "output_code":
        at = next((at for begin in CODE_BEGINS if (at := section.text.find(begin)) >= 0), -1)
        if at >= 0:
            stage = StageText(OUTPUT_CODE, section.text[at:], section.offset)
            return _code_module(stage, f"{source.name} [{section.compile_id}]", findings)
    elif section.tag in ("ir_pre_fusion", "ir_post_fusion"):
        inner = SourceText(f"{source.name} [{section.compile_id}] {section.tag}", section.text)
        faults: list[SyntaxFault] = []
        nodes = read_nodes(section.text, faults)
        findings += [Finding(*BAD_RECORD, Severity.WARNING, f"IR in a log: {f.message}", inner, f.offset, f.length) for f in faults]
        return module_of(nodes, inner, findings) if nodes else None
    return None


def _of_run(run: FusionRun, number: int, source: SourceText, log: Log) -> Module:
    """The nodes that the fusion pass lists: without their dependencies, which a log does not state."""
    graph = Graph(f"fusion_{number}", loc=0)
    for candidate in run.candidates:
        # The loops of the nodes are not in the log, so their work is not known.
        op = scheduler_op("NopKernelSchedulerNode") if candidate.kind == "nop" else extern_op(candidate.kind)
        graph.add(Node(op, candidate.name, BUFFER, (), {"sizes": candidate.sizes, "origins": candidate.origins}))
    graph.root = result_of(graph, get("tuple"), graph.nodes[:])
    name = " ".join(part for part in (run.rank, f"[{run.compile_id}] fusion" if run.compile_id else f"fusion {number}") if part)
    made = Module(name, INDUCTOR, {graph.name: graph}, graph.name, {"fusion": run}, source)
    if run.compile_id:
        made.attrs["compilation"] = log.compilation(run.rank, run.compile_id, 0)
    return made


def _empty(name: str, source: SourceText, compilation: Compilation | None = None) -> Module:
    """A module without nodes, for a compilation of which no code was recorded."""
    graph = Graph("call", loc=0)
    graph.root = graph.add(Node(get("tuple"), "return", BUFFER, (), NO_ATTRS, (), -1, synthetic=True))
    return Module(name, INDUCTOR, {graph.name: graph}, graph.name, {"compilation": compilation} if compilation else {}, source)
