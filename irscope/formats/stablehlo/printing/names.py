"""The names of operations and of values in a printed text."""
from __future__ import annotations

import re
from dataclasses import dataclass

from irscope.formats.stablehlo.composites import dynamic
from irscope.formats.stablehlo.dialects import CHLO, MHLO, STABLEHLO
from irscope.graph import Node, Op, Type
from irscope.ops import hlo

OPERATIONS: dict[Op, str] = {
    hlo.broadcast: "stablehlo.broadcast_in_dim", hlo.dot: "stablehlo.dot_general", hlo.topk: "chlo.top_k",
    hlo.opt_barrier: "stablehlo.optimization_barrier", hlo.bitcast: "mhlo.bitcast", hlo.copy: "mhlo.copy",
    dynamic.RESHAPE: "stablehlo.dynamic_reshape",
}
"""Operators that StableHLO has under another name than with ``_`` for ``-``."""
ODD = re.compile(r"[^\w$.\-]", re.ASCII)
DIGITS_AND_MORE = re.compile(r"\d+[^\d]", re.ASCII)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value of the printed text: its name with ``%``, and its type."""

    name: str
    type: Type


Parts = Leaf | tuple["Parts", ...]
"""The values that a node became: one, or those of the elements of a tuple."""


def leaves(parts: Parts) -> list[Leaf]:
    """The values, in order."""
    found: list[Leaf] = []
    stack: list[Parts] = [parts]
    while stack:
        top = stack.pop()
        if isinstance(top, Leaf):
            found.append(top)
        else:
            stack.extend(reversed(top))
    return found


def operation_name(node: Node) -> str | None:
    """The name of a node's operator in StableHLO; None where it has none."""
    known = OPERATIONS.get(node.op)
    if known is not None:
        return known
    short = node.op.name.replace("-", "_")
    for dialect, names in (("stablehlo", STABLEHLO), ("chlo", CHLO), ("mhlo", MHLO)):
        if short in names:
            return f"{dialect}.{short}"
    return None


class Names:
    """Names of values, unique in a function."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def fresh(self, wanted: str) -> str:
        """A name that the function does not have yet, with ``%``."""
        base = ODD.sub("_", wanted.partition("#")[0]) or "v"
        if DIGITS_AND_MORE.match(base) or base[0] == "-":
            base = "v" + base
        name = base
        while name in self._taken:
            self._taken[base] += 1
            name = f"{base}_{self._taken[base]}" if not base.isdecimal() else f"v{base}_{self._taken[base]}"
        self._taken[name] = 0
        return "%" + name
