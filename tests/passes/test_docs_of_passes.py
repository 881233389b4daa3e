"""The page of passes has every pass and every option, and every pass explains itself."""
from __future__ import annotations

import re

import pytest

from irscope.passes.registry import options_of, own_passes
from tests.conftest import REPO

ROWS = {
    name: set(re.findall(r"`([\w-]+)`", options))
    for name, options in re.findall(r"^\| `([\w-]+)` \|[^|]*\|([^|]*)\|", (REPO / "docs" / "passes.md").read_text(encoding="utf-8"), re.MULTILINE)
}


@pytest.mark.parametrize("name", own_passes())
def test_every_pass_is_on_the_page_with_its_options(name: str) -> None:
    kind = own_passes()[name]
    assert ROWS[name] == {option.replace("_", "-") for option in options_of(kind)}
    assert kind.__doc__ and kind.__doc__.strip()


def test_the_page_has_no_pass_that_is_gone() -> None:
    assert ROWS.keys() == own_passes().keys()
