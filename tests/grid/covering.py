"""Covering arrays: rows in which every pair of levels of two factors occurs, by greedy choice from a seed.

The method is that of AETG (D. Cohen, S. Dalal, M. Fredman, G. Patton, "The AETG system", IEEE Trans. Software Eng. 23(7), 1997): a row is
filled one factor at a time, in random order, each with the level that brings the most pairs that no row has yet.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from random import Random
from typing import Any

Row = dict[str, Any]


def covering(given: Sequence[Row], factors: Mapping[str, Sequence[Any]], seed: int) -> list[Row]:
    """A row for each of ``given`` (levels of other factors, all of which are wanted as they are), with a level for every one of ``factors``.

    Each level of a factor occurs with each level of every other, and with each level of each given factor; rows of ``given`` are
    repeated behind the others where there are too few of them for that.
    """
    if not given:
        return []
    random = Random(seed)
    missing = _pairs(given, factors)
    rows = [_filled(row, factors, missing, random) for row in random.sample(given, len(given))]
    while missing:
        (name, level), (other, of_other) = next(iter(missing))
        wanted = {name: level, other: of_other}
        fitting = [row for row in given if all(row[k] == v for k, v in wanted.items() if k in row)]
        chosen = {k: v for k, v in wanted.items() if k in factors}
        rows.append(_filled(random.choice(fitting) | chosen, factors, missing, random))
    return rows


Pair = tuple[tuple[str, Any], tuple[str, Any]]


def _pairs(given: Sequence[Row], factors: Mapping[str, Sequence[Any]]) -> dict[Pair, None]:
    """Every pair that some row must have, in an order that hashes do not change."""
    found: dict[Pair, None] = {}
    for (a, of_a), (b, of_b) in combinations(factors.items(), 2):
        found.update(dict.fromkeys(_pair((a, x), (b, y)) for x in of_a for y in of_b))
    for name in given[0]:
        for level in dict.fromkeys(row[name] for row in given):
            found.update(dict.fromkeys(_pair((name, level), (b, y)) for b, of_b in factors.items() for y in of_b))
    return found


def _filled(row: Row, factors: Mapping[str, Sequence[Any]], missing: dict[Pair, None], random: Random) -> Row:
    """The row with levels for the factors that it lacks; what it covers is no longer missing."""
    full = dict(row)
    for name in random.sample([f for f in factors if f not in row], len([f for f in factors if f not in row])):
        levels = random.sample(list(factors[name]), len(factors[name]))
        full[name] = max(levels, key=lambda level: sum(_pair((name, level), have) in missing for have in full.items()))
    for pair in _pairs_of(full):
        missing.pop(pair, None)
    return full


def _pairs_of(row: Row) -> Iterator[Pair]:
    return (_pair(a, b) for a, b in combinations(row.items(), 2))


def _pair(a: tuple[str, Any], b: tuple[str, Any]) -> Pair:
    return (a, b) if a[0] < b[0] else (b, a)
