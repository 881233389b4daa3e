"""Covering arrays hold every pair, from any seed, in few rows."""
from __future__ import annotations

from itertools import product

import pytest

from tests.grid.covering import covering

FACTORS = {"a": (1, 2, 4), "b": ("x", "y", "z", "w", "v"), "c": tuple(range(8)), "d": (True, False), "e": tuple("pqrstu")}


@pytest.mark.parametrize("seed", range(5))
def test_every_pair_of_levels_occurs(seed: int) -> None:
    rows = covering([{}], FACTORS, seed)
    for (a, of_a), (b, of_b) in product(FACTORS.items(), FACTORS.items()):
        if a < b:
            assert {(row[a], row[b]) for row in rows} == set(product(of_a, of_b))
    assert len(rows) < 1.5 * 8 * 6  # the two longest factors alone need 48


@pytest.mark.parametrize("count", [1, 7, 200])
def test_given_rows_stay_and_meet_every_level(count: int) -> None:
    given = [{"size": n, "dtype": n % 3} for n in range(count)]
    rows = covering(given, FACTORS, 3)
    assert sorted(row["size"] for row in rows[:count]) == list(range(count))
    assert all(row["dtype"] == row["size"] % 3 and set(row) == {"size", "dtype", *FACTORS} for row in rows)
    for name, levels in FACTORS.items():
        assert {(row["dtype"], row[name]) for row in rows} == set(product({g["dtype"] for g in given}, levels))
    if count == 200:
        assert len(rows) <= count * 8  # each size with each of eight levels


def test_a_seed_gives_the_same_rows_again() -> None:
    given = [{"size": n} for n in range(20)]
    assert covering(given, FACTORS, 1) == covering(given, FACTORS, 1)
    assert covering(given, FACTORS, 1) != covering(given, FACTORS, 2)


def test_nothing_is_covered_by_nothing() -> None:
    assert covering([], FACTORS, 0) == []
