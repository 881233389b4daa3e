"""Pairs the values of two flat graphs: equal ones first, then the best candidates beside pairs, while their score suffices.

Values with equal hashes of their operands, or of their users, are paired where each side has exactly one. Every pair proposes its operands
and its users as candidates. A candidate's score adds how far the labels agree and how many of the neighbours are paired with each other.
The best candidate is paired first, so that certain evidence is used before uncertain evidence. The time is near-linear in the number of
values and uses. The constants below are scores without a unit; docs/diff.md has the precision and recall that were measured with them.
"""
from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence

from irscope.diff.labels import Edge, Side, is_commutative
from irscope.ops import hlo

EXACT, TYPED, LOOSE, BROAD = 4.0, 3.0, 2.0, 0.5
"""Scores of equal labels: operator, type and attributes; operator and type; operator; its kind or family."""
AGREES, DIFFERS, USER_DIFFERS, UNMATCHED = 2.0, -1.5, -0.5, 0.0
"""Scores of a neighbour: paired with the neighbour of the other; an operand, or a user, paired with another value; unmatched."""
MOST = 6.0
"""The highest score of all operands together."""
ENOUGH = (4.5, 3.0, 2.5)
"""The least score of a pair, in each round."""
EVIDENCE = 1.0
"""The least score of the neighbours of a pair."""
AMBIGUITY = 1.0
"""What is subtracted in the queue from the score of a candidate that is one of several."""
COMMON = 0.25
"""The weight of a constant as an operand; other operands have up to 1."""
NEAR = 4
"""The most operands or users of a skipped node that are candidates."""
FEW = 16
"""Up to this many combinations of users are all candidates; of more users with one label, only those at equal positions are."""


class ValueMatcher:
    """Pairs the values of two sides and writes the pairs into their ``partner``."""

    def __init__(self, a: Side, b: Side) -> None:
        self.a, self.b = a, b
        self.enough = ENOUGH[0]
        self.heap: list[tuple[float, int, int, int, float]] = []
        self.user_sets: dict[int, set[int]] = {}
        for side in (a, b):
            side.weight = [COMMON if leaf else 1 / (1 + 0.25 * math.log2(max(1, len(readers))))
                           for leaf, readers in zip(side.is_leaf, side.readers, strict=True)]
        self.scale = max(1, len(b.flat.nodes)) / max(1, len(a.flat.nodes))

    def run(self, anchors: Iterable[tuple[int, int]] = ()) -> None:
        """Pair all that can be paired; ``anchors`` are known pairs."""
        for x, y in anchors:
            self.pair(x, y)
        a, b = self.a, self.b
        self._groups(lambda s, i: (s.up[i], s.down[i]))
        self._groups(lambda s, i: s.up[i], alone=True)
        self._groups(lambda s, i: s.down[i], alone=True)
        self._spread()
        self._groups(lambda s, i: None if s.clear[i] else (s.thin_up[i], s.thin_down[i]))
        self._groups(lambda s, i: None if s.clear[i] or s.is_leaf[i] else s.thin_up[i], alone=True)
        self._groups(lambda s, i: None if s.clear[i] or s.is_leaf[i] else s.thin_down[i], alone=True)
        for self.enough in ENOUGH:
            self._spread()
        self._settle(a, b)
        self._settle(b, a)

    def _settle(self, one: Side, other: Side) -> None:
        """Of two consecutive reductions that became one with the type of the second, pair the second."""
        for x, node in enumerate(one.nodes):
            y = one.partner[x]
            if y < 0 or node.op is not hlo.reduce or one.typed[x] == other.typed[y] or len(one.readers[x]) != 1:
                continue
            z, number = one.readers[x][0]
            if number == 0 and one.partner[z] < 0 and one.nodes[z].op is hlo.reduce and one.typed[z] == other.typed[y]:
                one.partner[x], one.partner[z], other.partner[y] = -1, y, z

    def pair(self, x: int, y: int) -> None:
        """Pair value ``x`` of the first side with value ``y`` of the second."""
        self.a.partner[x], self.b.partner[y] = y, x

    def is_open(self, x: int, y: int) -> bool:
        """Whether both values are unmatched."""
        return self.a.partner[x] < 0 and self.b.partner[y] < 0

    def _groups(self, key: Callable[[Side, int], object], alone: bool = False) -> None:
        """Pair, in order, the values of each key that occurs equally often on both sides; ``alone``: only where it occurs once on each."""
        left, right = (_by_key(side, key) for side in (self.a, self.b))
        for value, mine in left.items():
            theirs = right.get(value)
            if theirs and len(theirs) == len(mine) and (len(mine) == 1 or not alone):
                for x, y in zip(mine, theirs, strict=True):
                    if self.label_score(x, y):
                        self.pair(x, y)

    def _spread(self) -> None:
        """Pair the neighbours of all pairs, the best candidates first, and then those of the new pairs."""
        left, right = _frontier(self.a), _frontier(self.b)
        for x in sorted(left):
            if self.a.partner[x] in right:
                self._propose(x, self.a.partner[x])
        while self.heap:
            negative, _, x, y, penalty = heapq.heappop(self.heap)
            if not self.is_open(x, y):
                continue
            score = self.score(x, y)
            if score - penalty < -negative - 1e-9:
                if score >= self.enough:
                    heapq.heappush(self.heap, (penalty - score, self._distance(x, y), x, y, penalty))
                continue
            self.pair(x, y)
            self._propose(x, y)

    def _distance(self, x: int, y: int) -> int:
        return int(abs(self.a.rank[x] * self.scale - self.b.rank[y]))

    def _offer(self, x: int, y: int, penalty: float = 0.0) -> None:
        if self.is_open(x, y):
            score = self.score(x, y)
            if score >= self.enough:
                heapq.heappush(self.heap, (penalty - score, self._distance(x, y), x, y, penalty))

    def _propose(self, x: int, y: int) -> None:
        """Candidates beside a pair."""
        a, b = self.a, self.b
        for mine, theirs in ((a.operands[x], b.operands[y]), (a.sources[x], b.sources[y])):
            for s, t in zip(mine, theirs, strict=False):
                self._offer(s, t)
                if self.is_open(s, t) and not self.label_score(s, t):
                    self._skip(s, t, a.sources[s], b.sources[t])
            if len(mine) == len(theirs) == 2:
                self._offer(mine[0], theirs[1])
                self._offer(mine[1], theirs[0])
            elif len(mine) != len(theirs):
                for s, t in zip(reversed(mine), reversed(theirs), strict=False):
                    self._offer(s, t)
        self._users(a.users[x], b.users[y])
        self._users(a.readers[x], b.readers[y])

    def _skip(self, s: int, t: int, beyond_s: Sequence[int], beyond_t: Sequence[int]) -> None:
        """Candidates where one side has a node more: the neighbours beyond it."""
        for near in beyond_s[:NEAR]:
            self._offer(near, t, AMBIGUITY / 2)
        for near in beyond_t[:NEAR]:
            self._offer(s, near, AMBIGUITY / 2)

    def _users(self, mine: list[Edge], theirs: list[Edge]) -> None:
        left, right = _open_users(self.a, mine), _open_users(self.b, theirs)
        if not left or not right:
            return
        penalty = 0.0 if len(left) == len(right) == 1 else AMBIGUITY
        if len(left) * len(right) <= FEW:
            for s in left:
                for t in right:
                    self._offer(s, t, penalty)
                    if not self.label_score(s, t):
                        self._skip(s, t, [u for u, _ in self.a.readers[s]], [u for u, _ in self.b.readers[t]])
            return
        for labels in (0, 1):
            by: dict[int, tuple[list[int], list[int]]] = {}
            for number, (side, users) in enumerate(((self.a, left), (self.b, right))):
                for user in users:
                    by.setdefault((side.exact if not labels else side.loose)[user], ([], []))[number].append(user)
            for some, others in by.values():
                if len(some) * len(others) <= FEW:
                    for s in some:
                        for t in others:
                            self._offer(s, t, AMBIGUITY)
                else:
                    for s, t in zip(some, others, strict=False):
                        self._offer(s, t, 2 * AMBIGUITY)

    def label_score(self, x: int, y: int) -> float:
        """The score of the labels of two values; 0 for values that are never paired."""
        a, b = self.a, self.b
        if a.loose[x] == b.loose[y] and a.clear[x] != b.clear[y]:
            return 0.0  # a reduction over dimensions of size 1 reduces nothing
        if a.exact[x] == b.exact[y]:
            return EXACT
        if a.is_leaf[x] or b.is_leaf[y] or a.is_param[x] != b.is_param[y]:
            return 0.0
        if a.typed[x] == b.typed[y]:
            return TYPED
        if a.loose[x] == b.loose[y]:
            return LOOSE
        return BROAD if a.broad[x] == b.broad[y] else 0.0

    def score(self, x: int, y: int) -> float:
        """The score of a pair of values: labels and neighbours; 0 where the neighbours are no evidence."""
        score = self.label_score(x, y)
        if not score:
            return 0.0
        evidence = self._operands(x, y) + self._readers(x, y)
        return score + evidence if evidence >= EVIDENCE else 0.0

    def _operands(self, x: int, y: int) -> float:
        mine, theirs = self.a.sources[x], self.b.sources[y]
        if not mine and not theirs:
            return 0.0
        total = sum(self._operand(x, number, source, theirs) for number, source in enumerate(mine))
        if mine and len(mine) > 3:
            total *= 3 / len(mine)
        return max(-MOST, min(MOST, total))

    def _operand(self, x: int, number: int, source: int, theirs: tuple[int, ...]) -> float:
        """The score of operand ``number`` of ``x``, which is ``source``; ``theirs`` are the operands of the other value."""
        a, b = self.a, self.b
        partner, weight = a.partner[source], a.weight[source]
        other = theirs[number] if number < len(theirs) else -1
        if partner >= 0:
            if other == partner or (partner in theirs and is_commutative(a.nodes[x])):
                return AGREES * weight
            if partner in theirs or any(b.partner[t] < 0 and partner in b.sources[t][:NEAR] for t in theirs[:NEAR]):
                return AGREES / 2 * weight
            return DIFFERS * weight
        if other >= 0 <= b.partner[other]:
            return (AGREES if b.partner[other] in a.sources[source][:NEAR] else DIFFERS) / 2 * b.weight[other]
        return 0.0

    def _readers(self, x: int, y: int) -> float:
        a, b = self.a, self.b
        mine, theirs = a.users[x], b.users[y]
        if a.clear[x] != b.clear[y]:
            mine, theirs = a.readers[x], b.readers[y]
        total = self._agreement(mine, theirs)
        if not a.clear[x] and not b.clear[y]:
            total = max(total, self._agreement(a.readers[x], b.readers[y]))
        return total

    def _agreement(self, mine: list[Edge], theirs: list[Edge]) -> float:
        """The score of two lists of users: how many are paired with each other."""
        a, b = self.a, self.b
        right = right_place = near = known = 0
        there = set(theirs[:FEW * 4])
        users = {user for user, _ in there}
        for user, number in mine[:FEW * 4]:
            partner = a.partner[user]
            if partner >= 0:
                known += 1
                if (partner, number) in there:
                    right_place += 1
                elif partner in users:
                    right += 1
                elif _is_near(b, partner, users):
                    near += 1
        partners = self._user_set(mine)
        for user, _ in there:
            partner = b.partner[user]
            if partner >= 0 and partner not in partners:
                known += 1
                near += _is_near(a, partner, partners)
        if not known:
            return 1.0 if not mine and not theirs else UNMATCHED
        wrong = known - right - right_place - near
        return (right_place * (AGREES + 1) + right * AGREES + near * AGREES / 2 + wrong * USER_DIFFERS) / known * min(2.0, 1 + known / 8)

    def _user_set(self, users: list[Edge]) -> set[int]:
        """The users of a list of a side. The lists do not change while the sides are matched; a value with many users is scored often."""
        if id(users) not in self.user_sets:
            self.user_sets[id(users)] = {user for user, _ in users}
        return self.user_sets[id(users)]


def _is_near(side: Side, user: int, users: set[int]) -> bool:
    """Whether a value reads one of these through an unmatched value."""
    return any(side.partner[s] < 0 and s in users for s in side.sources[user][:NEAR])


def _frontier(side: Side) -> set[int]:
    """The neighbours of unmatched values."""
    found: set[int] = set()
    for i, partner in enumerate(side.partner):
        if partner < 0:
            found.update(side.operands[i], side.sources[i], [user for user, _ in side.users[i]], [user for user, _ in side.readers[i]])
    return found


def _by_key(side: Side, key: Callable[[Side, int], object]) -> dict[object, list[int]]:
    found: dict[object, list[int]] = {}
    rank = side.rank
    for i in sorted((i for i, partner in enumerate(side.partner) if partner < 0), key=rank.__getitem__):
        value = key(side, i)
        if value is not None:
            found.setdefault(value, []).append(i)
    return found


def _open_users(side: Side, users: list[Edge]) -> list[int]:
    return list(dict.fromkeys(user for user, _ in users if side.partner[user] < 0))
