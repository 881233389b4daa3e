"""Findings with their line, carets, notes and help: for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irscope.fusion import change_words
from irscope.lint.baseline import fingerprint
from irscope.lint.edges import Edge, folded
from irscope.lint.proven.words import answer_lines
from irscope.lint.report import FileReport, Report
from irscope.lint.savings import human_bytes, human_us
from irscope.lint.stages import Stages
from irscope.source import Finding, Level, Severity
from irscope.source.plural import plural

FIRST = 10
"""Facts that are shown of a file, in a line each, unless all are requested."""
EDGES = 20
"""Kinds of unfused edges that are shown of a file unless all are asked for, the costliest first."""
LIKE = 3
"""Edges or findings of one kind that are named beside the first."""


def write(report: Report) -> str:
    """The report as plain text; the terminal colours it."""
    found = [statistics(report)] if report.statistics else [block for file in report.files for block in _findings(file, report.everything)]
    blocks = ["\n".join(report.chosen()), *found]
    of_pair = report.pair is not None
    blocks += [_edges(file, file.policy or report.policy, report.everything, of_pair) for file in report.files if report.policy]
    blocks.append(report.summary())
    return "\n\n".join(block for block in blocks if block)


def _findings(file: FileReport, everything: bool) -> list[str]:
    """Errors and costs in full, and the costliest facts in one line each. Equal findings, as in the layers of a model, are merged."""
    groups = [[finding] for finding in file.findings] if everything else alike(file.findings)
    shown = groups if everything else [group for group in groups if group[0].level is not Level.FACT]
    blocks = [_finding(group[0]) + _others(group) for group in shown]
    if not everything:
        blocks += _facts(file, [group for group in groups if group[0].level is Level.FACT])
    return blocks + [f"note: {why}" for why in file.skipped]


def _facts(file: FileReport, groups: Sequence[Sequence[Finding]]) -> list[str]:
    """The facts that cost most, a line each, as one block; nothing without any."""
    if not groups:
        return []
    ranked = sorted(groups, key=lambda group: (-_us(group), -sum((finding.costs or {}).get("us", 0.0) for finding in group)))
    lines = [_fact(group) for group in ranked[:FIRST]]
    left = sum(len(group) for group in ranked[FIRST:])
    more = [f"{file.file}: {left} more {'fact' if left == 1 else 'facts'}: --facts"] if left else []
    return ["\n".join([*lines, *more])]


def _fact(group: Sequence[Finding]) -> str:
    """``m.hlo:7:3: info[FUS021]: ... (saves 0 us of 108 us)``: what a change saves of the time of its kernels, where they are known."""
    saved = [finding.saves["us"] for finding in group if finding.saves is not None]
    spent = [finding.costs["us"] for finding in group if finding.costs is not None]
    parts = [f"saves {_sum_words(saved, group)}"] if saved else []
    parts += [f"{'of' if saved else 'in kernels of'} {_sum_words(spent, group)}"] if spent else []
    worth = [" ".join(parts)] if parts else []
    worth += [f"{len(group)} times"] if len(group) > 1 else []
    return group[0].headline() + (f" ({'; '.join(worth)})" if worth else "")


def _sum_words(times: Sequence[float], group: Sequence[Finding]) -> str:
    """A sum over findings of which some may be unknown."""
    return ("at least " if len(times) < len(group) else "") + human_us(sum(times))


def alike(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Findings of one rule about equal operators together; the worst first, then what saves most in all."""
    found: dict[tuple[Severity, str], list[Finding]] = {}
    for finding in findings:
        found.setdefault((finding.severity, fingerprint(finding)), []).append(finding)
    return sorted(found.values(), key=lambda group: (-group[0].severity, -_us(group)))


def _us(findings: Sequence[Finding]) -> float:
    return sum((finding.saves or {}).get("us", 0.0) for finding in findings)


def _others(group: Sequence[Finding]) -> str:
    """The other places of the same finding, and what fixing all of them would save."""
    if len(group) == 1:
        return ""
    names = ", ".join(f"%{finding.node}" for finding in group[1 : 1 + LIKE])
    more = f" and {len(group) - 1 - LIKE} more" if len(group) - 1 > LIKE else ""
    us = _us(group)
    return f"\n  {len(group)} times: also at {names}{more}" + (f"; about {human_us(us)} in all" if us else "")


def statistics(report: Report) -> str:
    """One line for each rule: the number of its findings and of their files, and what fixing all of them would save."""
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
        percent = 100 * saves.get("share", 0.0)
        share = f" ({percent:{'.0f' if percent >= 9.5 else '.2g'}} % of all)" if percent else ""
        parts.append(f"about {human_us(saves['us'])}{_range(saves)}{share}")
    if saves.get("bytes"):
        parts.append(f"{human_bytes(saves['bytes'])} of traffic")
    if saves.get("kernels"):
        parts.append(f"{saves['kernels']:.0f} kernel{'s' if saves['kernels'] != 1 else ''}")
    return ", ".join(parts)


def _range(saves: Mapping[str, float]) -> str:
    """``, 1.5 to 10 us,``: the range of the time, where it is known."""
    if not saves.get("us_most"):
        return ""
    return f", {human_us(saves['us_least'])} to {human_us(saves['us_most'])}"


def _finding(finding: Finding) -> str:
    saves, cost = savings(finding.saves), savings(finding.costs)
    worth = finding.render() + (f"\n  costs: {cost}" if cost else "")
    if finding.level is Level.FACT and finding.saves is not None and not saves:
        saves = "nothing"
    return worth + (f"\n  saves: {saves}" if saves else "")


def _edges(file: FileReport, policy: str, everything: bool, of_pair: bool) -> str:
    """The unfused edges with their reasons, or the edge that the user asked for, fused or not."""
    groups = [[edge] for edge in file.edges] if of_pair else folded(file.edges)
    if of_pair:
        lines = [f"{file.file}: what became of it under {policy}"]
    else:
        lines = [f"{file.file}: {plural(len(file.edges), 'edge')} under {policy}, {apart_words(file.edges)}"]
    lines += [f"  note: {remark}" for remark in file.remarks]
    for worth in file.stages:
        lines += ["", *_stages(worth), ""]
    shown = groups if everything or of_pair else [
        group for number, group in enumerate(groups) if number < EDGES or group[0].verdict.releases]
    for group in shown:
        lines += _edge(group, policy)
        if of_pair and group[0].verdict.fused != "none":
            lines += [f"      {worth}" for worth in fused_into(group[0], policy)]
    rest = [edge for group in groups if group not in shown for edge in group]
    if rest:
        verb, these = ("costs", "it") if len(rest) == 1 else ("cost", "them")
        less = costs(rest) or "nothing"
        lines += ["", f"  and {plural(len(rest), 'more edge')}, which {verb} less ({less} in all): --all shows {these}"]
    return "\n".join(lines)


def _edge(group: list[Edge], policy: str) -> list[str]:
    """One edge, and the number of edges like it: the reason, the fix, the cost, and the place in the user's program."""
    edge, verdict = group[0], group[0].verdict
    names = [f"%{name}" + (f" (made of %{origin})" if origin else "") for name, origin in zip(verdict.names, edge.origins, strict=True)]
    lines = [f"  {' -> '.join(names)}  fused: {verdict.fused}  ({verdict.graph.name})"]
    cost = costs(group)
    what = ", ".join(part for part in (edge.carries, f"costs at most {cost}" if cost else "") if part)
    ends = " -> ".join(op + (f" in {scope}" if scope else "") + (f" at {source}" if source else "")
                       for op, scope, source in zip(edge.ops, edge.scopes, edge.sources, strict=True))
    if edge.is_apart and (what or any(edge.sources)):
        lines.append("      " + "; ".join(part for part in (ends if all(edge.ops) else "", what) if part))
    if verdict.reason:
        lines.append(f"      {policy} says: {verdict.reason}")
    if verdict.cause:
        lines.append(f"      because: {verdict.cause}" + (f"  [{verdict.rule}]" if verdict.rule else ""))
    if edge.answer is not None:
        lines += [f"      {line}" for line in answer_lines(edge.answer)]
    if verdict.releases:
        lines.append(f"      releases differ: {change_words(verdict.releases)}")
    if len(group) > 1:
        others = ", ".join(f"%{one.verdict.producer.name} -> %{one.verdict.consumer.name}" for one in group[1 : 1 + LIKE])
        more = f" and {len(group) - 1 - LIKE} more" if len(group) - 1 > LIKE else ""
        lines.append(f"      {len(group)} times: also {others}{more}")
    return lines


def apart_words(edges: Sequence[Edge]) -> str:
    """``3 of them not fused or not everywhere``, and on how many the releases of the compiler differ."""
    differ = sum(bool(edge.verdict.releases) for edge in edges)
    more = f"; on {differ} of them the releases of the compiler differ" if differ else ""
    return f"{sum(edge.is_apart for edge in edges)} of them not fused or not everywhere{more}"


def costs(edges: Sequence[Edge]) -> str:
    """``0.6 us, 24 KiB``: what fusing these edges can save at the most; empty where nothing is known."""
    us, moved = sum(edge.us for edge in edges), sum(edge.bytes for edge in edges)
    return f"{human_us(us)}, {human_bytes(moved)}" if us else ""


def fused_into(edge: Edge, policy: str) -> list[str]:
    """For an edge that is fused: in which kernel, and what that means for the value in between."""
    lines = [f"in {edge.kernel.describe()}" if edge.kernel is not None else f"{policy} does not name the kernel of this edge"]
    if edge.verdict.fused == "some":
        return [*lines, f"%{edge.verdict.producer.name} is stored or computed again for its other readers"]
    if not edge.verdict.rule:
        lines.append(f"no rule of {policy} keeps them apart; the value in between is never stored for this reader")
    return lines


ROWS = ("dispatches", "kernel launches", "memory traffic", "estimated time")


def columns(worth: Stages) -> list[list[str]]:
    """The table of the gain from fusion, row by row; the first row names the columns."""
    cells = [["", *(stage.name for stage in worth.stages)]]
    for number, name in enumerate(ROWS):
        row = [name]
        for stage in worth.stages:
            figures = (f"{stage.dispatches:,.0f}", f"{stage.launches:,.0f}", human_bytes(stage.traffic), human_us(stage.us))
            row.append(figures[number])
        cells.append(row)
    return cells


def lifted(worth: Stages) -> str:
    """Which fixes the last column has, in words."""
    return ", ".join(f"{code} {n} times" if n > 1 else code for code, n in worth.lifted.items()) or "none that irscope can remove itself"


def _stages(worth: Stages) -> list[str]:
    cells = columns(worth)
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = [f"  on {worth.machine}, fused by {worth.policy}:"]
    for row in cells:
        name, *figures = [text.ljust(w) if i == 0 else text.rjust(w) for i, (text, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("    " + "  ".join([name, *figures]).rstrip())
    if worth.calls is not None:
        lines.append(f"    fused: {worth.calls.describe()}")
    lines.append(f"    lifted: {lifted(worth)}")
    return [*lines, *(f"    {source}" for source in worth.sources)]
