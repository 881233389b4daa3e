"""Gates: rules that check a number or a pattern that the user demands of a module."""

from __future__ import annotations

import re
from functools import cache
from typing import ClassVar

from irscope.graph import Graph, Kind, Module, Node
from irscope.lazy import modules_of
from irscope.lint.rule import Rule, all_rules, find_rule
from irscope.source import Finding, Note, Severity

READERS = re.compile(r"(HLO|TSC|RLY)(\d{3})?$")
"""Codes of what readers say: they have no page."""


class Gate(Rule):
    """A demand of the user. It documents itself as a rule does; its findings are errors, because the user asked for the check.

    ``formats`` is empty for demands on the settings and on whole projects.
    """

    severity: ClassVar[Severity] = Severity.ERROR
    timed: ClassVar[bool] = False

    @classmethod
    def broken(
        cls, module: Module, message: str, *, at: tuple[Graph, Node] | None = None, notes: tuple[Note, ...] = (), help: str = ""
    ) -> Finding:
        """The finding of a gate, at the node that causes it, if there is one."""
        if at is not None and at[1].loc >= 0:
            return cls.located(module, at, message, notes, help)
        node, graph = (at[1].name, at[0].name) if at is not None else ("", module.entry)
        return Finding(cls.code, cls.name, cls.severity, message, module.source, notes=notes, help=help, node=node, graph=graph)


    @classmethod
    def not_known(cls, module: Module, figure: str, value: tuple[Graph, Node], why: str = "") -> Finding:
        """The finding of a gate whose figure is not known, because of the size or the trips of one value: it is not met."""
        node = value[1]
        input_name = node.name if node.op.kind is Kind.LEAF else "NAME"
        help = "" if why else f"--shape {input_name}=8,3 binds the size of an input"
        reason = why or f"the text does not say the size of %{node.name} ({node.type})"
        return cls.broken(module, f"{figure} not known: {reason}", at=value, help=help)


@cache
def all_gates() -> tuple[type[Gate], ...]:
    """Every gate in ``lint/gates``, by code."""
    modules_of("irscope.lint.gates")
    return tuple(sorted(Gate.__subclasses__(), key=lambda gate: gate.code))


@cache
def all_documented() -> tuple[type[Rule], ...]:
    """Rules and gates, by code: what has a page."""
    return tuple(sorted((*all_rules(), *all_gates()), key=lambda rule: rule.code))


def check_rule(word: str) -> None:
    """Raise UserError for a word that names no rule."""
    if not READERS.match(word.upper()) and not any(rule.code.startswith(word.upper()) for rule in all_documented()):
        find_rule(word, all_documented())
