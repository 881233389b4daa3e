"""Colours of drawings: by class of work after XLA's graph dumper, by cost, by dtype; on light and on dark ground."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from zlib import crc32

from irscope.analysis.calls import is_fusion
from irscope.graph.dtypes import DTYPES
from irscope.render.marks import severity_of
from irscope.render.palette import OF_CHANGE, OF_DTYPE, STOPS, Colours, heat
from irscope.render.view import Box


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a whole drawing; ``stored`` is that of edges that a fusion policy does not fuse."""

    background: str
    text: str
    faint: str
    edge: str
    stored: str
    cluster: str
    cluster_border: str
    classes: dict[str, Colours]


LIGHT = Theme("#ffffff", "#1f2328", "#6e7781", "#57606a", "#bc4c00", "#f6f8fa", "#d0d7de", {
    "contraction": Colours("#2456a6", "#173a72", "#ffffff"),
    "reduction": Colours("#d9c8f0", "#8250df", "#1f2328"),
    "elementwise": Colours("#fff3b8", "#c9a400", "#1f2328"),
    "movement": Colours("#cdeccf", "#4d9a55", "#1f2328"),
    "fusion": Colours("#dfe3e8", "#6e7781", "#1f2328"),
    "control": Colours("#1f6f5c", "#124438", "#ffffff"),
    "collective": Colours("#e6c9a8", "#9a6324", "#1f2328"),
    "custom": Colours("#bfe3df", "#1b7c83", "#1f2328"),
    "parameter": Colours("#ffd9b3", "#d9822b", "#1f2328"),
    "constant": Colours("#ffffff", "#afb8c1", "#57606a"),
    "free": Colours("#ffffff", "#afb8c1", "#57606a"),
    "unknown": Colours("#ffd7d5", "#cf222e", "#1f2328"),
    "section": Colours("#eef2f7", "#7d8590", "#1f2328"),
})
DARK = Theme("#0d1117", "#e6edf3", "#8b949e", "#8b949e", "#f0883e", "#161b22", "#30363d", {
    "contraction": Colours("#3b78d8", "#9cc2ff", "#ffffff"),
    "reduction": Colours("#4b3574", "#b392f0", "#f0e8ff"),
    "elementwise": Colours("#4f4408", "#d9b600", "#fff6cc"),
    "movement": Colours("#1f4426", "#5fb36a", "#dcf5df"),
    "fusion": Colours("#30363d", "#8b949e", "#e6edf3"),
    "control": Colours("#12493c", "#43b394", "#d7f5ec"),
    "collective": Colours("#553a1c", "#c98d4b", "#ffe9d0"),
    "custom": Colours("#123f42", "#39a7ae", "#d5f3f5"),
    "parameter": Colours("#5a3a14", "#e8973f", "#ffe7cc"),
    "constant": Colours("#0d1117", "#484f58", "#8b949e"),
    "free": Colours("#0d1117", "#484f58", "#8b949e"),
    "unknown": Colours("#5c1a1d", "#f85149", "#ffdcd7"),
    "section": Colours("#1c2430", "#6e7681", "#e6edf3"),
})

# Also distinguishable with red-green colour blindness (after Okabe and Ito, lightened so that black text reads).
_PALETTE = ("#9ad0f5", "#f5c77e", "#8fd6b8", "#f2e88f", "#a9b8e8", "#eea98b", "#e3b4d0", "#c9c9c9")
_ALARM = {"error": "#cf222e", "warning": "#e36209", "info": "#0969da"}
_SEVERITY = {"error": "#ffb3ad", "warning": "#ffe08a", "info": "#cfe3ff"}


def class_colours(name: str, theme: Theme) -> Colours:
    """The colours of a class of work."""
    return theme.classes.get(name, theme.classes["custom"])


def of_name(name: str) -> Colours:
    """A colour that depends on a name alone: the same fusion has the same colour in every drawing."""
    return Colours(_PALETTE[crc32(name.encode()) % len(_PALETTE)], "#6e7781", "#1f2328")


def severity(name: str, theme: Theme) -> Colours:
    """The colours of a finding's severity; without one, a quiet box."""
    fill = _SEVERITY.get(name)
    return Colours(fill, "#9a6700", "#1f2328") if fill else theme.classes["constant"]


def box_colours(box: Box, color_by: str, most: float, theme: Theme) -> Colours:
    """The colours of a box; ``most`` is the cost of the costliest one in the drawing. A box with findings has the border of the worst."""
    colours = _ground(box, color_by, most, theme)
    return replace(colours, border=_ALARM[severity_of(box)]) if box.findings else colours


def _ground(box: Box, color_by: str, most: float, theme: Theme) -> Colours:
    if color_by == "cost":
        return heat(box.cost / most)
    if color_by == "dtype":
        return OF_DTYPE.get(dtype_of(box), theme.classes["section" if box.node is None else "free"])
    if color_by == "fusion" and box.kernel:
        return of_name(box.kernel)
    if color_by == "fusion" and box.graph is not None:
        return of_name(box.node.name if box.node is not None and is_fusion(box.node) else box.graph.name)
    if color_by == "findings":
        return severity(severity_of(box), theme)
    if color_by == "change":
        return OF_CHANGE.get(box.change, theme.classes["constant"])
    return class_colours(box.work, theme)


def dtype_of(box: Box) -> str:
    """The name of the dtype of a box's value, of a tuple that of its first part; empty for a section."""
    return "" if box.node is None else str(box.node.type).partition("[")[0].lstrip("(")


def legend(boxes: Sequence[Box], color_by: str, theme: Theme) -> list[tuple[str, Colours]]:
    """What the colours of a drawing mean: those that occur in it, with their names."""
    if color_by == "class":
        return [(name, colours) for name, colours in theme.classes.items() if any(box.work == name for box in boxes)]
    if color_by == "dtype":
        used = {dtype_of(box) for box in boxes}
        return [(name, OF_DTYPE[name]) for name in DTYPES if name in used and name in OF_DTYPE]
    if color_by == "cost":
        return [(f"{share:.0%} of the costliest" if share in (0.0, 1.0) else f"{share:.0%}", heat(share)) for share in STOPS]
    if color_by == "change":
        return [(name, colours) for name, colours in OF_CHANGE.items() if any(box.change == name for box in boxes)]
    if color_by == "findings":
        used = {severity_of(box) for box in boxes}
        return [(name, severity(name, theme)) for name in _SEVERITY if name in used]
    return []


def theme(dark: bool) -> Theme:
    return DARK if dark else LIGHT
