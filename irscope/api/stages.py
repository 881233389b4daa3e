"""The stages of a compilation as modules, for a page: of a dump folder, of a log of passes, of passes that irscope ran."""
from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from irscope.analysis.survey import Survey
from irscope.fleet.dump_folder import Stage
from irscope.graph import Reading
from irscope.passes.manager import Step
from irscope.query.snapshots import snapshots
from irscope.render.html import PageOptions, html_page
from irscope.render.page_stages import PageStage, ends_that_fit
from irscope.source import UserError

MAX_BYTES = 64 << 20
"""Bytes of the stages of a folder that are read for a page; of longer compilations, the stages in the middle are left out."""


def stages_of_folder(stages: Sequence[Stage], last: Reading) -> tuple[list[PageStage], int]:
    """The stages of a dumped module that can be read, and how many are left out because they are too large or unreadable.

    ``last`` is the reading of the last stage. Returns no stages where no other can be read.
    """
    if len(stages) < 2:
        return [], 0
    kept = ends_that_fit([*map(_size, stages[:-1]), 0], MAX_BYTES)[:-1]
    found = [PageStage(stages[i].words(), reading.module()) for i in kept for reading in _read(stages[i])]
    return ([*found, PageStage(stages[-1].words(), last.module())], len(stages) - 1 - len(found)) if found else ([], 0)


def _size(stage: Stage) -> int:
    """The size of a stage in bytes, of a text in characters; 0 for a missing file: reading it reports that."""
    return len(stage.text) if stage.text else os.path.getsize(stage.path) if os.path.exists(stage.path) else 0


def _read(stage: Stage) -> Iterator[Reading]:
    try:
        reading = stage.read()
    except UserError:
        return  # the folder's own timeline says why
    if reading.modules:
        yield reading


def stages_of_log(log: Reading, shown: Reading) -> list[PageStage]:
    """The snapshots of a log of passes up to the one that is shown."""
    found = [PageStage(snapshot.words, snapshot.module) for snapshot in snapshots(log)]
    end = next((i for i, stage in enumerate(found) if stage.module is shown.module()), len(found) - 1)
    return found[:end + 1]


def page_of_passes(steps: Sequence[Step]) -> str:
    """The page of passes that ran: the module before the first and after each. Raises UserError where none ran."""
    if not steps:
        raise UserError("a page of passes needs a pass", "--passes a,b")
    stages = [PageStage("before the passes", steps[0].before), *(PageStage(f"after {step.name}", step.after) for step in steps)]
    return html_page(Survey(steps[-1].after), (), PageOptions(stages=stages))
