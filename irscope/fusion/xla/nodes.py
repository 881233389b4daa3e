"""What XLA's fusion passes need to know of a node of the text."""
from __future__ import annotations

from irscope.formats.hlo.assembly import SPOILT
from irscope.graph import UNKNOWN, Node
from irscope.ops import hlo
from irscope.source import UserError

NEEDED = {"reduce": "dimensions", "concatenate": "dimensions", "transpose": "dimensions", "reduce-window": "window", "slice": "slice"}
"""Attributes that every analysis of an instruction needs."""


def check(node: Node) -> None:
    """Raise UserError if the text elides something that fusion of a node depends on."""
    op = node.op.name.removesuffix(SPOILT)
    missing = NEEDED.get(op)
    if missing is not None and missing not in node.attrs:
        raise UserError(f"the text leaves out {missing} of %{node.name}, a {op}: its fusion cannot be judged",
                        "print the module with its attributes")
    if node.type is UNKNOWN:
        raise UserError(f"the text leaves out the type of %{node.name}: its fusion cannot be judged", "print the module with result shapes")


def has_body(node: Node) -> bool:
    """Whether a node is a fusion whose computation the text has, with a parameter for each operand."""
    return node.op is hlo.fusion and bool(node.bodies) and node.bodies[0].root is not None \
        and len(node.bodies[0].params) == len(node.operands)
