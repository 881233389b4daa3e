"""GitLab's code quality report, which merge requests show beside the changed lines."""

from __future__ import annotations

from collections import Counter

from irscope.lint.baseline import fingerprint
from irscope.lint.report import FileReport, Report
from irscope.lint.reporters.user_line import user_line
from irscope.source import Finding, Severity
from irscope.source.data_text import strict_json

LEVELS = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.INFO: "info"}


def write(report: Report) -> str:
    """A list of issues. Fingerprints are unique in a report, as GitLab wants them, and stay when a model is exported again."""
    seen: Counter[str] = Counter()
    issues = []
    for file in report.files:
        for finding in file.findings:
            print_ = f"{fingerprint(finding)}-{file.file}"
            issues.append(_issue(file, finding, print_, seen[print_]))
            seen[print_] += 1
    return strict_json(issues, indent=1)


def _issue(file: FileReport, finding: Finding, print_: str, earlier: int) -> dict[str, object]:
    place, user = finding.place(), user_line(finding)
    if user is not None and user.inside:
        path, line = user.file, user.line
    else:
        path, line = file.file, place.line if place else 1
    return {
        "description": f"{finding.code} {finding.name}: {finding.message}",
        "check_name": finding.code,
        "fingerprint": print_ + (f"-{earlier}" if earlier else ""),
        "severity": LEVELS[finding.severity],
        "location": {"path": path.removeprefix("./"), "lines": {"begin": line}},
    }
