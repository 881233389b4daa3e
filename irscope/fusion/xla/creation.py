"""The order in which instructions of a text were created, by their names: of producers with equal gain XLA fuses the youngest."""
from __future__ import annotations

import re
from collections.abc import Sequence

from irscope.fusion.xla.instructions import Instruction

NAME = re.compile(r"(.*?)((?:\.\d+)*)")


def by_age(order: Sequence[Instruction]) -> list[Instruction]:
    """A post-order in which instructions of one stem are sorted by number, each stem within the positions that it had.

    XLA numbers instructions of one stem (``mul.3``, ``mul.4``) as it creates them, and dumps print operands first. The relative age of
    instructions of different stems is not visible; operands are mostly older than their users.
    """
    stems: dict[tuple[str, int], list[int]] = {}
    numbers: list[tuple[int, ...]] = []
    for place, instruction in enumerate(order):
        found = NAME.fullmatch(instruction.name)
        stem, digits = (found[1], found[2]) if found is not None else (instruction.name, "")
        numbers.append(tuple(int(n) for n in digits.split(".")[1:]))
        stems.setdefault((stem, len(numbers[-1])), []).append(place)
    made = list(order)
    for places in stems.values():
        for place, source in zip(places, sorted(places, key=lambda p: numbers[p]), strict=True):
            made[place] = order[source]
    return made
