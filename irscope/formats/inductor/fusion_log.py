"""The lines of Inductor's scheduler in a log: which nodes it tried to fuse, which it fused, and why not the others.

    ===== attempting fusion (1/10): 7 nodes =====
    fuse_nodes_once, candidates:
      SchedulerNode(name='op1'), Pointwise(['[64, 64]', 'origins=OrderedSet([relu])', 'stack_traces = {', '  File "m.py", line 16, ...
    cannot fuse op4 with op6: intermediate nodes between node1 & node2
    fusing op4 with op5
"""
from __future__ import annotations

import re
from dataclasses import dataclass, field

TAG = "fusion"
BEGINS = "===== attempting fusion (1/"
_NODE = re.compile(r"\s+(\w+)\(name='(op\d+)'\)(?:, (\w+)\(\['\[([0-9, ]{0,400})\]')?")
_ORIGINS = re.compile(r"origins=OrderedSet\(\[([^\]]*)\]\)")
_PLACE = re.compile(r'File "([^"]*)", line (\d+)')
_REFUSED = re.compile(r"cannot fuse (\w+) with (\w+): (.*)")
_SIZE = re.compile(r"\d{1,18}", re.ASCII)
_FUSED = re.compile(r"fusing (\w+) with (\w+)$")


@dataclass(frozen=True, slots=True)
class Candidate:
    """An initial scheduler node.

    ``kind`` is ``extern``, ``nop``, ``pointwise``, ``reduction`` or ``scatter``; ``sizes`` are those of the loops (of a reduction, of the
    reduced loops); ``origins`` the nodes of the traced graph, ``lines`` the places in the user's program.
    """

    name: str
    kind: str
    sizes: tuple[int, ...] = ()
    origins: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """Two scheduler nodes, and why they were not fused (None: they were).

    ``offset``: where the text says so; ``place``: the line of Inductor that decided it.
    """

    a: str
    b: str
    reason: str | None
    offset: int = -1
    place: str = ""


@dataclass(slots=True)
class FusionRun:
    """The fusion of one graph: the nodes of its first round, and all decisions in order."""

    compile_id: str = ""
    rank: str = ""
    candidates: list[Candidate] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    listing: bool = False

    def refusals(self) -> list[Decision]:
        """The refusals, each pair and reason once: later rounds repeat them."""
        found: dict[tuple[str, str, str | None], Decision] = {}
        for decision in self.decisions:
            if decision.reason is not None:
                found.setdefault((decision.a, decision.b, decision.reason), decision)
        return list(found.values())


def take(run: FusionRun, words: str, offset: int = -1, place: str = "") -> None:
    """Add one line of the scheduler to the run that it belongs to."""
    if words.startswith("fuse_nodes_once, candidates"):
        run.listing = not run.candidates
    elif words.startswith("  "):
        if run.listing and (candidate := _candidate(words)) is not None:
            run.candidates.append(candidate)
    elif (refused := _REFUSED.match(words)) is not None:
        run.decisions.append(Decision(refused[1], refused[2], refused[3], offset, place))
    elif (fused := _FUSED.match(words)) is not None:
        run.decisions.append(Decision(fused[1], fused[2], None, offset, place))


def _candidate(words: str) -> Candidate | None:
    found = _NODE.match(words)
    if found is None:
        return None
    node, name, loops, sizes = found.groups()
    if "Nop" in node:
        return Candidate(name, "nop")
    kind = "extern" if loops is None or "Extern" in node else "reduction" if "Reduction" in loops else loops.lower()
    origins = _ORIGINS.search(words)
    return Candidate(name, kind, tuple(map(int, _SIZE.findall(sizes or ""))),
                     tuple(o.strip() for o in origins[1].split(",")) if origins else (),
                     tuple(dict.fromkeys(f"{file}:{line}" for file, line in _PLACE.findall(words))))
