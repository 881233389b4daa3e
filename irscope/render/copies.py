"""The copies of a repeated section. Only the first is drawn: each node of a further copy is mapped to its counterpart in the first."""
from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from irscope.analysis.outline import Section
from irscope.graph import Node


def first_copy(section: Section) -> list[Node]:
    """The nodes of the first copy, in the order of the text."""
    return _in_order([*section.nodes, *(node for child in section.children for node in child.all_nodes())])


def further_copies(section: Section, kinds: list[int]) -> Iterator[tuple[int, Node, Node | None]]:
    """The nodes of each further copy: the number of the copy, the node, and its counterpart in the first copy (None: it has none).

    Nodes with equal numbers in ``kinds`` (by index) are paired in the order of the text.
    """
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
