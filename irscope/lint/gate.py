"""What the user demands of a module: a gate is a rule that needs a number or a pattern to judge by."""

from __future__ import annotations

import importlib
import pkgutil
import re
from functools import cache
from typing import ClassVar

from irscope.graph import Graph, Module, Node
from irscope.lint.context import Context
from irscope.lint.rule import Rule, all_rules, find_rule
from irscope.source import Finding, Note, Severity

READERS = re.compile(r"(HLO|TSC|RLY)(\d{3})?$")
"""Codes of what readers say: they have no page."""


class Gate(Rule):
    """A demand. It documents itself as a rule does; what it finds is an error, because somebody asked for it.

    ``formats`` are those of the models that it judges; empty for what is told of the settings and of whole projects.
    """

    severity: ClassVar[Severity] = Severity.ERROR
    timed: ClassVar[bool] = False
    option: ClassVar[str]
    formats: ClassVar[tuple[str, ...]] = ("hlo", "relay", "torchscript")

    @classmethod
    def broken(
        cls, module: Module, message: str, *, at: tuple[Graph, Node] | None = None, notes: tuple[Note, ...] = (), help: str = ""
    ) -> Finding:
        """The finding of a gate, at a node where one is to blame."""
        if at is not None and at[1].loc >= 0:
            return Context(module).finding(cls(), at[1], at[0], message, notes=notes, help=help)
        node, graph = (at[1].name, at[0].name) if at is not None else ("", module.entry)
        return Finding(cls.code, cls.name, cls.severity, message, module.source, notes=notes, help=help, node=node, graph=graph)


@cache
def all_gates() -> tuple[type[Gate], ...]:
    """Every gate in ``lint/gates``, by code."""
    from irscope.lint import gates

    for info in pkgutil.iter_modules(gates.__path__):
        importlib.import_module(f"{gates.__name__}.{info.name}")
    return tuple(sorted(Gate.__subclasses__(), key=lambda gate: gate.code))


@cache
def all_documented() -> tuple[type[Rule], ...]:
    """Rules and gates, by code: what has a page."""
    return tuple(sorted((*all_rules(), *all_gates()), key=lambda rule: rule.code))


def check_rule(word: str) -> None:
    """Raise UserError for a word that means no rule."""
    if not READERS.match(word.upper()) and not any(rule.code.startswith(word.upper()) for rule in all_documented()):
        find_rule(word, all_documented())
