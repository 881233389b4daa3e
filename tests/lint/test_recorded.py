"""What every rule finds in the samples and in a few small nets is recorded: a change of a rule shows as a change of that file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.lint_counts import findings_of

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "samples", ROOT / "tests" / "lint" / "patterns")


def test_findings_are_as_recorded(golden: Callable[[str, str], None]) -> None:
    """``make golden`` writes them anew; read the diff."""
    lines = []
    for folder in FOLDERS:
        for path in sorted(folder.iterdir()):
            found = findings_of(str(path)) if path.suffix in (".hlo", ".txt", ".relay") else None
            for policy, finding in found[2] if found is not None else ():
                saves = (finding.saves or {}).get("kernels", 0)
                kernels = f", saves {saves:.0f} kernels" if saves else ""
                lines.append(f"{path.name}: {finding.severity}[{finding.code}] {finding.node or '-'} under {policy}{kernels}")
    golden("findings.txt", "\n".join(sorted(lines)) + "\n")
