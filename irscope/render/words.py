"""Tables of the words of a page, in which each stands once."""
from __future__ import annotations


class WordTable:
    """A table in which each word stands once; columns name it by its number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    @property
    def words(self) -> list[str]:
        """The words by their numbers."""
        return list(self._numbers)

    def number(self, word: str) -> int:
        """The number of a word, which is added where it is new."""
        return self._numbers.setdefault(word, len(self._numbers))
