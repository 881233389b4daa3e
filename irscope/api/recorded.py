"""Attaches to a module what the compiler recorded beside its text: the kernels after fusion, and the refusals of the fusion log."""
from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from irscope.fleet import compile_folder
from irscope.formats.detect import decode
from irscope.formats.inductor.attributes import Scheduled
from irscope.formats.inductor.fusion_log import FusionRun
from irscope.formats.inductor.lines import CandidateLines
from irscope.formats.inductor.log_sections import read_log
from irscope.formats.inductor.recorded_kernels import fits
from irscope.formats.inductor.scheduler import SchedulerNode, read_nodes
from irscope.fusion.recorded import FusionRecord, LoggedRefusal, with_record
from irscope.graph import Module, Reading
from irscope.source import SourceText, UserError
from irscope.source.files import read_bytes

AFTER = {"ir_pre_fusion.txt": "ir_post_fusion.txt"}
"""The text after fusion, by the name of the text before it."""


def with_records(reading: Reading, path: str) -> Reading:
    """The reading with what the compiler recorded in files beside ``path``. Modules without a record are unchanged."""
    if not any(_scheduled(module) for module in reading.modules):
        return reading
    return replace(reading, modules=[_with_record(module, path) if _scheduled(module) else module for module in reading.modules])


def _scheduled(module: Module) -> list[SchedulerNode]:
    """The scheduler nodes of a module that was read from Inductor's IR; empty for any other module."""
    if module.entry not in module.graphs:
        return []
    found = (Scheduled.scheduler.given(node) for node in module.main().shown())
    return [record for record in found if record is not None]


def _with_record(module: Module, path: str) -> Module:
    nodes = _scheduled(module)
    after = _after(path, nodes)
    runs = [(file, run) for file, run in _runs(path) if fits(run, nodes)]
    refusals = tuple(LoggedRefusal(d.a, d.b, d.reason or "", d.place) for _, run in runs for d in run.refusals())
    files = tuple(dict.fromkeys([*([after[0]] if after is not None else []), *(file for file, _ in runs)]))
    if after is None and not runs:
        return module
    groups = tuple(node.ops() for node in after[1]) if after is not None else _joined(nodes, runs[0][1])
    made = with_record(module, FusionRecord("Inductor", groups, refusals, files))
    lines = {c.name: c.lines for _, run in runs for c in run.candidates}
    made.provenance = CandidateLines({node.offset: lines.get(node.name, ()) for node in nodes})
    return made


def _after(path: str, nodes: list[SchedulerNode]) -> tuple[str, list[SchedulerNode]] | None:
    """The scheduler nodes after fusion: those of the text itself where it holds fused ones, else those of the file beside it."""
    folder, name = os.path.split(path)
    beside = os.path.join(folder, AFTER.get(name.removesuffix(".gz"), ""))
    if name.removesuffix(".gz") in AFTER and os.path.isfile(beside):
        try:
            found = read_nodes(decode(read_bytes(beside), beside).text, [])
        except UserError:
            return None
        if {op for node in found for op in node.ops()} == {node.name for node in nodes}:
            return beside, found
    return (path, nodes) if any(node.is_fused for node in nodes) or name.startswith("ir_post") else None


def _runs(path: str) -> Iterator[tuple[str, FusionRun]]:
    """The runs of the fusion pass in the logs beside a file."""
    for file in dict.fromkeys((*compile_folder.records_beside(path), *compile_folder.records_in(os.path.dirname(path) or "."))):
        try:
            source = SourceText(file, decode(read_bytes(file), file).text)
        except UserError:
            continue
        yield from ((file, run) for run in read_log(source).runs)


def _joined(nodes: list[SchedulerNode], run: FusionRun) -> tuple[tuple[str, ...], ...]:
    """The groups of scheduler nodes that result from the decisions of a run."""
    home = {node.name: [node.name] for node in nodes}
    for decision in run.decisions:
        first, second = (home.get(end.split("_")[0]) for end in (decision.a, decision.b))
        if decision.reason is None and first is not None and second is not None and first is not second:
            first += second
            home.update(dict.fromkeys(second, first))
    return tuple({id(group): tuple(group) for group in home.values()}.values())
