"""A compiler's log of its fusion, as a sequence of steps."""
from __future__ import annotations

from dataclasses import dataclass, field

from irscope.formats.inductor.fusion_log import Candidate


@dataclass(frozen=True, slots=True)
class LoggedStep:
    """One decision. ``made`` is the name of the fused result (None: not fused, and ``words`` say why).

    ``consumer`` is empty if a producer is refused for every user. ``times``: microseconds with and without the fusion, if the
    compiler estimates them.
    """

    producer: str
    consumer: str
    made: str | None = None
    words: str | None = None
    times: tuple[float, float] | None = None


@dataclass(slots=True)
class FusionLog:
    """The log of a fusion pass. ``policy``: irscope's policy for the same compiler. ``name``: the source of the text.

    ``runs`` are the steps of each run in the text, in order: a process that compiles several programs writes one log.
    ``operations``: the initial operations of each run of Inductor. ``device``: an XLA target text inside the log, or the empty string.
    """

    policy: str
    name: str
    compiler: str
    runs: list[list[LoggedStep]] = field(default_factory=list)
    operations: list[list[Candidate]] = field(default_factory=list)
    device: str = ""
