"""One line a finding: for editors and grep."""

from __future__ import annotations

from irscope.lint.report import Report
from irscope.lint.reporters.full import statistics


def write(report: Report) -> str:
    """``file:line:col: severity[CODE]: message``, a line each, then the summary."""
    lines = [statistics(report)] if report.statistics and report.findings() else [finding.headline() for finding in report.findings()]
    for file in report.files:
        for edge in file.edges:
            if edge.fused != "all" or report.pair is not None:
                kernel = file.kernels.get(edge)
                why = edge.reason or edge.cause or (f"in {kernel.told()}" if kernel is not None else "")
                lines.append(f"{file.file}: {edge.computation}: %{edge.producer} -> %{edge.consumer}: fused {edge.fused}: {why}")
    return "\n".join([*lines, report.summary()])
