"""What one run of the linter has to tell: the files, their findings, and the edges that were asked about."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from irscope.fusion.plan import EdgeVerdict
from irscope.source import Finding, Severity


@dataclass(slots=True)
class FileReport:
    """One file: its findings, and (with ``--why-not-fused``) the edges of its graphs. ``readable``: its own parser would take it.

    ``remarks`` say what a reader of the edges should know: how sure the policy is of this text.
    """

    file: str
    findings: list[Finding] = field(default_factory=list)
    edges: list[EdgeVerdict] = field(default_factory=list)
    readable: bool = True
    remarks: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """All files of a run, in the order given; ``policy`` names the fusion policy that judged the edges, if any was asked."""

    files: list[FileReport]
    policy: str = ""
    statistics: bool = False

    def findings(self) -> list[Finding]:
        """The findings of all files."""
        return [finding for file in self.files for finding in file.findings]

    def count(self) -> Counter[Severity]:
        """How many findings of each severity."""
        return Counter(finding.severity for finding in self.findings())

    def summary(self) -> str:
        """``3 findings (1 error, 2 warnings)``."""
        count = self.count()
        total = sum(count.values())
        if not total:
            return "no findings"
        parts = [f"{count[s]} {s}" + ("s" if count[s] != 1 and s is not Severity.INFO else "") for s in reversed(Severity) if count[s]]
        return f"{total} finding{'s' if total != 1 else ''} ({', '.join(parts)})"
