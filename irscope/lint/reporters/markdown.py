"""A summary in markdown: for a job's summary page or a comment on a pull request."""

from __future__ import annotations

from irscope.fusion import change_words
from irscope.lint.edges import folded
from irscope.lint.proven.words import sentence
from irscope.lint.report import FileReport, Report
from irscope.lint.reporters.full import apart_words, columns, costs, lifted, savings
from irscope.source import Finding, Severity
from irscope.source.plural import plural
from irscope.source.visible import one_line, visible

MAX_ROWS = 100
"""The largest number of findings in a table: GitHub limits a summary to one megabyte."""
SIGNS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "info"}


def write(report: Report) -> str:
    """The result in one line, then one table for each file; clean files share one line."""
    blocks = ["## irscope", f"{plural(len(report.files), 'file')}, {report.summary()}."]
    blocks += [one_line(visible(f"{line}.")) for line in report.chosen()]
    if report.statistics and report.findings():
        blocks.append(_statistics(report))
    for file in report.files:
        if file.findings and not report.statistics:
            blocks += [f"### `{_code(file.file)}`", _table(file.findings)]
        if report.policy and file.edges:
            blocks.append(_edges(file, file.policy or report.policy, report.pair is not None))
    clean = [file.file for file in report.files if not file.findings]
    if clean and len(clean) < len(report.files):
        others = f" and {plural(len(clean) - 20, 'other')}" if len(clean) > 20 else ""
        blocks.append("No findings in " + ", ".join(f"`{_code(name)}`" for name in clean[:20]) + others + ".")
    return "\n\n".join(blocks)


def _statistics(report: Report) -> str:
    rows = ["| rule | | findings | files | saves |", "|---|---|---:|---:|---|"]
    rows += [f"| {r.code} {r.name} | {r.severity} | {r.count} | {r.files} | {savings(r.saves)} |" for r in report.by_rule()]
    return "\n".join(rows)


def _table(findings: list[Finding]) -> str:
    rows = ["| | rule | where | what | saves |", "|---|---|---|---|---|"]
    for finding in findings[:MAX_ROWS]:
        place = finding.place()
        where = finding.source_line or (f"line {place.line}" if place else "")
        node = f" `%{_code(finding.node)}`" if finding.node else ""
        what = _cell(finding.message) + (f"<br>{_cell(finding.help)}" if finding.help else "")
        rule = f"{finding.code} {finding.name}"
        rows.append(f"| {SIGNS[finding.severity]} | {rule} | {_cell(where)}{node} | {what} | {savings(finding.saves)} |")
    if len(findings) > MAX_ROWS:
        rows.append(f"| | | | and {len(findings) - MAX_ROWS} more | |")
    return "\n".join(rows)


def _edges(file: FileReport, policy: str, of_pair: bool) -> str:
    apart = [edge for group in folded(file.edges) for edge in group]
    rows = [f"{plural(len(file.edges), 'edge')} under {policy}, {apart_words(file.edges)}.", ""]
    if of_pair:
        apart = file.edges
    rows += ["| producer | consumer | fused | why | costs at most |", "|---|---|---|---|---|"] if apart else []
    for edge in apart[:MAX_ROWS]:
        verdict = edge.verdict
        why = _cell(verdict.reason or verdict.cause or (f"in {edge.kernel.describe()}" if edge.kernel is not None else ""))
        why += f"<br>releases differ: {change_words(verdict.releases)}" if verdict.releases else ""
        why += f"<br>fix: {_cell(sentence(edge.answer))}" if edge.answer is not None and edge.answer.fix is not None else ""
        ends = zip(verdict.names, edge.sources, strict=True)
        first, second = (f"`%{_code(name)}` {_cell(source)}".rstrip() for name, source in ends)
        rows.append(f"| {first} | {second} | {verdict.fused} | {why} | {costs([edge])} |")
    if len(apart) > MAX_ROWS:
        rows.append(f"| | | | and {len(apart) - MAX_ROWS} more | |")
    for worth in file.stages:
        head, *table = columns(worth)
        rows += ["", f"On {_cell(worth.machine)}; lifted: {lifted(worth)}.", "", "| " + " | ".join(head) + " |"]
        rows += ["|---|" + "---:|" * (len(head) - 1), *("| " + " | ".join(row) + " |" for row in table)]
    return "\n".join(rows).rstrip()


def _cell(text: str) -> str:
    """Text from an untrusted file, escaped for a cell: no markup, no new column, no new row."""
    text = visible(text)
    for sign in ("\\", "`", "*", "_", "[", "]", "|"):
        text = text.replace(sign, "\\" + sign)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\n", "<br>")


def _code(text: str) -> str:
    return one_line(text).replace("`", "'").replace("|", "\\|")
