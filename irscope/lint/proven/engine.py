"""Proven counterfactuals: what in the program would have a refused edge fused, found by changing it and planning it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property

from irscope.analysis.summary import source_line
from irscope.analysis.values import in_library, written
from irscope.fusion import EdgeVerdict, Policy, compiler_of, policy_for
from irscope.fusion.policy import FromSource, WithOptions
from irscope.graph import Graph, Node
from irscope.lint.claims import CANNOT
from irscope.lint.edits import Edit
from irscope.lint.machine import Machine
from irscope.lint.planned import Planned
from irscope.lint.proven.fix import Attempt, FixAnswer, ProvenFix, Saving, TrialOutcome
from irscope.lint.proven.lines import lines_of
from irscope.lint.proven.savings import addition_words
from irscope.lint.proven.site import RefusedEdge
from irscope.lint.proven.table import Proposal, proposals
from irscope.lint.proven.trial import Pair, Standing, TrialScope, apply_edit, origin_in, outcome_of, plan_changed, standing
from irscope.lint.regions import Surroundings
from irscope.lint.view import ModuleView

WHOLE = 150
"""A trial plans all of a program of up to this many operators, and only the kernels around the edge in a larger one."""
TIMES = 2
"""Trials plan at most this many times the operators of the program: measured, planning in parts takes up to a seventh more..."""
AT_LEAST = 1000
"""...or at least this many operators, in a small program: about a third of a second of XLA's rewriting and fusion."""
LIBRARY_CALLS = ("library-call", "extern-kernel")
"""Rules that refuse an edge because one end is a call of a library."""
OPTION = "compiler-option"
"""The key of a fix that is an option of the compiler."""


class Engine:
    """Answers for the edges of one module under one policy. ``planned`` is the plan of the module of ``view``, the primitives of the text.

    ``runs`` says how often a graph runs in one run of the module. Answers are computed once; the trials of all together stay within
    :data:`TIMES` the size of the program.
    """

    def __init__(self, view: ModuleView, planned: Planned, machine: Machine, runs: Callable[[Graph], float]) -> None:
        self.view, self.planned, self.machine, self.runs = view, planned, machine, runs
        self.compiler = compiler_of(planned.policy)
        self.budget = self.left = max(AT_LEAST, int(self._times * self.size))
        self._answers: dict[Pair, FixAnswer] = {}
        self._scopes: dict[Graph, Surroundings] = {}
        self._before: dict[tuple[Graph, tuple[Node, ...]], Standing | None] = {}

    @property
    def _times(self) -> float:
        """How many times the program trials may plan: an option of the compiler takes a plan more."""
        return TIMES - 1.25 if isinstance(self._policy, WithOptions) else TIMES - 0.25

    @cached_property
    def size(self) -> int:
        """The operators of the program."""
        return sum(len(plan.graph.nodes) for plan in self.planned.plans)

    @property
    def home(self) -> Mapping[Node, Graph]:
        """The nodes of the module, with their graphs."""
        return self.view.graph_of

    @cached_property
    def stored(self) -> set[Node]:
        """The nodes of the module whose values lie in memory: inputs, and what kernels write."""
        outputs = (origin_in(node, self.home) for plan in self.planned.plans for group in plan.groups for node in group.outputs)
        return {node for node in outputs if node is not None} | {p for graph in self.view.graphs for p in graph.params}

    def confirm(self, verdict: EdgeVerdict) -> FixAnswer:
        """The same as :meth:`answer`; a fix that was proven around the edge is planned once more with all of the program."""
        found = self.answer(verdict)
        fix, edge = found.fix, self.edge_of(verdict)
        if fix is None or fix.is_whole or edge is None:
            return found
        proposal = next(one for one in proposals(edge) if one.candidate.key == fix.key)
        graph = edge.graph
        whole = self._tried(edge, proposal, TrialScope(self.view.module, graph, graph.nodes, [graph.result()], True))
        if isinstance(whole, ProvenFix):
            return replace(found, fix=whole)
        failed = () if whole is None else (Attempt(fix.key, proposal.candidate.name, whole),)
        return replace(found, fix=None, attempts=(*found.attempts, *failed)) if failed else found

    def answer(self, verdict: EdgeVerdict, reserve: float = 0.0) -> FixAnswer:
        """The change that makes the edge of a verdict fused, or the changes that failed. ``reserve``: a share of the budget to leave."""
        ends = self._ends(verdict)
        if ends is None:
            return FixAnswer(why_not=self._unnamed(verdict), compiler=self.compiler)
        known = self._answers.get(ends)
        if known is None or (known.untried and not reserve):
            if self.left < reserve * self.budget:
                return FixAnswer(untried=("every change",), compiler=self.compiler)
            known = self._answers[ends] = self._found(verdict, *ends)
        return known

    def attempt(self, verdict: EdgeVerdict, key: str) -> ProvenFix | TrialOutcome | None:
        """The result of trying one candidate; None if it does not apply, or is meant for edges refused for other reasons."""
        edge = self.edge_of(verdict)
        one = next((one for one in proposals(edge) if one.candidate.key == key), None) if edge is not None else None
        return self._tried(edge, one) if edge is not None and one is not None else None

    def edge_of(self, verdict: EdgeVerdict) -> RefusedEdge | None:
        """The edge of a verdict in the primitives of the text; None where they have none."""
        ends = self._ends(verdict)
        return self._edge(verdict, *ends) if ends is not None else None

    def _edge(self, verdict: EdgeVerdict, producer: Node, consumer: Node) -> RefusedEdge:
        graph = self.home[producer]
        return RefusedEdge(graph, producer, consumer, verdict.rule, self.compiler, self.view.survey.users(graph), self.stored)

    def _ends(self, verdict: EdgeVerdict) -> Pair | None:
        """The edge in the module: by its nodes, else by those that they come from; None where the module has no such edge."""
        producer, consumer = (origin_in(node, self.home) for node in (verdict.producer, verdict.consumer))
        if producer is None or consumer is None:
            return self.view.between(verdict.producer, verdict.consumer)
        if producer is consumer or self.home[producer] is not self.home[consumer]:
            return None
        return producer, consumer

    def _unnamed(self, verdict: EdgeVerdict) -> str:
        """Why no change of the text can address an edge that the text does not have."""
        ends = [written(node) for node in (verdict.producer, verdict.consumer)]
        known = [node for node in ends if node in self.home]
        if len(known) == 2 and known[0] is known[1]:
            return f"both are part of what the compiler makes of %{known[0].name} ({known[0].op.name})"
        return "the compiler made one of them itself; no operator of the text stands for it"

    def _found(self, verdict: EdgeVerdict, producer: Node, consumer: Node) -> FixAnswer:
        if self.view.optimised:
            return FixAnswer(why_not="the text is what the compiler made of the program; fixes are tried on text from before its "
                                     "optimisation", compiler=self.compiler)
        edge = self._edge(verdict, producer, consumer)
        attempts: list[Attempt] = []
        untried: list[str] = []
        for proposal in proposals(edge):
            candidate, found = proposal.candidate, self._tried(edge, proposal)
            if found is None:
                untried.append(candidate.name)
            elif isinstance(found, ProvenFix):
                return FixAnswer(found, tuple(attempts), compiler=self.compiler)
            else:
                attempts.append(Attempt(candidate.key, candidate.name, found))
        fix, behind = self._by_option(edge)
        return FixAnswer(fix, tuple(attempts), tuple(untried), behind=behind, compiler=self.compiler)

    def _by_option(self, edge: RefusedEdge) -> tuple[ProvenFix | None, str]:
        """The option of the compiler under which the edge is fused, and the whole program starts fewer kernels or moves fewer bytes;
        without one, the library call or the option that the refusal comes from."""
        own = edge.producer, edge.consumer
        behind = "one of the two is a call of a library, which computes nothing else" if edge.rule in LIBRARY_CALLS else ""
        for flag, does, after in self._options:
            if self._all.edges.get(own, "none") != "all" and outcome_of(self._all, after, own) is TrialOutcome.FUSED:
                words = f"{self._called(own[0])} and {self._called(own[1])} are fused under {flag}; {does}"
                fix = ProvenFix(OPTION, words, self._all.less(after), nodes=self.size, flag=flag)
                return self._with_effects(fix, self._all, after, own), ""
            if after.edges.get(own, "none") == "all" and self._all.edges.get(own, "none") != "all":
                more = Saving(after.kernels - self._all.kernels, after.bytes - self._all.bytes, 0.0)
                behind = f"under {flag} the edge is fused, but the program costs more ({addition_words(more)})"
        return None, behind

    @cached_property
    def _all(self) -> Standing:
        """The plan of the whole program as it is, through the rewriting of the policy's compiler."""
        policy, module = self._policy, self.view.module
        if isinstance(policy, FromSource) and policy.rewrites(module, self.planned.device):
            return standing(self.planned, self.home, self.machine)
        plans = plan_changed(module, self.planned.policy, self.planned.device)
        return standing(Planned(module, self.planned.policy, made=plans), self.home, self.machine)

    @cached_property
    def _policy(self) -> Policy:
        return policy_for(self.planned.policy, self.view.module)

    @cached_property
    def _options(self) -> list[tuple[str, str, Standing]]:
        """The whole program planned under each option of the compiler: one plan each for all edges."""
        policy = self._policy
        found: list[tuple[str, str, Standing]] = []
        for flag, does, under in policy.options() if isinstance(policy, WithOptions) else ():
            try:
                plans = under.plan_changed(self.view.module, self.planned.device)
            except CANNOT:
                continue
            found.append((flag, does, standing(Planned(self.view.module, self.planned.policy, made=plans), self.home, self.machine)))
        return found

    def _tried(self, edge: RefusedEdge, proposal: Proposal, whole: TrialScope | None = None) -> ProvenFix | TrialOutcome | None:
        """The fix that a candidate is, or why it is none; None where it does not fit into the budget. ``whole`` is tried all the same."""
        edit = proposal.edit
        scope = whole or self._scope(edge, edit)
        pair = edge.producer, edge.consumer
        key = scope.graph, tuple(scope.nodes)
        if whole is None and self.left < scope.size * (1 if key in self._before else 2):
            return None
        if key not in self._before:
            self._before[key] = self._all if whole is not None else self._standing(scope, None)
        before = self._before[key]
        after = self._standing(scope, edit)
        if before is None or after is None:
            return TrialOutcome.UNPLANNED
        if before.edges.get(pair) == "all":
            return TrialOutcome.NOT_REFUSED
        outcome = outcome_of(before, after, pair, edit.changes)
        if outcome not in (TrialOutcome.FUSED, TrialOutcome.SMALLER):
            return outcome
        return replace(self._fix(edge, proposal, scope, before, after), outcome=outcome)

    def _scope(self, edge: RefusedEdge, edit: Edit) -> TrialScope:
        graph, module = edge.graph, self.view.module
        if self.size <= WHOLE:
            return TrialScope(module, graph, graph.nodes, [graph.result()], True)
        if graph not in self._scopes:
            plan = next((plan for plan in self.planned.plans if plan.graph.name == graph.name), self.planned.plans[-1])
            self._scopes[graph] = Surroundings(graph, edge.users, plan, [])
        region = self._scopes[graph].around(dict.fromkeys((edge.producer, edge.consumer, *edit.nodes)))
        return TrialScope(module, graph, region.nodes, region.results, False)

    def _standing(self, scope: TrialScope, edit: Edit | None) -> Standing | None:
        self.left -= scope.size
        try:
            module = apply_edit(scope, edit)
            plans = plan_changed(module, self.planned.policy, self.planned.device)
            planned = Planned(module, self.planned.policy, made=plans)
            return standing(planned, self.home, self.machine) if planned.unsized is None else None
        except CANNOT:
            return None

    def _fix(self, edge: RefusedEdge, proposal: Proposal, scope: TrialScope, before: Standing, after: Standing) -> ProvenFix:
        candidate, edit, step = proposal.candidate, proposal.edit, proposal.step
        how = candidate.how.get(self.framework, candidate.how.get("", ""))
        replaced = next(iter(edit.changes))
        words = how.format(p=self._called(step.producer), c=self._called(step.consumer), x=self._called(replaced))
        old, new = lines_of(scope, edit, self.home)
        saves = before.less(after)
        times = 1.0 if scope.whole else self.runs(edge.graph)
        saves = Saving(saves.kernels * times, saves.bytes * times, round(saves.us * times, 3))
        fix = ProvenFix(candidate.key, words, saves, old, new, nodes=scope.size, is_whole=scope.whole)
        return self._with_effects(fix, before, after, (edge.producer, edge.consumer))

    def _with_effects(self, fix: ProvenFix, before: Standing, after: Standing, own: Pair) -> ProvenFix:
        """A fix with the lines of the program that it is about, and what becomes of other edges."""
        changed = {pair: (fused, after.edges[pair]) for pair, fused in before.edges.items() if pair in after.edges and pair != own}
        return replace(
            fix,
            places=tuple(dict.fromkeys(line for node in own if (line := self._line(node)))),
            gained=tuple(_names(pair) for pair, (was, now) in changed.items() if was == "none" and now == "all"),
            lost=tuple(_names(pair) for pair, (was, now) in changed.items() if was == "all" and now == "none"))

    @cached_property
    def framework(self) -> str:
        """The framework in the terms of which a fix is described: ``jax`` for XLA's texts, ``torch``, ``relay``."""
        name = self.view.module.dialect.module.lower()
        source = written(next((n for g in self.view.graphs for n in g.nodes), self.view.module.main().result()))
        dialect = source.op.dialect
        return "torch" if "torch" in dialect or "torch" in name else "relay" if "relay" in dialect else "jax"

    def _line(self, node: Node) -> str:
        """The line of the user's program that a node comes from; empty where the text has none."""
        line = source_line(self.view.module, written(node))
        return line if line and not in_library(line) else ""

    def _called(self, node: Node) -> str:
        """A node for a sentence: ``multiply %mul.3 in layer_0/mlp at model.py:12``."""
        source = written(node)
        line, scope = self._line(node), "/".join(self.view.operator_scope(source))
        return f"{source.op.name} %{source.name}" + (f" in {scope}" if scope else "") + (f" at {line}" if line else "")


def _names(pair: Pair) -> tuple[str, str]:
    return written(pair[0]).name, written(pair[1]).name
