"""The findings on real graphs that somebody judged by hand: ``python benchmarks/lint_labels.py FOLDER...``.

The labels are in tests/lint/labels. Each ``*.toml`` lists graphs by name and the SHA-256 of their text, with a verdict and its reason for
every warning and error that lint prints of them, all rules selected, under the policies that are named. Texts that may be copied are in
tests/lint/labels/graphs; the others are looked for in the folders given. What was printed is recorded in printed.json, from which
docs/lint/evidence.md tells the precision; unlabelled findings are listed, and make the command fail.
"""
from __future__ import annotations

import hashlib
import json
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import irscope
from irscope.lint import all_rules, lint_reading
from irscope.lint.settings import Settings
from irscope.source import Severity

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "lint" / "labels"
ASKED = ("RLY030",)
"""Rules that judge nothing: the user asks for what they tell."""


@dataclass(frozen=True, slots=True)
class Label:
    """A verdict on one rule at some nodes of a graph; ``nodes`` empty: wherever the rule finds something in it."""

    rule: str
    nodes: tuple[str, ...]
    right: bool
    why: str


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph with its labels. ``text`` is the file in the repository, where it is one."""

    name: str
    sha256: str
    source: str
    policies: tuple[str, ...]
    labels: tuple[Label, ...]
    text: str = ""
    clean: str = ""

    def label(self, rule: str, node: str) -> Label | None:
        """The verdict on a finding; None where nobody judged it."""
        return next((one for one in self.labels if one.rule == rule and (not one.nodes or node in one.nodes)), None)


@dataclass(slots=True)
class Printed:
    """What lint said of a graph: (rule, node, severity), each once however many policies say it."""

    graph: Graph
    findings: list[tuple[str, str, str]] = field(default_factory=list)


def graphs() -> list[Graph]:
    """All labelled graphs."""
    return [_graph(row) for path in sorted(FOLDER.glob("*.toml")) for row in tomllib.loads(path.read_text(encoding="utf-8"))["graph"]]


def _graph(row: dict[str, Any]) -> Graph:
    labels = tuple(Label(v["rule"], tuple(v.get("nodes", ())), v["right"], v["why"]) for v in row.get("verdicts", ()))
    return Graph(row["name"], row["sha256"], row["source"], tuple(row["policies"]), labels, row.get("text", ""), row.get("clean", ""))


JUDGED = {"xla-cpu": "xla-cpu@0.10.2"}
"""The release of a policy that the verdicts are about."""


def printed(graph: Graph, path: Path) -> Printed:
    """What lint says of a graph now."""
    found = Printed(graph)
    for policy in graph.policies:
        reading = irscope.load(path)
        rules = [rule for rule in all_rules() if rule.code not in ASKED]
        for finding in lint_reading(reading, rules, Settings(policy=JUDGED.get(policy, policy))):
            row = (finding.code, finding.node, str(finding.severity))
            if finding.severity > Severity.INFO and row not in found.findings:
                found.findings.append(row)
    return found


def text_of(path: Path) -> bytes:
    """The text of a file, unpacked."""
    if path.suffix == ".gz":
        import gzip

        return gzip.decompress(path.read_bytes())
    return path.read_bytes()


def in_repository(graph: Graph) -> Path | None:
    """Where the repository has the text."""
    return ROOT / graph.text if graph.text else None


def section(root: Path) -> list[str]:
    """The part of docs/lint/evidence.md about labels."""
    told = json.loads((root / "tests" / "lint" / "labels" / "printed.json").read_text())
    known = {graph.name: graph for graph in graphs()}
    rules: dict[str, list[int]] = {}
    wrong: list[str] = []
    for name, findings in told.items():
        for rule, node, _ in findings:
            label = known[name].label(rule, node) if name in known else None
            if label is None:
                continue
            row = rules.setdefault(rule, [0, 0, 0])
            row[0] += label.right
            row[1] += 1
            if not label.right:
                wrong.append(f"- {rule} at `{node}` in {name}: {label.why}")
        for rule in {rule for rule, _, _ in findings}:
            rules[rule][2] += 1
    right, all_ = sum(row[0] for row in rules.values()), sum(row[1] for row in rules.values())
    names = {rule.code: rule.name for rule in all_rules()}
    lines = [
        "## Real graphs, reviewed by hand",
        "",
        f"{len(told)} graphs of real models: HLO that jax and keras print before and after XLA's passes, XLA's own benchmarks, TorchScript",
        "and Relay. For every warning and error of lint with all rules selected, a person read the graph and decided whether the finding",
        "is right and an engineer would act on it. The verdicts with their reasons are in `tests/lint/labels`; graphs that may not be",
        "copied are listed by name and SHA-256. `python benchmarks/lint_labels.py FOLDER...` lints them again.",
        "",
        f"**Of {all_} warnings and errors {right} are right: a precision of {right / max(1, all_):.3f}.**",
        f"{sum(1 for findings in told.values() if not findings)} of the graphs have none.",
        "",
        (root / "tests" / "lint" / "labels" / "held_out.txt").read_text(encoding="utf-8").strip(),
        "",
        "| rule | | right | of | precision | graphs |",
        "|---|---|---|---|---|---|",
    ]
    for rule, (good, both, where) in sorted(rules.items()):
        lines.append(f"| {rule} | {names.get(rule, '')} | {good} | {both} | {good / both:.2f} | {where} |")
    return [*lines, "", *(["Wrong are:", "", *sorted(wrong), ""] if wrong else [])]


def _files(folders: list[str]) -> Iterator[Path]:
    for folder in folders:
        path = Path(folder)
        yield from (p for p in (path.rglob("*") if path.is_dir() else [path]) if p.is_file())


def main() -> None:
    wanted = {graph.sha256: graph for graph in graphs()}
    places = {graph.sha256: path for graph in wanted.values() if (path := in_repository(graph)) is not None}
    for path in _files(sys.argv[1:]):
        digest = hashlib.sha256(text_of(path)).hexdigest()
        if digest in wanted:
            places.setdefault(digest, path)
    record = FOLDER / "printed.json"
    told: dict[str, Any] = json.loads(record.read_text()) if record.exists() else {}
    told = {name: findings for name, findings in told.items() if name in {graph.name for graph in wanted.values()}}
    missing = 0
    for digest, graph in wanted.items():
        if digest not in places:
            print(f"{graph.name}: not in the folders given")
            continue
        found = printed(graph, places[digest])
        told[graph.name] = sorted(found.findings)
        for rule, node, severity in found.findings:
            if graph.label(rule, node) is None:
                missing += 1
                print(f"label me: {graph.name}: {severity}[{rule}] {node}")
    record.write_text("{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(told[name])}" for name in sorted(told)) + "\n}\n")
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
