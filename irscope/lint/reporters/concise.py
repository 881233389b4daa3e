"""One line a finding: for editors and grep."""

from __future__ import annotations

from irscope.fusion import change_words
from irscope.lint.report import Report
from irscope.lint.reporters.full import statistics


def write(report: Report) -> str:
    """``file:line:col: severity[CODE]: message``, a line each, then the summary."""
    lines = [statistics(report)] if report.statistics and report.findings() else [finding.headline() for finding in report.findings()]
    for file in report.files:
        for edge in file.edges:
            if edge.is_told or report.pair is not None:
                verdict = edge.verdict
                where = f"{file.file}:{edge.place}" if edge.place else file.file
                why = verdict.reason or verdict.cause or (f"in {edge.kernel.describe()}" if edge.kernel is not None else "")
                ends = f"%{verdict.producer.name} -> %{verdict.consumer.name}"
                differ = f" (releases differ: {change_words(verdict.releases)})" if verdict.releases else ""
                lines.append(f"{where}: {verdict.graph.name}: {ends}: fused {verdict.fused}: {why}{differ}")
    return "\n".join([*lines, report.summary()])
