"""Changes that spoil a text: bytes, tokens, numbers, lines and ends are changed, dropped, doubled and swapped."""
from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

TOKEN = re.compile(r"[A-Za-z_][\w.\-]*|-?\d+(?:\.\d*)?|\s+|.", re.DOTALL)
NUMBER = re.compile(r"\d+")
NUMBERS = (0, 1, -1, 2, 7, 255, 1 << 31, 1 << 63, 1 << 64, 10 ** 30)
CHANGES = (1, 1, 1, 2, 3, 8)
"""How many changes a text gets; one is drawn. Most faults that people meet are single ones."""
LEVELS = (3, 40, 40, 400, 3000)
"""How deeply brackets are nested, and how long a chain is made of a line; one is drawn."""
BRACKETS = re.compile(r"[(\[{<]")
PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}
DEFINITION = re.compile(r"^\s*(?:ROOT |let )?(%?[\w.\-]+)(?: ?:[^=]*)? = ", re.MULTILINE)
MAX_CHAIN = 20_000
"""Characters of a chain."""
MAX_TEXT = 60_000
"""Larger texts would only slow the run: what a reader does wrong in a line, it does wrong in a small text."""


@dataclass(frozen=True)
class Mutator:
    """Spoils texts of one format; ``spice`` are words of its grammar, put where they do not belong."""

    spice: Sequence[str]

    def mutate(self, text: str, other: str, rng: random.Random) -> str:
        """A text with one to a few changes; ``other`` lends tokens and lines."""
        for _ in range(rng.choice(CHANGES)):
            text = rng.choice(MUTATIONS)(self, text, other, rng)[:2 * MAX_TEXT]
        return text

    def cut(self, text: str, other: str, rng: random.Random) -> str:
        return text[:rng.randrange(len(text) + 1)]

    def drop_head(self, text: str, other: str, rng: random.Random) -> str:
        return text[rng.randrange(len(text) + 1):]

    def byte(self, text: str, other: str, rng: random.Random) -> str:
        at = rng.randrange(len(text) + 1)
        char = chr(rng.choice((rng.randrange(128), rng.randrange(32, 127), rng.randrange(0x2000))))
        return text[:at] + char + text[at + rng.randrange(2):]

    def spicy(self, text: str, other: str, rng: random.Random) -> str:
        at = rng.randrange(len(text) + 1)
        return text[:at] + rng.choice(self.spice) + text[at + rng.randrange(3):]

    def token(self, text: str, other: str, rng: random.Random) -> str:
        at = rng.randrange(len(text) + 1)
        m, n = TOKEN.search(text, at), TOKEN.search(other, rng.randrange(len(other) + 1))
        if m is None:
            return text
        new = rng.choice(("", m[0] * 2, n[0] if n else "", rng.choice(self.spice)))
        return text[:m.start()] + new + text[m.end():]

    def number(self, text: str, other: str, rng: random.Random) -> str:
        numbers = list(NUMBER.finditer(text))
        if not numbers:
            return text
        m = rng.choice(numbers)
        return text[:m.start()] + str(rng.choice(NUMBERS)) + text[m.end():]

    def lines(self, text: str, other: str, rng: random.Random) -> str:
        lines = text.split("\n")
        at = rng.randrange(len(lines))
        what = rng.randrange(5)
        if what == 0:
            del lines[at]
        elif what == 1:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif what == 2:
            lines.insert(at, rng.choice(other.split("\n")))
        elif what == 3:
            to = rng.randrange(len(lines))
            lines[at], lines[to] = lines[to], lines[at]
        else:
            lines[at:at + 2] = [" ".join(lines[at:at + 2])]
        return "\n".join(lines)

    def nest(self, text: str, other: str, rng: random.Random) -> str:
        """Put one more pair of brackets around the content of a pair, many times."""
        opened = list(BRACKETS.finditer(text))
        if not opened:
            return text
        m = rng.choice(opened)
        end = text.find(PAIRS[m[0]], m.end())
        if end < 0:
            return text
        levels = rng.choice(LEVELS)
        return text[:m.end()] + m[0] * levels + text[m.end():end] + PAIRS[m[0]] * levels + text[end:]

    def chain(self, text: str, other: str, rng: random.Random) -> str:
        """Repeat the line of a definition, each time over the definition before; what used the definition uses the last."""
        lines = list(DEFINITION.finditer(text))
        if len(lines) < 2:
            return text
        m = rng.choice(lines[1:])
        end = text.find("\n", m.end()) % (len(text) + 1)
        name, head, rest = m[1], text[m.start():m.end()], text[m.end():end]
        used = [n[1] for n in lines if n.start() < m.start() and re.search(re.escape(n[1]) + r"(?![\w.\-])", rest)]
        if not used or "ROOT" in head:
            return text
        operand = re.compile(re.escape(rng.choice(used)) + r"(?![\w.\-])")
        made, last = [], name
        for level in range(rng.choice(LEVELS)):
            new = f"{name}_{level}"
            made.append(head.replace(name, new, 1) + last.join(operand.split(rest, 1)))
            last = new
            if len(made[-1]) * len(made) > MAX_CHAIN:
                break
        return "\n".join([text[:end], *made]) + last.join(re.split(re.escape(name) + r"(?![\w.\-])", text[end:]))

    def join(self, text: str, other: str, rng: random.Random) -> str:
        return text + rng.choice(("", "\n", " ")) + other


MUTATIONS: list[Callable[[Mutator, str, str, random.Random], str]] = [
    Mutator.cut, Mutator.drop_head, Mutator.byte, Mutator.byte, Mutator.spicy, Mutator.spicy, Mutator.token, Mutator.token, Mutator.token,
    Mutator.number, Mutator.lines, Mutator.lines, Mutator.lines, Mutator.join, Mutator.nest, Mutator.chain]
"""One is drawn for each change; those that keep most of a text whole stand here more often."""
