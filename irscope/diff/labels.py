"""What places of two flat graphs have in common: labels from strict to loose, and hashes of all that a value needs and all that needs it.

Both sides share one table, so that equal numbers mean equal things.
"""
from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from irscope.diff.flat import Flat
from irscope.graph import Node
from irscope.graph.numbering import Numbering
from irscope.ops import sets

TRANSPARENT = sets.hlo("reshape bitcast copy transpose broadcast convert")
"""Operators that compilers add and remove to change a shape, a layout or a precision: the operand of an operand is a neighbour, too."""
LEAVES = sets.hlo("constant iota")
"""Operators whose value is in their attributes: they are equal by value alone."""
MOST_USERS = 64
"""Users of a value that count as its neighbours."""

Edge = tuple[int, int]
"""A user and the number of its operand."""


@dataclass(slots=True, eq=False)
class Side:
    """One flat graph with its labels.

    ``exact`` labels tell operator, type, attributes and bodies; ``typed`` operator and type; ``loose`` the operator. ``sources[i]`` are the
    operands and ``readers[i]`` the users behind transparent ones. ``up`` and ``down`` are the hashes of all operands and of all users, in
    ``thin_up`` and ``thin_down`` without transparent ones and types.
    """

    flat: Flat
    exact: list[int] = field(default_factory=list)
    typed: list[int] = field(default_factory=list)
    loose: list[int] = field(default_factory=list)
    is_leaf: list[bool] = field(default_factory=list)
    is_param: list[bool] = field(default_factory=list)
    clear: list[bool] = field(default_factory=list)
    sources: list[tuple[int, ...]] = field(default_factory=list)
    readers: list[list[Edge]] = field(default_factory=list)
    up: list[int] = field(default_factory=list)
    down: list[int] = field(default_factory=list)
    thin_up: list[int] = field(default_factory=list)
    thin_down: list[int] = field(default_factory=list)
    mate: list[int] = field(default_factory=list)

    def live(self) -> Iterable[int]:
        """The places that a result needs."""
        return (i for i, alive in enumerate(self.flat.alive) if alive)


class Table:
    """Numbers for keys, shared by both sides."""

    def __init__(self) -> None:
        self.numbers: dict[Hashable, int] = {}

    def __call__(self, key: Hashable) -> int:
        return self.numbers.setdefault(key, len(self.numbers))


def side(flat: Flat, numbering: Numbering, table: Table, typed: bool, anchored: bool) -> Side:
    """The labels of a flat graph. ``typed``: types count. ``anchored``: parameters are equal by their numbers."""
    made = Side(flat, mate=[-1] * len(flat.nodes))
    places = {place: number for number, place in enumerate(flat.params)}
    types: dict[int, int] = {}
    plain = numbering.equality.type
    for i, node in enumerate(flat.nodes):
        loose = table((node.op.dialect, node.op.name))
        type = types.get(id(node.type))
        if type is None:
            type = types[id(node.type)] = table(("type", plain(node.type)))
        is_param = i in places
        if is_param:
            loose = table("parameter")
            exact = table(("parameter", type, places[i] if anchored else -1))
        else:
            exact = table((loose, type if typed else -1, numbering.attrs(node.attrs) if node.attrs else -1,
                           tuple([numbering.graphs.get(b, -1) for b in node.bodies]) if node.bodies else ()))
        made.exact.append(exact)
        made.loose.append(loose)
        made.typed.append(table((loose, type)) if typed else loose)
        made.is_param.append(is_param)
        made.is_leaf.append(node.op in LEAVES)
        made.clear.append(node.op in TRANSPARENT and len(node.operands) == 1)
    _see_through(made)
    _hash(made, table)
    return made


def _see_through(side: Side) -> None:
    flat = side.flat
    base = list(range(len(flat.nodes)))
    side.readers = [[] for _ in flat.nodes]
    for i, operands in enumerate(flat.operands):
        if side.clear[i]:
            base[i] = base[operands[0]]
        side.sources.append(tuple([base[o] for o in operands]))
        if flat.alive[i] and not side.clear[i]:
            for number, source in enumerate(side.sources[i]):
                if len(side.readers[source]) < MOST_USERS:
                    side.readers[source].append((i, number))


def _hash(side: Side, table: Table) -> None:
    """Hashes from the operands, and from the users."""
    flat = side.flat
    n = len(flat.nodes)
    for i in range(n):
        side.up.append(table(("up", side.exact[i], tuple([side.up[o] for o in flat.operands[i]]))))
        thin = [side.thin_up[o] for o in side.sources[i]]
        if side.clear[i]:
            side.thin_up.append(thin[0])
        elif side.is_param[i] or side.is_leaf[i]:
            side.thin_up.append(side.exact[i])
        else:
            if is_commutative(flat.nodes[i]):
                thin.sort()
            side.thin_up.append(table(("thin up", side.loose[i], tuple(thin))))
    side.down, side.thin_down = [-1] * n, [-1] * n
    for i in range(n - 1, -1, -1):
        if flat.alive[i]:
            users = sorted([(side.down[user], number) for user, number in flat.users[i]])
            side.down[i] = table(("down", side.exact[i], i == flat.root, tuple(users)))
            if not side.clear[i]:
                thin_users = sorted([(side.thin_down[user], 0 if is_commutative(flat.nodes[user]) else number)
                                     for user, number in side.readers[i]])
                side.thin_down[i] = table(("thin down", side.loose[i], i == flat.root, tuple(thin_users)))


def is_commutative(node: Node) -> bool:
    """Whether the order of two operands is no part of what a node computes."""
    return len(node.operands) == 2 and "commutative" in node.op.traits



