"""The loops of a depthwise convolution: lanes walk the channels, which are independent; a window's weights stay in registers.

    par channel of 16:  w0..w8 = load.vec weights
      for y:  for x of 6 pixels:  every pixel that the windows touch is loaded once, and used by each window that holds it
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from irscope.graph import DType
from irscope.graph.node import Index
from irscope.lower.build import KernelBuilder
from irscope.lower.templates.geometry import ConvolutionGeometry
from irscope.lower.templates.shares import stepped, vectors
from irscope.lower.tile import Expr
from irscope.lower.view import View

Finish = Callable[[Expr, tuple[Index, Index, Index, Index], Expr | None], None]


@dataclass(slots=True)
class DepthwiseNest:
    """The loops over an image with contiguous channels. ``tap(channel, number, mask)`` returns the weights of element ``number`` of the
    window for the channels from ``channel`` on."""

    k: KernelBuilder
    geometry: ConvolutionGeometry
    image: View
    tap: Callable[[Index, int, Expr | None], Expr]
    pixels: int
    dtype: DType
    lanes: int
    finish: Finish

    def write(self) -> None:
        """Emit all loops."""
        k, conv = self.k, self.geometry.conv
        height, width = conv.out_spatial
        for c, mask in vectors(k, conv.outputs, self.lanes):
            w = [self.tap(c, number, mask) for number in range(prod(conv.window.size))]
            with k.loop(0, conv.batch) as n, k.loop(0, height) as y:
                for x, pixels in stepped(k, width, self.pixels, False):
                    self._pixels(w, (n, y, x, c), pixels, mask)

    def _pixels(self, w: list[Expr], first: tuple[Index, Index, Index, Index], pixels: int, mask: Expr | None) -> None:
        k, dims, window, (n, y, x, c) = self.k, self.geometry.conv.dims, self.geometry.conv.window, first
        batch, row, pixel = (self.image.strides[d] for d in (dims.lhs_batch, *dims.lhs_spatial))
        step, reach = window.stride, window.rhs_dilate  # of the window, and between its taps; each (y, x)
        base = self.geometry.first_tap(self.image) + (n * batch + y * (step[0] * row) + x * (step[1] * pixel) + c)
        total: list[Expr | None] = [None] * pixels
        for i in range(window.size[0]):
            for at in range((pixels - 1) * step[1] + (window.size[1] - 1) * reach[1] + 1):
                taps = [(p, at - p * step[1]) for p in range(pixels)]
                users = [(p, tap // reach[1]) for p, tap in taps if 0 <= tap <= (window.size[1] - 1) * reach[1] and tap % reach[1] == 0]
                if not users:
                    continue
                value = k.convert((base + (i * reach[0] * row + at * pixel)).load(self.lanes, mask), self.dtype)
                for p, j in users:
                    before, weight = total[p], w[i * window.size[1] + j]
                    total[p] = k.binary("mul", value, weight) if before is None else k.fma(value, weight, before)
        for p, result in enumerate(total):
            assert result is not None, "every window has a tap"
            self.finish(result, (n, y, x + p, c), mask)
