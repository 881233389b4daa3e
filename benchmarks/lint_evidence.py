"""What lint claims of the programs in tests/lint/pairs, beside what was measured, and the page that tells both: docs/lint/evidence.md."""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import irscope
from irscope.analysis.scopes import scope_of
from irscope.graph import Module
from irscope.lint import Context, all_rules
from irscope.lint.collect import enough
from irscope.lint.run import lint_context
from irscope.lint.settings import Settings
from irscope.source import Finding, Severity

POLICIES = {"jax": "xla-cpu", "irscope": "irscope"}
"""Who ran a program, and the policy that lint judges it by."""
NOISE = 0.02
"""A gain below this share of the time is none: it is lint's own limit for a warning, and what one program differs by from run to run."""
MISSED = 0.10
"""A gain from this share on that nobody claimed is named on the page."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One pair under one engine: what lint says of the fault, and what both halves took, in microseconds.

    ``claims``: it says that mending the fault pays, as a warning or error that saves what lint holds for worth one.
    """

    name: str
    rule: str
    engine: str
    severity: str
    claimed_us: float
    claims: bool
    bad_us: float
    fixed_us: float

    @property
    def gain(self) -> float:
        """The share of the time that fell away."""
        return (self.bad_us - self.fixed_us) / self.bad_us

    @property
    def right(self) -> bool:
        """Whether the sign of a claimed gain is that of the measured one."""
        return self.gain >= NOISE


@dataclass(frozen=True, slots=True)
class Ranking:
    """One mix under one engine: stages by what lint says they cost, and by what mending each alone brought."""

    name: str
    engine: str
    bad_us: float
    told: tuple[tuple[str, float], ...]
    measured: tuple[tuple[str, float], ...]

    @property
    def right(self) -> bool:
        """Whether the first finding is one of the two that brought most."""
        return bool(self.told) and self.told[0][0] in [stage for stage, _ in self.measured[:2]]

    @property
    def large(self) -> list[tuple[str, bool]]:
        """The stages whose claim is large enough to be measured in this program, and whether mending them alone brought anything."""
        gains = dict(self.measured)
        return [(stage, gains[stage] > 0) for stage, us in self.told if us >= NOISE * self.bad_us]


def lint(path: Path, policy: str) -> tuple[Context, list[Finding]]:
    """All rules over a text of ours."""
    context = Context(irscope.load(path).module(), Settings(policy=policy, machine="cpu"))
    return context, lint_context(context, all_rules())


def saved_us(finding: Finding) -> float:
    """The estimated time that a finding says is saved."""
    return finding.saves["us"] if finding.saves else 0.0


def cells(folder: Path) -> list[Cell]:
    """Every pair under both engines."""
    found = []
    for name, row in json.loads((folder / "times.json").read_text())["pairs"].items():
        for engine, policy in POLICIES.items():
            context, findings = lint(folder / f"{name}.bad.hlo", policy)
            told = [f for f in findings if f.code == row["rule"]]
            first = max(told, key=lambda f: (f.severity, saved_us(f)), default=None)
            severity, us = (str(first.severity), saved_us(first)) if first is not None else ("", 0.0)
            claims = first is not None and first.severity > Severity.INFO and enough(context, us)
            found.append(Cell(name, row["rule"], engine, severity, us, claims, row[engine]["bad"], row[engine]["fixed"]))
    return found


def left_over(folder: Path) -> list[str]:
    """Pairs whose mended half still claims the fault's gain."""
    found = []
    for name, row in json.loads((folder / "times.json").read_text())["pairs"].items():
        for policy in POLICIES.values():
            context, findings = lint(folder / f"{name}.fixed.hlo", policy)
            if any(f.code == row["rule"] and f.severity > Severity.INFO and enough(context, saved_us(f)) for f in findings):
                found.append(f"{name} ({policy})")
    return found


def rankings(folder: Path) -> list[Ranking]:
    """Every mix under both engines."""
    found = []
    for name, row in json.loads((folder / "times.json").read_text())["mixes"].items():
        for engine, policy in POLICIES.items():
            context, findings = lint(folder / f"{name}.bad.hlo", policy)
            costs: dict[str, float] = {}
            for finding in findings:
                stage = _stage(context.module, finding, row["stages"])
                if stage and finding.code == row["stages"][stage] and finding.severity > Severity.INFO:
                    costs[stage] = costs.get(stage, 0.0) + saved_us(finding)
            times = row[engine]
            gains = [(stage, round(times["bad"] - times[stage], 1)) for stage in row["stages"]]
            told = sorted(((stage, us) for stage, us in costs.items() if us > 0), key=lambda one: -one[1])
            found.append(Ranking(name, engine, times["bad"], tuple(told), tuple(sorted(gains, key=lambda gain: -gain[1]))))
    return found


def _stage(module: Module, finding: Finding, stages: dict[str, str]) -> str:
    """The stage that a finding stands in, by the scope of its node or of whoever runs its graph; empty for none."""
    callers = {body.name: (node, graph) for graph in module.graphs.values() for node in graph.nodes for body in node.bodies}
    graph = next((g for g in module.graphs.values() if g.name == finding.graph), None)
    node = next((n for n in graph.nodes if n.name == finding.node), None) if graph is not None else None
    while node is not None and graph is not None:
        near = (node, *graph.users()[node.index])  # a constant stands in no scope, and who uses it does
        stage = next((part for one in near for part in scope_of(module, one) if part in stages), "")
        if stage:
            return stage
        node, graph = callers.get(graph.name, (None, None)) if graph is not None else (None, None)
    return ""


def page(root: Path) -> str:
    """docs/lint/evidence.md."""
    from benchmarks.lint_labels import section

    folder = root / "tests" / "lint" / "pairs"
    told: dict[str, Any] = json.loads((folder / "times.json").read_text())
    judged = section(root) if (root / "tests" / "lint" / "labels" / "printed.json").is_file() else []
    return "\n".join([*_pairs(told, cells(folder), left_over(folder)), *_mixes(rankings(folder)), *judged]) + "\n"


def _pairs(told: dict[str, Any], found: list[Cell], left: list[str]) -> list[str]:
    claimed = [cell for cell in found if cell.claims]
    right = [cell for cell in claimed if cell.right]
    wrong = [cell for cell in claimed if not cell.right]
    by_pair = {cell.name for cell in claimed}
    lines = [
        "# Evidence for the findings",
        "",
        "This page compares the findings of `irscope lint` with measured times and with verdicts of people. It is generated by",
        "`python benchmarks/lint_pairs.py table`, the times by `python benchmarks/lint_pairs.py write` and `time`, which need jax.",
        "",
        "## Timed pairs",
        "",
        f"{len(told['pairs'])} small programs with one fault, and the same without it, in `tests/lint/pairs` (from",
        f"`benchmarks/lint_programs`), run by jax {told['versions']['jax']} and by irscope on one thread: microseconds of CPU time on",
        f"{told['versions']['cpu']}. The claim is the saving that the fault's rule reports, with `--machine cpu`, under `--policy xla-cpu`",
        f"for jax and `--policy irscope` for irscope. A gain counts from {NOISE:.0%} of the time on.",
        "",
        f"**Of {len(claimed)} claims on {len(by_pair)} pairs {len(right)} have the right sign: {len(right) / max(1, len(claimed)):.1%}.**",
    ]
    lines += [f"Wrong: {', '.join(f'{c.name} ({c.engine})' for c in wrong)}."] if wrong else ["None is wrong."]
    quiet = [cell for cell in found if not cell.claims]
    missed = [cell for cell in quiet if cell.gain >= MISSED and cell.bad_us - cell.fixed_us >= 5]
    named = ", ".join(f"{c.name} ({c.engine}, {c.gain:.0%})" for c in missed)
    lines += [
        "",
        f"Of {len(quiet)} cells without a claim {len(quiet) - len(missed)} had a possible gain of less than {MISSED:.0%} or 5 us.",
        f"Gains not claimed: {named}.",
        "",
        f"The fixed programs still claim the gain in {len(left)} cases{': ' + ', '.join(left) if left else ''}.",
        "",
        "| pair | rule | what is wrong | jax: bad | fixed | claim | irscope: bad | fixed | claim |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    rows = {(cell.name, cell.engine): cell for cell in found}
    for name, row in sorted(told["pairs"].items(), key=lambda item: (item[1]["rule"], item[0])):
        parts = []
        for engine in POLICIES:
            cell = rows[name, engine]
            mark = ("yes" if cell.right else "**no**") if cell.claims else ""
            claim = f"{cell.claimed_us:.0f} {mark}" if cell.claims else (cell.severity or "none")
            parts += [f"{cell.bad_us:.1f}", f"{cell.fixed_us:.1f}", claim]
        lines.append(f"| {name} | {row['rule']} | {row['about']} | {' | '.join(parts)} |")
    lines += [
        "",
        "`claim` is the saving that lint reports, in microseconds, and whether it is real; `info` and `none` claim nothing, `warning` and",
        "`error` without a number concern results rather than time.",
        "",
    ]
    return lines


def _mixes(found: list[Ranking]) -> list[str]:
    right = [ranking for ranking in found if ranking.right]
    large = [(one, stage, good) for one in found for stage, good in one.large]
    wrong = [f"{stage} of {one.name} ({one.engine})" for one, stage, good in large if not good]
    lines = [
        "## Programs with several faults",
        "",
        "Each fault was fixed separately, and the program timed. The first finding is the one with the largest reported saving.",
        "",
        f"**In {len(right)} of {len(found)} runs the first finding has one of the two largest gains: {len(right) / len(found):.1%}.**",
        f"Of {len(large)} claims of at least {NOISE:.0%} of a program {len(large) - len(wrong)} have the right sign"
        + (f"; wrong: {', '.join(wrong)}." if wrong else "."),
        "",
        "| program | run by | findings, the costliest first | measured gains in us | first in the top two |",
        "|---|---|---|---|---|",
    ]
    for one in found:
        gains = ", ".join(f"{stage} {us:.0f}" for stage, us in one.measured)
        told = ", ".join(f"{stage} {us:.0f}" for stage, us in one.told) or "none"
        lines.append(f"| {one.name} | {one.engine} | {told} | {gains} | {'yes' if one.right else '**no**'} |")
    return [*lines, ""]
