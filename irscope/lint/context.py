"""What a rule may ask about the module it checks; each answer is computed once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING

from irscope.analysis.calls import Calls
from irscope.analysis.scopes import scope_of
from irscope.analysis.soundness import Degree, Soundness, held_together, soundness
from irscope.analysis.survey import Survey
from irscope.analysis.values import uniform_axes
from irscope.expand import expand
from irscope.expand.expand import inline
from irscope.expand.torchscript import Given, TypesSeen, types_of_run
from irscope.expand.torchscript.constants import elided_constants
from irscope.graph import Graph, Module, Node, Op, TensorType, Type, Typing, callees_first
from irscope.lint.edits import Edit
from irscope.lint.findings import RuleFinding
from irscope.lint.machine import Machine
from irscope.lint.settings import Settings
from irscope.ops import hlo
from irscope.ops.module_attributes import HloModule
from irscope.ops.sets import OpSet
from irscope.source import Finding, Note, Severity, UserError

if TYPE_CHECKING:
    from irscope.lint.claims import Claim, Claims
    from irscope.lint.planned import Planned
    from irscope.lint.rule import Rule

TRANSFORMS = frozenset(("main", "jvp()", "transpose(jvp())", "vmap()", "pjit", "closed_call", "while", "body", "cond", "checkpoint"))
"""Components of a scope that JAX's own transformations leave: they name no operator of the user's program."""
CALLERS = hlo.named("while scan conditional call fusion async-start custom-call")
"""Operators whose bodies work on whole arrays."""


class Context:
    """A module and the facts about it that rules share. ``whole``: the parser of its format takes the text."""

    def __init__(self, module: Module, settings: Settings | None = None, whole: bool = True) -> None:
        self.module, self.whole = module, whole
        self.settings = settings or Settings()
        self._users: dict[Graph, list[list[Node]]] = {}
        self._groups: dict[Graph, dict[Op, list[Node]]] = {}
        self._uniform: dict[Graph, list[frozenset[int]]] = {}
        self._checked: dict[type[Rule], list[Finding]] = {}

    @cached_property
    def soundness(self) -> Soundness:
        """How far the text is understood, and the faults in its types."""
        return soundness(self.module, self.whole)

    @cached_property
    def sound(self) -> Context:
        """The same for the module in which what does not hold together is opaque; this one where all types hold."""
        if self.soundness.degree is not Degree.WHOLE:
            return self
        return Context(held_together(self.module, self.soundness.faults), self.settings)

    @cached_property
    def graphs(self) -> list[Graph]:
        """Every graph of the module that runs, callees first. What XLA's passes leave behind in a text and nothing calls is none."""
        return callees_first(self.module, self.module.main() if self.module.dialect.primitive else None)

    @cached_property
    def inlined(self) -> set[Graph]:
        """Bodies of fusions: the compiler has decided about what is inside them."""
        return {body for graph in self.graphs for node in graph.nodes if node.op is hlo.fusion for body in node.bodies}

    @cached_property
    def scalar_bodies(self) -> set[Graph]:
        """Bodies that are run once an element (reducers, comparators)."""
        return {
            body
            for graph in self.graphs
            for node in graph.nodes
            for body in node.bodies
            if node.op not in CALLERS
        }

    @cached_property
    def array_graphs(self) -> list[Graph]:
        """The graphs that work on whole arrays: all but reducers and comparators."""
        return [g for g in self.graphs if g not in self.scalar_bodies]

    def checked(self, rule: type[Rule]) -> list[Finding]:
        """What one rule finds here, each place by itself; it looks once."""
        if rule not in self._checked:
            self._checked[rule] = list(rule().check(self))
        return self._checked[rule]

    def users(self, node: Node, graph: Graph) -> list[Node]:
        """The nodes of ``graph`` that take the value of ``node``."""
        return self.all_users(graph)[node.index]

    def only_user(self, node: Node, graph: Graph) -> Node | None:
        """The one node that takes the value of ``node``; None where there are several, or none."""
        users = self.users(node, graph)
        return users[0] if len(users) == 1 else None

    @cached_property
    def machine(self) -> Machine:
        """What time costs. Raises UserError where there is no such table."""
        return self.settings.table()

    @cached_property
    def primitive(self) -> Module | None:
        """The module in primitives; None where it cannot be expanded: open shapes, unknown operators.

        HLO stays as it is written, but for calls, which JAX leaves for each function under ``jit`` and compilers inline first of all.
        """
        written = self.module.dialect.primitive
        calls = written and not self.optimised and any(node.op is hlo.call for graph in self.graphs for node in graph.nodes)
        if self.module.is_primitive and not calls:
            return self.module
        try:
            expanded = inline(self.module) if written else expand(self.module, True, self._seen.later if self._seen else None)
            expanded.main().result()
        except (UserError, ValueError):
            return None
        return expanded

    @cached_property
    def _seen(self) -> TypesSeen | None:
        """What the run that makes the primitives tells of types; None where it makes up tensors that the text elides."""
        runs = self.module.dialect.typing is Typing.EXECUTED and not self.module.is_primitive
        return TypesSeen() if runs and not elided_constants(self.module) else None

    @cached_property
    def types_of_run(self) -> Mapping[Node, Type]:
        """The types that the operators of a TorchScript program give, where the text says something else or nothing.

        Raises UserError or ValueError where operators do not run.
        """
        types = self._seen.types() if self._seen is not None and self.primitive is not None else None
        return types if types is not None else types_of_run(self.module, Given())

    @cached_property
    def inner(self) -> Context:
        """What rules on structure look at: the primitives, where there are any; else the module itself."""
        return self if self.primitive is None or self.primitive is self.module else Context(self.primitive, self.settings)

    @cached_property
    def planned(self) -> Planned | None:
        """What the policy makes of the primitives of the module; None where it cannot judge them."""
        from irscope.lint.planned import Planned

        if self.primitive is None:
            return None
        if self.inner is not self:
            return self.inner.planned
        try:
            # HLO has its calls written out only; other formats are expanded all the way.
            expanded = self.module.is_primitive and not self.module.dialect.primitive
            return Planned(self.primitive, self.settings.policy, self.settings.device, expanded)
        except (UserError, ValueError):
            return None

    @cached_property
    def homes(self) -> dict[Node, Graph]:
        """The graph of each node of the module."""
        return {node: graph for graph in self.graphs for node in graph.nodes}

    @cached_property
    def stored(self) -> set[Node]:
        """The nodes of this module whose values the policy's kernels write to memory."""
        if self.planned is None:
            return set()
        written = ((node, plan.graph) for plan in self.planned.plans for group in plan.groups for node in group.outputs)
        return {own for node, graph in written if (own := self.own(node, graph)) is not None}

    def find(self, graph: str, name: str) -> Node | None:
        """The node of a name in the graph of a name, else in any graph; None where the text has none."""
        return self._named.get((graph, name)) or self._anywhere.get(name)

    def in_text(self, node: Node, graph: Graph) -> Node | None:
        """The node of the text that has the name of a node of a plan; None where there is none."""
        return node if node in self.homes else self.find(graph.name, node.name)

    @cached_property
    def _anywhere(self) -> dict[str, Node]:
        return {node.name: node for graph in self.graphs for node in graph.nodes}

    @cached_property
    def _named(self) -> dict[tuple[str, str], Node]:
        return {(graph.name, node.name): node for graph in self.graphs for node in graph.nodes}

    def own(self, node: Node, graph: Graph) -> Node | None:
        """The node of this module that a node of a plan stands for, in the graph of that name; None where there is none."""
        for one in (node, *node.origin[:1]):
            if one in self.homes:
                return one
        return self._named.get((graph.name, node.name))

    @cached_property
    def total_us(self) -> float | None:
        """The estimated time of one run; None where it cannot be told."""
        if self.inner is not self:
            return self.inner.total_us
        return self.planned.us(self.machine) if self.planned is not None else None

    @cached_property
    def claims(self) -> Claims | None:
        """Tells what changes bring; None where the module cannot be planned."""
        from irscope.lint.claims import Claims

        return Claims(self.planned, self.machine) if self.planned is not None else None

    def claim(self, graph: Graph, edit: Edit) -> Claim | None:
        """What an edit of a graph brings in one run of the module; None where that cannot be told.

        Inside a fusion of the text the kernels are made already: what is left out there saves neither a launch nor traffic.
        """
        if not self.module.dialect.primitive and self.inner is not self:
            home = next((self.inner.homes[node] for node in edit.nodes if node in self.inner.homes), None)
            return self.inner.claim(home, edit) if home is not None else None
        written = self.primitive is self.module or self.module.dialect.primitive  # HLO is its own primitives, but for calls
        if not written or self.claims is None or graph in self.inlined:
            return None
        found = self.claims.of(graph, self.all_users(graph), edit)
        return found.times(self.runs(graph)) if found is not None else None

    def runs(self, graph: Graph) -> float:
        """How often a graph runs in one run of the module; 1 where that is not told."""
        planned = self._planned_runs.get(graph.name)
        return planned if planned is not None else self._written.times.get(graph, 1.0)

    @cached_property
    def _planned_runs(self) -> dict[str, float]:
        """How often the graphs that were planned run, by name: plans are made of copies too. The first of a name counts."""
        times = self.planned.survey.calls.times if self.planned is not None else {}
        return {graph.name: n for graph, n in reversed(times.items())}

    @cached_property
    def _written(self) -> Calls:
        """How often graphs run as the text calls them, which a plan may have written out."""
        return Survey(self.module).calls

    def all_users(self, graph: Graph) -> list[list[Node]]:
        """For each node of a graph, by index, the nodes that take its value."""
        if graph not in self._users:
            self._users[graph] = graph.users()
        return self._users[graph]

    def operator_scope(self, node: Node) -> tuple[str, ...]:
        """Where a node stands in the user's program, without what transformations of the program add; empty where the text does not say."""
        return tuple(part for part in scope_of(self.module, node) if part not in TRANSFORMS and not part.startswith(("jit(", "pjit(")))

    def uniform(self, graph: Graph) -> list[frozenset[int]]:
        """For each node, by index, the axes along which broadcasts alone make all elements equal."""
        if graph not in self._uniform:
            self._uniform[graph] = uniform_axes(graph)
        return self._uniform[graph]

    @cached_property
    def _by_op(self) -> dict[Op, list[tuple[Node, Graph]]]:
        found: dict[Op, list[tuple[Node, Graph]]] = {}
        for graph in self.array_graphs:
            for node in graph.nodes:
                found.setdefault(node.op, []).append((node, graph))
        return found

    def primitives(self, *ops: Op) -> Iterator[tuple[Node, Graph]]:
        """The nodes of these operators, with their graph, in the graphs that work on whole arrays."""
        for op in ops:
            yield from self._by_op.get(op, ())

    def with_op(self, ops: frozenset[Op] | OpSet, graph: Graph) -> list[Node]:
        """The nodes of a graph whose operator is one of these, in the order of the text; each operator of the graph is looked up once."""
        if graph not in self._groups:
            groups = self._groups[graph] = defaultdict(list)
            for node in graph.nodes:
                groups[node.op].append(node)
        return sorted((node for op, nodes in self._groups[graph].items() if op in ops for node in nodes), key=attrgetter("index"))

    @cached_property
    def optimised(self) -> bool:
        """Whether the text is what a compiler left: what it did not remove, it keeps."""
        return HloModule.of(self.module).is_scheduled or bool(self.inlined)

    def tensors(self, graph: Graph) -> Iterator[tuple[Node, TensorType]]:
        """The nodes of a graph that give one tensor, with their type."""
        for node in graph.nodes:
            if isinstance(node.type, TensorType):
                yield node, node.type

    def finding(
        self, rule: Rule, node: Node, graph: Graph, message: str, *, severity: Severity | None = None, notes: tuple[Note, ...] = (),
        help: str = "", saves: dict[str, float] | None = None, edit: Edit | None = None, timed: bool | None = None,
    ) -> RuleFinding:
        """A finding of ``rule`` at ``node``, with its place in the text and the user's own source line.

        What it saves is found by making ``edit`` on a copy and planning that again; without one, ``saves`` are bytes and kernels that the
        rule counted. ``timed``: whether the severity depends on what is saved (default: as the rule says).
        """
        stack = self.module.call_stack(node)
        place = place_of(self.module, node)
        if (edit is not None or saves is not None) and rule.tidied and self.claims is not None and self.claims.tidies:
            saves = {"us": 0.0, "bytes": 0.0, "kernels": 0.0}
        elif edit is not None:
            claim = self.claim(graph, edit)
            saves = claim.saves if claim is not None else None
        elif saves is not None:
            us = self.machine.move_us(saves["bytes"], 0.0) + saves["kernels"] * self.machine.launch(self.settings.policy)
            saves = {**saves, "us": round(us, 3)}
        return RuleFinding(
            rule.code, rule.name, rule.severity if severity is None else severity, message, self.module.source, *place, notes, help,
            node.name, graph.name, str(stack[0]) if stack else "", saves, (graph, node), edit, rule.timed if timed is None else timed,
        )


def place_of(module: Module, node: Node) -> tuple[int, int]:
    """Offset and length of a node's name in the text; where its statement begins, if the name does not stand there."""
    at = module.source.text.find(node.name, node.loc, node.loc + len(node.name) + 8) if node.loc >= 0 else -1
    return (at, len(node.name)) if at >= 0 else (node.loc, 1)
