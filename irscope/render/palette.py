"""Colours of dtypes and of shares of the cost, the same in every drawing and on the page, and the legends that explain them."""
from __future__ import annotations

from dataclasses import dataclass

from irscope.graph.dtypes import DTYPES, DType


@dataclass(frozen=True, slots=True)
class Colours:
    """Fill, border and text of a box."""

    fill: str
    border: str
    text: str


INK, PAPER, BLACK = "#1f2328", "#ffffff", "#000000"
CONTRAST = 4.5
"""The least contrast ratio of a text and its ground (WCAG 2.1, level AA); black or white has it on every ground."""
BORDER = "#6e7781"
# After Okabe and Ito, so that they differ with red-green colour blindness, too. f64 is dark: it is rarely wanted.
_OWN = {"f64": "#8f2d00", "f32": "#9ad0f5", "bf16": "#5cc49a", "f16": "#f2e88f", "pred": "#d2d2d6"}
_RAMPS = {"float": ("#f7dcec", "#a8527f"), "int": ("#dde2f8", "#4a59a8"), "uint": ("#fbe3c0", "#a86a12"), "complex": ("#f0a585", "#a34a24")}
"""The lightest and the darkest colour of each family; its dtypes stand between them by size."""
STOPS = (0.0, 0.04, 0.25, 0.5, 1.0)
"""The shares of the costliest box that the legend of costs shows."""
OF_CHANGE = {name: Colours(fill, border, INK) for name, fill, border in (
    ("changed", "#f2e88f", "#9a6700"), ("added", "#9fdcb4", "#1a7f37"), ("removed", "#f5b3b3", "#cf222e"),
    ("moved", "#9ad0f5", "#0969da"), ("duplicated", "#d5f0de", "#1a7f37"), ("merged", "#fbe0e0", "#cf222e"))}
"""The colours of the kinds of changes in a comparison."""


def heat(share: float, dark: bool = False) -> Colours:
    """From the ground, white or dark, to red; ``share`` from 0 to 1 of the costliest."""
    # The square root shows what is a tenth of the costliest, which a linear scale leaves white.
    x = max(0.0, min(1.0, share)) ** 0.5
    fill = mixed("#161b22", "#ff7b5c", x) if dark else mixed(PAPER, "#d73c2d", x)
    return Colours(fill, "#8c8c8c", legible(fill).text)


def mixed(first: str, second: str, share: float) -> str:
    """The colour that is ``share`` of the way from one ``#rrggbb`` to another."""
    ends = zip(bytes.fromhex(first[1:]), bytes.fromhex(second[1:]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in ends)


def legible(fill: str) -> Colours:
    """A fill with a text of enough contrast, :data:`CONTRAST`: dark or white, whichever has more; black where neither has enough."""
    best = max((INK, PAPER), key=lambda text: contrast(fill, text))
    return Colours(fill, BORDER, best if contrast(fill, best) >= CONTRAST else BLACK)


def contrast(first: str, second: str) -> float:
    """The contrast ratio of two colours, from 1 to 21 (WCAG 2.1)."""
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    """The relative luminance of an sRGB colour, from 0 to 1 (WCAG 2.1)."""
    shares = (byte / 255 for byte in bytes.fromhex(colour[1:]))
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _dtype_colours() -> dict[str, Colours]:
    families: dict[str, list[DType]] = {}
    for dtype in DTYPES.values():
        if dtype.name not in _OWN and dtype.kind in _RAMPS:
            families.setdefault(dtype.kind, []).append(dtype)
    found = {name: legible(fill) for name, fill in _OWN.items()}
    for kind, dtypes in families.items():
        for i, dtype in enumerate(sorted(dtypes, key=lambda dtype: dtype.bits)):
            found[dtype.name] = legible(mixed(*_RAMPS[kind], i / max(1, len(dtypes) - 1)))
    return found


OF_DTYPE = _dtype_colours()
"""The colours of every dtype by its name; no two are equal."""
