"""Suppresses the findings that the project has accepted, and warns of unused suppressions."""

from __future__ import annotations

import datetime
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from irscope.graph import Module
from irscope.lint.config import Config, Suppression
from irscope.lint.gates.suppressions import ExpiredSuppression, UnusedSuppression
from irscope.source import Finding


def fits_rule(word: str, finding: Finding) -> bool:
    """Whether a code, a name or the letters of a family mean the rule of a finding."""
    return word.lower() == finding.name or finding.code.startswith(word.upper())


def fits_path(pattern: str, file: str, folder: Path) -> bool:
    """Whether a file is meant by a pattern: as the user named it, from the folder of the settings, or by its last part."""
    path = Path(file)
    names = {path.as_posix(), path.name}
    try:
        names.add(path.resolve().relative_to(folder).as_posix())
    except ValueError:
        pass
    return any(fnmatchcase(name, pattern) for name in names)


class Scopes:
    """The scope of the node of a finding in the user's program. The table by name is built when a setting first needs it."""

    def __init__(self, modules: list[Module]) -> None:
        self._modules = modules

    def of(self, finding: Finding) -> str:
        """The scope, or the empty string."""
        return self._found.get((finding.graph, finding.node), "")

    @cached_property
    def _found(self) -> dict[tuple[str, str], str]:
        return {(graph.name, node.name): module.scope(node)
                for module in self._modules for graph in module.graphs.values() for node in graph.nodes}


class Suppressor:
    """The suppressions of a project over one run. ``today`` decides which have expired."""

    def __init__(self, config: Config, today: datetime.date) -> None:
        self.config, self.today = config, today
        self._files: list[str] = []

    def remaining(self, file: str, findings: list[Finding], modules: list[Module]) -> list[Finding]:
        """The findings of a file that no suppression matches."""
        self._files.append(file)
        scopes = Scopes(modules)
        left = []
        here = [s for s in self.config.suppressions if not s.path or fits_path(s.path, file, self.config.folder)]
        active = [s for s in here if not self._expired(s)]
        for finding in findings:
            fitting = [s for s in active if _fits(s, finding, scopes)]
            for suppression in fitting:
                suppression.used += 1
            if not fitting and not self._ignored_in_scope(finding, scopes):
                left.append(finding)
        return left

    def leftovers(self) -> list[Finding]:
        """Warnings about suppressions that suppressed nothing in the files of this run, or that have expired."""
        findings = []
        for one in self.config.suppressions:
            met = not one.path or any(fits_path(one.path, file, self.config.folder) for file in self._files)
            if self._expired(one):
                message = f"the suppression of {one.rule} held until {one.until}: {one.reason}"
                findings.append(self._finding(ExpiredSuppression, one, message))
            elif not one.used and met:
                message = f"the suppression of {one.rule} fits no finding: {one.reason}"
                findings.append(self._finding(UnusedSuppression, one, message))
        return findings

    def _finding(self, rule: type[UnusedSuppression] | type[ExpiredSuppression], one: Suppression, message: str) -> Finding:
        help = "delete it" if rule is UnusedSuppression else "mend what it hides and delete it, or give it a new date"
        return Finding(rule.code, rule.name, rule.severity, message, self.config.source, max(0, one.offset), 2, help=help)

    def _expired(self, one: Suppression) -> bool:
        return one.until is not None and one.until < self.today

    def _ignored_in_scope(self, finding: Finding, scopes: Scopes) -> bool:
        return any(
            fnmatchcase(scopes.of(finding), pattern) and any(fits_rule(word, finding) for word in table.get("ignore", ()))
            for pattern, table in self.config.per_scope.items()
        )


def _fits(one: Suppression, finding: Finding, scopes: Scopes) -> bool:
    return (
        fits_rule(one.rule, finding)
        and (not one.node or fnmatchcase(finding.node, one.node.lstrip("%")))
        and (not one.source or fnmatchcase(finding.source_line, one.source))
        and (not one.scope or fnmatchcase(scopes.of(finding), one.scope))
    )
