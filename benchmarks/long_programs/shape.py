"""A shape of program: a text of equal blocks, each of which takes what the one before gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """``text(n)`` is a program of ``n`` blocks of ``ops`` operators each, as ``irscope stats`` counts them."""

    name: str
    ops: int
    text: Callable[[int], str]

    def program(self, ops: int) -> str:
        """A program of about ``ops`` operators, of at least one block."""
        return self.text(max(1, round(ops / self.ops)))


def blocks(head: str, block: str, foot: str, n: int) -> str:
    """``block`` written ``n`` times between ``head`` and ``foot``; ``$`` is its number, ``$+`` the next one, and in ``foot`` the last."""
    numbered = (block.replace("$+", str(i + 1)).replace("$", str(i)) for i in range(n))
    return "".join((head, *numbered, foot.replace("$", str(n))))


def repeated(name: str, ops: int, head: str, block: str, foot: str) -> Shape:
    """The shape of one block over and over."""
    return Shape(name, ops, lambda n: blocks(head, block, foot, n))
