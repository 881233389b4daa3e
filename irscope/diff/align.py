"""Which node of one module is which node of another, whatever their names and the order of lines, in fusions or outside."""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from irscope.diff.flat import Flat, closed_graphs, flatten
from irscope.diff.labels import LabelTable, Sameness, Side, is_transparent, side
from irscope.diff.matching import ValueMatcher
from irscope.graph import Graph, Module, Node, Typing, callees_first
from irscope.graph.numbering import Numbering, plain
from irscope.ops import hlo, sets

REDUCTIONS = sets.hlo("reduce reduce-window")


@dataclass(slots=True, eq=False)
class Host:
    """Two aligned graphs with all that they open: ``places`` pairs the places, ``frames`` the opened bodies."""

    before: Side
    after: Side
    places: dict[int, int] = field(default_factory=dict)
    frames: dict[int, int] = field(default_factory=dict)
    taken: set[int] = field(default_factory=set)

    def opened(self) -> set[Graph]:
        """The graphs of both sides whose nodes have places."""
        return {side.flat.graph_of(frame) for side in (self.before, self.after) for frame in range(len(side.flat.callers))}

    def is_pair(self, place: int, other: int) -> bool:
        """Whether two places have the same value, or are the same node."""
        return self.before.partner[self.before.value_of[place]] == self.after.value_of[other] or self.places.get(place) == other

    def has_partner(self, place: int, other: int) -> bool:
        """Whether both places are paired, with others."""
        return ((place in self.places or self.before.partner[self.before.value_of[place]] >= 0)
                and (other in self.taken or self.after.partner[self.after.value_of[other]] >= 0))


@dataclass(slots=True, eq=False)
class Alignment:
    """``pairs``: the node after of each node before that has one, ``backward`` the other way. ``hosts``: the pairs of graphs that were
    aligned, with what they open, callers first. ``partners``: the graph after of each graph before that was aligned for itself."""

    pairs: dict[Node, Node] = field(default_factory=dict)
    backward: dict[Node, Node] = field(default_factory=dict)
    hosts: list[Host] = field(default_factory=list)
    partners: dict[Graph, Graph] = field(default_factory=dict)

    @property
    def renamed(self) -> int:
        """How many pairs have two different names."""
        return sum(a.name != b.name for a, b in self.pairs.items())


class Votes:
    """How often the callers of a graph before are paired with callers of a graph after."""

    def __init__(self, numbering: Numbering) -> None:
        self.numbers = numbering.graphs
        self.counts: dict[Graph, Counter[Graph]] = {}
        self.equal: dict[int, set[Graph]] = {}
        """The graphs before, by their number, for which an equal graph is a candidate."""

    def add(self, before: Graph, after: Graph) -> None:
        """Count a pair of callers."""
        self.counts.setdefault(before, Counter())[after] += 1
        if self.numbers[before] == self.numbers[after]:
            self.equal.setdefault(self.numbers[before], set()).add(before)

    def partner(self, graph: Graph, taken: set[Graph]) -> Graph | None:
        """The candidate that is equal, or else the most frequent one that is not equal to another graph before. Each graph has one turn."""
        number = self.numbers[graph]
        known = [g for g, _ in self.counts.get(graph, Counter()).most_common() if g not in taken]
        self.equal.get(number, set()).discard(graph)
        equal = next((g for g in known if self.numbers[g] == number), None)
        return equal or next((g for g in known if not self.equal.get(self.numbers[g])), None)


class Aligner:
    """Aligns two modules, and pairs of their graphs; ``result`` has what is aligned so far."""

    def __init__(self, before: Module, after: Module, numbering: Numbering) -> None:
        self.before, self.after, self.numbering = before, after, numbering
        self.result = Alignment()
        self.closed = closed_graphs(before.graphs.values()) | closed_graphs(after.graphs.values())
        self.typed = before.dialect.typing is after.dialect.typing is Typing.STATED

    def align(self) -> None:
        """Align the modules from their entries on. The bodies of fusions and calls are opened in place; other bodies are aligned once nodes
        that call them are paired."""
        votes = Votes(self.numbering)
        votes.add(self.before.main(), self.after.main())
        taken: set[Graph] = set()
        for graph in reversed(callees_first(self.before, self.before.main())):
            partner = votes.partner(graph, taken) if graph not in taken else None
            if partner is not None:
                host = self.add(graph, partner)
                taken |= host.opened()
                collect(host, self.result, votes)

    def add(self, before: Graph, after: Graph) -> Host:
        """Align two graphs and append them to the hosts of the result; :func:`collect` adds their pairs of nodes."""
        a, b = pair_graphs(before, after, self.numbering, self.closed, self.typed)
        host = Host(a, b, _places(a, b))
        host.taken = set(host.places.values())
        _leftovers(host)
        host.frames = _frames(a.flat, b.flat, host.places)
        self.result.hosts.append(host)
        self.result.partners[before] = after
        return host


def pair_graphs(before: Graph, after: Graph, numbering: Numbering, closed: set[Graph], typed: bool) -> tuple[Side, Side]:
    """The values of two graphs, paired, with all calls opened but those of ``closed`` graphs. ``typed``: both texts state types."""
    first, second = flatten(before, closed), flatten(after, closed)
    table = LabelTable()
    type = numbering.equality.type
    anchored = len(before.params) == len(after.params) and all(
        not typed or type(p.type) == type(q.type) for p, q in zip(before.params, after.params, strict=True))
    same = Sameness(numbering, typed, anchored)
    a, b = side(first, same, table), side(second, same, table)
    params = zip(first.params, second.params, strict=True) if anchored else ()
    ValueMatcher(a, b).run((a.value_of[x], b.value_of[y]) for x, y in params)
    return a, b


def _places(a: Side, b: Side) -> dict[int, int]:
    """The pairs of places of each pair of values. Of several places with one value, those with paired users come first, then in order."""
    partners: dict[int, int] = {}
    taken: set[int] = set()
    proposed: dict[int, Counter[int]] = {}
    for x in sorted(range(len(a.partner)), key=lambda x: -a.rank[x]):
        y = a.partner[x]
        if y < 0:
            continue
        mine, theirs = a.members[x], b.members[y]
        if len(mine) == len(theirs) == 1:
            pairs = [(mine[0], theirs[0])]
        else:
            pairs = []
            votes = sorted(((n, p, q) for p in mine for q, n in proposed.get(p, Counter()).items()), key=lambda vote: -vote[0])
            for _, p, q in votes:
                if p not in partners and q not in taken:
                    partners[p] = q
                    taken.add(q)
                    pairs.append((p, q))
            left = sorted((p for p in mine if p not in partners), key=a.flat.rank.__getitem__)
            right = sorted((q for q in theirs if q not in taken), key=b.flat.rank.__getitem__)
            pairs += zip(left, right, strict=False)
        for p, q in pairs:
            partners[p] = q
            taken.add(q)
            for s, t in zip(a.flat.operands[p], b.flat.operands[q], strict=False):
                if a.partner[a.value_of[s]] == b.value_of[t]:
                    proposed.setdefault(s, Counter())[t] += 1
    return partners


def _leftovers(host: Host) -> None:
    """Pair copies of a value, and constants that changed, where all their users are pairs. ``certain[p]``: every user of a place, also
    behind transparent operators, has a partner with the same operator. Users have a higher rank than their operands."""
    a, b = host.before.flat, host.after.flat
    certain = [False] * len(a.nodes)
    for p in sorted((p for p, alive in enumerate(a.alive) if alive), key=lambda p: -a.rank[p]):
        certain[p] = all(_does_the_same(host, user) and (certain[user] or not is_transparent(a.nodes[user])) for user, _ in a.users[p])
        if p in host.places or not certain[p] or a.nodes[p].op is hlo.parameter:
            continue
        others = {(host.places[user], number) for user, number in a.users[p]}
        places = {b.operands[user][number] for user, number in others if number < len(b.operands[user])}
        if len(places) != 1:
            continue
        q = places.pop()
        mine, theirs = a.nodes[p], b.nodes[q]
        if q in host.taken or len(b.users[q]) != len(others) or set(b.users[q]) != others:
            continue
        if mine.op is theirs.op and plain(mine.type) == plain(theirs.type):
            host.places[p] = q
            host.taken.add(q)


def _does_the_same(host: Host, place: int) -> bool:
    """Whether a place has a partner with the same operator."""
    partner = host.places.get(place, -1)
    return partner >= 0 and host.before.flat.nodes[place].op is host.after.flat.nodes[partner].op


def collect(host: Host, result: Alignment, votes: Votes | None = None) -> None:
    """Add the pairs of nodes that follow from the pairs of places of a host. A node of a graph that is called twice has two places: its
    most frequent partner counts. ``votes`` gets the bodies of each new pair."""
    a, b, partners, frames = host.before, host.after, host.places, host.frames
    chosen: dict[Node, Counter[Node]] = {}
    for p in sorted(partners, key=a.flat.rank.__getitem__):  # in a tie the first call wins
        chosen.setdefault(a.flat.nodes[p], Counter())[b.flat.nodes[partners[p]]] += 1
    there: dict[tuple[int, str, int], list[Node]] = {}
    for node, frame, place in b.flat.aliases:
        there.setdefault((frame, node.op.name, b.value_of[place] if place >= 0 else -1), []).append(node)
    for node, frame, place in a.flat.aliases:
        partner = a.partner[a.value_of[place]] if place >= 0 and a.value_of[place] >= 0 else -1
        if frame not in frames or (place >= 0 > partner):
            continue
        found = there.get((frames[frame], node.op.name, partner))
        if found:
            chosen.setdefault(node, Counter())[found.pop(0)] += 1
    split = _split(b)
    for node, others in chosen.items():
        other = next((o for o, _ in others.most_common() if o not in result.backward), None)
        if other is None or node in result.pairs:
            continue
        result.pairs[node], result.backward[other] = other, node
        if votes is not None:
            for mine, theirs in zip(node.bodies, split.get(other, other).bodies, strict=False):
                votes.add(mine, theirs)


def _split(side: Side) -> dict[Node, Node]:
    """Reductions in two steps whose first one is unmatched, by their second. XLA's TreeReductionRewriter gives the first step
    the computation of the reduction that both replace, and the second a copy."""
    found: dict[Node, Node] = {}
    for i, node in enumerate(side.nodes):
        if side.partner[i] >= 0 and node.op in REDUCTIONS:
            first = side.sources[i][0]
            inner = side.nodes[first]
            if side.partner[first] < 0 and inner.op in REDUCTIONS and len(inner.operands) == len(node.operands):
                found.update((side.flat.nodes[place], inner) for place in side.members[i])
    return found


def _frames(a: Flat, b: Flat, partners: dict[int, int]) -> dict[int, int]:
    """Opened bodies that have most of their nodes in common, by callers of one operator."""
    common: Counter[tuple[int, int]] = Counter()
    for p, q in partners.items():
        mine, theirs = a.frames[p], b.frames[q]
        if mine and theirs and _op(a, mine) == _op(b, theirs):
            common[mine, theirs] += 1
    found, taken = {0: 0}, {0}
    for (mine, theirs), _ in common.most_common():
        if mine not in found and theirs not in taken:
            found[mine] = theirs
            taken.add(theirs)
    return found


def _op(flat: Flat, frame: int) -> str:
    caller = flat.callers[frame]
    return caller.op.name if caller is not None else ""
