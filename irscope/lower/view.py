"""An array laid over a flat buffer: logical index to place by strides and offset."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from irscope.graph import DType
from irscope.lower.tile import Buffer, Expr

if TYPE_CHECKING:
    from irscope.lower.build import KernelBuilder


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of an array without gaps."""
    strides, step = [], 1
    for size in reversed(tuple(shape)):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Element ``index`` lies at ``offset + sum(index * strides)`` of ``buffer``."""

    builder: KernelBuilder
    buffer: Buffer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @staticmethod
    def over(builder: KernelBuilder, buffer: Buffer, shape: Sequence[int] | None = None, strides: Sequence[int] | None = None,
             offset: int = 0) -> View:
        """A view, row-major over the buffer's own shape unless said otherwise."""
        shape = tuple(buffer.shape if shape is None else shape)
        return View(builder, buffer, shape, row_major(shape) if strides is None else tuple(strides), offset)

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    def at(self, index: Sequence[Any]) -> Expr:
        """Where an element lies, as an index into the buffer."""
        if len(index) != len(self.shape):
            raise ValueError(f"{len(index)} indices into {self.dtype}{list(self.shape)}")
        place = self.builder.index(self.offset)
        for i, stride in zip(index, self.strides):
            place = place + self.builder.as_index(i) * stride
        return place

    def load(self, index: Sequence[Any]) -> Expr:
        return self.builder.load(self.buffer, self.at(index))

    def store(self, index: Sequence[Any], value: Any) -> None:
        self.builder.store(self.buffer, self.at(index), value)
