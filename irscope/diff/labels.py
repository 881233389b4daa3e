"""What the values of two flat graphs have in common: labels, and hashes of all that a value needs and of all that needs it.

Equal values are merged: a compiler that fuses a producer into several kernels writes it several times, one that removes common
subexpressions writes it once. Both sides share a table, so that equal numbers mean equal things.
"""
from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import lru_cache

from irscope.diff.flat import Flat
from irscope.graph import Effect, Kind, Node, Op, TensorType
from irscope.graph.numbering import Numbering
from irscope.ops import hlo, sets

TRANSPARENT = sets.hlo("reshape bitcast copy transpose broadcast convert negate")
"""Operators that compilers add, remove and move to change a shape, a layout, a precision or a sign. Their operand counts as a neighbour of
their users, too."""
LEAVES = sets.hlo("constant iota")
"""Operators whose value is in their attributes: they are equal by value alone."""
FAMILIES = (sets.hlo("dot convolution custom-call"), sets.hlo("reduce reduce-window"))
"""Operators that compilers replace by each other; others become only those of their kind and number of operands."""
ALONE = (Kind.TUPLE, Kind.LEAF, Kind.OPAQUE)
"""Kinds whose operators have nothing in common."""
MOST_USERS = 64
"""Users of a value that count as its neighbours."""

Edge = tuple[int, int]
"""A user and the number of its operand."""


class LabelTable:
    """Numbers keys in the order in which they come; both sides share one table."""

    def __init__(self) -> None:
        self.numbers: dict[Hashable, int] = {}

    def __call__(self, key: Hashable) -> int:
        return self.numbers.setdefault(key, len(self.numbers))


@dataclass(frozen=True, slots=True)
class Sameness:
    """``typed``: both texts state types, which count. ``anchored``: parameters are equal by their numbers."""

    numbering: Numbering
    typed: bool
    anchored: bool


@dataclass(slots=True, eq=False)
class Side:
    """The live values of a flat graph, operands before users. ``members[i]`` are the places that have the value.

    ``exact`` labels say operator, type, attributes and bodies; ``typed`` operator and type; ``loose`` the operator; ``broad`` its kind and
    the number of operands. ``sources[i]`` are the operands and ``readers[i]`` the users behind transparent operators. ``up`` and ``down``
    are hashes of all operands and of all users, ``thin_up`` and ``thin_down`` the same without types and transparent operators.
    ``partner[i]`` is the value of the other side, or -1; ``weight[i]`` is how much it counts as an operand, at most 1.
    """

    flat: Flat
    value_of: list[int]
    members: list[list[int]] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    operands: list[tuple[int, ...]] = field(default_factory=list)
    users: list[list[Edge]] = field(default_factory=list)
    rank: list[int] = field(default_factory=list)
    exact: list[int] = field(default_factory=list)
    typed: list[int] = field(default_factory=list)
    loose: list[int] = field(default_factory=list)
    broad: list[int] = field(default_factory=list)
    is_leaf: list[bool] = field(default_factory=list)
    is_param: list[bool] = field(default_factory=list)
    clear: list[bool] = field(default_factory=list)
    sources: list[tuple[int, ...]] = field(default_factory=list)
    readers: list[list[Edge]] = field(default_factory=list)
    up: list[int] = field(default_factory=list)
    down: list[int] = field(default_factory=list)
    thin_up: list[int] = field(default_factory=list)
    thin_down: list[int] = field(default_factory=list)
    partner: list[int] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    root: int = -1

    def add(self, place: int, operands: tuple[int, ...], labels: tuple[int, int, int, int], up: int) -> int:
        """Add a value that was first found at a place. Returns its number."""
        node = self.flat.nodes[place]
        for found, label in zip((self.exact, self.typed, self.loose, self.broad), labels, strict=True):
            found.append(label)
        self.nodes.append(node)
        self.operands.append(operands)
        self.users.append([])
        self.readers.append([])
        self.members.append([place])
        self.rank.append(self.flat.rank[place])
        self.is_leaf.append(_role(node.op)[0])
        self.clear.append(is_transparent(node))
        self.up.append(up)
        self.partner.append(-1)
        return len(self.nodes) - 1


def side(flat: Flat, same: Sameness, table: LabelTable) -> Side:
    """The values of a flat graph with their labels."""
    made = Side(flat, [-1] * len(flat.nodes))
    params = {place: number for number, place in enumerate(flat.params)}
    known: dict[tuple[int, tuple[int, ...]], int] = {}
    types: dict[int, int] = {}
    for place, node in enumerate(flat.nodes):
        if not flat.alive[place]:
            continue
        labels = _labels(node, params.get(place, -1), same, table, types)
        operands = tuple([made.value_of[o] for o in flat.operands[place]])
        up = table(("up", labels[0], tuple([made.up[o] for o in operands])))
        key = labels[0], operands
        value = known.get(key, -1) if node.op.effect is Effect.PURE and place not in params else -1
        if value >= 0:
            made.members[value].append(place)
            made.rank[value] = min(made.rank[value], flat.rank[place])
        else:
            value = made.add(place, operands, labels, up)
            made.is_param.append(place in params)
            known[key] = value
            for number, operand in enumerate(operands):
                made.users[operand].append((value, number))
        made.value_of[place] = value
    made.root = made.value_of[flat.root] if flat.root >= 0 else -1
    _see_through(made)
    _hash(made, table)
    return made


def _labels(node: Node, number: int, same: Sameness, table: LabelTable, types: dict[int, int]) -> tuple[int, int, int, int]:
    type = -1
    if same.typed or _role(node.op)[0]:
        type = types.get(id(node.type), -1)
        if type < 0:
            type = types[id(node.type)] = table(("type", same.numbering.equality.type(node.type)))
    if number >= 0:
        loose = table("parameter")
        return table(("parameter", type, number if same.anchored else -1)), table((loose, type)), loose, loose
    loose = table((node.op.dialect, node.op.name))
    attrs = same.numbering.attrs(node.attrs) if node.attrs else -1
    bodies = tuple([same.numbering.graphs.get(body, -1) for body in node.bodies]) if node.bodies else ()
    family = _role(node.op)[2]
    broad = loose if node.op.kind in ALONE else table((node.op.kind, len(node.operands)))
    if family >= 0:
        broad = table((family,))
    return table((loose, type, attrs, bodies)), table((loose, type)), loose, broad


def _see_through(side: Side) -> None:
    base = list(range(len(side.nodes)))
    for i, operands in enumerate(side.operands):
        if side.clear[i]:
            base[i] = base[operands[0]]
        side.sources.append(tuple([base[o] for o in operands]))
        if not side.clear[i]:
            for number, source in enumerate(side.sources[i]):
                if len(side.readers[source]) < MOST_USERS:
                    side.readers[source].append((i, number))


def _hash(side: Side, table: LabelTable) -> None:
    """Hashes from the operands without transparent operators, and from the users."""
    n = len(side.nodes)
    for i in range(n):
        thin = [side.thin_up[o] for o in side.sources[i]]
        if side.clear[i]:
            side.thin_up.append(thin[0])
        elif side.is_param[i] or side.is_leaf[i]:
            side.thin_up.append(side.exact[i])
        else:
            if is_commutative(side.nodes[i]):
                thin.sort()
            side.thin_up.append(table(("thin up", side.loose[i], tuple(thin))))
    side.down, side.thin_down = [-1] * n, [-1] * n
    for i in range(n - 1, -1, -1):
        users = sorted([(side.down[user], number) for user, number in side.users[i]])
        side.down[i] = table(("down", side.exact[i], i == side.root, tuple(users)))
        if not side.clear[i]:
            thin_users = sorted([(side.thin_down[user], 0 if is_commutative(side.nodes[user]) else number)
                                 for user, number in side.readers[i]])
            side.thin_down[i] = table(("thin down", side.loose[i], i == side.root, tuple(thin_users)))


@lru_cache(4096)
def _role(op: Op) -> tuple[bool, bool, int]:
    """Whether an operator is a leaf, whether it is transparent, and its family, or -1."""
    return op in LEAVES, op in TRANSPARENT, next((number for number, ops in enumerate(FAMILIES) if op in ops), -1)


def is_transparent(node: Node) -> bool:
    """Whether a node is looked through: an operator of TRANSPARENT, or a reduction over dimensions of size 1."""
    if _role(node.op)[1]:
        return len(node.operands) == 1
    if node.op is not hlo.reduce or len(node.operands) != 2:
        return False
    data = node.operands[0].type
    return isinstance(data, TensorType) and isinstance(node.type, TensorType) and data.elements == node.type.elements


def is_commutative(node: Node) -> bool:
    """Whether a node computes the same with its two operands swapped."""
    return len(node.operands) == 2 and "commutative" in node.op.traits
