"""The numbers at the end of a name of XLA are split off in one pass, however many there are."""
from __future__ import annotations

import pytest

from irscope.fusion.xla.creation import _split
from tests.effort import within


@pytest.mark.parametrize(("name", "stem", "numbers"), [
    ("add.1", "add", (1,)), ("add.1.22", "add", (1, 22)), ("add", "add", ()), ("a.1b.2", "a.1b", (2,)), ("a..1", "a.", (1,)), (".5", "", (5,)),
    ("a.", "a.", ()), ("", "", ()), ("a1.2.x", "a1.2.x", ())])
def test_split(name: str, stem: str, numbers: tuple[int, ...]) -> None:
    assert _split(name) == ((stem, len(numbers)), numbers)


def test_long_names() -> None:
    with within(1):
        assert _split("a" + ".1" * 50_000 + "x") == (("a" + ".1" * 50_000 + "x", 0), ())
        assert _split("a." + "0" * 5_000 + "7") == (("a", 1), (7,))
