"""Which dimensions of a program's inputs and outputs vary from run to run, and the hidden scalars that hold their sizes."""
from __future__ import annotations

from dataclasses import dataclass

KEY = "varying"
"""The attribute of a padded module that stores its :class:`Varying`."""


@dataclass(frozen=True, slots=True)
class Varying:
    """``inputs`` and ``outputs`` are the (array number, dimension) of each size, in the order in which the sizes follow the arrays."""

    inputs: tuple[tuple[int, int], ...] = ()
    outputs: tuple[tuple[int, int], ...] = ()
