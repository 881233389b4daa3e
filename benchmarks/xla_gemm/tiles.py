"""Whether a kernel can compute an instruction tile by tile (``SymbolicTileAnalysis``), as far as dots need it.

A tile is a box of the result; the needed part of an operand must be a box with fixed steps too. A reshape keeps boxes if it splits
dimensions or merges them, but not if it does both at once.
"""
from __future__ import annotations

from itertools import pairwise

from irscope.fusion.dimensions import common_factors
from irscope.fusion.xla.gemm.bitcasts import form_of
from irscope.fusion.xla.instructions import Instruction
from irscope.ops import hlo


def untiled(instruction: Instruction) -> str:
    """XLA's message for an instruction without tiles; empty if a kernel can compute it tile by tile."""
    if instruction.op in (hlo.reshape, hlo.bitcast) and not _keeps_boxes(instruction):
        return "Bailing out on reshape"
    return "Bailing out on" if instruction.op is hlo.pad else ""


def _keeps_boxes(reshape: Instruction) -> bool:
    before, after = (form_of(i).in_memory for i in (reshape.operands[0], reshape))
    for (a, b), (c, d) in pairwise(common_factors(before, after)):
        if min(sum(size != 1 for size in before[a:c]), sum(size != 1 for size in after[b:d])) > 1:
            return False
    return True
