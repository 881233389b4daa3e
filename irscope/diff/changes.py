"""What differs between two aligned graphs: nodes that were added, removed, changed or moved, and equal changes as groups."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from irscope.diff.align import Alignment, Host
from irscope.diff.flat import OPENED
from irscope.diff.labels import Side, is_commutative
from irscope.graph import Node, TensorType
from irscope.graph.numbering import Numbering
from irscope.ops import hlo, sets
from irscope.source.visible import one_line

KINDS = ("changed", "added", "removed", "moved", "duplicated", "merged")
"""``duplicated``: another copy of a node that has a partner; ``merged``: a copy that only the first side has."""
PLUMBING = sets.hlo("parameter get-tuple-element tuple")
"""Nodes without a value of their own, in opened fusions and calls: where they have no partner, the fusion is what changed."""
LONGEST = 60
"""Characters of an attribute's value that are shown."""


@dataclass(frozen=True, slots=True)
class Change:
    """A node of one side (the other is None: it was removed or added), or a pair that does the same kind of thing differently.

    ``kind`` is one of KINDS; ``why`` says what differs, ``what`` the same without sizes and names, for groups. ``graphs`` are the
    computations that the nodes are in, before and after.
    """

    before: Node | None
    after: Node | None
    why: str = ""
    kind: str = "changed"
    what: str = ""
    graphs: tuple[str | None, str | None] = (None, None)


@dataclass(slots=True)
class ChangeGroup:
    """Equal changes."""

    kind: str
    ops: tuple[str | None, str | None]
    what: str
    changes: list[Change] = field(default_factory=list)


def groups(changes: Iterable[Change]) -> list[ChangeGroup]:
    """Equal changes of nodes with equal operators, by kind, the most frequent first."""
    found: dict[tuple[object, ...], ChangeGroup] = {}
    for change in changes:
        ops = change.before.op.name if change.before else None, change.after.op.name if change.after else None
        group = found.setdefault((change.kind, ops, change.what), ChangeGroup(change.kind, ops, change.what))
        group.changes.append(change)
    return sorted(found.values(), key=lambda group: (KINDS.index(group.kind), -len(group.changes)))


def changes_of(host: Host, alignment: Alignment, numbering: Numbering, typed: bool) -> list[Change]:
    """The changes between the two graphs of a host, with the fusions and calls that are opened in them."""
    return [*_result(host), *_before(host, alignment, numbering, typed), *_after(host, alignment)]


def _result(host: Host) -> Iterator[Change]:
    """The result, where it is another value that both sides compute."""
    a, b = host.before, host.after
    if a.root >= 0 <= b.root and a.partner[a.root] != b.root and a.partner[a.root] >= 0 <= b.partner[b.root]:
        text = "the result is another value"
        yield Change(a.nodes[a.root], b.nodes[b.root], text, "changed", text, (a.flat.graph.name, b.flat.graph.name))


def _before(host: Host, alignment: Alignment, numbering: Numbering, typed: bool) -> Iterator[Change]:
    a, b = host.before, host.after
    where, there = _places(a), _places(b)
    for node, (place, frame) in where.items():
        graph = a.flat.graph_of(frame).name
        other = alignment.pairs.get(node)
        if other is None:
            if frame and node.op in PLUMBING:
                continue
            yield Change(node, None, kind="merged" if _is_copy(a, node, place) else "removed", graphs=(graph, None))
            continue
        target, into = there.get(other, (-1, 0))
        reasons = _reasons(node, other, numbering, typed) + _bodies(node, other, alignment, numbering)
        if place >= 0 <= target and a.flat.nodes[place] is node:
            reasons += _rewired(host, place, target)
        moved = _moved(host, frame, into)
        both = graph, b.flat.graph_of(into).name
        if reasons:
            why = "; ".join(why for why, _ in reasons) + (f"; {moved}" if moved else "")
            yield Change(node, other, why, "changed", "; ".join(what for _, what in reasons), both)
        elif moved and node.op not in PLUMBING:
            yield Change(node, other, moved, "moved", moved, both)


def _after(host: Host, alignment: Alignment) -> Iterator[Change]:
    b = host.after
    for node, (place, frame) in _places(b).items():
        if node in alignment.backward or (frame and node.op in PLUMBING):
            continue
        yield Change(None, node, kind="duplicated" if _is_copy(b, node, place) else "added", graphs=(None, b.flat.graph_of(frame).name))


def _is_copy(side: Side, node: Node, place: int) -> bool:
    """Whether a node without a partner is one more copy of a value that the other side has too."""
    return place >= 0 and side.partner[side.value_of[place]] >= 0 and side.flat.nodes[place] is node


def _places(side: Side) -> dict[Node, tuple[int, int]]:
    """The first place and the frame of each node, in the order of the text."""
    found: dict[Node, tuple[int, int]] = {}
    for place, node in enumerate(side.flat.nodes):
        if side.flat.alive[place] and node not in found:
            found[node] = place, side.flat.frames[place]
    for node, frame, place in side.flat.aliases:
        if place >= 0 and node not in found:
            found[node] = place, frame
    return found


def _moved(host: Host, frame: int, into: int) -> str:
    """Where a node moved; empty where it is in the body of the same caller."""
    if host.frames.get(frame) == into:
        return ""
    before, after = host.before.flat.callers[frame], host.after.flat.callers[into]
    if before is None or after is None:
        caller = after or before
        assert caller is not None
        return f"{'into' if after is not None else 'out of'} a {caller.op.name}"
    return f"from a {before.op.name} into another" if before.op is after.op else f"from a {before.op.name} into a {after.op.name}"


def _reasons(a: Node, b: Node, numbering: Numbering, typed: bool) -> list[tuple[str, str]]:
    """The differences of two nodes apart from their operands: each in full, and without sizes."""
    found = []
    if a.op is not b.op and (a.op.dialect, a.op.name) != (b.op.dialect, b.op.name):
        text = f"{a.op.name} became {b.op.name}"
        found.append((text, text))
    if typed and numbering.equality.type(a.type) != numbering.equality.type(b.type):
        found.append((f"{a.type} became {b.type}", _types(a, b)))
    if numbering.attrs(a.attrs) != numbering.attrs(b.attrs):
        for key in sorted(a.attrs.keys() | b.attrs.keys()):
            mine, theirs = ({**node.attrs}.get(key) for node in (a, b))
            if key in numbering.equality.ignored or str(mine) == str(theirs):
                continue
            text = f"{key}: {_both(str(mine), str(theirs))}"
            found.append((text, "another number" if a.op is hlo.parameter else text))
    if len(a.operands) != len(b.operands):
        text = f"{len(a.operands)} operands became {len(b.operands)}"
        found.append((text, text))
    return found


def _types(a: Node, b: Node) -> str:
    if isinstance(a.type, TensorType) and isinstance(b.type, TensorType) and a.type.dtype is not b.type.dtype:
        return f"{a.type.dtype.name} became {b.type.dtype.name}"
    return "another shape"


def _rewired(host: Host, place: int, target: int) -> list[tuple[str, str]]:
    """Operands that are other values; one that was added or removed is a change of its own."""
    a, b = host.before, host.after
    mine, theirs = a.flat.operands[place], b.flat.operands[target]
    if len(mine) != len(theirs):
        return []
    wrong = [i for i, (s, t) in enumerate(zip(mine, theirs, strict=True)) if not host.is_pair(s, t)]
    if len(wrong) == 2 and host.is_pair(mine[wrong[0]], theirs[wrong[1]]) and host.is_pair(mine[wrong[1]], theirs[wrong[0]]):
        text = f"operands {wrong[0]} and {wrong[1]} swapped" + (" (of no consequence)" if is_commutative(a.flat.nodes[place]) else "")
        return [(text, "operands swapped")]
    return [(f"operand {i}: %{a.flat.nodes[mine[i]].name} became %{b.flat.nodes[theirs[i]].name}", f"operand {i} is another value")
            for i in wrong if host.has_partner(mine[i], theirs[i])]


def _bodies(a: Node, b: Node, alignment: Alignment, numbering: Numbering) -> list[tuple[str, str]]:
    """Computations of a pair that differ and are not partners; the changes between partners are listed by themselves."""
    if a.op in OPENED or b.op in OPENED or (not a.bodies and not b.bodies):
        return []
    if len(a.bodies) != len(b.bodies):
        text = f"{len(a.bodies)} computations became {len(b.bodies)}"
        return [(text, text)]
    numbers, partners = numbering.graphs, alignment.partners
    return [(f"computation: %{mine.name} became %{theirs.name}", "another computation")
            for mine, theirs in zip(a.bodies, b.bodies, strict=True)
            if numbers[mine] != numbers[theirs] and partners.get(mine) is not theirs]


def _both(before: str, after: str) -> str:
    """Two different texts, of long ones the first characters that differ."""
    before, after = one_line(before), one_line(after)
    same = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
    start = max(0, same - LONGEST // 3) if same + 1 >= LONGEST - 3 else 0
    return f"{_short(before, start)} became {_short(after, start)}"


def _short(text: str, start: int) -> str:
    """At most LONGEST characters of a text."""
    head = "..." if start else ""
    tail = "" if len(text) - start + len(head) <= LONGEST else "..."
    return head + text[start:start + LONGEST - len(head) - len(tail)] + tail
