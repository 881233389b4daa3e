"""The page about StableHLO lists the operations that are built, and those that are not."""
from __future__ import annotations

import re

import pytest

from irscope.formats.stablehlo.building.module import build_module
from irscope.formats.stablehlo.building.work import BUILDERS
from irscope.formats.stablehlo.dialects import CHLO, MHLO, STABLEHLO
from tests.conftest import REPO

PAGE = (REPO / "docs" / "formats" / "stablehlo.md").read_text(encoding="utf-8")
STRUCTURE = frozenset(("return",))


@pytest.mark.parametrize(("dialect", "names"), [("stablehlo", STABLEHLO), ("chlo", CHLO), ("mhlo", MHLO - STABLEHLO)])
def test_the_table_of_operations(dialect: str, names: frozenset[str]) -> None:
    assert build_module.__name__ == "build_module"  # its module imports those that fill the table
    built = {name for name in names if f"{dialect}.{name}" in BUILDERS} | (names & STRUCTURE)
    row = re.search(rf"^\| {dialect} \| (\d+)[^|]*\| ([^|]*) \|$", PAGE, re.MULTILINE)
    assert row is not None
    assert (int(row[1]), row[2]) == (len(built), ", ".join(sorted(names - built)))
