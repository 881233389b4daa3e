"""``irscope.show``: shows a dump as summary and tree, text, json, drawing or page."""
from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TextIO

from irscope.analysis.excerpt import excerpt
from irscope.api.folders import Folder, open_folder, report_lines
from irscope.api.loading import Source, errors_of, read_source
from irscope.api.options import ShowOptions, View
from irscope.api.reports import MemoryReport, out_of_memory_of, report_of
from irscope.api.snapshots import log_lines, looked_at
from irscope.api.watching import SILENT, Watcher
from irscope.expand.bind import bind_types
from irscope.fleet.dump_folder import reports_beside
from irscope.formats import format_named
from irscope.formats.detect import called
from irscope.graph import Reading
from irscope.lazy import LazyModule
from irscope.query.choose import Choice, Wanted, choose, choose_modules
from irscope.render.json import write_json
from irscope.render.kernel_plan import KernelPlan
from irscope.render.paint import Paint
from irscope.render.screen import ScreenOptions, screen
from irscope.render.text import text_lines
from irscope.render.view import MAX_BOXES, BoxOptions
from irscope.source import UserError
from irscope.source.files import STDIN, path_or_empty, read_bytes
from irscope.source.notebook import Viewable

if TYPE_CHECKING:
    from irscope.api import against, numbers, planning, stages
    from irscope.fleet import peak_buffers
    from irscope.lint import run as rules
    from irscope.render import drawing, html
else:  # needed for some views and options only
    planning, rules = LazyModule("irscope.api.planning"), LazyModule("irscope.lint.run")
    against, numbers = LazyModule("irscope.api.against"), LazyModule("irscope.api.numbers")
    stages, peak_buffers = LazyModule("irscope.api.stages"), LazyModule("irscope.fleet.peak_buffers")
    drawing, html = LazyModule("irscope.render.drawing"), LazyModule("irscope.render.html")

MAX_NUMBERS = 64 << 20
"""Bytes of a file of numbers that is put into a page; a larger one can be opened on the page itself."""
PLAIN = Paint(120, False, True)
"""Without colours, 120 columns wide."""


@dataclass(slots=True)
class ShowResult(Viewable):
    """What is shown of one dump. Each of ``choices`` has a module, the requested graph and the requested nodes.

    ``folder`` is the dump's folder; ``log`` is the whole log of passes if the dump is one, and ``changes`` says what the selected pass
    changed.
    ``reports`` are XLA's reports next to the dump, by kind. ``report`` is shown where the file itself is such a report.
    """

    reading: Reading
    choices: list[Choice]
    options: ShowOptions
    folder: Folder | None = None
    log: Reading | None = None
    changes: list[str] = field(default_factory=list)
    reports: Mapping[str, str] = field(default_factory=dict)
    report: MemoryReport | None = None

    def __repr__(self) -> str:
        return f"<{self.options.view.value} of {self.reading.source.name!r}>"

    @property
    def readable(self) -> bool:
        """Whether the dump could be read whole."""
        return self.reading.ok

    @property
    def unseen(self) -> UserError | None:
        """The errors of a partly readable dump, if the view cannot show them."""
        view = self.options.view
        if self.reading.ok or not (view is View.TEXT or view.is_drawing or (view is View.TREE and _wanted(self.options).picks)):
            return None
        return UserError(f"{called(self.reading.source.name)}: only the part that could be read is shown", findings=errors_of(self.reading))

    def __str__(self) -> str:
        """The text of a text view, without colours and 120 columns wide."""
        stream = io.StringIO()
        self.write(stream)
        return stream.getvalue()

    def write(self, stream: TextIO, paint: Paint = PLAIN, open_ended: bool = False) -> None:
        """Write a text view. ``open_ended``: on a terminal, where a hint may follow truncated output."""
        report, is_tree = self.report, self.options.view is View.TREE
        if self.options.view is View.JSON:
            more = {"memory": report.as_json()} if report is not None else self.folder.as_json() if self.folder is not None else {}
            write_json(stream, self.reading, [(c.survey, c.picked) for c in self.choices], more)
            return
        lines: Iterable[str]
        if report is not None:
            lines = report.lines(paint) if is_tree else report.source.text.splitlines()
        else:
            lines = self._tree(paint, open_ended) if is_tree else self._text()
        stream.writelines(line + "\n" for line in lines)

    def draw(self, watch: Watcher = SILENT) -> bytes:
        """The file of a drawing or page: dot, svg, png, pdf or html."""
        choice = self.choices[0]
        if self.options.view is View.HTML:
            return html.html_page(choice.survey, self.reading.findings, self._page_options(watch)).encode()
        mine = self.options
        options = BoxOptions(mine.max_nodes or MAX_BOXES, mine.max_nodes is not None, depth=mine.depth, color_by=mine.color_by,
                             dark=mine.dark)
        for plan in self._plans(watch):  # at most one: _consistent refuses several for a drawing
            options = replace(options, plan=plan)
        if changes := self._changes():
            options = replace(options, changes=changes.of, note=changes.words)
        for name, text in self._numbers():
            options = replace(options, numbers=numbers.numbers_by_node(text, name, choice.survey.module))
        with watch.stage("drawing"):
            return drawing.drawing(self.reading, choice, mine.view.value, options)

    def _page_options(self, watch: Watcher) -> html.PageOptions:
        mine = self.options
        options = html.PageOptions(numbers=self._numbers(), color_by=mine.color_by, dark=mine.dark, plans=self._plans(watch))
        if changes := self._changes():
            options = replace(options, changes=changes.of, note=changes.words)
        if self.folder is not None and len(self.folder.chosen.stages) > 1:
            found, left_out = stages.stages_of_folder(self.folder.chosen.stages, self.reading)
            options = replace(options, stages=found, stages_left_out=left_out)
        elif self.log is not None:
            options = replace(options, stages=stages.stages_of_log(self.log, self.reading))
        if mine.oom is not None:
            table = peak_buffers.peak_buffers(self.choices[0].survey.module, out_of_memory_of(mine.oom))
            options = replace(options, oom={"title": table.title, "notes": table.notes, "rows": table.rows})
        return options

    def _changes(self) -> against.Changes | None:
        mine, module = self.options, self.choices[0].survey.module
        return against.changes_against(mine.against, mine.source_format, module) if mine.against is not None else None

    def _numbers(self) -> list[tuple[str, str]]:
        path = self.options.numbers
        return [(os.path.basename(path), read_bytes(path, MAX_NUMBERS).decode("utf-8-sig", "replace"))] if path is not None else []

    def _plans(self, watch: Watcher) -> list[KernelPlan]:
        mine = self.options
        if mine.policy is None:
            return []
        with watch.stage("planning"):
            return planning.kernel_plans(self.reading, self.choices[0].survey.module, mine.policy, mine.device)

    def _text(self) -> Iterator[str]:
        for choice in self.choices:
            module = choice.survey.module
            if choice.picked and module.is_primitive and self.reading.ok:
                part = excerpt(module, choice.graph, choice.picked)
                yield from format_named(module.dialect.name).print_module(part).splitlines()
            else:
                yield from text_lines(choice.survey, choice.graph, choice.picked, explicit=self.options.graph is not None)

    def _tree(self, paint: Paint, open_ended: bool) -> Iterator[str]:
        mine = self.options
        if self.folder is not None and not _wanted(mine).picks:
            yield from self.folder.lines(self.choices[0].survey, paint)
        if self.log is not None:
            yield from (*log_lines(self.log, paint, mine.everything), "", *self.changes, *([""] if self.changes else []))
        options = ScreenOptions(mine.depth, mine.by, mine.everything, open_ended, mine.graph is not None, mine.ops)
        for i, choice in enumerate(self.choices):
            if i:
                yield ""
            yield from screen(self.reading, choice, paint, options)
        buffers = self.reading.buffers if self.folder is None or not self.folder.chosen.reports else None
        if (self.reports or buffers is not None) and not _wanted(mine).picks:
            yield from ("", *report_lines(self.reports, paint, buffers))


def show(what: Source, options: ShowOptions | None = None, *, watch: Watcher = SILENT) -> ShowResult:
    """Choose what to show of a dump. A folder shows the requested module, or the costliest.

    Raises :class:`irscope.UserError` for a text without a module, and for unknown nodes, graphs, modules and policies.

    >>> shown = show("ENTRY main { p = f32[3] parameter(0)\\nROOT n = f32[3] negate(p) }", ShowOptions(view=View.TEXT, where="op=negate"))
    >>> print(str(shown).splitlines()[-2])
      ROOT %n = f32[3] negate(%p)
    """
    options = options or ShowOptions()
    _consistent(options)
    report = report_of(what) if options.view.is_text and not _wanted(options).picks else None
    if report is not None:
        return ShowResult(Reading(report.source, report.kind), [], options, report=report)
    path, folder = path_or_empty(what), None
    if path != STDIN and os.path.isdir(path):
        folder = open_folder(path, options.module, watch)
        last = folder.chosen.last
        what, options, path = last.read() if last.text else last.path, replace(options, module=None), ""
    with watch.stage("reading"):
        whole = read_source(what, options.source_format)
    reading, changes = looked_at(options, whole) if folder is None or not options.view.is_text else (whole, None)
    shown = ShowResult(reading, _choices(options, reading), options, folder, None if changes is None else whole, changes or [])
    if path not in ("", STDIN) and options.view is View.TREE and not _wanted(options).picks and reading.module().is_primitive:
        shown.reports = reports_beside(path)
    return shown


def _consistent(options: ShowOptions) -> None:
    """Raise UserError for incompatible options."""
    if options.policy is None and options.device is not None:
        raise UserError(f"--device {options.device} says nothing without a policy", "--policy xla-gpu")
    if options.ops and options.view is not View.TREE:
        raise UserError("--ops lets a tree end in operators", "without -o, or --format tree")
    draws = options.view.is_drawing or options.view is View.HTML
    for name, given in (("numbers", options.numbers), ("against", options.against)):
        if given is not None and not draws:
            raise UserError(f"--{name} colours a drawing or a page", "-o FILE.html, .svg, .png, .pdf or .dot")
    if options.oom is not None and options.view is not View.HTML:
        raise UserError("--oom shows the buffers of an error on a page", "-o FILE.html; or irscope lint DUMP --audit memory --oom LOG")
    for name, needs, given in (("numbers", "--numbers FILE", options.numbers), ("diff", "--against DUMP", options.against)):
        if options.color_by == name and given is None:
            raise UserError(f"--color-by {name} needs {needs}")
    if options.policy is None:
        return
    if not draws:
        raise UserError(f"--policy {options.policy} frames kernels in a drawing or on a page",
                        "-o FILE.svg, .png, .pdf, .dot or .html; or irscope lint --why-not-fused")
    if options.view.is_drawing and "," in options.policy:
        raise UserError(f"a drawing frames the kernels of one policy, and --policy names several: {options.policy}",
                        "-o FILE.html switches between them")


def _wanted(options: ShowOptions) -> Wanted:
    """Which nodes are requested."""
    return Wanted(options.around, options.radius, options.between or None, options.where, options.graph, options.module, options.through)


def _choices(options: ShowOptions, reading: Reading) -> list[Choice]:
    """What to show of each module of a text."""
    if not reading.modules:
        raise UserError(f"{reading.source.name}: no module in it", findings=errors_of(reading))
    wanted = _wanted(options)
    modules = choose_modules(reading, wanted)
    if options.shapes or options.dtypes:
        if any(not module.entry for module in modules):
            raise UserError(f"{reading.source.name} has no entry, whose inputs --shape and --dtype bind")
        modules = [bind_types(module, options.shapes, options.dtypes) for module in modules]
    # Lint findings join the reader's findings, and are shown with them.
    if options.lint or options.color_by == "findings":
        reading.findings += [finding for module in modules for finding in rules.lint_module(module, whole=reading.ok)]
    return [choose(module, wanted, several_graphs=options.view in (View.TREE, View.JSON)) for module in modules]
