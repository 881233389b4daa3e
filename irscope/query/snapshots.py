"""The snapshots of a log of passes: which pass each stands before or behind, and which of them a user means."""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from irscope.formats.marks import marks
from irscope.formats.relay.attributes import RelayModule
from irscope.graph import Module, Reading
from irscope.source import UserError, did_you_mean


@dataclass(slots=True)
class Snapshot:
    """One module of a log. ``came`` and ``went`` are the operators by which it differs from the one before."""

    number: int
    module: Module
    when: str
    name: str
    came: Counter[str] = field(default_factory=Counter)
    went: Counter[str] = field(default_factory=Counter)

    @property
    def words(self) -> str:
        """``after FoldConstant``."""
        return f"{self.when} {self.name}".strip()


def snapshots(reading: Reading) -> list[Snapshot]:
    """The snapshots of a text, in order, from 1; empty where it is no log of passes."""
    found: list[Snapshot] = []
    before: Counter[str] = Counter()
    behind = 0
    for number, module in enumerate(reading.modules, start=1):
        among = RelayModule.of(module).snapshot or _mark_before(module, behind)
        if among is None:
            return []
        behind = max((n.loc for g in module.graphs.values() for n in g.nodes), default=behind)
        ops = Counter(node.op.name for graph in module.graphs.values() for node in graph.shown())
        came, went = (ops - before, before - ops) if found else (Counter[str](), Counter[str]())
        found.append(Snapshot(number, module, among[0], among[1], came, went))
        before = ops
    return found


def _mark_before(module: Module, behind: int) -> tuple[str, str] | None:
    """What the line of a log says that stands in front of a module, behind the one before."""
    begin = min((g.loc for g in module.graphs.values() if g.loc >= 0), default=-1)
    found = list(marks(module.source.text, behind, begin)) if begin > behind else []
    return (found[-1].when, found[-1].name) if found else None


def find(among: list[Snapshot], wanted: str) -> tuple[Snapshot | None, Snapshot]:
    """What a pass got and what it gave, by its name; or the snapshot of a number, and what it is compared with. Raises UserError.

    Where a log has the modules before passes alone, what a pass gave is what the next one got.
    """
    if wanted.isdecimal() and len(wanted) < 10:
        if not 1 <= int(wanted) <= len(among):
            raise UserError(f"there is no snapshot {wanted}", f"they are 1 to {len(among)}" if among else "the text is no log of passes")
        shown = among[int(wanted) - 1]
        return _base(among, shown), shown
    named = [s for s in among if wanted in (s.name, s.words)]
    if not named:
        names = list(dict.fromkeys(s.name for s in among))
        help = did_you_mean(wanted, names) or ("there are " + ", ".join(names) if names else "the text is no log of passes")
        raise UserError(f"there is no snapshot of the pass {wanted}", help)
    first = named[0]
    shown = next((s for s in named if s.when != "before"), None) or first
    if shown.when == "before" and wanted == first.name and first.number < len(among):
        return first, among[first.number]
    return _base(among, shown), shown


def _base(among: list[Snapshot], shown: Snapshot) -> Snapshot | None:
    """What a snapshot is compared with: what the same pass got, though others ran inside it; else the one printed before it."""
    for earlier in reversed(among[:shown.number - 1]):
        if shown.when == "after" and earlier.name == shown.name:
            if earlier.when == "before":
                return earlier
            break
    return among[shown.number - 2] if shown.number > 1 else None


def picked(reading: Reading, wanted: str | None) -> Module:
    """The module of a reading: the first, or the snapshot of a pass that is named. Raises UserError."""
    return reading.module() if wanted is None else find(snapshots(reading), wanted)[1].module
