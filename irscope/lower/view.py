"""Addresses: a buffer and an index into it are one value, so that neither is combined with another's offset or strides.

A :class:`View` is an array view of a flat buffer (buffer, shape, strides, offset); an :class:`Address` is one element of a buffer, to
which loop nests add strides.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irscope.graph import DType
from irscope.graph.node import Index
from irscope.lower.statements import StatementBuilder
from irscope.lower.tile import Buffer, Expr


@dataclass(frozen=True, slots=True, eq=False)
class Address:
    """Element ``index`` of a buffer. ``address + n`` is the address ``n`` elements further; in the same buffer."""

    builder: StatementBuilder
    buffer: Buffer
    index: Expr

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    def __add__(self, elements: Index) -> Address:
        if isinstance(elements, int) and elements == 0:
            return self
        return Address(self.builder, self.buffer, self.index + elements)

    def load(self, lanes: int = 1, mask: Expr | None = None) -> Expr:
        """The element, or ``lanes`` consecutive ones; lanes whose ``mask`` is false are not read and are 0."""
        return self.builder.load(self.buffer, self.index, lanes, mask)

    def gather(self, lanes: int, step: int, mask: Expr | None = None) -> Expr:
        """``lanes`` elements, each ``step`` further than the one before."""
        k = self.builder
        return k.gather(self.buffer, k.splat(self.index, lanes) + k.lane(lanes) * step, mask)

    def store(self, value: object, mask: Expr | None = None, nontemporal: bool = False) -> None:
        """Write one element, or as many consecutive ones as the value has lanes."""
        self.builder.store(self.buffer, self.index, value, mask, nontemporal)

    def prefetch(self) -> None:
        """Prefetch the cache line; an address outside the buffer does no harm."""
        self.builder.prefetch(self.buffer, self.index)


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Element ``index`` is at ``offset + sum(index * strides)`` of ``buffer``."""

    builder: StatementBuilder
    buffer: Buffer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    def at(self, index: Sequence[object]) -> Expr:
        """The index of an element in the buffer."""
        if len(index) != len(self.shape):
            raise ValueError(f"{len(index)} indices into {self.dtype}{list(self.shape)}")
        place = self.builder.index(self.offset)
        for i, stride in zip(index, self.strides):
            place = place + self.builder.as_index(i) * stride
        return place

    @property
    def origin(self) -> Address:
        """The address of element 0."""
        return Address(self.builder, self.buffer, self.builder.index(self.offset))

    def load(self, index: Sequence[object]) -> Expr:
        return self.builder.load(self.buffer, self.at(index))

    def store(self, index: Sequence[object], value: object) -> None:
        self.builder.store(self.buffer, self.at(index), value)
