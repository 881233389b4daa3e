"""What a campaign has found so far, on disk: it goes on where it was stopped. A change of irscope restarts the counts of what it touches."""
from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.fuzz.coverage import ROOT, unit
from tests.fuzz.entry import DEEP
from tests.fuzz.judge import Judged
from tests.grid.state import tree_hash

GOAL = 1_000_000
"""Inputs that are to be without a defect in a row."""
DEEP_GOAL = 300_000
"""So many of them are to be read soundly and carried through a rule, policy, pass, drawing or run."""
HOURS = 4.0
"""CPU time that a campaign takes at least."""
RECORD = Path(__file__).parent / "campaign.json"
"""The counts of the repository: a campaign in a new folder goes on from them."""


def units(folder: Path = ROOT) -> dict[str, str]:
    """A hash of the content of each folder of irscope, and of each file of ``cli``."""
    found: dict[str, list[int]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(folder).as_posix()
            found.setdefault(unit(name), []).append(zlib.crc32(name.encode() + b"\0" + path.read_bytes()))
    return {name: f"{zlib.crc32(repr(parts).encode()):08x}" for name, parts in found.items()}


class State:
    """A folder: ``state.json`` with the counts, ``corpus`` and ``known.txt`` for the workers, ``defects``, ``report.md``.

    Inputs are counted by cell: the kind of command line and the format of the main file. ``total`` and ``deep_total`` count all inputs ever;
    ``clean`` and ``deep`` those since the last defect in that cell, and since the last change of a folder that the cell uses. ``rooms`` says which
    those are, as measured.
    """

    def __init__(self, folder: Path, record: Path = RECORD) -> None:
        self.folder, self._record = folder, record
        for part in (folder, folder / "corpus", folder / "defects", folder / "replay"):
            part.mkdir(parents=True, exist_ok=True)
        saved = self._saved()
        self.total, self.clean, self.deep, self.deep_total = (Counter(saved.get(name, {})) for name in ("total", "clean", "deep", "deep_total"))
        self.statuses: Counter[str] = Counter(saved.get("statuses", {}))
        self.seconds: dict[str, float] = saved.get("seconds", {})
        self.defects: dict[str, dict[str, Any]] = saved.get("defects", {})
        self.rooms: dict[str, set[str]] = {name: set(found) for name, found in saved.get("rooms", {}).items()}
        self.cpu: float = saved.get("cpu", 0.0)
        self.units = units()
        self.tree = tree_hash(ROOT)
        self.restarted = self.restart(saved.get("units", self.units))
        self._lines = folder / "known.txt"
        if saved.get("tree") != self.tree or not self._lines.exists():
            self._begin_again()
        self.known = set(self._lines.read_text().splitlines())
        """Lines and features that have been reached; none when irscope is another than before."""

    def _saved(self) -> dict[str, Any]:
        """What the folder has, or a new one takes from the repository: the counts, and no defects, whose inputs are not there."""
        for path in (self.folder / "state.json", self._record):
            if path.exists():
                saved: dict[str, Any] = json.loads(path.read_text())
                return saved
        return {}

    def record(self) -> None:
        """Keep the counts in the repository, as they are for the irscope of today."""
        self.write()
        saved = json.loads((self.folder / "state.json").read_text())
        self._record.write_text(json.dumps({**saved, "defects": {}}, sort_keys=True, indent=1) + "\n")

    def restart(self, before: Mapping[str, str]) -> list[str]:
        """Count again from zero the cells that use a folder whose content is another than ``before``; the names of those cells."""
        changed = {name for name in self.units.keys() | before.keys() if self.units.get(name) != before.get(name)}
        names = [name for name in self.clean if not self.rooms.get(name) or self.rooms[name] & changed] if changed else []
        for name in names:
            self.clean[name] = self.deep[name] = 0
        return sorted(names)

    def _begin_again(self) -> None:
        """Lines have moved, defects may be gone: what the corpus and the defects' inputs show now is found by running them first."""
        self._lines.write_text("")
        for path in (self.folder / "defects").iterdir():
            path.replace(self.folder / "replay" / path.name)
        self.defects = {}

    def add(self, kind: str, format: str, judged: Judged, bad: bool) -> None:
        """Count an input of a kind and a format."""
        deep, cell = judged.outcome.deep, cell_of(kind, format)
        self.total[cell] += 1
        self.deep_total[cell] += deep
        self.clean[cell] = 0 if bad else self.clean[cell] + 1
        self.deep[cell] = 0 if bad else self.deep[cell] + deep
        self.statuses[f"{kind} {judged.outcome.status}"] += 1
        self.seconds[kind] = self.seconds.get(kind, 0.0) + judged.outcome.seconds
        if judged.rooms:
            self.rooms.setdefault(cell, set()).update(judged.rooms)

    def learn(self, reached: frozenset[str]) -> bool:
        """Whether lines or features are new; they are known from now on."""
        new = reached - self.known
        if new:
            self.known |= new
            with open(self._lines, "a") as file:
                file.writelines(line + "\n" for line in sorted(new))
        return bool(new)

    def keep(self, name: str, defect: str, why: str, data: bytes) -> bool:
        """Keep the smallest input of each defect; whether it is a new one."""
        known = self.defects.setdefault(defect, {"count": 0, "kind": name, "size": 1 << 60, "file": _file_name(defect)})
        known["count"] += 1
        if len(data) < known["size"]:
            known["size"] = len(data)
            (self.folder / "defects" / f"{known['file']}.case").write_bytes(data)
            (self.folder / "defects" / f"{known['file']}.txt").write_text(f"{defect}\n\n{why}\n", errors="replace")
        return bool(known["count"] == 1)

    def line(self) -> str:
        """How far the campaign is."""
        return (f"{self.total.total()} inputs, {self.cpu:.0f} s of CPU time, {len(self.known)} lines and messages; clean: {self.clean.total()}, "
                f"of them deep: {self.deep.total()}; defects: {len(self.defects)}")

    def write(self) -> None:
        """Keep all of it."""
        saved = {"tree": self.tree, "units": self.units, "total": self.total, "clean": self.clean, "deep": self.deep, "deep_total": self.deep_total,
                "statuses": self.statuses, "seconds": {name: round(value, 2) for name, value in self.seconds.items()}, "cpu": round(self.cpu, 1),
                "defects": self.defects, "rooms": {name: sorted(used) for name, used in self.rooms.items()}}
        new = self.folder / "state.new"
        new.write_text(json.dumps(saved, indent=1))
        new.replace(self.folder / "state.json")
        (self.folder / "report.md").write_text("\n".join(self.report()) + "\n")

    @property
    def done(self) -> bool:
        """Whether the goals are reached."""
        return self.clean.total() >= GOAL and self.deep.total() >= DEEP_GOAL and self.cpu >= HOURS * 3600

    def report(self) -> list[str]:
        """The figures, as a page."""
        corpus = sum(1 for _ in (self.folder / "corpus").glob("*.case"))
        lines = [
            "# Fuzzing", "",
            f"Content of `irscope/`: {self.tree[:12]}. {self.total.total():,} inputs in {self.cpu:,.0f} s of CPU time "
            f"({self.total.total() / max(self.cpu, 1e-9):.0f} a second), {corpus} in the corpus.", "",
            f"Since the last defect, or the last change of what they use: {self.clean.total():,} of {GOAL:,} inputs, of which {self.deep.total():,} "
            f"of {DEEP_GOAL:,} were read soundly and carried through a rule, policy, pass, drawing or run.", "",
            "| command line | inputs | clean | deep | deep and clean | status 0 / 1 / 2 / other | ms | rooms |", "|---|---|---|---|---|---|---|---|",
        ]
        total, clean, deep_total, deep = (by_kind(counts) for counts in (self.total, self.clean, self.deep_total, self.deep))
        for name in sorted(total, key=lambda n: (n not in DEEP, n)):
            ends = [self.statuses[f"{name} {status}"] for status in (0, 1, 2)]
            other = total[name] - sum(ends)
            rooms = sorted({room.partition("/")[0] for cell, used in self.rooms.items() if cell.partition(": ")[0] == name for room in used} - {"cli"})
            lines.append(f"| {name} | {total[name]} | {clean[name]} | {deep_total[name]} | {deep[name]} | {' / '.join(map(str, (*ends, other)))} | "
                         f"{1000 * self.seconds.get(name, 0) / total[name]:.1f} | {', '.join(rooms)} |")
        formats: Counter[str] = Counter()
        for cell, count in self.clean.items():
            formats[cell.partition(": ")[2]] += count
        lines += ["", "Clean inputs by the format of their main file: " + ", ".join(f"{name} {count:,}" for name, count in formats.most_common()) + "."]
        lines += ["", f"## Defects ({len(self.defects)})", "", "| what and where | inputs | command line | file |", "|---|---|---|---|"]
        lines += [f"| {name.replace('|', '/')} | {found['count']} | {found['kind']} | defects/{found['file']}.case |"
                  for name, found in sorted(self.defects.items(), key=lambda item: -item[1]["count"])]
        return lines


def cell_of(kind: str, format: str) -> str:
    """The cell that an input is counted in."""
    return f"{kind}: {format}"


def by_kind(counts: Mapping[str, int]) -> Counter[str]:
    """Counts of cells, added up for each kind of command line."""
    found: Counter[str] = Counter()
    for cell, count in counts.items():
        found[cell.partition(": ")[0]] += count
    return found


def _file_name(defect: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", defect).strip("-")[:70] + f"-{zlib.crc32(defect.encode()) & 0xFFFF:04x}"
