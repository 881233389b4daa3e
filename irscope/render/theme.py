"""Colours of drawings: by class of work after XLA's graph dumper, by cost, by dtype; on light and on dark ground."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from irscope.graph.dtypes import DTYPES
from irscope.render.categories import FINDINGS, GROUPS, PALETTES, ROOFLINE
from irscope.render.marks import severity_of
from irscope.render.palette import OF_CHANGE, OF_DTYPE, STOPS, Colours, heat
from irscope.render.units import bytes_
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
    dark: bool = False


_CLASSES = {
    "contraction": (Colours("#2456a6", "#173a72", "#ffffff"), Colours("#3874d4", "#9cc2ff", "#ffffff")),
    "reduction": (Colours("#cdb4f2", "#8250df", "#1f2328"), Colours("#54337f", "#b392f0", "#f0e8ff")),
    "elementwise": (Colours("#fff6a0", "#c9a400", "#1f2328"), Colours("#5f5500", "#d9b600", "#fff6cc")),
    "movement": (Colours("#b7e0b4", "#4d9a55", "#1f2328"), Colours("#1f5b3a", "#5fb36a", "#dcf5df")),
    "fusion": (Colours("#ccd1d9", "#6e7781", "#1f2328"), Colours("#363a42", "#8b949e", "#e6edf3")),
    "control": (Colours("#1f6f5c", "#124438", "#ffffff"), Colours("#12735f", "#43b394", "#d7f5ec")),
    "collective": (Colours("#c99b66", "#9a6324", "#1f2328"), Colours("#8a6b3f", "#c98d4b", "#ffffff")),
    "custom": (Colours("#a5dcf0", "#1b7c83", "#1f2328"), Colours("#0c5969", "#39a7ae", "#d5f3f5")),
    "parameter": (Colours("#f6c792", "#d9822b", "#1f2328"), Colours("#5a2c01", "#e8973f", "#ffe7cc")),
    "constant": (Colours("#ffffff", "#afb8c1", "#57606a"), Colours("#0d1117", "#484f58", "#8b949e")),
    "free": (Colours("#ffffff", "#afb8c1", "#57606a"), Colours("#0d1117", "#484f58", "#8b949e")),
    "unknown": (Colours("#f58d86", "#cf222e", "#1f2328"), Colours("#8e1e2e", "#f85149", "#ffdcd7")),
    "section": (Colours("#e3e8f2", "#7d8590", "#1f2328"), Colours("#0b2338", "#6e7681", "#e6edf3")),
}
"""The colours of each class of work, on light and on dark ground."""
LIGHT = Theme("#ffffff", "#1f2328", "#6e7781", "#57606a", "#bc4c00", "#f6f8fa", "#d0d7de",
              {name: light for name, (light, _) in _CLASSES.items()})
DARK = Theme("#0d1117", "#e6edf3", "#8b949e", "#8b949e", "#f0883e", "#161b22", "#30363d",
             {name: dark for name, (_, dark) in _CLASSES.items()}, dark=True)

_ALARM = {"error": "#cf222e", "warning": "#e36209", "info": "#0969da"}
UNKNOWN = ROOFLINE
"""Scales take their colour for ``unknown`` from this palette: it is far from all colours of a scale."""
_SCALES: dict[str, Callable[[Box], float | None]] = {
    "cost": lambda box: box.cost, "bytes": lambda box: box.bytes, "numbers": lambda box: box.number}
"""The modes in which colours are a scale, and the figure of a box that the colour shows."""
MAX_GROUPS = 12
"""Kernels that a legend names."""


def class_colours(name: str, theme: Theme) -> Colours:
    """The colours of a class of work."""
    return theme.classes.get(name, theme.classes["custom"])


def most_of(boxes: Sequence[Box], color_by: str) -> float:
    """The largest figure of the boxes, to which the colours of a scale are relative; 1 where none is positive or there is no scale."""
    figures = map(_SCALES[color_by], boxes) if color_by in _SCALES else ()
    return max((figure for figure in figures if figure is not None and figure > 0), default=1.0)


def box_colours(box: Box, color_by: str, most: float, theme: Theme) -> Colours:
    """The colours of a box. A box with findings has the border of the worst."""
    colours = _ground(box, color_by, most, theme)
    return replace(colours, border=_ALARM[severity_of(box)]) if box.findings else colours


def _ground(box: Box, color_by: str, most: float, theme: Theme) -> Colours:
    quiet = theme.classes["section" if box.node is None else "free"]
    if _has_unknown_figure(box, color_by):
        return UNKNOWN.colours("unknown", theme.dark)
    if color_by in _SCALES:
        figure = _SCALES[color_by](box)
        return heat(figure / most, theme.dark) if figure is not None else quiet
    if color_by == "dtype":
        return OF_DTYPE.get(dtype_of(box), quiet)
    if color_by == "fusion":
        return GROUPS[box.group[0] % len(GROUPS)] if box.group is not None else quiet
    if color_by == "findings":
        return FINDINGS.colours(severity_of(box) or "none", theme.dark)
    if color_by in PALETTES:
        return PALETTES[color_by].colours(box.category, theme.dark) if box.category else quiet
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
    if color_by in _SCALES:
        unknown = any(_has_unknown_figure(box, color_by) for box in boxes)
        return [*((text, heat(share, theme.dark)) for share, text in zip(STOPS, _stops(boxes, color_by), strict=True)),
                *([("unknown", UNKNOWN.colours("unknown", theme.dark))] if unknown else [])]
    if color_by == "fusion":
        groups = sorted({box.group for box in boxes if box.group is not None})
        found = [(f"%{name}", GROUPS[number % len(GROUPS)]) for number, name in groups[:MAX_GROUPS]]
        more = len(groups) - MAX_GROUPS
        return found + ([(f"+{more} more, colours repeat", theme.classes["free"])] if more > 0 else [])
    if color_by == "change":
        return [(name, colours) for name, colours in OF_CHANGE.items() if any(box.change == name for box in boxes)]
    used = {severity_of(box) or "none" if color_by == "findings" else box.category for box in boxes}
    palette = PALETTES[color_by]
    return [(name, palette.colours(name, theme.dark)) for name in palette.fills if name in used]


def _has_unknown_figure(box: Box, color_by: str) -> bool:
    """Whether the figure that the colour of a box shows is entirely unknown."""
    return color_by in ("cost", "bytes") and box.is_open and not _SCALES[color_by](box)


def _stops(boxes: Sequence[Box], color_by: str) -> list[str]:
    """The words of the stops of a scale: shares of the costliest box, bytes, or the user's numbers."""
    most = most_of(boxes, color_by)
    if color_by == "bytes":
        return [bytes_(share * most) for share in STOPS]
    if color_by == "numbers":
        return [f"{share * most:.4g}" for share in STOPS]
    return [f"{share:.0%} of the costliest" if share in (0.0, 1.0) else f"{share:.0%}" for share in STOPS]


def theme(dark: bool) -> Theme:
    return DARK if dark else LIGHT
