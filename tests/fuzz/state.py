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


def units(folder: Path = ROOT) -> dict[str, str]:
    """A hash of the content of each room, and of each file of ``cli``."""
    found: dict[str, list[int]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(folder).as_posix()
            found.setdefault(unit(name), []).append(zlib.crc32(name.encode() + b"\0" + path.read_bytes()))
    return {name: f"{zlib.crc32(repr(parts).encode()):08x}" for name, parts in found.items()}


class State:
    """A folder: ``state.json`` with the counts, ``corpus`` and ``known.txt`` for the workers, ``defects``, ``report.md``.

    ``formats`` counts clean inputs by format. ``total`` counts all inputs ever, by kind of command line; ``clean`` and ``deep`` those since the last defect of that kind, and since the
    last change of a room that it uses. ``rooms`` says which those are, as measured.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for part in (folder, folder / "corpus", folder / "defects", folder / "replay"):
            part.mkdir(parents=True, exist_ok=True)
        saved = self._told()
        self.total, self.clean, self.deep, self.deep_total = (Counter(saved.get(name, {})) for name in ("total", "clean", "deep", "deep_total"))
        self.formats: Counter[str] = Counter(saved.get("formats", {}))
        self.statuses: Counter[str] = Counter(saved.get("statuses", {}))
        self.seconds: dict[str, float] = saved.get("seconds", {})
        self.defects: dict[str, dict[str, Any]] = saved.get("defects", {})
        self.rooms: dict[str, set[str]] = {name: set(found) for name, found in saved.get("rooms", {}).items()}
        self.cpu: float = saved.get("cpu", 0.0)
        self.units = units()
        self.tree = tree_hash(ROOT)
        self.restarted = self.restart(saved.get("units", self.units))
        self._lines = folder / "known.txt"
        if saved.get("tree") != self.tree:
            self._begin_again()
        self.known = set(self._lines.read_text().splitlines())
        """Lines and features that have been reached; none when irscope is another than before."""

    def _told(self) -> dict[str, Any]:
        try:
            saved: dict[str, Any] = json.loads((self.folder / "state.json").read_text())
            return saved
        except (OSError, ValueError):
            return {}

    def restart(self, before: Mapping[str, str]) -> list[str]:
        """Count again from zero the kinds that use a room whose content is another than ``before``; the names of those kinds."""
        changed = {name for name in self.units.keys() | before.keys() if self.units.get(name) != before.get(name)}
        names = [name for name in self.clean if not self.rooms.get(name) or self.rooms[name] & changed] if changed else []
        for name in names:
            self.clean[name] = self.deep[name] = 0
        if "formats" in changed:
            self.formats.clear()
        return sorted(names)

    def _begin_again(self) -> None:
        """Lines have moved, defects may be gone: what the corpus and the defects' inputs show now is found by running them first."""
        self._lines.write_text("")
        for path in (self.folder / "defects").iterdir():
            path.replace(self.folder / "replay" / path.name)
        self.defects = {}

    def add(self, name: str, format: str, judged: Judged, bad: bool) -> None:
        """Count an input of a kind and a format."""
        deep = judged.outcome.deep
        self.total[name] += 1
        self.deep_total[name] += deep
        self.clean[name] = 0 if bad else self.clean[name] + 1
        self.deep[name] = 0 if bad else self.deep[name] + deep
        self.formats[format] = 0 if bad else self.formats[format] + 1
        self.statuses[f"{name} {judged.outcome.status}"] += 1
        self.seconds[name] = self.seconds.get(name, 0.0) + judged.outcome.seconds
        if judged.rooms:
            self.rooms.setdefault(name, set()).update(judged.rooms)

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
                "formats": self.formats, "statuses": self.statuses, "seconds": {name: round(value, 2) for name, value in self.seconds.items()}, "cpu": round(self.cpu, 1),
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
        for name in sorted(self.total, key=lambda n: (n not in DEEP, n)):
            ends = [self.statuses[f"{name} {status}"] for status in (0, 1, 2)]
            other = self.total[name] - sum(ends)
            lines.append(f"| {name} | {self.total[name]} | {self.clean[name]} | {self.deep_total[name]} | {self.deep[name]} | "
                         f"{' / '.join(map(str, (*ends, other)))} | {1000 * self.seconds.get(name, 0) / self.total[name]:.1f} | "
                         f"{', '.join(sorted(u for u in self.rooms.get(name, ()) if '/' not in u))} |")
        lines += ["", "Clean inputs by the format of their main file, since the last defect in one of that format and the last change of the formats:",
                  ", ".join(f"{name} {count:,}" for name, count in self.formats.most_common()) + "."]
        lines += ["", f"## Defects ({len(self.defects)})", "", "| what and where | inputs | command line | file |", "|---|---|---|---|"]
        lines += [f"| {name.replace('|', '/')} | {found['count']} | {found['kind']} | defects/{found['file']}.case |"
                  for name, found in sorted(self.defects.items(), key=lambda item: -item[1]["count"])]
        return lines


def _file_name(defect: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", defect).strip("-")[:70] + f"-{zlib.crc32(defect.encode()) & 0xFFFF:04x}"
