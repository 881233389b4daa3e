"""Which dimensions of a program's inputs and outputs vary from run to run, and the hidden numbers that say how long they are."""
from __future__ import annotations

from dataclasses import dataclass

KEY = "varying"
"""The attribute of a padded module that holds its :class:`Varying`."""


@dataclass(frozen=True, slots=True)
class Varying:
    """``inputs`` and ``outputs`` are (number of the array, dimension) of each size, in the order in which these follow the arrays."""

    inputs: tuple[tuple[int, int], ...] = ()
    outputs: tuple[tuple[int, int], ...] = ()
