"""The base class of rules: one file and one class per rule, from which its test, its page and ``irscope rule`` are generated."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from textwrap import dedent
from typing import ClassVar

from irscope.fusion import AUTO
from irscope.graph import Dialect, Graph, Module, Node
from irscope.lazy import modules_of
from irscope.lint.context import Context
from irscope.lint.edits import Edit
from irscope.lint.findings import RuleFinding
from irscope.source import Finding, Note, Severity, did_you_mean
from irscope.source.errors import UserError
from irscope.source.finding import Level, level_of

HEADINGS = ("What it does", "Why is this bad?", "Example", "Use instead", "Known false positives")
"""The sections that every rule's documentation has, in order. The docstring holds all but the example, which is the first bad fixture."""
HEAD, TAIL = 12, 8
"""The number of lines of a long example that are shown at its beginning and at its end."""


REDUCERS = {"sum": "f32[] add(a, b)", "max": "f32[] maximum(a, b)", "less": "pred[] compare(a, b), direction=LT"}
"""Scalar computations that a fixture need not write."""
REDUCER = "{name} {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT {name}.r = {result}\n}}\n\n"


@dataclass(frozen=True, slots=True)
class Fixture:
    """A small dump. ``nodes`` names the nodes that must be reported in a bad one (empty: any); a good one must have no finding.

    ``policy`` is the fusion policy under which it is linted.
    """

    format: str
    text: str
    nodes: tuple[str, ...] = ()
    policy: str = AUTO
    written: str = ""
    """The text without a header and without the computations that were added."""

    @property
    def example(self) -> str:
        """The text as a block of Markdown; a long text is cut in the middle."""
        lines = (self.written or self.text).rstrip().split("\n")
        left_out = len(lines) - HEAD - TAIL
        if left_out > 1:
            lines[HEAD:-TAIL] = [f"  ... {left_out} lines ..."]
        return "\n".join(("```", *lines, "```"))

    @staticmethod
    def hlo(text: str, *nodes: str, policy: str = AUTO) -> Fixture:
        """An HLO fixture; ``text`` is indented as its surroundings and needs no header, and none of :data:`REDUCERS`."""
        wanted = [name for name in REDUCERS if f"to_apply={name}" in text and f"{name} {{" not in text]
        computations = "".join(REDUCER.format(name=name, result=REDUCERS[name]) for name in wanted)
        written = dedent(text).strip()
        return Fixture("hlo", f"HloModule m\n\n{computations}{written}\n", nodes, policy, written)

    @staticmethod
    def relay(text: str, *nodes: str, policy: str = AUTO) -> Fixture:
        """A Relay fixture; ``text`` is indented as its surroundings and needs no header."""
        written = dedent(text).strip()
        return Fixture("relay", f'#[version = "0.0.5"]\n{written}\n', nodes, policy, written)

    @staticmethod
    def inductor(text: str, *nodes: str) -> Fixture:
        """A text of torch.compile: a log, output code, IR; indented as its surroundings."""
        return Fixture("inductor", dedent(text).strip() + "\n", nodes)

    @staticmethod
    def fx(text: str, *nodes: str) -> Fixture:
        """A printed FX graph, indented as its surroundings."""
        return Fixture("export", dedent(text).strip() + "\n", nodes)

    @staticmethod
    def torchscript(text: str, *nodes: str, policy: str = AUTO) -> Fixture:
        """A TorchScript fixture; ``text`` is indented as its surroundings."""
        return Fixture("torchscript", dedent(text).strip() + "\n", nodes, policy)


Findings = Iterator[RuleFinding]
"""What a rule's ``check`` gives."""


def if_it_saves(finding: RuleFinding) -> Findings:
    """Yield the finding, unless its fix was planned and saves no time."""
    if finding.saves is None or finding.saves["us"] > 0:
        yield finding


class Fix(StrEnum):
    """How far irscope can help: it makes the change on a copy and computes the savings; it says what to do; it only reports."""

    REWRITE = "rewrite"
    HINT = "hint"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Section:
    """One heading of a rule's documentation and the text under it."""

    heading: str
    text: str


class Rule:
    """The base of all rules. A subclass documents itself in its docstring, under :data:`HEADINGS`; its first bad fixture is the example.

    ``code`` is never re-used; ``name`` is the pattern that the rule finds, so that "allow cast-ping-pong" reads well; ``severity`` is the
    severity of its findings unless the rule overrides it for a case. ``formats`` are those of its bad fixtures.
    A rule whose ``default`` is False runs only if ``--select`` names it, its family or ``ALL``: its findings are facts that rarely
    matter. A rule with an ``option`` is a demand: it runs if that option or ``--select`` names it, and is no part of ``ALL``. A
    ``structural`` rule looks for HLO operations; in other formats it sees the primitives, and findings between the primitives of one
    operator of the text are dropped (the user wrote none of them) unless the rule looks ``inside``. Findings of a ``timed`` rule have its
    severity only if the fix saves enough time, and are information otherwise; other rules find what is or may be wrong. A rule with
    ``only_gains`` drops findings whose fix saves nothing. Findings of a ``tidied`` rule save nothing in text from before optimisation,
    because compilers fix them there. ``policies`` names the policies whose refusals a rule reports; it runs under no others (empty: it runs
    under all). A rule with a ``dialect`` runs on texts of that dialect only. ``fix`` says how far irscope can help, ``passes`` names the
    passes of ``irscope opt`` that make the change in some cases. A rule that ``judges_types`` sees a text with type errors unchanged; for
    the others nodes with invalid types are opaque (``add?``), and all other types are valid.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity]
    formats: ClassVar[tuple[str, ...]] = ("hlo", "relay", "torchscript")
    default: ClassVar[bool] = True
    structural: ClassVar[bool] = False
    inside: ClassVar[bool] = False
    policies: ClassVar[tuple[str, ...]] = ()
    dialect: ClassVar[Dialect | None] = None
    fix: ClassVar[Fix] = Fix.HINT
    passes: ClassVar[tuple[str, ...]] = ()
    timed: ClassVar[bool] = True
    only_gains: ClassVar[bool] = False
    tidied: ClassVar[bool] = False
    judges_types: ClassVar[bool] = False
    option: ClassVar[str] = ""
    bad: ClassVar[tuple[Fixture, ...]]
    good: ClassVar[tuple[Fixture, ...]]

    def __init_subclass__(cls) -> None:
        """Set ``formats``, for a class with bad fixtures, to their formats, HLO and Relay first."""
        if hasattr(cls, "bad"):
            shown = [fixture.format for fixture in cls.bad]
            cls.formats = tuple(dict.fromkeys(format for format in ("hlo", "relay", *shown) if format in shown))

    def check(self, context: Context) -> Iterator[Finding]:
        """The findings in one module."""
        raise TypeError(f"{type(self).__name__} does not say what it checks")

    @classmethod
    def found_in(cls, context: Context) -> list[Finding]:
        """The findings of the rule in a module, one per place; computed once."""
        if cls not in context.found:
            context.found[cls] = list(cls().check(context))
        return context.found[cls]

    def finding(
        self, context: Context, node: Node, message: str, *, notes: tuple[Note, ...] = (), help: str = "",
        saves: Edit | dict[str, float] | None = None,
    ) -> RuleFinding:
        """A finding at ``node``, with its place in the text and the user's own source line.

        Its savings come from an edit on a copy that is planned again, or are the bytes and kernels that the rule counted.
        """
        graph = context.view.graph_of[node]
        found = self.located(context.module, (graph, node), message, notes, help)
        found.saves = context.costs.saves(graph, saves, self.tidied)
        found.edit = saves if isinstance(saves, Edit) else None
        return found

    @classmethod
    def located(
        cls, module: Module, at: tuple[Graph, Node], message: str, notes: tuple[Note, ...] = (), help: str = "",
    ) -> RuleFinding:
        """A finding at a node, without savings."""
        graph, node = at
        stack = module.call_stack(node)
        return RuleFinding(
            cls.code, cls.name, cls.severity, message, module.source, *place_of(module, node), notes, help, node.name, graph.name,
            str(stack[0]) if stack else "", at=at, timed=cls.timed,
        )

    @classmethod
    def level(cls) -> Level:
        """The highest level of its findings."""
        return level_of(cls.severity, cls.timed)

    @classmethod
    def title(cls) -> str:
        """The first line of the documentation."""
        return inspect.cleandoc(cls.__doc__ or "").split("\n", 1)[0]

    @classmethod
    def sections(cls) -> list[Section]:
        """The documentation by heading (a heading is a line ``## ...``), with the first bad fixture as the example."""
        parts = inspect.cleandoc(cls.__doc__ or "").split("\n## ")[1:]
        sections = [Section(part.split("\n", 1)[0].strip(), part.split("\n", 1)[1].strip()) for part in parts]
        has_own = any(section.heading == "Example" for section in sections)
        if has_own or not cls.bad:
            return sections
        first = cls.bad[0]
        under = f"\n\nThis is reported under `--policy {first.policy}`." if first.policy != AUTO else ""
        return [*sections[:2], Section("Example", first.example + under), *sections[2:]]


def place_of(module: Module, node: Node) -> tuple[int, int]:
    """Offset and length of a node's name in the text; where its statement begins, if the name does not stand there."""
    at = module.source.text.find(node.name, node.loc, node.loc + len(node.name) + 8) if node.loc >= 0 else -1
    return (at, len(node.name)) if at >= 0 else (node.loc, 1)


@cache
def all_rules() -> tuple[type[Rule], ...]:
    """Every rule in ``lint/rules``, by code."""
    modules_of("irscope.lint.rules")
    # Gate (lint/gate.py) is the base of the user's demands, not a rule: it has no code.
    return tuple(sorted((rule for rule in Rule.__subclasses__() if hasattr(rule, "code")), key=lambda rule: rule.code))


def find_rule(word: str, among: Iterable[type[Rule]] | None = None) -> type[Rule]:
    """The rule of a code or name (``among``: default all rules). Raises UserError with the nearest one."""
    rules = list(all_rules() if among is None else among)
    for rule in rules:
        if word.upper() == rule.code or word.lower() == rule.name:
            return rule
    known = [w for rule in rules for w in (rule.code, rule.name)]
    raise UserError(f"there is no rule {word}", did_you_mean(word, known) or "irscope rule --all lists them")


def default_rules() -> list[type[Rule]]:
    """The rules that run if none are selected."""
    return [rule for rule in all_rules() if rule.default]


def select(chosen: Iterable[str], ignored: Iterable[str]) -> list[type[Rule]]:
    """The rules left by ``--select`` and ``--ignore``: codes, names, the letters of a family, ``ALL``; UserError for an unknown word."""

    def matches(word: str) -> set[type[Rule]]:
        if word.upper() == "ALL":
            return {rule for rule in all_rules() if not rule.option}
        family = {rule for rule in all_rules() if rule.code.startswith(word.upper())}
        return family or {find_rule(word)}

    chosen = list(chosen)
    keep = set(default_rules()) if not chosen else set().union(*(matches(word) for word in chosen))
    for word in ignored:
        keep -= matches(word)
    return [rule for rule in all_rules() if rule in keep]
