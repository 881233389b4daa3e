"""The outline of one graph by regions: forward, backward and update, layers by name or by repetition, and stretches between narrow cuts.

Every section is an interval of one topological order of the graph, so sections beside each other never depend on each other in a circle.
A section has few parts; equal parts that follow each other are folded.
"""
from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise

from irscope.analysis.classes import is_step
from irscope.analysis.clustering import clustered
from irscope.analysis.cost import ModuleCosts, is_kernel
from irscope.analysis.naming import Naming
from irscope.analysis.outline import Section, add_up, masked, merged, run_title
from irscope.analysis.phases import PHASES, phases_of
from irscope.analysis.repeats import is_layered, is_long, repeats
from irscope.analysis.scopes import Scope, layers
from irscope.graph import Graph, Node

MAX_PARTS = 16
"""A section with more parts than this is cut into groups of them."""
MAX_FLAT = 40
"""A graph of no more nodes than this, such as the body of a fusion, is one section."""
PARTS = 8
"""The approximate number of those groups."""
MAX_STEPS = 16
"""A stretch of no more steps than this is not divided."""
MIN_SHARE = 0.5
"""Repeating stretches divide a section when they hold at least this share of its steps."""
TINY = 2
"""A run of no more steps than this does not interrupt what is around it."""
JOIN = " .. "
"""Between the first and the last title of a group."""


@dataclass(slots=True, eq=False)
class _Part:
    """A section that is being made: its steps in order, and the level of the scopes that divides it next."""

    section: Section
    steps: list[Node]
    level: int
    items: list[_Part | Node] = field(default_factory=list)
    shape: int = -1
    alike: Node | None = None
    """The first step of the first of those that count as copies of one another, whatever their steps are."""


def outline_by_region(graph: Graph, costs: ModuleCosts, kinds: Sequence[int], scopes: Sequence[Scope], naming: Naming) -> Section:
    """The sections of ``graph``, whose bodies stay closed: a node stands for all that it calls.

    ``kinds`` are numbers that similar nodes share, ``scopes`` the names of their places in the user's program (empty where the text has
    none); both by index.
    """
    regions = _Regions(graph, costs, naming)
    return regions.flat() if len(graph.nodes) <= MAX_FLAT else regions.outline(kinds, scopes)


class _Regions:
    def __init__(self, graph: Graph, costs: ModuleCosts, naming: Naming) -> None:
        self.graph, self.costs, self.naming = graph, costs, naming
        self.times = costs.calls.times.get(graph, 1.0)

    def flat(self) -> Section:
        """All nodes in one section."""
        section = Section(self.graph.name, "graph", self.graph)
        for node in self.graph.nodes:
            self._count(section, node)
        return section

    def outline(self, kinds: Sequence[int], scopes: Sequence[Scope]) -> Section:
        """The sections of the graph, its steps in a clustered order."""
        phases = phases_of(self.graph, scopes)
        self.kinds = kinds
        self.products = [self.naming.contractions_of(node) for node in self.graph.nodes]
        self.paths = [layers(scope) for scope in scopes]
        if any(phases):
            self.paths = [(PHASES[phase], *path) for phase, path in zip(phases, self.paths, strict=True)]
        self.steps = [node for node in clustered(self.graph, phases, self.paths) if is_step(node)]
        self.place = {node: at for at, node in enumerate(self.steps)}
        self.others = self._others()
        self.crossing = self._crossing()
        self.shapes: dict[object, int] = {}
        root = _Part(Section(self.graph.name, "graph", self.graph), self.steps, 0)
        made: list[_Part] = []
        todo = [root]
        while todo:
            part = todo.pop()
            made.append(part)
            self._divide(part)
            todo += [item for item in part.items if isinstance(item, _Part)]
        for part in reversed(made):
            self._arrange(part)
        for node in self.others[None]:
            self._count(root.section, node)
        return root.section

    def _others(self) -> dict[Node | None, list[Node]]:
        """The nodes that are no steps, by the first step that uses them; under None those that no step uses."""
        first: dict[Node, Node] = {}
        for node in reversed(self.graph.nodes):
            user = node if node in self.place else first.get(node)
            if user is None:
                continue
            for operand in node.operands:
                known = first.get(operand)
                if known is None or self.place[user] < self.place[known]:
                    first[operand] = user
        found: dict[Node | None, list[Node]] = defaultdict(list)
        for node in self.graph.nodes:
            if node not in self.place:
                found[first.get(node)].append(node)
        return found

    def _crossing(self) -> list[int]:
        """For each place in the order of steps, how many values are computed before it and used there or later."""
        last: dict[Node, int] = {}
        changes = [0] * (len(self.steps) + 2)
        for node in reversed(self.graph.nodes):
            at = self.place.get(node)
            until = last.get(node, -1)
            if at is not None:
                if until > at:
                    changes[at + 1] += 1
                    changes[until + 1] -= 1
                until = at
            for operand in node.operands:
                last[operand] = max(last.get(operand, -1), until)
        return list(accumulate(changes))

    def _divide(self, part: _Part) -> None:
        """Divide a part by the next level of its scopes (the first is the phase), or else by repetition."""
        steps, level = part.steps, part.level
        deepest = max((len(self.paths[node.index]) for node in steps), default=0)
        if len(steps) > MAX_STEPS:
            while level < deepest:
                runs = self._runs(steps, level)
                level += 1
                if len(runs) == 1:
                    continue
                if len(runs) > 2 * len({key for key, _ in runs}) and self._repeat(part, level - 1):
                    return
                for key, nodes in runs:
                    self._add(part, nodes, level, key[level - 1] if len(key) >= level else "")
                self._match(part)
                return
            if self._repeat(part, level):
                return
        part.items = list(steps)

    def _match(self, part: _Part) -> None:
        """Make the sections of a part copies of one another whose names differ in numbers and whose contractions are equal."""
        first: dict[object, Node] = {}
        for item in part.items:
            if isinstance(item, _Part) and item.section.kind == "scope":
                products = Counter(key for step in item.steps if (key := self.products[step.index]) is not None)
                if products.total() > 1:
                    item.alike = first.setdefault((masked(item.section.title), frozenset(products.items())), item.steps[0])

    def _add(self, part: _Part, nodes: list[Node], level: int, title: str = "", kind: str = "") -> None:
        """Add steps to a part: as a section, or as they are where they are few and have no title."""
        if not title and len(nodes) <= TINY and kind != "repeat":
            part.items += nodes
        elif nodes:
            kind = kind or ("update" if title == PHASES[2] and level == 1 else "scope" if title else "chunk")
            part.items.append(_Part(Section(title or self.naming.work_of(nodes), kind, self.graph), nodes, level))

    def _runs(self, steps: list[Node], level: int) -> list[tuple[Scope, list[Node]]]:
        """The runs of steps with one path up to a level; a few steps do not interrupt a run."""
        runs: list[tuple[Scope, list[Node]]] = []
        for key, group in groupby(steps, lambda node: self.paths[node.index][:level + 1]):
            nodes = list(group)
            if len(runs) > 1 and runs[-2][0] == key and len(runs[-1][1]) <= TINY:
                _, between = runs.pop()
                nodes = between + nodes
            if runs and runs[-1][0] == key:
                runs[-1][1].extend(nodes)
            else:
                runs.append((key, nodes))
        return runs

    def _repeat(self, part: _Part, level: int) -> bool:
        """Divide a part into the copies of stretches that repeat and what is between them; whether that holds enough of it."""
        steps = part.steps
        exact = [[(begin, begin + repeat.period) for begin in range(repeat.begin, repeat.end, repeat.period)]
                 for repeat in repeats([self.kinds[node.index] for node in steps])]
        loose = self._anchored(steps)
        found, is_loose = max((exact, False), (loose, True), key=lambda pair: (_cover(pair[0]), -len(pair[0])))
        if _cover(found) < MIN_SHARE * len(steps):
            return False
        at = 0
        for copies in found:
            self._add(part, steps[at:copies[0][0]], level)
            for begin, end in copies:
                self._add(part, steps[begin:end], level, kind="repeat")
                if is_loose and isinstance(copy := part.items[-1], _Part):
                    copy.alike = steps[copies[0][0]]
            at = copies[-1][1]
        self._add(part, steps[at:], level)
        return True

    def _anchored(self, steps: list[Node]) -> list[list[tuple[int, int]]]:
        """The stretches between contractions that repeat: for each, where its copies begin and end.

        A compiler fuses the steps between the contractions of one layer as in no other, and the contractions are the same.
        """
        places: list[int] = []
        kinds: list[int] = []
        for at, node in enumerate(steps):
            if (key := self.products[node.index]) is not None:
                places.append(at)
                kinds.append(self.shapes.setdefault(key, len(self.shapes)))
        found = []
        for repeat in repeats(kinds, is_layered):
            begins = places[repeat.begin:repeat.end:repeat.period]
            last = places[repeat.end] if repeat.end < len(places) else len(steps)
            ends = [*begins[1:], min(last, begins[-1] + max(b - a for a, b in pairwise(begins)))]
            found.append(list(zip(begins, ends, strict=True)))
        return found

    def _arrange(self, part: _Part) -> None:
        """Fold equal items of a part, whose own parts are arranged; cut many into groups; and add up."""
        todo = [part]
        arranged: list[_Part] = []
        while todo:
            top = todo.pop()
            arranged.append(top)
            top.items = self._folded(top.items)
            if len(top.items) > MAX_PARTS:
                top.items = [self._grouped(items) for items in self._cut(top.items)]
                todo += [item for item in top.items if isinstance(item, _Part) and item.shape < 0]
        for top in reversed(arranged):
            self._finish(top)

    def _folded(self, items: list[_Part | Node]) -> list[_Part | Node]:
        """The items with those that repeat in a row folded into one."""
        def is_enough(begin: int, period: int, times: int) -> bool:
            return is_long(begin, period, times) or any(isinstance(item, _Part) for item in items[begin:begin + period])

        found: list[_Part | Node] = []
        at = 0
        for repeat in repeats([self._kind(item) for item in items], is_enough):
            found += items[at:repeat.begin]
            copies = [self._copy(items[begin:begin + repeat.period]) for begin in range(repeat.begin, repeat.end, repeat.period)]
            whole = _Part(merged([copy.section for copy in copies]), copies[0].steps, 0, shape=copies[0].shape)
            if copies[0].alike is not None and copies[0].section.kind == "repeat":
                whole.section.title = copies[0].section.title
            found.append(whole)
            at = repeat.end
        return found + items[at:]

    def _copy(self, items: list[_Part | Node]) -> _Part:
        """One copy of what repeats: the item itself, or a section around several."""
        if len(items) == 1 and isinstance(items[0], _Part):
            return items[0]
        copy = self._grouped(items)
        copy.section.kind = "repeat"
        self._finish(copy)
        return copy

    def _grouped(self, items: list[_Part | Node]) -> _Part:
        """A section around items; the item itself where it is one section."""
        if len(items) == 1 and isinstance(items[0], _Part):
            return items[0]
        steps = [step for item in items for step in (item.steps if isinstance(item, _Part) else [item])]
        titles = [item.section.title for item in items if isinstance(item, _Part)]
        if titles and 2 * len(titles) >= len(items):
            ends = titles[0].split(JOIN)[0], titles[-1].split(JOIN)[-1]
            title = run_title(titles) if len(set(map(masked, titles))) == 1 else JOIN.join(dict.fromkeys(ends))
        else:
            title = self.naming.work_of(steps)
        return _Part(Section(title, "chunk", self.graph), steps, 0, items)

    def _cut(self, items: list[_Part | Node]) -> list[list[_Part | Node]]:
        """The items in about :data:`PARTS` groups, cut where few values cross."""
        begins = [self.place[item.steps[0] if isinstance(item, _Part) else item] for item in items]
        size = len(items) / PARTS
        groups: list[list[_Part | Node]] = []
        at = 0
        for number in range(1, PARTS):
            ideal = number * size
            near = range(max(at + 1, round(ideal - size / 3)), min(len(items), round(ideal + size / 3) + 1))
            cut = min(near, key=lambda i: (self.crossing[begins[i]], abs(i - ideal)), default=at)
            if cut > at:
                groups.append(items[at:cut])
                at = cut
        return [*groups, items[at:]]

    def _kind(self, item: _Part | Node) -> int:
        """A number that equal items share."""
        key: object = ("node", self.kinds[item.index]) if isinstance(item, Node) else item.alike or (masked(item.section.title), item.shape)
        return self.shapes.setdefault(key, len(self.shapes))

    def _finish(self, part: _Part) -> None:
        """Give the section of a part its nodes, children and sums."""
        if part.shape >= 0:
            return
        section = part.section
        part.shape = self.shapes.setdefault(tuple(sorted(Counter(map(self._kind, part.items)).items())), len(self.shapes))
        for item in part.items:
            if isinstance(item, _Part):
                section.children.append(item.section)
                continue
            for node in (*self.others[item], item):
                self._count(section, node)
        add_up(section, section.children)

    def _count(self, section: Section, node: Node) -> None:
        section.nodes.append(node)
        section.n_nodes += not node.synthetic
        section.ops[node.op.name] += not node.synthetic
        section.flops += self.times * self.costs.flops(node, self.graph)
        section.bytes += self.times * self.costs.traffic(node, self.graph)
        section.kernels += self.times * is_kernel(node)
        section.is_open |= self.costs.is_open(node, self.graph)


def _cover(found: list[list[tuple[int, int]]]) -> int:
    """How many steps are in the copies of some stretches."""
    return sum(copies[-1][1] - copies[0][0] for copies in found)
