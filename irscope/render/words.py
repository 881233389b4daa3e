"""Tables of the words of a page, each stored once."""
from __future__ import annotations


class WordTable:
    """A table that stores each word once; columns refer to a word by its number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    @property
    def words(self) -> list[str]:
        """The words in the order of their numbers, as a new list."""
        return list(self._numbers)

    def number(self, word: str) -> int:
        """The number of a word, which is added where it is new."""
        return self._numbers.setdefault(word, len(self._numbers))
