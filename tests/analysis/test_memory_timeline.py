"""A schedule of many steps as a line of few points."""
from __future__ import annotations

import pytest

from irscope.analysis.memory_timeline import POINTS, highest, parts


@pytest.mark.parametrize(("length", "most", "sizes"), [
    (0, 4, []), (1, 4, [1]), (3, 4, [1, 1, 1]), (4, 4, [1, 1, 1, 1]), (5, 4, [1, 1, 1, 2]), (7, 3, [2, 2, 3]), (9, 3, [3, 3, 3]), (5, 1, [5]),
])
def test_parts_are_nearly_equal_and_cover_all(length: int, most: int, sizes: list[int]) -> None:
    found = parts(length, most)
    assert [len(part) for part in found] == sizes
    assert [place for part in found for place in part] == list(range(length))


@pytest.mark.parametrize(("live", "points", "places"), [
    ([], 2, []), ([7], 2, [0]), ([0, 5, 3, 9], 2, [1, 3]), ([5, 0, 9, 3], 2, [0, 2]), ([4, 4, 4, 4], 2, [0, 2]), ([1, 2, 3], 3, [0, 1, 2]),
    ([1, 9, 9, 2, 8], 1, [1]), ([0, 0, 6, 6, 1], 2, [0, 2]),
])
def test_each_part_shows_the_first_of_its_highest_places(live: list[int], points: int, places: list[int]) -> None:
    assert highest(live, points) == places


def test_a_timeline_has_as_many_points_as_a_wide_screen() -> None:
    assert POINTS == 512
    assert highest(range(POINTS)) == list(range(POINTS)) and highest(range(POINTS + 1)) == [*range(POINTS - 1), POINTS]
    assert highest(range(4 * POINTS)) == list(range(3, 4 * POINTS, 4))
