"""What torch.compile says of the compilation of one frame, from a trace or a log: stages, graph breaks, recompiles, guards, times."""
from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from irscope.formats.inductor.trace_records import Trace, TraceRecord
from irscope.graph.attributes import Attributes, attribute
from irscope.source import SourceText
from irscope.source.data_text import json_value

STAGES = {
    "dynamo_output_graph": "dynamo",
    "before_pre_grad_graph": "before pre-grad passes",
    "after_pre_grad_graph": "after pre-grad passes",
    "aot_joint_graph": "joint",
    "before_joint_graph": "before joint passes",
    "after_joint_graph": "after joint passes",
    "aot_inference_graph": "inference",
    "aot_forward_graph": "forward",
    "aot_backward_graph": "backward",
    "before_post_grad_graph": "before post-grad passes",
    "inductor_post_grad_graph": "after post-grad passes",
    "after_post_grad_graph": "after post-grad passes",
    "inductor_output_code": "output code",
}
"""The records that hold a graph, and what that graph is called."""
OUTPUT_CODE = "output code"
TIMES = {
    "entire_frame_compile_time_s": "all", "backend_compile_time_s": "backend", "inductor_compile_time_s": "inductor",
    "code_gen_time_s": "code generation", "dynamo_time_before_restart_s": "before restarts",
}
"""The times of ``compilation_metrics``, in seconds, and what they are of."""
MOST = 500
"""The maximal number of graph breaks, recompilations and specialisations kept of one frame: torch gives up long before."""
_PLACE = re.compile(r".+?:\d+")
_REASON = re.compile(r"(?:Graph Break )?Reason: (.*)")
_GUARD = re.compile(r"^[| ]*\+- ((?!RootGuardManager|GuardManager|DictGuardManager)[A-Z_]+(?:: .*)?)$", re.MULTILINE)
_RECOMPILED = re.compile(r"\s*Recompiling function (\S+) in (.+?:\d+)")


@dataclass(frozen=True, slots=True)
class GraphBreak:
    """Why and where a frame could not be compiled whole. ``hint`` is torch's own advice."""

    reason: str
    place: str
    hint: str = ""
    offset: int = -1


@dataclass(frozen=True, slots=True)
class Recompile:
    """The guards that failed, so that a frame was compiled again."""

    reasons: tuple[str, ...]
    place: str = ""
    offset: int = -1


@dataclass(frozen=True, slots=True)
class StageText:
    """A graph or output code at one point of a compilation; ``offset``: where the trace or log has it."""

    name: str
    text: str
    offset: int


@dataclass(frozen=True, slots=True)
class Specialisation:
    """A symbolic size that became a constant, and why."""

    symbol: str
    source: str
    value: str
    reason: str
    offset: int = -1


@dataclass(slots=True)
class Compilation:
    """The record of one frame: ``compile_id`` is ``frame/times compiled``; ``place`` where the function begins in the user's program."""

    compile_id: str
    rank: str = ""
    function: str = ""
    place: str = ""
    stages: list[StageText] = field(default_factory=list)
    breaks: list[GraphBreak] = field(default_factory=list)
    recompiles: list[Recompile] = field(default_factory=list)
    specialisations: list[Specialisation] = field(default_factory=list)
    guards: tuple[str, ...] = ()
    failure: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    provenance: list[str] = field(default_factory=list)
    offset: int = -1
    source: SourceText | None = None

    @property
    def title(self) -> str:
        """``[0/0] forward (model.py:12)``, with the rank where there are several."""
        where = f" ({self.place})" if self.place else ""
        return " ".join(part for part in (self.rank, f"[{self.compile_id}]", self.function) if part) + where

    def texts(self, stage: str) -> list[StageText]:
        """The texts of a stage; a frame with a backward graph has two of the later ones."""
        return [text for text in self.stages if text.name == stage]

    def __str__(self) -> str:
        return self.title


class Compiled(Attributes):
    """What a module keeps of the compilation that it comes from; of several modules of one compilation, the first tells of it."""

    __slots__ = ()
    compilation = attribute[Compilation | None](None)
    tells_compilation = attribute[bool](False)


def compilations_of(trace: Trace) -> list[Compilation]:
    """The compilations of a trace, in the order in which they began."""
    found: dict[tuple[str, str], Compilation] = {}
    for record in trace.records:
        if record.compile_id:
            key = record.rank, record.compile_id.partition("_")[0]
            mine = found.setdefault(key, Compilation(key[1], record.rank, offset=record.offset))
            _take(mine, record)
    return list(found.values())


def _take(mine: Compilation, record: TraceRecord) -> None:
    if record.kind in STAGES:
        if record.payload:
            mine.stages.append(StageText(STAGES[record.kind], record.payload, record.offset))
    elif record.kind == "dynamo_graph_break_reason":
        add_break(mine, record.payload, record.offset)
    elif record.kind == "recompile_reasons":
        _recompiled(mine, record)
    elif record.kind in ("dynamo_cpp_guards_str", "dynamo_guards"):
        mine.guards = guards_in(record.payload) or mine.guards
    elif record.kind in ("compilation_metrics", "bwd_compilation_metrics"):
        _metrics(mine, record)
    elif record.kind == "symbolic_shape_specialization":
        sources = record.data.get("sources")
        source = ", ".join(map(str, sources)) if isinstance(sources, list) else ""
        symbol, value, reason = (record.text(key) for key in ("symbol", "value", "reason"))
        known = ((s.symbol, s.source) for s in mine.specialisations)  # each attempt repeats them
        if len(mine.specialisations) < MOST and (symbol, source) not in known:
            mine.specialisations.append(Specialisation(symbol, source, value, reason, record.offset))
    elif record.kind == "inductor_provenance_tracking_node_mappings":
        mine.provenance.append(record.payload)


def add_break(mine: Compilation, text: str, offset: int) -> None:
    """Add the graph break that a message of dynamo describes; the same one of another attempt is left out."""
    reason = _REASON.search(text)
    lines = [line.strip() for line in text.splitlines()]
    at = next((i for i, line in enumerate(lines) if _REASON.match(line)), 0)
    detail = next((line for line in lines[at + 1:] if line and not line.startswith(("Explanation", "Hint", "File"))), "")
    hint = next((line.removeprefix("Hint:").strip() for line in lines if line.startswith("Hint:")), "")
    words = (reason[1] if reason is not None else lines[0] if lines else "").strip().rstrip(":")
    found = GraphBreak(f"{words}: {detail}" if detail else words, _place_of_break(text), hint, offset)
    if len(mine.breaks) < MOST and (found.reason, found.place) not in ((b.reason, b.place) for b in mine.breaks):
        mine.breaks.append(found)


def _place_of_break(text: str) -> str:
    """Where the user's code breaks the graph. Words are found one after another: one pattern takes cubic time where a line repeats them."""
    for line in text.split("\n"):
        place = _PLACE.match(line.partition("Graph break")[2].partition(" in user code at ")[2])
        if place is not None:
            return place[0]
    return ""


def add_recompile(mine: Compilation, reasons: Iterable[str], offset: int, place: str = "") -> None:
    """Add the failed guards of a recompilation."""
    given = tuple(dict.fromkeys(reason.strip().removeprefix("- ").strip() for reason in reasons if reason.strip()))
    if given and len(mine.recompiles) < MOST and given not in (known.reasons for known in mine.recompiles):
        mine.recompiles.append(Recompile(given, place, offset))


def add_recompile_message(mine: Compilation, text: str, offset: int) -> None:
    """The same from the message ``Recompiling function f in m.py:12 / triggered by the following guard failure(s): ...``."""
    where = _RECOMPILED.match(text)
    if where is not None:
        mine.function, mine.place = mine.function or where[1], mine.place or where[2]
    failed = [line for line in text.splitlines() if line.strip().startswith("- ")]
    add_recompile(mine, failed, offset, where[2] if where is not None else "")


def guards_in(text: str) -> tuple[str, ...]:
    """The guards in the tree that dynamo prints, without the managers that hold them."""
    return tuple(found.strip() for found in _GUARD.findall(text))


def _recompiled(mine: Compilation, record: TraceRecord) -> None:
    try:
        given = json_value(record.payload)
    except ValueError:
        given = record.payload
    reasons = given if isinstance(given, list) else [given]
    add_recompile(mine, (line for reason in reasons for line in str(reason).splitlines()), record.offset, mine.place)


def _metrics(mine: Compilation, record: TraceRecord) -> None:
    """Names, times and failures from the metrics of a compilation; those of the backward graph add to the times."""
    backward = record.kind.startswith("bwd")
    mine.function = mine.function or record.text("co_name")
    line = record.number("co_firstlineno")
    if record.text("co_filename") and not mine.place:
        mine.place = record.text("co_filename") + (f":{line:.0f}" if line is not None else "")
    for key, name in TIMES.items():
        seconds = record.number(key)
        if seconds:
            mine.seconds[f"{name} (backward)" if backward else name] = seconds
    if record.text("fail_type"):
        mine.failure = f"{record.text('fail_type')}: {record.text('fail_reason')}"
    if record.text("recompile_reason") and not mine.recompiles:
        add_recompile(mine, record.text("recompile_reason").splitlines(), record.offset, mine.place)
