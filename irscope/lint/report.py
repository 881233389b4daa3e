"""The result of one run of the linter: the files, their findings, and the requested edges."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from irscope.lint.edges import Edge
from irscope.lint.stages import Stages
from irscope.source import Finding, Severity


@dataclass(slots=True)
class FileReport:
    """One file: its findings, and (with ``--why-not-fused``) the edges of its graphs. ``readable``: its own parser would take it.

    ``remarks`` say what a reader of the edges should know: how sure the policy is of this text. ``stages`` tell, module by module, what
    fusion is worth. ``policy`` is the policy whose kernels findings and edges are about, with the release that it follows; ``why`` is
    what in the text chose it (empty: it was named). ``skipped`` says why rules or policies did not look at the text. Findings of
    ``fail_on`` and above make the run fail.
    """

    file: str
    findings: list[Finding] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    readable: bool = True
    remarks: list[str] = field(default_factory=list)
    stages: list[Stages] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    policy: str = ""
    why: str = ""
    fail_on: Severity = Severity.WARNING

    @property
    def fails(self) -> bool:
        """Whether a finding is bad enough to fail the run."""
        return any(finding.severity >= self.fail_on for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Statistic:
    """The findings of one rule in all files: how many, in how many files, and what fixing them would save."""

    code: str
    name: str
    severity: Severity
    count: int
    files: int
    saves: dict[str, float]


@dataclass(slots=True)
class Report:
    """All files of a run, in the order given; ``policy`` names the fusion policy that judged the edges, if any was asked.

    ``statistics``: the findings are counted by rule. ``everything``: reports for people hold all facts in full, not the costliest alone.
    ``pair``: the two nodes whose edge alone was asked for.
    """

    files: list[FileReport]
    policy: str = ""
    statistics: bool = False
    everything: bool = False
    pair: tuple[str, str] | None = None

    def chosen(self) -> list[str]:
        """A line for each policy that a text chose: ``policy xla-cpu@jaxlib-0.12.0.1: an HLO module, and nothing in it shows a GPU``."""
        files: dict[str, list[str]] = {}
        for file in self.files:
            if file.why:
                files.setdefault(f"policy {file.policy}: {file.why}", []).append(file.file)
        if len(files) == 1:
            return list(files)
        return [f"{line} ({names[0] if len(names) == 1 else f'{len(names)} files'})" for line, names in files.items()]

    def findings(self) -> list[Finding]:
        """The findings of all files."""
        return [finding for file in self.files for finding in file.findings]

    def count(self) -> Counter[Severity]:
        """How many findings of each severity."""
        return Counter(finding.severity for finding in self.findings())

    def by_rule(self) -> list[Statistic]:
        """The rules that found something, those that would save most first, then the most frequent."""
        found: dict[str, list[tuple[str, Finding]]] = {}
        for file in self.files:
            for finding in file.findings:
                found.setdefault(finding.code, []).append((file.file, finding))
        rows = []
        for code, rows_of in found.items():
            saves = {key: round(sum((f.saves or {}).get(key, 0.0) for _, f in rows_of), 3) for key in ("us", "bytes", "kernels")}
            worst = max(f.severity for _, f in rows_of)
            rows.append(Statistic(code, rows_of[0][1].name, worst, len(rows_of), len({file for file, _ in rows_of}), saves))
        return sorted(rows, key=lambda row: (-row.saves["us"], -row.count, row.code))

    def summary(self) -> str:
        """``3 findings (1 error, 2 warnings)``."""
        count = self.count()
        total = sum(count.values())
        if not total:
            return "no findings"
        parts = [f"{count[s]} {s}" + ("s" if count[s] != 1 and s is not Severity.INFO else "") for s in reversed(Severity) if count[s]]
        return f"{total} finding{'s' if total != 1 else ''} ({', '.join(parts)})"
