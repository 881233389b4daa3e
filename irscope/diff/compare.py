"""Compares two modules: nodes that are equal, nodes that are in one only, and nodes that changed."""
from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from irscope.analysis.cost import is_unsized
from irscope.analysis.soundness import Use, soundness
from irscope.analysis.survey import Survey
from irscope.analysis.values import is_annotation
from irscope.diff.align import Aligner, Alignment, collect
from irscope.diff.changes import KINDS, Change, changes_of
from irscope.diff.normal import normal_form
from irscope.expand.specialise import has_open_sizes
from irscope.graph import Cut, Graph, Module, Op, Typing, bytes_of, callees_first
from irscope.graph.numbering import Equality, Numbering, by_value, plain
from irscope.ops import hlo
from irscope.source import UserError

__all__ = ["METRICS", "Change", "Comparison", "GraphPair", "compare", "equality"]
METRICS = ("nodes", "kernels", "flops", "bytes", "peak_bytes", "parameter_bytes")
"""What is counted on both sides, for the entry and all it runs."""


@dataclass(slots=True)
class GraphPair:
    """Two corresponding graphs, and the changes between them."""

    before: Graph | None
    after: Graph | None
    same: bool
    changes: list[Change] = field(default_factory=list)


@dataclass(slots=True)
class Comparison:
    """``same``: the entries and all they reach compute the same by the same operators. A figure that is not known is None."""

    same: bool
    pairs: list[GraphPair]
    before: dict[str, float | None]
    after: dict[str, float | None]
    ops_before: Counter[str]
    ops_after: Counter[str]
    alignment: Alignment = field(default_factory=Alignment)
    graphs: tuple[list[Graph], list[Graph]] = field(default_factory=lambda: ([], []))
    """All computations of both sides, as they are compared."""
    cuts: tuple[Cut | None, Cut | None] = (None, None)
    """What is there of texts that were cut off: only computations that are complete in both are compared, and no figures."""

    @property
    def partial(self) -> bool:
        """Whether a text was cut off."""
        return self.cuts != (None, None)

    def metric(self, name: str) -> tuple[float | None, float | None]:
        """A metric before and after; ``ops.NAME`` counts an operator. Raises KeyError for an unknown name."""
        if name.startswith("ops."):
            return float(self.ops_before[name[4:]]), float(self.ops_after[name[4:]])
        return self.before[name], self.after[name]

    def kinds(self) -> dict[str, int]:
        """How many changes there are of each kind."""
        found = Counter(change.kind for pair in self.pairs for change in pair.changes)
        return {kind: found[kind] for kind in KINDS}

    def op_changes(self) -> dict[str, tuple[int, int]]:
        """Operators whose number changed."""
        names = sorted(self.ops_before.keys() | self.ops_after.keys())
        return {n: (self.ops_before[n], self.ops_after[n]) for n in names if self.ops_before[n] != self.ops_after[n]}


def compare(before: Module, after: Module) -> Comparison:
    """Compare two modules, whatever their names and the order of independent lines.

    Of different dialects, their normal forms are compared; of a cut text, its complete computations.
    """
    cuts = before.cut, after.cut
    if cuts != (None, None):
        before, after = _complete(before), _complete(after)
    if before.dialect is not after.dialect:
        before, after = _normal_forms(before, after)
    graphs = callees_first(before), callees_first(after)
    numbers = Numbering(equality(before, after), [*graphs[0], *graphs[1]])
    aligner = Aligner(before, after, numbers)
    aligned = aligner.result
    if before.entry and after.entry:
        aligner.align()
    partners = _partners(numbers, before, after, aligned)
    pairs = Pairs(aligner)
    if cuts != (None, None):  # what a cut text does not hold was not removed
        partners = [(a, b) for a, b in partners if (a or not cuts[0]) and (b or not cuts[1])]
        return Comparison(False, [pairs.pair(a, b) for a, b in partners], {}, {}, Counter(), Counter(), aligned, graphs, cuts)
    compared = [pairs.pair(a, b) for a, b in partners]
    same = bool(before.entry and after.entry) and numbers.graphs[before.main()] == numbers.graphs[after.main()]
    first, second = Survey(before), Survey(after)
    return Comparison(same, compared, _metrics(first), _metrics(second), first.ops, second.ops, aligned, graphs)


def _complete(module: Module) -> Module:
    """The complete computations of a cut module; a whole one as it is."""
    if module.cut is None:
        return module
    kept = module.derived()
    kept.graphs = {name: graph for name, graph in module.graphs.items() if name in module.cut.complete or "inline" in graph.notes}
    return kept


def _normal_forms(before: Module, after: Module) -> tuple[Module, Module]:
    """Both modules in normal form, or as they are written where one of them is ill-typed, cannot be expanded, or leaves sizes open."""
    if all(not has_open_sizes(module) and soundness(module).allows(Use.PASSES) for module in (before, after)):
        with suppress(UserError):
            return normal_form(before), normal_form(after)
    return before, after


def equality(before: Module, after: Module) -> Equality:
    """Names, places, layouts and fingerprints do not count; types count if both texts state them, and always for constants."""
    stated = before.dialect.typing is after.dialect.typing is Typing.STATED

    def typed(op: Op) -> bool:
        return stated or op is hlo.constant or op is hlo.iota
    ignored = frozenset(("control_predecessors", "hash", "callee", "operand_layout_constraints", "outfeed_shape"))
    return Equality(ignored, plain, typed, by_value, elided=True, across=True)


def _metrics(survey: Survey) -> dict[str, float | None]:
    """The figures of a module; None where sizes or trips of loops that they depend on are not known."""
    totals, memory = survey.totals, survey.memory
    endless, is_open = bool(survey.calls.open_loops), totals.is_open
    opaque = any(node.op is hlo.custom_call and not is_annotation(node) for graph in survey.calls.order for node in graph.nodes)
    without_work = survey.costs.known is not None and bool(survey.costs.known.reason)
    params = survey.entry.params if survey.entry is not None else []
    lifetimes = survey.memory.graphs.get(survey.entry) if survey.entry is not None else None
    peak = lifetimes.peak if lifetimes is not None else 0
    return {
        "nodes": float(survey.n_nodes),
        "kernels": None if endless else float(totals.kernels),
        "flops": None if endless or is_open or without_work or opaque else float(totals.flops),
        "bytes": None if endless or is_open else float(totals.bytes),
        "peak_bytes": None if memory.unsized() is not None else float(peak),
        "parameter_bytes": None if any(is_unsized(p.type) for p in params) else float(sum(bytes_of(p.type) for p in params)),
    }


def _partners(numbers: Numbering, before: Module, after: Module, aligned: Alignment) -> list[tuple[Graph | None, Graph | None]]:
    """Pairs of corresponding graphs: those that are aligned, equal graphs, graphs of the same name, and the unpaired rest. A graph that is
    opened where it is called belongs to its caller."""
    pairs: list[tuple[Graph | None, Graph | None]] = [(host.before.flat.graph, host.after.flat.graph) for host in aligned.hosts]
    opened = {graph for host in aligned.hosts for graph in host.opened()}
    left, right = ([graph for graph in module.graphs.values() if graph not in opened] for module in (before, after))
    waiting: dict[int, list[Graph]] = {}
    for graph in right:
        waiting.setdefault(numbers.graphs[graph], []).append(graph)
    rest = []
    for graph in left:
        equal = waiting.get(numbers.graphs[graph])
        if equal:
            pairs.append((graph, equal.pop(0)))
        else:
            rest.append(graph)
    taken = {b for _, b in pairs}
    by_name = {g.name: g for g in right if g not in taken}
    for graph in rest:
        pairs.append((graph, by_name.pop(graph.name, None)))
    pairs += [(None, graph) for graph in by_name.values()]
    return pairs


class Pairs:
    """The changes of pairs of graphs; those that the entry does not reach are aligned on demand."""

    def __init__(self, aligner: Aligner) -> None:
        self.aligner, self.numbers, self.aligned = aligner, aligner.numbering, aligner.result
        self.hosts = {host.before.flat.graph: host for host in self.aligned.hosts}

    def pair(self, before: Graph | None, after: Graph | None) -> GraphPair:
        """Two graphs and their changes."""
        if before is None or after is None:
            return GraphPair(before, after, False)
        same = self.numbers.graphs[before] == self.numbers.graphs[after]
        if same and before not in self.hosts:
            return GraphPair(before, after, True)
        if before not in self.hosts:
            self.hosts[before] = self.aligner.add(before, after)
            collect(self.hosts[before], self.aligned)
        changes = [] if same else changes_of(self.hosts[before], self.aligned, self.numbers, self.aligner.typed)
        return GraphPair(before, after, same or not changes, changes)
