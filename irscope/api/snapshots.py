"""A log of passes: its snapshots, what each pass changed, and the selected snapshot."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from irscope.analysis.survey import Survey
from irscope.api.options import ShowOptions, View
from irscope.diff import compare
from irscope.diff.report import as_text
from irscope.graph import Reading
from irscope.query.snapshots import Snapshot, find, snapshots
from irscope.query.stages import Figures, StageChange
from irscope.render.folder import timeline_lines
from irscope.render.paint import Paint
from irscope.render.units import plural
from irscope.source import UserError


def looked_at(options: ShowOptions, reading: Reading) -> tuple[Reading, list[str] | None]:
    """The reading of the selected snapshot alone, and what changed in it (None: the reading is not a log, or all of it is selected).

    Without ``snapshot``, text and json show all snapshots, and everything else the last one.
    """
    found = snapshots(reading)
    if not found:
        if options.snapshot is not None:
            help = "TVM's PrintIR instruments and irscope opt --print-after print such logs"
            raise UserError(f"{reading.source.name} is no log of passes", help)
        return reading, None
    if options.module is not None or (options.snapshot is None and options.view in (View.TEXT, View.JSON)):
        return reading, None
    if options.snapshot is None:
        return replace(reading, modules=[found[-1].module]), []
    base, shown = find(found, options.snapshot)
    return replace(reading, modules=[shown.module]), list(_changes(found, base, shown))


def log_lines(reading: Reading, paint: Paint, every: bool) -> Iterator[str]:
    """The snapshots of a log as a table; those that changed no operator are only counted, unless all are requested."""
    found = snapshots(reading)
    yield paint(f"{reading.source.name}: a log of passes, {plural(len(found), 'snapshot')}", "bold")
    rows = [StageChange(f"{s.number} {s.words}", Figures.of(Survey(s.module)), s.came, s.went) for s in found]
    yield from timeline_lines(rows, paint, "pass", every)


def _changes(found: list[Snapshot], base: Snapshot | None, shown: Snapshot) -> Iterator[str]:
    """What a pass changed, line by line."""
    if base is not None:
        yield as_text(compare(base.module, shown.module), f"{base.number} {base.words}", f"{shown.number} {shown.words}")
    others = [str(s.number) for s in found if s.name == shown.name and s.when == shown.when and s is not shown]
    if others:
        yield f"{shown.words} stands in the log {len(others) + 1} times; the others are --pass {', '.join(others)}"
