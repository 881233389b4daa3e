"""What Python programs ask of a text, which no command line asks all of: findings, provenance, printing and reading back, primitives."""
from __future__ import annotations

from irscope.analysis.survey import Survey
from irscope.backends.model import primitive
from irscope.backends.opening import Bindings, needs_opening, opened
from irscope.expand.bind import bind_types
from irscope.fleet.stats import stats_of_reading
from irscope.formats import format_named
from irscope.formats.detect import detect
from irscope.graph import Module, Reading
from irscope.source import SourceText, UserError

NODES = 20
"""Of so many nodes a graph the provenance is asked for: each is found in the same way."""
PRINTS: dict[str, tuple[dict[str, str], ...]] = {"hlo": ({"style": "canonical"}, {"style": "input"})}
"""The styles that a format can be printed in, where there is more than one."""


def read_text(text: str, format: str | None = None) -> str:
    """Read a text as ``format``, or as what it is taken for, and use the result; the code of its first finding, or how far it came.

    Raises AssertionError where a text that is read without an error cannot be read once it is printed.
    """
    name = format or detect(text)
    if name is None:
        return "unknown"
    reading = format_named(name).read(SourceText("read.txt", text))
    for finding in reading.findings[:NODES]:
        finding.render()
    for module in reading.modules:
        for graph in module.graphs.values():
            for node in graph.nodes[:NODES]:
                module.scope(node), module.call_stack(node), module.raw(node)
        if module.entry:
            _print(reading, module)
    stats_of_reading(reading, "read.txt", signature=True)
    if not reading.ok or not reading.modules:
        return reading.findings[0].code if reading.findings else "no module"
    module = reading.module()
    try:
        made = opened(module, Bindings()) if needs_opening(module) else bind_types(module, {}, {})
        Survey(primitive(made))
    except UserError as refused:
        if not refused.message:
            raise AssertionError("refused without a word") from refused
        return "refused"
    return "primitive"


def _print(reading: Reading, module: Module) -> None:
    """Print a module in every style; what was read without an error must be read back without one."""
    format = format_named(reading.format)
    for options in PRINTS.get(reading.format, ({},)):
        try:
            printed = format.print_module(module, **options)
        except UserError:  # a format need not have a text for every operator
            continue
        if reading.ok:
            again = format.read(SourceText("printed.txt", printed))
            if not again.ok:
                raise AssertionError(f"printed {options}, it is no longer read: {again.findings[0].headline()}\n{printed[:2000]}")
