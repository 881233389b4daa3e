"""Names of TorchScript that hold blanks are read in one pass."""
from __future__ import annotations

import pytest

from irscope.formats.torchscript.cursor import NAME
from tests.effort import within


def test_a_long_run_of_blanks_in_a_name_takes_no_longer_than_other_text() -> None:
    with within(1):
        found = NAME.match("%a" + " " * 100_000 + "b = 1")
    assert found is not None and found[1].startswith("a ") and found[1].endswith(" b")


@pytest.mark.parametrize(("text", "name"), [
    ("%a.1 : Tensor", "a.1"), ("%a b/c::d , %e", "a b/c::d"), ("%a\n", "a"), ("%a:b", "a"), ("% , x", ""), ("%a", "a"), ("%a  ", "a"),
    ("%a\t\n=", "a")])
def test_names_end_before_marks(text: str, name: str) -> None:
    found = NAME.match(text)
    assert found is not None and found[1].strip() == name


@pytest.mark.parametrize("text", ["%", "%)", "%a\nb", "%{"])
def test_what_is_no_name(text: str) -> None:
    assert (NAME.match(text) is None) == (text != "%a\nb")
