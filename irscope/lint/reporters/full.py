"""Findings with their line, carets, notes and help: for people."""

from __future__ import annotations

from collections.abc import Mapping

from irscope.fusion.plan import EdgeVerdict
from irscope.lint.report import FileReport, Report
from irscope.lint.savings import human_bytes
from irscope.lint.stages import Stages
from irscope.source import Finding, Severity

FIRST = 5
"""Findings for information that are shown of a file unless all are asked for: nobody reads fifty of them."""


def write(report: Report) -> str:
    """The report as plain text; the terminal colours it."""
    blocks = [statistics(report)] if report.statistics else [block for file in report.files for block in _findings(file, report.everything)]
    blocks += [_edges(file, report.policy, report.pair is not None) for file in report.files if report.policy]
    blocks.append(report.summary())
    return "\n\n".join(block for block in blocks if block)


def _findings(file: FileReport, everything: bool) -> list[str]:
    """Errors and warnings, and of what is information the first few: what would save most."""
    shown = [f for f in file.findings if f.severity > Severity.INFO]
    infos = [f for f in file.findings if f.severity is Severity.INFO]
    first = infos if everything else infos[:FIRST]
    blocks = [_finding(finding) for finding in (*shown, *first)]
    if len(first) < len(infos):
        blocks.append(f"{file.file}: {len(infos) - len(first)} more for information, which --all shows")
    return blocks


def statistics(report: Report) -> str:
    """A line a rule: how often it found something, in how many files, and what mending all of it would save."""
    lines = []
    for row in report.by_rule():
        saves = savings(row.saves)
        files = f"{row.files} file" + ("s" if row.files != 1 else "")
        lines.append(f"{row.count:6}  {row.code}  {row.name:<28} {row.severity!s:<8} {files}" + (f"  saves {saves}" if saves else ""))
    return "\n".join(lines)


def savings(saves: Mapping[str, float] | None) -> str:
    """``about 3 us (2 % of all), 12 KiB of traffic, 1 kernel``; the empty string where nothing is saved."""
    saves = saves or {}
    parts = []
    if saves.get("us"):
        share = f" ({100 * saves['share']:.2g} % of all)" if saves.get("share") else ""
        parts.append(f"about {saves['us']:.3g} us{share}")
    if saves.get("bytes"):
        parts.append(f"{human_bytes(saves['bytes'])} of traffic")
    if saves.get("kernels"):
        parts.append(f"{saves['kernels']:.0f} kernel{'s' if saves['kernels'] != 1 else ''}")
    return ", ".join(parts)


def _finding(finding: Finding) -> str:
    saves = savings(finding.saves)
    return finding.render() + (f"\n  saves: {saves}" if saves else "")


def _edges(file: FileReport, policy: str, asked: bool) -> str:
    """What was fused and what not: the unfused edges with their reasons, and an edge that was asked for whatever became of it."""
    shown: list[EdgeVerdict] = [e for e in file.edges if asked or e.fused != "all"]
    if asked:
        lines = [f"{file.file}: what became of it under {policy}"]
    else:
        lines = [f"{file.file}: {len(file.edges)} edges under {policy}, {len(shown)} of them not fused or not everywhere"]
    lines += [f"  note: {remark}" for remark in file.remarks]
    for told in file.stages:
        lines += ["", *_stages(told), ""]
    for edge in shown:
        lines.append(f"  %{edge.producer} -> %{edge.consumer}  fused: {edge.fused}  ({edge.computation})")
        if edge.reason:
            lines.append(f"      {policy} says: {edge.reason}")
        if edge.cause:
            lines.append(f"      because: {edge.cause}" + (f"  [{edge.rule}]" if edge.rule else ""))
        if edge.counterfactual:
            lines.append(f"      would fuse: {edge.counterfactual}")
        if edge.fused != "none" and asked:
            lines += [f"      {told}" for told in fused_into(file, edge, policy)]
    return "\n".join(lines)


def fused_into(file: FileReport, edge: EdgeVerdict, policy: str) -> list[str]:
    """For an edge that is fused: in which kernel, and what that means for the value in between."""
    kernel = file.kernels.get(edge)
    lines = [f"in {kernel.told()}" if kernel is not None else f"{policy} does not name the kernel of this edge"]
    if edge.fused == "some":
        return [*lines, f"%{edge.producer} is stored or computed again for its other readers"]
    if not edge.rule:
        lines.append(f"no rule of {policy} keeps them apart; the value in between is never stored for this reader")
    return lines


ROWS = ("dispatches", "kernel launches", "memory traffic", "estimated time")


def columns(told: Stages) -> list[list[str]]:
    """The table of what fusion is worth, row by row; the first row names the columns."""
    cells = [["", *(stage.name for stage in told.stages)]]
    for number, name in enumerate(ROWS):
        row = [name]
        for stage in told.stages:
            figures = (f"{stage.dispatches:,.0f}", f"{stage.launches:,.0f}", human_bytes(stage.traffic), f"{stage.us:,.3g} us")
            row.append(figures[number] if stage.us < 1e4 or number < 3 else f"{stage.us / 1e3:,.3g} ms")
        cells.append(row)
    return cells


def lifted(told: Stages) -> str:
    """Which fixes the last column has, in words."""
    return ", ".join(f"{code} {n} times" if n > 1 else code for code, n in told.lifted.items()) or "none that irscope can lift itself"


def _stages(told: Stages) -> list[str]:
    cells = columns(told)
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = [f"  on {told.machine}, fused by {told.policy}:"]
    for row in cells:
        name, *figures = [text.ljust(w) if i == 0 else text.rjust(w) for i, (text, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("    " + "  ".join([name, *figures]).rstrip())
    lines.append(f"    lifted: {lifted(told)}")
    return [*lines, *(f"    {source}" for source in told.sources)]
