"""Pairs the places of two flat graphs: equal ones first, then the best candidates beside pairs, until none is good enough.

What equals by its operands, or by its users, is paired wherever exactly one place on each side does so. Every pair proposes its operands and
its users as candidates. A candidate's score says how alike the two places are, and how many of their neighbours are paired with each other.
The best candidate is paired first, so that evidence that is certain comes before evidence that is not. The time is near-linear in the
number of places.
"""
from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable

from irscope.diff.labels import Edge, Side, is_commutative

EXACT, TYPED, LOOSE, OTHER = 4.0, 3.0, 2.0, -1.0
"""What equal labels are worth, from operator, type and attributes down to another operator."""
AGREES, DIFFERS, OPEN = 2.0, -1.5, 0.0
"""What a neighbour is worth that is paired with the neighbour of the other, with another node, or not yet."""
MOST = 6.0
"""What all operands together, or all users, are worth at most."""
ENOUGH = 4.5
"""The least score of a pair."""
FEW = 16
"""So many combinations of users with one label are candidates; of more, those in order."""


class Matcher:
    """The pairs of two sides, in their ``mate``."""

    def __init__(self, a: Side, b: Side) -> None:
        self.a, self.b = a, b
        self.heap: list[tuple[float, int, int, int]] = []
        self.scale = (max(1, len(b.flat.nodes))) / max(1, len(a.flat.nodes))

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
        self._spread()
        self._groups(lambda s, i: (s.up[i],))
        self._spread()
        assert len(a.mate) and len(b.mate) or True

    def pair(self, x: int, y: int) -> None:
        self.a.mate[x], self.b.mate[y] = y, x

    def is_open(self, x: int, y: int) -> bool:
        return self.a.mate[x] < 0 and self.b.mate[y] < 0

    def _groups(self, key: Callable[[Side, int], object], alone: bool = False) -> None:
        """Pair, in order, the places of each key that equally many on both sides have; ``alone``: that one on each side has."""
        left, right = (_by_key(side, key) for side in (self.a, self.b))
        for value, mine in left.items():
            theirs = right.get(value)
            if theirs and len(theirs) == len(mine) and (len(mine) == 1 or not alone):
                for x, y in zip(mine, theirs, strict=True):
                    if self.a.is_leaf[x] and self.a.exact[x] != self.b.exact[y]:
                        continue
                    self.pair(x, y)

    def _spread(self) -> None:
        """Pair the candidates beside all pairs, the best first, and those beside the new pairs."""
        for x, y in enumerate(self.a.mate):
            if y >= 0:
                self._propose(x, y)
        while self.heap:
            negative, _, x, y = heapq.heappop(self.heap)
            if not self.is_open(x, y):
                continue
            score = self.score(x, y)
            if score < -negative - 1e-9:
                if score >= ENOUGH:
                    heapq.heappush(self.heap, (-score, self._distance(x, y), x, y))
                continue
            self.pair(x, y)
            self._propose(x, y)

    def _distance(self, x: int, y: int) -> int:
        return int(abs(self.a.flat.rank[x] * self.scale - self.b.flat.rank[y]))

    def _offer(self, x: int, y: int) -> None:
        if self.is_open(x, y):
            score = self.score(x, y)
            if score >= ENOUGH:
                heapq.heappush(self.heap, (-score, self._distance(x, y), x, y))

    def _propose(self, x: int, y: int) -> None:
        """Candidates beside a pair."""
        a, b = self.a, self.b
        for mine, theirs in ((a.flat.operands[x], b.flat.operands[y]), (a.sources[x], b.sources[y])):
            for s, t in zip(mine, theirs, strict=False):
                self._offer(s, t)
            if len(mine) == len(theirs) == 2:
                self._offer(mine[0], theirs[1])
                self._offer(mine[1], theirs[0])
            elif len(mine) != len(theirs):
                for s, t in zip(reversed(mine), reversed(theirs), strict=False):
                    self._offer(s, t)
        self._users(a.flat.users[x], b.flat.users[y])
        self._users(a.readers[x], b.readers[y])

    def _users(self, mine: list[Edge], theirs: list[Edge]) -> None:
        left, right = _open_users(self.a, mine), _open_users(self.b, theirs)
        if not left or not right:
            return
        if len(left) * len(right) <= FEW:
            for s in left:
                for t in right:
                    self._offer(s, t)
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
                            self._offer(s, t)
                else:
                    for s, t in zip(some, others, strict=False):
                        self._offer(s, t)

    def score(self, x: int, y: int) -> float:
        """How sure it is that two places are the same node."""
        a, b = self.a, self.b
        if a.exact[x] == b.exact[y]:
            score = EXACT
        elif a.is_leaf[x] or b.is_leaf[y] or a.is_param[x] != b.is_param[y]:
            return 0.0
        elif a.typed[x] == b.typed[y]:
            score = TYPED
        elif a.loose[x] == b.loose[y]:
            score = LOOSE
        elif a.clear[x] == b.clear[y] and len(a.flat.operands[x]) == len(b.flat.operands[y]) > 0:
            score = OTHER
        else:
            return 0.0
        score += self._operands(x, y) + self._readers(x, y)
        return score

    def _operands(self, x: int, y: int) -> float:
        a, b = self.a, self.b
        mine, theirs = a.sources[x], b.sources[y]
        if not mine and not theirs:
            return 0.0
        total = 0.0
        either = is_commutative(a.flat.nodes[x])
        for number, source in enumerate(mine):
            mate = a.mate[source]
            if mate >= 0:
                if number < len(theirs) and theirs[number] == mate:
                    total += AGREES
                else:
                    total += AGREES if either and mate in theirs else AGREES / 2 if mate in theirs else DIFFERS
            elif number < len(theirs) and b.mate[theirs[number]] >= 0:
                total += DIFFERS / 2
        if mine and len(mine) > 3:
            total *= 3 / len(mine)
        return max(-MOST, min(MOST, total))

    def _readers(self, x: int, y: int) -> float:
        a, b = self.a, self.b
        mine, theirs = a.flat.users[x], b.flat.users[y]
        if a.clear[x] != b.clear[y]:
            mine, theirs = a.readers[x], b.readers[y]
        total = self._agreement(mine, theirs)
        if not a.clear[x] and not b.clear[y]:
            total = max(total, self._agreement(a.readers[x], b.readers[y]))
        return total

    def _agreement(self, mine: list[Edge], theirs: list[Edge]) -> float:
        """How many users are paired with each other."""
        a, b = self.a, self.b
        right = right_place = wrong = 0
        there = {(user, number) for user, number in theirs[:FEW * 4]}
        users = {user for user, _ in there}
        for user, number in mine[:FEW * 4]:
            mate = a.mate[user]
            if mate >= 0:
                if (mate, number) in there:
                    right_place += 1
                elif mate in users:
                    right += 1
                else:
                    wrong += 1
        wrong += sum(1 for user, _ in there if b.mate[user] >= 0) - right - right_place
        known = right + right_place + wrong
        if not known:
            return 1.0 if x_is_end(mine, theirs) else OPEN
        return (right_place * (AGREES + 1) + right * AGREES + wrong * DIFFERS) / known * min(2.0, 1 + known / 8)


def x_is_end(mine: list[Edge], theirs: list[Edge]) -> bool:
    """Whether neither of two places has users."""
    return not mine and not theirs


def _by_key(side: Side, key: Callable[[Side, int], object]) -> dict[object, list[int]]:
    found: dict[object, list[int]] = {}
    rank = side.flat.rank
    for i in sorted((i for i in side.live() if side.mate[i] < 0), key=rank.__getitem__):
        value = key(side, i)
        if value is not None:
            found.setdefault(value, []).append(i)
    return found


def _open_users(side: Side, users: list[Edge]) -> list[int]:
    return list(dict.fromkeys(user for user, _ in users if side.mate[user] < 0))
