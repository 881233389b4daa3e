"""``TORCH_LOGS``: the messages of a log, put together from its lines.

Each line of a message has the whole prefix. Lines of one artefact and one compilation that follow each other are one section. Processes
(ranks) may write into one log, each between the lines of others.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from irscope.formats.inductor.compilation import Compilation, add_break, add_recompile_message, guards_in
from irscope.formats.inductor.fusion_log import BEGINS, TAG, FusionRun, take
from irscope.formats.inductor.glog import LogLine, log_line
from irscope.source import SourceText
from irscope.source.budget import tick

BEGINNINGS = ("TRACED GRAPH", "BEFORE FUSION", "AFTER FUSION", "Output code:", "Graph break", "Recompiling function", "GUARDS",
              "TREE_GUARD_MANAGER")
"""First lines of messages: a new one begins there, although artefact and compilation stay the same."""


@dataclass(frozen=True, slots=True)
class Section:
    """One message: its artefact, its compilation, its text without prefixes, and where it begins."""

    tag: str
    compile_id: str
    rank: str
    text: str
    offset: int


@dataclass(slots=True)
class Log:
    """The messages of a log, the runs of the fusion pass, and the compilations by rank and identifier."""

    sections: list[Section] = field(default_factory=list)
    runs: list[FusionRun] = field(default_factory=list)
    compilations: dict[tuple[str, str], Compilation] = field(default_factory=dict)

    def compilation(self, rank: str, compile_id: str, offset: int) -> Compilation:
        """The compilation of a message; made where it is the first one."""
        key = rank, compile_id.partition("_")[0]
        if key not in self.compilations:
            self.compilations[key] = Compilation(key[1], rank, offset=offset)
        return self.compilations[key]


def read_log(source: SourceText) -> Log:
    """The messages of a log. Lines without torch's prefix are left out."""
    log = Log()
    for lines in sorted(_messages(source, log.runs), key=lambda lines: lines[0].begin):
        first = lines[0]
        section = Section(first.tag, first.compile_id, first.rank, "\n".join(line.text for line in lines), first.begin)
        log.sections.append(section)
        if section.compile_id:
            _take(log.compilation(section.rank, section.compile_id, section.offset), section)
    return log


def _messages(source: SourceText, runs: list[FusionRun]) -> Iterator[list[LogLine]]:
    """The lines of each message. Those of the fusion pass are taken on the way: each is a message."""
    of_rank: dict[str, list[LogLine]] = {}
    run_of_rank: dict[str, FusionRun] = {}
    at = 0
    for text in source.text.split("\n"):
        tick()
        line = log_line(text, at)
        at += len(text) + 1
        if line is None or not line.tag:
            continue
        if line.tag == TAG:
            if line.text.startswith(BEGINS):
                run_of_rank[line.rank] = FusionRun(line.compile_id, line.rank)
                runs.append(run_of_rank[line.rank])
            if line.rank in run_of_rank:
                take(run_of_rank[line.rank], line.text, line.begin, line.place)
            continue
        lines = of_rank.setdefault(line.rank, [])
        same = lines and (lines[0].tag, lines[0].compile_id, lines[0].place) == (line.tag, line.compile_id, line.place)
        if lines and (not same or line.text.startswith(BEGINNINGS)):
            yield lines
            lines = of_rank[line.rank] = []
        lines.append(line)
    yield from of_rank.values()


def _take(mine: Compilation, section: Section) -> None:
    if section.tag == "graph_breaks":
        add_break(mine, section.text, section.offset)
    elif section.tag.startswith("recompiles"):
        add_recompile_message(mine, section.text, section.offset)
    elif section.tag == "guards":
        mine.guards = guards_in(section.text) or mine.guards
