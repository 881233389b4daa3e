"""``irscope.diff``: two dumps compared as graphs, with gates for CI."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from irscope.api.change_drawings import change_drawings
from irscope.api.loading import Source, errors_of, first_module, name_of, read_source, whole
from irscope.api.options import DiffOptions
from irscope.api.paths import once_stdin
from irscope.api.watching import SILENT, Watcher
from irscope.diff import compare, parse_gate
from irscope.diff.compare import Comparison
from irscope.diff.page import as_html
from irscope.diff.report import as_json, as_text
from irscope.graph import Module, Reading
from irscope.render.change_view import both_sides
from irscope.source import Finding, UserError
from irscope.source.data_text import strict_json
from irscope.source.notebook import Viewable


@dataclass(slots=True)
class DiffResult(Viewable):
    """How two graphs differ. ``comparison`` has the figures and the changed nodes, ``failed`` the gates that failed, as text.

    ``errors`` are those of dumps that were cut off. ``matches``: the json lists all pairs of nodes.
    """

    comparison: Comparison
    modules: tuple[Module, Module]
    names: tuple[str, str]
    failed: list[str] = field(default_factory=list)
    errors: list[Finding] = field(default_factory=list)
    matches: bool = False

    def __repr__(self) -> str:
        return f"<diff of {self.names[0]!r} and {self.names[1]!r}: {'same' if self.same else 'different'}>"

    @property
    def same(self) -> bool:
        """Whether both are the same graph: names and the order of independent lines do not count."""
        return self.comparison.same

    @property
    def readable(self) -> bool:
        """Whether both dumps are whole."""
        return not self.comparison.partial

    def as_json(self) -> dict[str, Any]:
        """The object that ``--format json`` prints: ``irscope/schemas/diff.json``."""
        return as_json(self.comparison, self.failed, self.matches)

    def as_text(self, markdown: bool = False) -> str:
        """What changed, for a person."""
        return as_text(self.comparison, *self.names, markdown)

    def as_html(self) -> str:
        """One page that needs no network, with drawings of both sides."""
        drawings = {one.pair.before: (one.before, one.after, one.partners) for one in change_drawings(self.comparison, self.names)}
        return as_html(self.comparison, *self.modules, self.names, self.failed, drawings)

    def rendered(self, form: str) -> str:
        """The text of a form: text, json, markdown, html or svg."""
        if form == "json":
            return strict_json(self.as_json(), indent=1)
        if form in ("html", "svg"):
            return self.as_html() if form == "html" else self.as_svg()
        return self.as_text(form == "markdown")

    def as_svg(self) -> str:
        """A drawing of both sides: the changes of the two graphs with most of them. Raises UserError where there are none."""
        drawn = change_drawings(self.comparison, self.names)
        if not drawn:
            raise UserError("there are no changes to draw")
        return both_sides(drawn[0].before, drawn[0].after)


def diff(before: Source, after: Source, options: DiffOptions | None = None, *, watch: Watcher = SILENT) -> DiffResult:
    """Compare the first modules of two dumps as graphs.

    Of dumps that were cut off, the computations that are complete in both are compared, and the result is not ``readable``. Raises
    :class:`irscope.UserError` for a dump with other errors and for a gate that cannot be parsed.

    >>> text = "ENTRY main {{ p = f32[8] parameter(0)\\n ROOT {} = f32[8] {}(p) }}"
    >>> diff(text.format("x", "negate"), text.format("y", "negate")).same
    True
    >>> diff(text.format("x", "negate"), text.format("x", "tanh")).comparison.op_changes()
    {'negate': (1, 0), 'tanh': (0, 1)}
    """
    options = options or DiffOptions()
    gates = [parse_gate(text) for text in options.fail_if]
    names = name_of(before), name_of(after)
    once_stdin(names)
    readings = _comparable(before, options), _comparable(after, options)
    first, second = (first_module(reading, watch) for reading in readings)
    comparison = compare(first, second)
    if comparison.partial:
        errors = [finding for reading in readings for finding in errors_of(reading)]
        failed = [f"{gate.text} cannot be judged: a text is cut off" for gate in gates]
        return DiffResult(comparison, (first, second), names, failed, errors, options.matches)
    failed = [failure for gate in gates if (failure := gate.fails(comparison))]
    return DiffResult(comparison, (first, second), names, failed, matches=options.matches)


def _comparable(what: Source, options: DiffOptions) -> Reading:
    """The reading of a dump that is whole or was cut off."""
    reading = read_source(what, options.source_format)
    return reading if reading.modules and reading.module().cut is not None else whole(reading)
