"""The module as nested sections, for a first overview. Identical sections are folded into one with their number."""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from irscope.graph import Graph, Node

_NUMBERS = re.compile(r"\d{1,18}(?:[a-z](?![A-Za-z]))?")
"""Numbers in names, with a letter that counts (``block2a``); longer runs of digits do not."""


@dataclass(slots=True, eq=False)
class Section:
    """A part of a module: a computation, a scope of the user's program, a repeating stretch.

    ``nodes`` are directly in it, ``children`` below it. ``copies`` are the identical sections that are folded into this one, itself
    first; ``times`` is their number. The sums are over all copies and all descendants.
    """

    title: str
    kind: str
    graph: Graph | None = None
    nodes: list[Node] = field(default_factory=list)
    children: list[Section] = field(default_factory=list)
    copies: list[Section] = field(default_factory=list)
    note: str = ""
    n_nodes: int = 0
    kernels: float = 0.0
    flops: float = 0.0
    bytes: float = 0.0
    is_open: bool = False
    """Whether a part of the work or traffic is not known."""
    ops: Counter[str] = field(default_factory=Counter)
    shape: int = -1

    @property
    def times(self) -> int:
        return max(1, len(self.copies))

    def walk(self) -> Iterator[Section]:
        """This section and all below it, in order; skips folded copies."""
        stack = [self]
        while stack:
            top = stack.pop()
            yield top
            stack.extend(reversed(top.children))

    def all_nodes(self) -> Iterator[Node]:
        """Every node in this section, in its copies and below."""
        stack = [self]
        while stack:
            top = stack.pop()
            if len(top.copies) > 1:
                stack.extend(c for c in top.copies if c is not top)
            yield from top.nodes
            stack.extend(top.children)


def add_up(section: Section, parts: Iterable[Section]) -> None:
    """Add the sums of the ``parts`` to those of a section, in place."""
    for part in parts:
        section.n_nodes += part.n_nodes
        section.kernels += part.kernels
        section.flops += part.flops
        section.bytes += part.bytes
        section.is_open |= part.is_open
        section.ops.update(part.ops)


def fold(section: Section, classes: Iterable[int], shapes: dict[object, int]) -> None:
    """Compute a section's shape from the classes of its own nodes and from its children, and fold equal children into one.

    The children must have been folded before. Two sections are equal if their titles differ only in numbers, and their nodes and
    children are equal. ``shapes`` numbers the shapes of one outline; it is updated.
    """
    groups: dict[tuple[str, int], list[Section]] = {}
    for child in section.children:
        groups.setdefault((masked(child.title), child.shape), []).append(child)
    below = sorted((shapes.setdefault(key, len(shapes)), len(same)) for key, same in groups.items())
    section.shape = shapes.setdefault((tuple(sorted(Counter(classes).items())), tuple(below)), len(shapes))
    section.children = [same[0] if len(same) == 1 else merged(same) for same in groups.values()]


def masked(title: str) -> str:
    """A title without its numbers: names of one layer and the next are equal."""
    return _NUMBERS.sub("#", title)


def merged(same: list[Section]) -> Section:
    """One section for equal ones, which become its copies."""
    first = same[0]
    title = run_title([s.title for s in same])
    whole = Section(title, first.kind, first.graph, first.nodes, first.children, note=first.note, shape=first.shape)
    whole.copies = [whole, *same[1:]]
    add_up(whole, same)
    return whole


def run_title(titles: list[str]) -> str:
    """One title for names that differ only in numbers.

    >>> run_title(["layer_0", "layer_1", "layer_2"]), run_title(["h1", "h3", "h5"]), run_title(["s1_b1", "s2_b4"])
    ('layer_0..2', 'h1,3,5', 's1_b1 .. s2_b4')
    """
    if len(set(titles)) == 1:
        return titles[0]
    numbers = [_NUMBERS.findall(title) for title in titles]
    varying = [i for i in range(len(numbers[0])) if len({row[i] for row in numbers}) > 1] if len(set(map(len, numbers))) == 1 else []
    if len(varying) != 1:
        return f"{titles[0]} .. {titles[-1]}"
    place = varying[0]
    found = list(_NUMBERS.finditer(titles[0]))[place]
    head, tail = titles[0][:found.start()], titles[0][found.end():]
    words = sorted((row[place] for row in numbers), key=lambda word: (len(word), word))
    if not all(word.isdigit() for word in words):
        return f"{head}{words[0]}..{words[-1]}{tail}"
    values = [int(word) for word in words]
    if values == list(range(values[0], values[0] + len(values))):
        return f"{head}{values[0]}..{values[-1]}{tail}"
    shown = ",".join(map(str, values)) if len(values) <= 6 else f"{values[0]},{values[1]},..,{values[-1]}"
    return f"{head}{shown}{tail}"
