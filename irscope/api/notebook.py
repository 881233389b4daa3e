"""The views of notebooks: pages of summaries, tables and pictures, without scripts and without a network."""
from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence

from irscope.api.comparing import DiffResult
from irscope.api.linting import LintResult
from irscope.api.optimising import OptResult
from irscope.api.options import ShowOptions, View
from irscope.api.showing import ShowResult, show
from irscope.backends.loaded_model import Model
from irscope.graph import Dialect, Graph, Module, Reading
from irscope.graph.walk import callees_first_of
from irscope.render.units import flops, plural
from irscope.source import Finding, UserError
from irscope.source.visible import markup

MOST_ROWS = 100
"""Findings that a table lists."""


def html(what: object) -> str | None:
    """The page of an object; None where it has none."""
    if isinstance(what, Finding):
        return _findings([what])
    if isinstance(what, LintResult):
        return _findings(what.findings)
    if isinstance(what, DiffResult):
        return _preformatted(what.as_text())
    if isinstance(what, Model):
        return _preformatted(_described(what)) + _picture(svg(what))
    if isinstance(what, OptResult):
        return _preformatted("\n".join(f"{step.name}: {step.seconds:.3f} s" for step in what.steps) or "no passes") + _picture(svg(what))
    if isinstance(what, ShowResult):
        return _preformatted(str(what)) if what.options.view.is_text else _picture(svg(what))
    reading = _reading(what)
    if reading is None:
        return None
    findings = _findings(reading.findings) if reading.findings else ""
    if not reading.modules:
        return findings or _preformatted(repr(reading))
    return _preformatted(str(show(reading))) + _picture(svg(reading)) + findings


def svg(what: object) -> str | None:
    """The picture of an object; None where it has none."""
    if isinstance(what, Model | OptResult):
        what = what.module
    if isinstance(what, ShowResult):
        return what.draw().decode() if what.options.view is View.SVG else None
    reading = _reading(what)
    if reading is None or not reading.modules:
        return None
    try:
        return show(reading, ShowOptions(view=View.SVG)).draw().decode()
    except UserError:  # of a text with too many errors
        return None


def _reading(what: object) -> Reading | None:
    """A reading that holds the object alone."""
    if isinstance(what, Graph):
        what = _module(what)
    if isinstance(what, Module):
        return Reading(what.source, what.format, [what])
    return what if isinstance(what, Reading) else None


def _module(graph: Graph) -> Module:
    """A module of a graph and what it calls; its dialect is only known to be of primitives or not."""
    graphs = list(callees_first_of([graph]))
    primitive = all(node.op.is_primitive for each in graphs for node in each.nodes)
    return Module(graph.name, Dialect("graph", primitive=primitive), {each.name: each for each in graphs}, graph.name)


def _findings(findings: Sequence[Finding]) -> str:
    """A table of findings."""
    if not findings:
        return "<p>no findings</p>"
    head = "".join(f"<th>{name}</th>" for name in ("finding", "line", "operator", "message", "help"))
    rows = "".join(f"<tr>{_cells((f'{f.severity}[{f.code}]', f.place() or '', f'%{f.node}' if f.node else '', f.message, f.help))}</tr>"
                   for f in findings[:MOST_ROWS])
    more = f"<p>{len(findings) - MOST_ROWS} more</p>" if len(findings) > MOST_ROWS else ""
    return f"<table><tr>{head}</tr>{rows}</table>{more}"


def _cells(values: Iterable[object]) -> str:
    return "".join(f'<td style="text-align:left">{markup(str(value))}</td>' for value in values)


def _described(model: Model) -> str:
    """Inputs, outputs and kernels of a compiled module."""
    head = f"{model.name}: {plural(model.kernels, 'kernel')}, {flops(model.flops)}, compiled in {model.compile_s:.2f} s"
    ports = [f"{kind:<7} {port.name}  {port.dtype}[{','.join(map(str, port.shape))}]"
             for kind, ports in (("input", model.inputs), ("output", model.outputs)) for port in ports]
    return "\n".join([head, *ports])


def _preformatted(text: str) -> str:
    lines = "\n".join(map(markup, text.splitlines()))
    return f'<pre style="line-height:1.2">{lines}</pre>'


def _picture(image: str | None) -> str:
    """A picture as an image of its own: its links and styles do not reach the notebook."""
    coded = b64encode((image or "").encode()).decode()
    return f'<img style="max-width:100%" src="data:image/svg+xml;base64,{coded}">' if coded else ""
