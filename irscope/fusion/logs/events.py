"""A compiler's log of its fusion, as steps in order."""
from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Step:
    """One decision. ``made`` names what the two became (None: they stay apart, and ``words`` say why).

    ``consumer`` is empty where a producer is refused whatever reads it. ``times``: microseconds with and without the fusion, where the
    compiler estimates them.
    """

    producer: str
    consumer: str
    made: str | None = None
    words: str | None = None
    times: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that Inductor's scheduler began with.

    ``kind`` is ``extern``, ``nop``, ``pointwise``, ``reduction`` or ``scatter``; ``sizes`` those of the loops (of a reduction: of what is
    reduced); ``origins`` the nodes of the traced graph, ``lines`` the places in the user's program.
    """

    name: str
    kind: str
    sizes: tuple[int, ...] = ()
    origins: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(slots=True)
class FusionLog:
    """What was read of one run of a fusion pass. ``policy``: irscope's policy for the same compiler. ``name``: where the text came from.

    ``runs`` are the steps of each run that the text holds, in order: a process that compiles several programs writes one log.
    ``operations``: what each run of Inductor began with. ``device``: a target text of XLA inside the log, or the empty string.
    """

    policy: str
    name: str
    compiler: str
    runs: list[list[Step]] = field(default_factory=list)
    operations: list[list[Operation]] = field(default_factory=list)
    device: str = ""
