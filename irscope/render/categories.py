"""The fixed palettes of what colours mean, beside classes of work and dtypes: one colour a category, in every drawing and on the page.

All pairs of one palette differ with red-green colour blindness too (tests/render/test_colours.py computes their distances).
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from irscope.render.palette import BORDER, PAPER, Colours, legible

QUIET = "#e4e6e9"
"""What says nothing about a box."""
_DARK = {QUIET: Colours("#30363d", BORDER, "#e6edf3"), PAPER: Colours("#0d1117", "#484f58", "#8b949e")}


@dataclass(frozen=True, slots=True)
class Palette:
    """The categories of one meaning of colours, in the order of the legend, with their fills; ``title`` is its name on the page.

    Where a closed section holds several, ``first`` lists those that it shows before all others; else it shows that of most bytes.
    """

    title: str
    fills: Mapping[str, str]
    first: tuple[str, ...] = ()

    def colours(self, name: str, dark: bool = False) -> Colours:
        """The colours of a category; those of the last for a name that is none."""
        fill = self.fills.get(name) or list(self.fills.values())[-1]
        return _DARK.get(fill, legible(fill)) if dark else legible(fill)


LAYOUT = Palette("layout", {
    "row-major": "#9ad0f5", "column-major": "#f2b24a", "permuted": "#c77fc0", "tiled": "#3f8f7a", "other memory space": "#8f2d00",
    "no layout": QUIET,
})
SHARDING = Palette("sharding", {
    "replicated": "#f6e58d", "split": "#5b8fd9", "split and replicated": "#a9d8f7", "one device": "#d9822b", "manual": "#7a4fa3",
    "not stated": QUIET,
})
ROOFLINE = Palette("roofline", {
    "far below the ridge": "#c8540a", "below the ridge": "#f7c06d", "above the ridge": "#2e6fbf", "no FLOPs": QUIET, "unknown": "#b9a3d6",
})
LIVENESS = Palette("liveness", {
    "runs at the peak": "#8f1d3f", "alive at the peak": "#e9769b", "of the caller": "#f2dfa6", "freed before": "#c5d7ea",
    "computed later": "#6f9fd0", "no buffer": PAPER,
}, ("runs at the peak", "alive at the peak", "of the caller", "computed later", "freed before"))
DIFF = Palette("changes", {"added": "#2f7fc1", "changed": "#f4c95d", "removed": "#b5452c", "same": QUIET}, ("removed", "added", "changed"))
FINDINGS = Palette("findings", {"error": "#ffb3ad", "warning": "#ffe08a", "info": "#b9d4ff", "none": PAPER}, ("error", "warning", "info"))

PALETTES: dict[str, Palette] = {
    "layout": LAYOUT, "sharding": SHARDING, "roofline": ROOFLINE, "liveness": LIVENESS, "diff": DIFF, "findings": FINDINGS,
}
"""The palettes by the name that ``--color-by`` gives them."""
COLOUR_MODES = ("class", "cost", "bytes", "dtype", "fusion", *PALETTES, "numbers")
"""What the colours of a drawing may mean."""
GROUPS = tuple(Colours(fill, BORDER, legible(fill).text) for fill in (
    "#9ad0f5", "#e69f00", "#2f9e77", "#f4ec7a", "#4668b8", "#b5502a", "#d9a0c8", "#8a8d93"))
"""The colours of kernels and fusions, in the order of the text, and then from the first again."""
