"""A module as json: the figures, every graph, every node. docs/json.md documents the keys; new keys may be added, none are removed."""
from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from irscope.analysis.highlights import highlights
from irscope.analysis.outline import Section
from irscope.analysis.summary import EntryValue, Summary, source_line, summarise
from irscope.analysis.survey import Survey
from irscope.graph import Graph, Node, Reading
from irscope.ops import hlo
from irscope.render.badges import as_json
from irscope.source import Finding
from irscope.source.data_text import strict_json
from irscope.source.visible import json_text

VERSION = 1
OF_ENTRY = ("depth", "width", "critical_nodes", "critical_share", "parameter_bytes", "flops", "bytes_read", "bytes_written", "kernels",
            "fusions", "peak_bytes", "peak_at")
"""Figures of a run of the entry: null where the text was cut off, because what is missing is not known."""
Chosen = tuple[Survey, set[Node] | None]


def write_json(stream: TextIO, reading: Reading, chosen: Sequence[Chosen], more: Mapping[str, object] | None = None) -> None:
    """Write one object for a text. Nodes are written one by one, so that a million of them need no memory.

    ``more`` are further keys, such as what a compiler recorded of a whole folder.
    """
    head = {"version": VERSION, "file": reading.source.name, "format": reading.format, "ok": reading.ok,
            "findings": [_finding(f) for f in reading.findings]}
    stream.write(_open(head) + ', "modules": [')
    for i, (survey, picked) in enumerate(chosen):
        stream.write((", " if i else "") + "\n")
        for piece in _module(survey, picked):
            stream.write(piece)
    stream.write("\n]")
    for key, value in (more or {}).items():
        stream.write(f",\n{strict_json(key)}: {json_text(strict_json(value, ensure_ascii=False))}")
    stream.write("}\n")


def _module(survey: Survey, picked: set[Node] | None) -> Iterator[str]:
    module, summary = survey.module, _summary(summarise(survey))
    head: dict[str, Any] = {"name": module.name, "entry": module.entry or None, "summary": summary}
    if module.cut is not None:
        head |= {"entry": module.cut.entry, "cut": {"complete": len(module.cut.complete), "entry": module.cut.entry},
                 "summary": summary | dict.fromkeys(OF_ENTRY)}
    else:
        head["highlights"] = as_json(highlights(survey))
    yield _open(head) + ', "tree": '
    if module.cut is None:
        yield from _tree(survey.outline)
    else:
        yield strict_json({"title": module.name, "kind": "module", "times": 1, "nodes": survey.n_nodes, "kernels": None, "flops": None,
                          "bytes": None, "children": []})
    yield ', "graphs": ['
    separator = "\n "
    for each in survey.module.graphs.values():
        listed = (hlo.parameter, hlo.get_tuple_element) if survey.module.dialect.named_results else (hlo.parameter,)
        nodes = [n for n in each.nodes if (not n.synthetic or n.op in listed) and (picked is None or n in picked)]
        if picked is not None and not nodes:
            continue
        yield separator + _open(_graph(survey, each)) + ', "nodes": ['
        separator = ",\n "
        for i, node in enumerate(nodes):
            yield ("," if i else "") + "\n  " + json_text(strict_json(_node(survey, each, node), ensure_ascii=False))
        yield "]}"
    yield "]}"


def _graph(survey: Survey, graph: Graph) -> dict[str, object]:
    cut = survey.module.cut
    found = {"name": graph.name, "entry": graph is survey.entry, "times": survey.calls.times.get(graph, 0.0),
             "fused": graph in survey.calls.fused, "parameters": [p.name for p in graph.params],
             "root": graph.root.name if graph.root is not None else None}
    if cut is not None:
        found |= {"entry": graph.name == cut.entry, "times": None, "complete": graph.name in cut.complete}
    return found


def _node(survey: Survey, graph: Graph, node: Node) -> dict[str, object]:
    found: dict[str, object] = {
        "name": node.name, "op": node.op.name, "class": node.op.work, "type": str(node.type),
        "operands": [o.name for o in node.operands], "bytes": survey.costs.size(node.type),
    }
    if node.attrs:
        found["attrs"] = {key: _plain(value) for key, value in node.attrs.items()}
    if node.bodies:
        found["bodies"] = [b.name for b in node.bodies]
    if graph in survey.costs.graphs:
        found["flops"] = survey.costs.flops(node, graph)
        found["traffic"] = survey.costs.traffic(node, graph)
        if survey.costs.is_open(node, graph):
            found["open"] = True
    scope, source = survey.module.scope(node), source_line(survey.module, node)
    if scope:
        found["scope"] = scope
    if source:
        found["source"] = source
    if node.loc >= 0:
        found["line"] = survey.module.source.place(node.loc).line
    return found


def _summary(summary: Summary) -> dict[str, object]:
    return {
        "nodes": summary.n_nodes, "graphs": summary.n_graphs, "depth": summary.depth, "width": summary.width,
        "critical_nodes": summary.critical_nodes, "critical_share": summary.critical_share,
        "inputs": [_value(v) for v in summary.inputs], "outputs": [_value(v) for v in summary.outputs],
        "parameter_bytes": summary.parameter_bytes, "flops": summary.flops,
        **({"flops_unknown": summary.no_work} if summary.no_work else {}),
        **({"unknown_costs": summary.n_open} if summary.n_open else {}), "bytes_read": summary.read, "bytes_written": summary.written,
        "kernels": summary.kernels, "fusions": summary.fusions, "peak_bytes": summary.peak_bytes, "peak_at": summary.peak_at,
        "scheduled": summary.scheduled, "ops": dict(summary.ops.most_common()), "dtypes": dict(summary.dtypes.most_common()),
        "loops": [{"node": name, "trips": trips} for name, trips in summary.loops], "unknown_ops": dict(summary.unknown_ops),
        "costliest": [{"graph": c.graph.name, "node": c.node.name, "share": c.share, "flops": c.flops, "traffic": c.bytes,
                       "times": c.times, "source": c.source} for c in summary.costly],
    }


def _value(value: EntryValue) -> dict[str, object]:
    return {"name": value.name, "type": str(value.type), "bytes": value.bytes, **({"path": value.path} if value.path else {})}


def _tree(root: Section) -> Iterator[str]:
    """The outline, sections within sections, in pieces: outlines may be deeper than the interpreter lets an encoder go."""
    stack: list[tuple[str, Section | None]] = [("", root)]
    while stack:
        before, section = stack.pop()
        yield before
        if section is None:
            continue
        entry = {"title": section.title, "kind": section.kind, "times": section.times, "nodes": section.n_nodes, "kernels": section.kernels,
                 "flops": section.flops, "bytes": section.bytes, **({"open": True} if section.is_open else {})}
        yield _open(entry) + ', "children": ['
        stack.append(("]}", None))
        stack.extend((", " if i else "", child) for i, child in reversed(list(enumerate(section.children))))


def _finding(finding: Finding) -> dict[str, object]:
    place = finding.place()
    return {"code": finding.code, "name": finding.name, "severity": str(finding.severity), "message": finding.message,
            "line": place.line if place else None, "column": place.column if place else None, "node": finding.node or None,
            "help": finding.help or None}


def _plain(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return str(value)[:2000]


def _open(fields: dict[str, object]) -> str:
    """An object whose closing brace is still to come."""
    return json_text(strict_json(fields, ensure_ascii=False))[:-1]
