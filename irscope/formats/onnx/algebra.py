"""Tensor algebra with ONNX's rules: equal element types, axes counted from the end, values that are known while a model is expanded."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irscope.formats.onnx.types import NUMBERS, word_of
from irscope.formats.relay.algebra import Relay
from irscope.formats.torchscript.torch import Torch
from irscope.graph import DType, Node, without_array
from irscope.graph.dtypes import F32, F64, PRED, S64
from irscope.lazy import Array, np
from irscope.ops.checked import real
from irscope.ops.faults import TypeFault
from irscope.source.budget import tick

DEPENDS = "give the inputs (--inputs), for which the model is then compiled, or bind the input that it depends on"
SMALL = 1024
"""Values with more elements than this are not computed from the inputs while a model is expanded."""


MAX_STEPS = 1 << 22
"""An expansion takes no more steps, and computes no larger tables: a model that asks for more is a mistake."""


def bounded(steps: int, what: str) -> int:
    """A number of steps or of entries in a table that a model states. Raises TypeFault where it is too large."""
    if steps > MAX_STEPS:
        raise TypeFault(f"{what} takes {steps} steps, more than {MAX_STEPS}")
    tick(max(steps >> 4, 0))
    return steps


class Onnx(Relay):
    """The builder that operators use. ONNX promotes no element types, as Relay does not."""

    measure: Callable[[Node], int] | None = None
    """Computes an integer scalar of the main graph from the given inputs."""

    # ------------------------------------------------------------------ values at compile time

    def value(self, x: Node, what: str) -> Array:
        """The value of a node: of constants, or computed from the inputs that the user gives. Raises TypeFault where it is not known."""
        known = self.known(x)
        if known is None:
            known = self._known[x] = self._measured(x, what)
        return known

    def _measured(self, x: Node, what: str) -> Array:
        if self.measure is None or self.type(x).elements > SMALL:
            raise TypeFault(f"{what} depends on data", DEPENDS)
        dtype, shape = self.dtype(x), self.shape(x)
        if why := without_array(x.type):
            raise TypeFault(f"{what} {why}")
        flat = self.reshape(x, (self.type(x).elements,))
        if dtype.is_float:
            flat = self.convert(flat, F32 if dtype.bits < 64 else F64)
            flat = self.bitcast_convert(flat, _BITS[32 if dtype.bits < 64 else 64])
        flat = self.convert(flat, S64)
        numbers = [self.measure(self.reshape(self.slice_dim(flat, 0, i, i + 1), ())) for i in range(self.shape(flat)[0])]
        if dtype.is_float:
            wide = np.array(numbers, np.int64)
            values = wide.astype(np.int32).view(np.float32) if dtype.bits < 64 else wide.view(np.float64)
            return values.astype(dtype.numpy()).reshape(shape)
        return np.array(numbers, np.int64).astype(dtype.numpy()).reshape(shape)

    def _computed(self, node: Node) -> Array | None:
        return None if without_array(node.type) else super()._computed(node)

    def ints(self, x: Node, what: str) -> list[int]:
        """The numbers in an operand that must be known, towards zero. Raises TypeFault for NaN, infinity and complex numbers."""
        if self.dtype(x).is_float:
            return [int(v) for v in self.floats(x, what)]
        if not (self.dtype(x).is_integer or self.dtype(x) is PRED):
            raise TypeFault(f"{what} must be integers, not {word_of(self.dtype(x))}")
        return [int(v) for v in self.value(x, what).reshape(-1)]

    def floats(self, x: Node, what: str) -> list[float]:
        """The numbers in an operand that must be known. Raises TypeFault for NaN, infinity and complex numbers."""
        if self.dtype(x).is_complex:
            raise TypeFault(f"{what} must be real numbers, not {word_of(self.dtype(x))}")
        found = [float(v) for v in self.value(x, what).reshape(-1)]
        real(what, *found)
        return found

    def number(self, x: Node, what: str) -> float:
        """The one number in an operand that must be known. Raises TypeFault as :meth:`floats` does, and for another number of them."""
        found = self.floats(x, what)
        if len(found) != 1:
            raise TypeFault(f"{what} is one number, not {len(found)}")
        return found[0]

    # ------------------------------------------------------------------ element types and axes

    def numbered(self, number: int | None, default: DType) -> DType:
        """The element type of a number in an attribute; ``default`` for None and 0."""
        if not number:
            return default
        if number not in NUMBERS:
            raise TypeFault(f"the element type {number} is not known, or is not computed (strings)")
        return NUMBERS[number]

    def alike(self, *xs: Node | None) -> None:
        """Check that operands have one element type."""
        found = list(dict.fromkeys(self.dtype(x) for x in xs if x is not None))
        if len(found) > 1:
            raise TypeFault(f"the operands have different element types: {' and '.join(word_of(d) for d in found)}")

    def given_axes(self, x: Node, axes: Sequence[int]) -> list[int]:
        """Axes counted from the front, each once."""
        found = [self.axis(x, d) for d in axes]
        if len(set(found)) != len(found):
            raise TypeFault(f"the axes {list(axes)} name one axis twice")
        return found

    def widened(self, x: Node) -> Node:
        """Floats narrower than 32 bits as float32, in which sums are computed."""
        return self.convert(x, F32) if self.dtype(x).is_float and self.dtype(x).bits < 32 else x

    def by_torch(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of an expansion that is declared for torch."""
        t = _Torch(self)
        return self.adopt(function(t, *[self.here(a) if isinstance(a, Node) else a for a in arguments]))

    def adopt(self, made: Any) -> Any:
        """Nodes that another algebra built in the graph under construction."""
        return made


class _Torch(Torch):
    """torch's algebra in the graph under construction."""

    def __init__(self, onnx: Onnx) -> None:
        super().__init__(onnx.builder)
        self.onnx = onnx

    def size_from_data(self, node: Node) -> int:
        return int(self.onnx.value(node, "the size of the result").item())


_BITS = {32: NUMBERS[6], 64: NUMBERS[7]}
