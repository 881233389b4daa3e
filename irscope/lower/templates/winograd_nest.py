"""The loops of a Winograd convolution: a block of tiles is transformed, multiplied window element by window element, and transformed back.

    par block:                                     tiles of some rows of the image, and some of the outputs
      for each tile, 16 channels: V = B^T d B      (m + 2)^2 planes [tile][channel]
      for each plane: M = V U                      the register tile of contractions; U packed before the first run
      for each tile, 16 channels: A^T M A          m x m results, handed to the epilogue
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from irscope.graph import DType
from irscope.graph.node import Index
from irscope.lower.build import KernelBuilder
from irscope.lower.schedule import ContractionSchedule
from irscope.lower.templates.affine import Affine, Axis
from irscope.lower.templates.geometry import ConvolutionGeometry
from irscope.lower.templates.nest import ContractionNest
from irscope.lower.templates.shares import stepped, vectors
from irscope.lower.templates.transforms import INPUT, OUTPUT, both_sides
from irscope.lower.tile import Expr
from irscope.lower.view import Address, View

Finish = Callable[[Expr, tuple[Index, Index, Index, Index], Expr | None], None]
"""``finish(value, (image, y, x, channel), mask)``, lanes along the channels."""


@dataclass(slots=True)
class WinogradNest:
    """The loops of a 3 x 3 convolution of stride 1 over an image with contiguous channels; taps outside of the image read zeros.
    ``groups``: the outputs are divided into this many blocks, each of whole panels."""

    k: KernelBuilder
    geometry: ConvolutionGeometry
    image: View
    weights: Address
    m: int
    block_rows: int
    schedule: ContractionSchedule
    dtype: DType
    lanes: int
    finish: Finish
    groups: int = 1

    @property
    def planes(self) -> int:
        return (self.m + 2) ** 2

    @property
    def down(self) -> int:
        """Rows of tiles."""
        return -(-self.geometry.conv.out_spatial[0] // self.m)

    @property
    def across(self) -> int:
        """Tiles of a row."""
        return -(-self.geometry.conv.out_spatial[1] // self.m)

    @property
    def tiles(self) -> int:
        """Tiles of a block."""
        return self.block_rows * self.across

    @property
    def pitch(self) -> tuple[int, int]:
        """Elements from tile to tile in V and in M: padded, since planes a power of two apart share cache sets."""
        conv = self.geometry.conv
        return _padded(conv.features, self.lanes), _padded(conv.outputs // self.groups, self.lanes)

    def write(self) -> None:
        """Emit all loops."""
        k, planes, conv = self.k, self.planes, self.geometry.conv
        transformed = k.scratch(self.dtype, (planes, self.tiles, self.pitch[0])).origin
        products = k.scratch(self.dtype, (planes, self.tiles, self.pitch[1])).origin
        cut = conv.out_spatial[0] % self.m != 0  # then the last rows of tiles are a separate block
        with k.par(0, conv.batch) as n, k.par(0, self.groups) as g:
            for y, rows in stepped(k, self.down, self.block_rows, True, cut):
                self._forward(transformed, n, y, rows)
                self._multiply(transformed, products, rows * self.across, g)
                self._backward(products, n, y, rows, g)

    def _forward(self, transformed: Address, n: Index, y: Index, rows: int) -> None:
        k, m, conv, lanes = self.k, self.m, self.geometry.conv, self.lanes
        batch, row, pixel = (self.image.strides[d] for d in (conv.dims.lhs_batch, *conv.dims.lhs_spatial))
        plane, pitch = self.tiles * self.pitch[0], self.pitch[0]
        with k.loop(0, rows) as ty, k.loop(0, self.across) as tx:
            base = self.geometry.first_tap(self.image) + (n * batch + (y + ty) * (m * row) + tx * (m * pixel))
            to = transformed + (ty * self.across + tx) * pitch
            for channel, mask in vectors(k, conv.features, lanes, False):
                d = [[k.convert((base + (i * row + j * pixel + channel)).load(lanes, mask), self.dtype) for j in range(m + 2)]
                     for i in range(m + 2)]
                for p, value in enumerate(v for line in both_sides(k, INPUT[m], d, m + 2, m + 2) for v in line):
                    (to + (channel + p * plane)).store(value)

    def _multiply(self, transformed: Address, products: Address, tiles: int, g: Index) -> None:
        (pitch_in, pitch_out), inputs = self.pitch, self.geometry.conv.features
        own = self.geometry.conv.outputs // self.groups
        affine = Affine([Axis("batch", self.planes, self.tiles * pitch_in, 1, 0), Axis("row", tiles, pitch_in, 0, 1),
                         Axis("column", own, 0, 1, 2), Axis("sum", inputs, 1, 1)])

        def keep(value: Expr, index: list[Index], mask: Expr | None) -> None:
            # Whole vectors: the elements beyond the last channel are zero, and there is room for them.
            (products + (index[0] * (self.tiles * pitch_out) + index[1] * pitch_out + index[2])).store(value)

        ContractionNest(self.k, affine, transformed, self.weights + g * (own * inputs), self.dtype, self.lanes, 3, keep, self.schedule,
             parallel=False, packed_columns=self.geometry.conv.outputs).write()

    def _backward(self, products: Address, n: Index, y: Expr, rows: int, g: Index) -> None:
        k, m = self.k, self.m
        for rows_first, rows_count, high in self._parts(y, rows):
            for first, count, wide in _split(self.across, self.geometry.conv.out_spatial[1] - (self.across - 1) * m, m):
                with k.loop(rows_first, rows_first + rows_count) as ty, k.loop(first, first + count) as tx:
                    self._one_back(products, (n, y, ty, tx), high, wide, g)

    def _parts(self, y: Expr, rows: int) -> list[tuple[int, int, int]]:
        """(first, count, results high) of the tile rows of a block; the image's last row of tiles may be cut off."""
        left = self.geometry.conv.out_spatial[0] - (self.down - 1) * self.m
        only = y.constant is not None and y.constant + rows == self.down
        if left == self.m or not only:
            return [(0, rows, self.m)]
        return _split(rows, left, self.m)

    def _one_back(self, products: Address, at: tuple[Index, Index, Index, Index], high: int, wide: int, g: Index) -> None:
        k, m, lanes, (n, y, ty, tx) = self.k, self.m, self.lanes, at
        plane, pitch = self.tiles * self.pitch[1], self.pitch[1]
        base = products + (ty * self.across + tx) * pitch
        own = self.geometry.conv.outputs // self.groups
        for channel, mask in vectors(k, own, lanes, False):
            d = [[(base + ((i * (m + 2) + j) * plane + channel)).load(lanes) for j in range(m + 2)] for i in range(m + 2)]
            for i, line in enumerate(both_sides(k, OUTPUT[m], d, high, wide)):
                for j, value in enumerate(line):
                    self.finish(value, (n, (y + ty) * m + i, tx * m + j, channel + g * own), mask)


def _padded(channels: int, lanes: int) -> int:
    return -(-channels // lanes) * lanes + lanes


def _split(count: int, last: int, m: int) -> list[tuple[int, int, int]]:
    """(first, count, results) of whole tiles, and of the last one where it is cut."""
    return [(0, count, m)] if last == m else [p for p in ((0, count - 1, m), (count - 1, 1, last)) if p[1]]
