"""Reads Relay's constants: numbers with the suffix of their type, tensor literals, and the calls that 2019 texts have for them."""

from __future__ import annotations

import re
from typing import Any

from irscope.formats.relay.cursor import NUMBER
from irscope.formats.relay.nodes import Nodes
from irscope.formats.relay.types import dtype_named
from irscope.formats.syntax import SyntaxFault
from irscope.graph import DType, Node, TensorType
from irscope.graph.dtypes import DTYPES, F32, S32, S64
from irscope.lazy import np
from irscope.ops.attrs import Literal

LARGEST = {16: 65504.0, 32: 3.4028235e38}
"""The largest finite float of 16 and 32 bits, in as many digits as it takes to name it."""


class Literals(Nodes):
    """The part of the reader that builds constants."""

    def _number(self, word: str, negative: bool, at: int) -> Node:
        """A scalar constant: int32 without a suffix (int64 where it does not fit), float32 for ``f``."""
        self.at += 1
        found = NUMBER.match(word)
        if found is None:
            special = re.fullmatch(r"(inf|nan)f?(\d*)", word)
            if special is None:
                raise SyntaxFault(at, f"`{word}` is not a number", length=len(word))
            value: float = float(special[1])
            if special[2] and f"f{special[2]}" not in DTYPES:
                raise SyntaxFault(at, f"`{word}`: there is no float of {special[2]} bits", length=len(word))
            dtype = DTYPES[f"f{special[2]}"] if special[2] else F32
        elif found[2] == "f" or any(c in found[1] for c in ".eE"):
            width = found[3] or "32"
            if f"f{width}" not in DTYPES or (found[2] and found[2] != "f"):
                raise SyntaxFault(at, f"`{word}`: there is no float of {width} bits", length=len(word))
            value, dtype = float(found[1]), DTYPES[f"f{width}"]
            if value > LARGEST.get(dtype.bits, value):
                raise SyntaxFault(at, f"{found[1]} does not fit float{dtype.bits}", length=len(word))
        else:
            return self._integer(word, found[1], found[2], found[3], negative, at)
        return self._scalar(-value if negative else value, dtype, at)

    def _integer(self, word: str, digits: str, letter: str, width: str, negative: bool, at: int) -> Node:
        value = -int(digits) if negative else int(digits)
        kind = "u" if letter == "u" else "s"
        if not width:
            dtype = self._claimed_integer() or (S32 if -(1 << 31) <= value < (1 << 31) else S64)
            kind = "u" if dtype.kind == "uint" else "s"
        elif f"{kind}{width}" in DTYPES:
            dtype = DTYPES[f"{kind}{width}"]
        else:
            raise SyntaxFault(at, f"`{word}`: there is no integer of {width} bits", length=len(word))
        low, high = (0, (1 << dtype.bits) - 1) if kind == "u" else (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1)
        if not low <= value <= high:
            raise SyntaxFault(at, f"{value} does not fit {'u' if kind == 'u' else ''}int{dtype.bits}", length=len(word))
        return self._scalar(value, dtype, at)

    def _claimed_integer(self) -> DType | None:
        """The element type in the comment after a number: texts of 2019 have no suffix (``2 /* ty=int64 */``)."""
        note = self.notes.get(self.at - 1)
        type = self.type_of_note(note) if note is not None else None
        return type.dtype if isinstance(type, TensorType) and not type.shape and type.dtype.is_integer else None

    def _scalar(self, value: float | int | bool, dtype: Any, at: int) -> Node:
        type = TensorType(dtype, ())
        literal = Literal(type, str(value), False, lambda lit: _array(value, dtype))
        return self.node(self.constant_op, (), {"literal": literal}, type, offset=at, synthetic=True)

    def _list(self) -> Node:
        """A tensor literal of the first version: ``[1, 2]``."""
        at = self.offset
        value = self.value()
        flat = str(value)
        if not _regular(value):
            raise SyntaxFault(at, "a tensor literal contains numbers, in lists of equal lengths")
        dtype = S32 if "." not in flat and "e" not in flat and "inf" not in flat and "nan" not in flat else F32
        if dtype is S32 and not _within_int32(value):
            raise SyntaxFault(at, "a number in this tensor literal does not fit int32")
        shape: list[int] = []
        probe = value
        while isinstance(probe, list):
            shape.append(len(probe))
            probe = probe[0] if probe else None
        type = TensorType(dtype, tuple(shape))
        return self.node(self.constant_op, (), {"literal": Literal(type, flat, False, lambda lit: _array(value, dtype))}, type, offset=at)

    def _scalar_call(self, word: str) -> bool:
        """``int64(3)``: a constant with a type, in texts of 2019."""
        at = self.at + 1
        if self.texts[at] == "-":
            at += 1
        return self.kinds[at] == "number" and self.texts[at + 1] == ")"

    def _converted(self, word: str, at: int) -> Node:
        self.expect("(")
        negative = self.take("-")
        found = NUMBER.match(self.word)
        dtype = dtype_named(word)
        assert dtype is not None
        if found is None:
            raise self.fault(f"`{self.word}` is not a number")
        value: float | int = float(found[1]) if not dtype.is_integer or any(c in found[1] for c in ".eE") else int(found[1])
        value = -value if negative else value
        if dtype.is_integer and not dtype.lowest <= value <= dtype.highest:
            raise SyntaxFault(at, f"{value} does not fit {word}", length=len(word))
        self.at += 1
        self.expect(")")
        return self.claimed(self._scalar(value, dtype, at))


def _regular(value: Any) -> bool:
    """Whether nested lists contain only numbers, and are equally long on each level."""
    level = [value]
    while level and isinstance(level[0], list):
        if not all(isinstance(v, list) and len(v) == len(level[0]) for v in level):
            return False
        level = [item for v in level for item in v]
    return all(isinstance(v, int | float) for v in level)


def _within_int32(value: Any) -> bool:
    """Whether the whole numbers in lists of equal lengths fit into 32 bits."""
    level = [value]
    while level and isinstance(level[0], list):
        level = [item for v in level for item in v]
    return all(-(1 << 31) <= v < 1 << 31 for v in level)


def _array(value: Any, dtype: Any) -> object:
    return np.asarray(value, dtype.numpy())
