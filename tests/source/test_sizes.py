"""Sizes as people write them."""
from __future__ import annotations

import pytest

from irscope.source import UserError
from irscope.source.sizes import parse_size, told_bytes


@pytest.mark.parametrize(("text", "size"), [("512", 512), ("300kB", 300_000), ("1.5GiB", 3 << 29), ("2 MiB", 2 << 20), ("1T", 10**12)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "many", "-3", "3 apples", "1e3", "KiB"])
def test_what_is_no_size_is_told(text: str) -> None:
    with pytest.raises(UserError, match="is not a size"):
        parse_size(text)


@pytest.mark.parametrize(("size", "text"), [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (2 << 30, "2 GiB"), (1 << 50, "1024 TiB")])
def test_sizes_are_told(size: int, text: str) -> None:
    assert told_bytes(size) == text
