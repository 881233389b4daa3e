"""The page about the query language names every column, as the columns themselves do."""
from __future__ import annotations

from pathlib import Path

from irscope.query import COLUMNS


def test_the_page_holds_the_columns(repo: Path) -> None:
    rows = [line for line in (repo / "docs" / "query.md").read_text().splitlines() if line.startswith("| `")]
    for column in COLUMNS.values():
        assert f"| `{column.name}` | {column.kind} | {column.doc} |" in rows
