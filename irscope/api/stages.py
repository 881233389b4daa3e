"""The stages of a compilation as modules, for a page: of a dump folder, of a log of passes, of passes that irscope ran."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from irscope.analysis.survey import Survey
from irscope.fleet.dump_folder import Stage
from irscope.formats.detect import read, read_data
from irscope.graph import Reading
from irscope.passes.manager import Step
from irscope.query.snapshots import snapshots
from irscope.render.html import PageOptions, html_page
from irscope.render.page_stages import PageStage
from irscope.source import SourceText, UserError
from irscope.source.files import read_bytes


def stages_of_folder(stages: Sequence[Stage], last: Reading) -> list[PageStage]:
    """The stages of a dumped module that can be read; the last one is read already. None where there is only one."""
    found = [PageStage(stage.words(), reading.module()) for stage in stages[:-1] for reading in _read(stage)]
    return [*found, PageStage(stages[-1].words(), last.module())] if found else []


def _read(stage: Stage) -> Iterator[Reading]:
    try:
        reading = read(SourceText(stage.path, stage.text)) if stage.text else read_data(read_bytes(stage.path), stage.path)
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
