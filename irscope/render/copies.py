"""The copies of a section that repeats: which node of a further copy does what a node of the first does, which is drawn for it."""
from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from irscope.analysis.outline import Section
from irscope.graph import Node


def first_copy(section: Section) -> list[Node]:
    """The nodes of the first copy, in the order of the text."""
    return _in_order([*section.nodes, *(node for child in section.children for node in child.all_nodes())])


def further_copies(section: Section, kinds: list[int]) -> Iterator[tuple[int, Node, Node | None]]:
    """The nodes of each further copy, with the number of the copy and their counterparts in the first (None: it has none), which are
    paired in order, by what they do."""
    first: dict[int, list[Node]] = defaultdict(list)
    for node in first_copy(section):
        first[kinds[node.index]].append(node)
    for number, copy in enumerate(section.copies[1:], 1):
        taken: Counter[int] = Counter()
        for node in _in_order(copy.all_nodes()):
            kind = kinds[node.index]
            yield number, node, first[kind][taken[kind]] if taken[kind] < len(first[kind]) else None
            taken[kind] += 1


def _in_order(nodes: Iterable[Node]) -> list[Node]:
    return sorted(nodes, key=lambda node: node.index)
