"""What irscope makes of the forms of a net, and what of it differs, by operator.

The forms are compared with the archive. The work of a form is counted by the operator of the exported program that a node comes from: ONNX
models note it at each node, TorchScript has the same operators. A kernel is counted by the operators that it computes, a finding by its
code and operator.
"""
from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import irscope
from irscope.analysis.survey import Survey
from irscope.analysis.values import written
from irscope.api import LintOptions, RunOptions, lint, run
from irscope.graph import Kind, Module, Node, Reading
from irscope.lint.planned import Planned
from irscope.source import UserError

FORMS = {"pt2": "archive.pt2", "text": "program.txt", "traced": "traced.txt", "onnx": "model.onnx"}
WEIGHTS = {"text": "program.npz", "traced": "traced.pt"}
CONSTANTS = {"traced": "traced.npz"}
TARGET = re.compile(r"\[target=torch\.ops\.\w+\.(\w+)")
TOLERANCE = 1e-3
"""Of the largest value of an output; nets in bfloat16 round differently in every order of sums."""


@dataclass(slots=True)
class Form:
    """One form of a net.

    ``work`` has the FLOPs by operator of the exported program, ``written`` what the form writes for each. ``kernels`` are counted by the
    operators that they compute, ``found`` findings by code and operator.
    """

    fault: str = ""
    error: float = 0.0
    right: bool = False
    kernels: Counter[str] = field(default_factory=Counter)
    work: Counter[str] = field(default_factory=Counter)
    written: dict[str, Counter[str]] = field(default_factory=dict)
    found: Counter[str] = field(default_factory=Counter)


def look(folder: Path, form: str) -> Form:
    """Runs, plans, counts and lints one form. A refusal is the form's ``fault``."""
    made, path = Form(), folder / FORMS[form]
    try:
        _run(made, folder, form)
        reading = irscope.load(path)
        _count(made, reading.module())
        _plan(made, reading.module())
        _lint(made, reading)
    except UserError as error:
        made.fault = str(error)
    return made


def _run(made: Form, folder: Path, form: str) -> None:
    """Compiles and runs the form, and compares with torch's results."""
    data = str(folder / "data.npz")
    weights = (str(folder / WEIGHTS[form]),) if form in WEIGHTS else ()
    constants = str(folder / CONSTANTS[form]) if form in CONSTANTS else None
    options = RunOptions(inputs=(data,), weights=weights, constants=constants, expect=data, rtol=TOLERANCE, threads=1)
    result = run(folder / FORMS[form], options)
    made.right, made.error = result.ok, result.max_rel_error


def _count(made: Form, module: Module) -> None:
    survey = Survey(module)
    for graph in module.graphs.values():
        for node, flops in zip(graph.nodes, survey.costs.graphs[graph].flops, strict=True):
            if not node.synthetic and node.op.kind is not Kind.LEAF:
                name = operator(module, node)
                made.written.setdefault(name, Counter())[node.op.name.removeprefix("aten::")] += 1
                made.work[name] += round(flops)


def _plan(made: Form, module: Module) -> None:
    for plan in Planned(module, "irscope").plans:
        for group in plan.groups:
            sources = [source for node in group.nodes if (source := written(node)).op.kind is not Kind.LEAF and not source.synthetic]
            made.kernels[" + ".join(sorted({operator(module, source) for source in sources}))] += 1


def _lint(made: Form, reading: Reading) -> None:
    module = reading.module()
    nodes = {node.name: node for graph in module.graphs.values() for node in graph.nodes}
    for finding in lint(reading, LintOptions(isolated=True)).findings:
        node = nodes.get(finding.node)
        made.found[f"{finding.code} {operator(module, node) if node is not None else finding.node}"] += 1


def operator(module: Module, node: Node) -> str:
    """The operator of the exported program that a node is, or comes from; without its namespace."""
    target = TARGET.search(module.raw(node).get("fx_node", ""))
    return target[1] if target is not None else node.op.name.removeprefix("aten::")
