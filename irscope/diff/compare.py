"""Compares two modules: nodes that are equal, nodes that are in one only, and nodes that changed."""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from irscope.analysis.cost import is_unsized
from irscope.analysis.soundness import Use, soundness
from irscope.analysis.survey import Survey
from irscope.analysis.values import is_annotation
from irscope.diff.normal import normal_form
from irscope.expand.specialise import has_open_sizes
from irscope.graph import Cut, Graph, Module, Node, Op, Typing, bytes_of, callees_first, live
from irscope.graph.numbering import Equality, Numbering, by_value, plain
from irscope.ops import hlo
from irscope.source import UserError

METRICS = ("nodes", "kernels", "flops", "bytes", "peak_bytes", "parameter_bytes")
"""What is counted on both sides, for the entry and all it runs."""


@dataclass(frozen=True, slots=True)
class Change:
    """A node of one side (the other is None: it was removed or added), or a pair that does the same kind of thing differently."""

    before: Node | None
    after: Node | None
    why: str = ""


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
    cuts: tuple[Cut | None, Cut | None] = (None, None)
    """What is there of texts that were cut off: only computations that are complete in both are compared, and no figures."""

    @property
    def partial(self) -> bool:
        """Whether a text was cut off."""
        return self.cuts != (None, None)

    def metric(self, name: str) -> tuple[float | None, float | None]:
        """A metric before and after; ``ops.NAME`` counts an operator. Raises KeyError for a name that is none."""
        if name.startswith("ops."):
            return float(self.ops_before[name[4:]]), float(self.ops_after[name[4:]])
        return self.before[name], self.after[name]

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
    if before.dialect is not after.dialect and before.is_primitive and after.is_primitive:
        before, after = _normal_forms(before, after)
    numbers = Numbering(_equality(before, after), [*callees_first(before), *callees_first(after)])
    partners = _partners(numbers, before, after)
    if cuts != (None, None):  # what a cut text does not hold was not removed
        partners = [(a, b) for a, b in partners if (a or not cuts[0]) and (b or not cuts[1])]
        return Comparison(False, [_pair(numbers, a, b) for a, b in partners], {}, {}, Counter(), Counter(), cuts)
    pairs = [_pair(numbers, a, b) for a, b in partners]
    same = bool(before.entry and after.entry) and numbers.graphs[before.main()] == numbers.graphs[after.main()]
    first, second = Survey(before), Survey(after)
    return Comparison(same, pairs, _metrics(first), _metrics(second), first.ops, second.ops)


def _complete(module: Module) -> Module:
    """The complete computations of a cut module; a whole one as it is."""
    if module.cut is None:
        return module
    kept = module.derived()
    kept.graphs = {name: graph for name, graph in module.graphs.items() if name in module.cut.complete or "inline" in graph.notes}
    return kept


def _normal_forms(before: Module, after: Module) -> tuple[Module, Module]:
    """Both modules in normal form, or as they are written where one of them is ill-typed, cannot be expanded, or leaves sizes open."""
    if any(has_open_sizes(module) or not soundness(module).allows(Use.PASSES) for module in (before, after)):
        return before, after
    try:
        return normal_form(before), normal_form(after)
    except UserError:
        return before, after


def _equality(before: Module, after: Module) -> Equality:
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


def _partners(numbers: Numbering, before: Module, after: Module) -> list[tuple[Graph | None, Graph | None]]:
    """Pairs of corresponding graphs: the entries, equal graphs, graphs of the same name, and the unpaired rest."""
    pairs: list[tuple[Graph | None, Graph | None]] = []
    left, right = list(before.graphs.values()), list(after.graphs.values())
    if before.entry and after.entry:
        pairs.append((before.main(), after.main()))
        left.remove(before.main())
        right.remove(after.main())
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


def _pair(numbers: Numbering, before: Graph | None, after: Graph | None) -> GraphPair:
    if before is None or after is None:
        return GraphPair(before, after, False)
    if numbers.graphs[before] == numbers.graphs[after]:
        return GraphPair(before, after, True)
    return GraphPair(before, after, False, _changes(numbers, before, after))


def _changes(numbers: Numbering, before: Graph, after: Graph) -> list[Change]:
    """Nodes without an equal on the other side. From the results upwards, pairs of the same operator are reported as changed."""
    left, right = _unmatched(numbers, before, after), _unmatched(numbers, after, before)
    partner: dict[Node, Node] = {}
    taken: set[Node] = set()
    stack = [(before.root, after.root)] if before.root is not None and after.root is not None else []
    seen: set[tuple[Node, Node]] = set()
    while stack:
        a, b = stack.pop()
        if (a, b) in seen or a not in left or b not in right or a in partner or b in taken:
            continue
        seen.add((a, b))
        if a.op.name == b.op.name:
            partner[a] = b
            taken.add(b)
            stack.extend(zip(a.operands, b.operands, strict=False))
    # Nodes that the walk from the results did not reach: pair the same operator, in order.
    spare: dict[tuple[str, str], list[Node]] = {}
    for node in right:
        if node not in taken:
            spare.setdefault((node.op.name, str(node.type)), []).append(node)
    for node in left:
        if node not in partner and (same := spare.get((node.op.name, str(node.type)))):
            partner[node] = same.pop(0)
            taken.add(partner[node])
    changes = []
    for node in left:
        other = partner.get(node)
        if other is None:
            changes.append(Change(node, None))
        elif why := _difference(node, other):
            changes.append(Change(node, other, why))
    return changes + [Change(None, node) for node in right if node not in taken]


def _unmatched(numbers: Numbering, graph: Graph, other: Graph) -> dict[Node, None]:
    """The live nodes of a graph for which the other has no equal left."""
    alive, there = live(graph), live(other)
    mine, theirs = numbers.nodes[graph], numbers.nodes[other]
    stock = Counter(theirs[n.index] for n in other.nodes if there[n.index])
    found: dict[Node, None] = {}
    for node in graph.nodes:
        if alive[node.index]:
            if stock[mine[node.index]] > 0:
                stock[mine[node.index]] -= 1
            else:
                found[node] = None
    return found


def _difference(a: Node, b: Node) -> str:
    """The difference between two nodes of the same operator, apart from their operands; empty if only the operands differ."""
    parts = []
    if str(a.type) != str(b.type):
        parts.append(f"{a.type} became {b.type}")
    keys = sorted(a.attrs.keys() | b.attrs.keys())
    both = [(k, *(str({**node.attrs}.get(k)) for node in (a, b))) for k in keys]
    parts += [f"{k}: {_short(mine)} became {_short(theirs)}" for k, mine, theirs in both if mine != theirs]
    if len(a.operands) != len(b.operands):
        parts.append(f"{len(a.operands)} operands became {len(b.operands)}")
    return "; ".join(parts)


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
