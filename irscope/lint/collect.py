"""Turns rule results into reported findings: one per user operator, with a severity by what the fix saves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from irscope.analysis.values import in_library, written
from irscope.lint.context import Context
from irscope.lint.findings import RuleFinding
from irscope.lint.rule import Rule
from irscope.source import Finding, Note, Severity

SHARE = 0.02
"""A finding about time that saves less than this share of the module's estimated time is information."""
FLOOR_US = 5.0
"""And so is one that saves less than this, in microseconds: nobody measures it."""
LISTED = 3
"""Places of one operator that are named beside the first."""


def found_by(context: Context, rule: type[Rule]) -> list[Finding]:
    """The findings of one rule, merged per user operator, with a severity by what the fix saves."""
    if (rule.policies and context.settings.compiler not in rule.policies) or rule.dialect not in (None, context.module.dialect):
        return []
    found = merged(context, rule.found_in(context))
    if rule.only_gains:
        found = [finding for finding in found if gains(finding)]
    return [_cut(context, finding) for finding in found]


def gains(finding: Finding) -> bool:
    """Whether the fix saves time and also a kernel or traffic, instead of only speeding up arithmetic in the same kernel."""
    saves = finding.saves or {}
    return saves.get("us", 0.0) > 0 and (saves["bytes"] > 0 or saves["kernels"] > 0)


def enough(context: Context, us: float) -> bool:
    """Whether a saving is worth a warning on this machine."""
    return us >= FLOOR_US and us >= SHARE * (context.costs.total_us or 0.0)


def _cut(context: Context, finding: Finding) -> Finding:
    if finding.saves and finding.saves["us"] > 0 and context.costs.total_us:
        finding.saves["share"] = round(min(1.0, finding.saves["us"] / context.costs.total_us), 4)
    timed = isinstance(finding, RuleFinding) and finding.timed
    if timed and finding.severity > Severity.INFO and not enough(context, (finding.saves or {}).get("us", 0.0)):
        finding.severity = Severity.INFO
    return finding


def merged(context: Context, findings: Iterable[Finding]) -> list[Finding]:
    """One finding for each operator of the user's program: the one that saves most, with the sum of all savings.

    The operator is identified by its line in the user's program and its scope, or by the line alone where other forms of the same program
    state no scopes; if the text names neither, each node is one operator.
    """
    found: dict[object, list[Finding]] = {}
    for number, finding in enumerate(findings):
        found.setdefault(_operator(context, finding) or number, []).append(finding)
    return [_one(same) for same in found.values()]


def _operator(context: Context, finding: Finding) -> object:
    if not isinstance(finding, RuleFinding) or finding.at is None:
        return None
    node = finding.at[1]
    scope = () if context.module.dialect.scopes_vary else context.view.operator_scope(node)
    if finding.source_line and (scope or not in_library(finding.source_line)):
        return finding.severity, finding.source_line, scope
    return (finding.severity, id(written(node))) if scope or node.origin else None


def _one(same: list[Finding]) -> Finding:
    if len(same) == 1:
        return same[0]
    first = max(same, key=lambda finding: (finding.saves or {}).get("us", 0.0))
    others = [finding for finding in same if finding is not first]
    names = ", ".join(f"%{finding.node}" for finding in others[:LISTED])
    more = f" and {len(others) - LISTED} more" if len(others) > LISTED else ""
    saves = None
    if any(finding.saves for finding in same):
        saves = {key: round(sum((f.saves or {}).get(key, 0.0) for f in same), 3) for key in ("us", "bytes", "kernels")}
        saves |= range_of([finding.saves for finding in same])
    if isinstance(first, RuleFinding):
        first.verdicts = tuple(verdict for finding in same if isinstance(finding, RuleFinding) for verdict in finding.verdicts)
    return replace(first, notes=(*first.notes, Note(f"the same operator of the program, also at {names}{more}")), saves=saves)


def range_of(savings: Sequence[Mapping[str, float] | None]) -> dict[str, float]:
    """The range of the time that several changes save together; empty where that of one of them is not known."""
    if any(saves is None or (saves.get("us", 0.0) > 0 and "us_most" not in saves) for saves in savings):
        return {}
    ranges = [saves for saves in savings if saves is not None and "us_most" in saves]
    return {key: round(sum(saves[key] for saves in ranges), 3) for key in ("us_least", "us_most")} if ranges else {}
