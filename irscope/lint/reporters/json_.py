"""Findings and edges as one JSON document (version 1 of the schema)."""

from __future__ import annotations

from dataclasses import asdict

from irscope.lint.edges import Edge
from irscope.lint.proven import FixAnswer
from irscope.lint.proven.words import sentence
from irscope.lint.report import FileReport, Report, Statistic
from irscope.lint.stages import Stages
from irscope.source import Finding, Step
from irscope.source.data_text import strict_json


def write(report: Report) -> str:
    """``{"version": 1, "files": [{"file", "findings", "edges"}]}``; ``lint/report.schema.json`` has every key."""
    worth: dict[str, object] = {"version": 1, "files": [as_dict(file) for file in report.files]}
    if report.statistics:
        worth["statistics"] = [statistic_dict(row) for row in report.by_rule()]
    return strict_json(worth, indent=1)


def statistic_dict(row: Statistic) -> dict[str, object]:
    """What one rule found in all files."""
    names = {"code": row.code, "name": row.name, "severity": str(row.severity)}
    return {**names, "count": row.count, "files": row.files, "saves": row.saves}


def as_dict(file: FileReport) -> dict[str, object]:
    """One file of the report."""
    worth: dict[str, object] = {"file": file.file, "findings": [finding_dict(f) for f in file.findings]}
    worth["edges"] = [edge_dict(e) for e in file.edges]
    if file.policy:
        worth["policy"] = file.policy
    if file.skipped or file.remarks:
        worth["remarks"] = file.skipped + file.remarks
    if file.stages:
        worth["stages"] = [stages_dict(one) for one in file.stages]
    return worth


def stages_dict(worth: Stages) -> dict[str, object]:
    """What fusion is worth: a row a column of the table, times in microseconds, traffic in bytes."""
    rows = [
        {"name": one.name, "dispatches": one.dispatches, "launches": one.launches, "bytes": one.traffic, "us": round(one.us, 3)}
        for one in worth.stages
    ]
    document: dict[str, object] = {"machine": worth.machine, "policy": worth.policy, "stages": rows, "lifted": worth.lifted,
                               "sources": worth.sources}
    if worth.calls is not None:
        document["calls"] = asdict(worth.calls)
    return document


def finding_dict(finding: Finding) -> dict[str, object]:
    """A finding with the keys of the contract; ``source`` is the user's own program line."""
    place = finding.place()
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": str(finding.severity),
        "level": str(finding.level),
        "message": finding.message,
        "node": finding.node or None,
        "graph": finding.graph or None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "source": finding.source_line or None,
        "notes": [note.text for note in finding.notes],
        "help": finding.help or None,
        "saves": finding.saves,
        "path": [step_dict(finding, step) for step in finding.path],
        "costs": finding.costs,
    }


def step_dict(finding: Finding, step: Step) -> dict[str, object]:
    """One operator on the path of a finding."""
    place = finding.source.place(step.offset) if finding.source is not None and step.offset >= 0 else None
    return {
        "node": step.node,
        "op": step.op,
        "type": step.type,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "source": step.source_line or None,
    }


def edge_dict(edge: Edge) -> dict[str, object]:
    """An edge with the keys of the contract, what goes over it, what that costs, and the kernel of one that was asked for and is fused."""
    verdict, kernel = edge.verdict, edge.kernel
    worth: dict[str, object] = {
        "computation": verdict.graph.name,
        "producer": verdict.producer.name,
        "consumer": verdict.consumer.name,
        "fused": verdict.fused,
        "reason": verdict.reason or None,
        "rule": verdict.rule or None,
        "cause": verdict.cause or None,
        "counterfactual": sentence(edge.answer) if edge.answer is not None and edge.answer.fix is not None else None,
        "releases": dict(verdict.releases) or None,
        "type": edge.carries or None,
        "bytes": edge.bytes,
        "us": edge.us,
        "sources": [source or None for source in edge.sources],
        "line": edge.place.line if edge.place else None,
        "column": edge.place.column if edge.place else None,
    }
    if verdict.recorded:
        worth["recorded"] = True
    if any(edge.origins):
        worth["origins"] = [origin or None for origin in edge.origins]
    if edge.answer is not None:
        worth["fix"] = answer_dict(edge.answer)
    if kernel is not None:
        described: dict[str, object] = {"name": kernel.name, "kind": kernel.kind, "nodes": list(kernel.nodes)}
        worth["kernel"] = described | ({"loop_nests": kernel.loop_nests} if kernel.loop_nests else {})
    return worth


def answer_dict(answer: FixAnswer) -> dict[str, object]:
    """What would have an edge fused: the change that was planned, or what was tried in vain."""
    fix = answer.fix
    worth: dict[str, object] = {
        "proven": fix is not None,
        "text": sentence(answer),
        "tried": [{"candidate": one.key, "outcome": one.outcome.name.lower()} for one in answer.attempts],
        "untried": list(answer.untried),
    }
    if fix is None:
        return worth
    return worth | {
        "candidate": fix.key,
        "outcome": fix.outcome.name.lower(),
        "before": list(fix.before),
        "after": list(fix.after),
        "places": list(fix.places),
        "saves": asdict(fix.saves),
        "gained": [list(pair) for pair in fix.gained],
        "lost": [list(pair) for pair in fix.lost],
        "planned": {"nodes": fix.nodes, "whole": fix.is_whole},
        "flag": fix.flag or None,
    }
