"""What lint claims of small programs with one fault is what was measured: the texts and the times are recorded in tests/lint/pairs.

``python benchmarks/lint_pairs.py time`` records the times anew, and ``... table`` writes docs/lint/evidence.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.lint_evidence import cells, left_over, rankings

FOLDER = Path(__file__).parent / "pairs"


@pytest.fixture(scope="module")
def told() -> list[tuple[str, bool]]:
    return [(f"{cell.name} ({cell.engine})", cell.right) for cell in cells(FOLDER) if cell.claims]


def test_claimed_gains_are_there(told: list[tuple[str, bool]]) -> None:
    assert len({name.split()[0] for name, _ in told}) >= 20
    wrong = [name for name, right in told if not right]
    assert len(wrong) <= 0.05 * len(told), wrong


def test_the_mended_programs_claim_nothing_of_it() -> None:
    assert left_over(FOLDER) == []


def test_the_first_finding_is_one_of_the_two_that_matter_most() -> None:
    found = rankings(FOLDER)
    wrong = [f"{one.name} ({one.engine})" for one in found if not one.right]
    assert len(found) >= 20
    assert len(wrong) <= 0.2 * len(found), wrong
    large = [good for one in found for _, good in one.large]
    assert sum(large) >= 0.95 * len(large)
