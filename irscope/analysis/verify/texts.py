"""Lazily parsed attributes: finds the nodes that have one without reading all the others."""
from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from irscope.graph import Graph, Module, Node


class Texts:
    """The raw attributes of a module's nodes, located by name in the text."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._placed: list[tuple[int, Graph, Node]] | None = None
        self._offsets: list[int] = []

    def having(self, attribute: str) -> Iterator[tuple[Graph, Node, str]]:
        """The nodes that write ``attribute=value``, in order of the text, with the value."""
        for graph, node in self._mentioning(attribute + "="):
            value = self.module.raw(node).get(attribute)
            if value is not None:
                yield graph, node, value

    def _mentioning(self, word: str) -> Iterator[tuple[Graph, Node]]:
        text = self.module.source.text
        at = text.find(word)
        last: Node | None = None
        while at >= 0:
            found = self._owner(at)
            if found is not None and found[1] is not last:
                last = found[1]
                yield found
            at = text.find(word, at + len(word))

    def _owner(self, offset: int) -> tuple[Graph, Node] | None:
        """The node whose text contains an offset: the last one that begins before it."""
        if self._placed is None:
            placed = [(n.loc, g, n) for g in self.module.graphs.values() for n in g.nodes if n.loc >= 0 and not n.synthetic]
            placed.sort(key=lambda p: p[0])
            self._placed, self._offsets = placed, [p[0] for p in placed]
        i = bisect_right(self._offsets, offset) - 1
        return self._placed[i][1:] if i >= 0 else None


def fields(text: str) -> dict[str, str]:
    """``{a="x", b={c=1}}`` by name. Strings lose their quotes, braces stay; commas inside either do not separate."""
    found: dict[str, str] = {}
    for piece in split(inside(text)):
        name, equals, value = piece.partition("=")
        if equals:
            value = value.strip()
            found[name.strip().strip('"')] = value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value
    return found


def inside(text: str) -> str:
    """The text between the outer braces or parentheses."""
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] in "{(" and text[-1] in "})" else text


_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[^"{}()\[\],]+|.', re.DOTALL)


def split(text: str) -> list[str]:
    """The pieces between commas outside of braces, brackets and strings."""
    pieces, now, depth = [], "", 0
    for token in _PIECE.findall(text):
        if token == "," and depth == 0:
            pieces.append(now.strip())
            now = ""
            continue
        depth += (token in "{([") - (token in "})]")
        now += token
    return [*pieces, now.strip()] if now.strip() or pieces else []
