"""Claims against times of XLA that no rule was made from: docs/lint/claims.md."""

from __future__ import annotations

from benchmarks.claim_pairs import FOLDER, rows_of


def test_most_claims_are_within_two_on_the_machine_whose_table_they_use() -> None:
    rows = rows_of(str(FOLDER / "host.toml"))
    claims = [row for row in rows if row.rule]
    real = [row for row in claims if row.counts]
    assert len(rows) == 50 and sum(row.counts for row in rows) == 42
    assert sum(row.has_right_sign for row in claims) >= 0.88 * len(claims)
    assert len(real) >= 30
    assert sum(row.is_within_two for row in real) >= 0.85 * len(real)
    assert sum(row.is_in_range for row in real) >= 0.85 * len(real)
