"""``irscope.explain``: what a lint rule finds, why it matters, and what to write instead."""
from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from irscope.lint.gate import Gate, all_documented
from irscope.lint.rule import Fix, Rule, find_rule

NEEDS_OPTIONS = frozenset(("convert-layout",))
"""Passes that correct nothing before somebody says how."""
FIXES = {
    Fix.REWRITE: "irscope makes it on a copy of the graph, and tells what the copy saves",
    Fix.HINT: "a change of the program: what to write instead stands above",
    Fix.NONE: "none by itself: it tells what is so",
}
"""How far irscope helps, in a line."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The documentation of a rule. ``sections`` are Markdown by heading; ``option`` enables a gate, and is None for other rules.

    ``default`` says whether the rule runs without being selected; ``policies`` are those under which it runs (empty: all); ``passes``
    correct some of its findings; ``formats`` are the formats of dumps that it applies to.
    """

    code: str
    name: str
    severity: str
    level: str
    default: bool
    title: str
    sections: dict[str, str]
    policies: list[str]
    fix: str
    passes: list[str]
    formats: list[str]
    option: str | None

    def as_json(self) -> dict[str, Any]:
        """The object that ``--format json`` prints: ``irscope/schemas/rule.json``."""
        return asdict(self)

    def as_text(self) -> str:
        """The page for a terminal."""
        off = "" if self.default else f"; off until selected: --select {self.code}"
        under = f"; under --policy {' or '.join(self.policies)}" if self.policies else ""
        lines = [f"{self.code} {self.name} ({self.level}, {self.severity}{off}{under})", "", self.title]
        for heading, text in self.sections.items():
            lines += ["", heading, "\n".join("  " + line for line in text.splitlines() if not line.startswith("```"))]
        lines += ["", "Fix", f"  {FIXES[Fix(self.fix)]}"]
        if self.passes:
            runs = "" if NEEDS_OPTIONS.issuperset(self.passes) else ", and irscope lint --fix runs it"
            lines.append(f"  irscope opt --passes {','.join(self.passes)} makes it in some of the cases{runs}")
        return "\n".join(lines)

    def as_markdown(self) -> str:
        """The page for the documentation."""
        sections = "\n\n".join(f"## {heading}\n{text}" for heading, text in self.sections.items())
        return f"# {self.code} {self.name}\n\nSeverity: {self.severity}\n\n{self.title}\n\n{sections}\n"


def explain(rule: str) -> Explanation:
    """The documentation of a lint rule, by its code or name. Raises :class:`irscope.UserError` for an unknown one.

    >>> explain("DTY001").severity
    'error'
    """
    return _explanation(find_rule(rule, all_documented()))


def explain_all() -> list[Explanation]:
    """The documentation of every rule and gate."""
    return [_explanation(rule) for rule in all_documented()]


def _explanation(rule: type[Rule]) -> Explanation:
    gate = rule if issubclass(rule, Gate) else None
    return Explanation(
        rule.code, rule.name, str(rule.severity), str(rule.level()), rule.default, rule.title(),
        {section.heading: section.text for section in rule.sections()}, list(rule.policies), str(rule.fix), list(rule.passes),
        formats=list(gate.formats) if gate else sorted({f.format for f in rule.bad}), option=rule.option or None)
