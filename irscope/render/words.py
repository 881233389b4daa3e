"""Tables of the words of a page, in which each stands once."""
from __future__ import annotations


class Words:
    """A table in which each word stands once; columns name it by its number."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self._number: dict[str, int] = {}

    def number(self, word: str) -> int:
        """The number of a word, which is added where it is new."""
        known = self._number.get(word)
        if known is None:
            known = self._number[word] = len(self.words)
            self.words.append(word)
        return known
