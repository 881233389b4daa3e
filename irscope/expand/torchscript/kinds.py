"""The kinds of values that a construct of a program takes, checked before it runs.

    int tuple|list          two operands
    tensor any?             the second may be missing
    object any*             any number of others
"""
from __future__ import annotations

from collections.abc import Sequence

from irscope.formats.torchscript.abstract import FunctionRef, Maybe, ModuleRef, Scalar, Tensor
from irscope.ops.faults import TypeFault

TYPES: dict[str, tuple[type, ...]] = {
    "any": (object,), "tensor": (Tensor,), "scalar": (Scalar,), "number": (bool, int, float, complex), "int": (int,), "bool": (bool,),
    "str": (str,), "list": (list,), "tuple": (tuple,), "dict": (dict,), "object": (ModuleRef,), "function": (FunctionRef,),
    "optional": (Maybe,), "none": (type(None),),
}
"""The Python types of the values of each kind."""


class Kinds:
    """The kinds of operands that a text declares."""

    def __init__(self, text: str) -> None:
        words = text.split()
        self.text = text
        self.least = sum(word[-1] not in "?*" for word in words)
        self.rest = types(words[-1]) if words and words[-1].endswith("*") else None
        self.each = [types(word) for word in words if not word.endswith("*")]

    def check(self, values: Sequence[object]) -> None:
        """Raise TypeFault for another number of operands, and for an operand of another kind."""
        if len(values) < self.least or (self.rest is None and len(values) > len(self.each)):
            raise TypeFault(f"it takes operands of the kinds ({self.text}), not {len(values)} operands")
        for at, value in enumerate(values):
            wanted = self.each[at] if at < len(self.each) else self.rest
            if wanted is not None and not isinstance(value, wanted):
                raise TypeFault(f"operand {at} is of type {type(value).__name__}, but it takes operands of the kinds ({self.text})")


def types(word: str) -> tuple[type, ...]:
    """The Python types of a word such as ``tuple|list``."""
    return tuple(type for kind in word.rstrip("?*").split("|") for type in TYPES[kind])
