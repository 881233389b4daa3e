"""Which statements draw from torch's generator: two of them give different numbers, however alike they look."""
from __future__ import annotations

from collections.abc import Callable

from irscope.formats.torchscript.attributes import Constant
from irscope.formats.torchscript.schema import Schema
from irscope.graph import Node

OFF = frozenset(("p", "dropout", "dropout_p", "train", "training"))
"""Arguments that switch drawing off where they are 0 or False, as they are by default."""


def drawing(schema: Schema) -> Callable[[Node], bool]:
    """Whether a node of an operator that may draw does."""
    places = [at for at, argument in enumerate(schema.arguments) if argument.name in OFF]
    return lambda node: not any(_is_off(node, at) for at in places)


def _is_off(node: Node, at: int) -> bool:
    if at >= len(node.operands):
        return True
    value = Constant.of(node.operands[at]).value
    return isinstance(value, bool | int | float) and value == 0
