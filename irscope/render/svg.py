"""A drawing as SVG with irscope's own layout: the result of ``-o graph.svg`` on a machine without graphviz."""
from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from irscope.render.layout import Placed, layered
from irscope.render.marks import found_lines, stands_out, stored_label, stored_tooltip, tooltip_of
from irscope.render.palette import Colours
from irscope.render.theme import Theme, box_colours, legend, most_of, theme
from irscope.render.view import Box, BoxLink, Drawing
from irscope.source.visible import markup

LINE = 13.0
PAD = 10.0
MARGIN = 24.0
FONT = "DejaVu Sans, Verdana, Helvetica, sans-serif"


def svg_text(view: Drawing, color_by: str = "class", dark: bool = False) -> str:
    """The drawing as one SVG text; frames of clusters become a line in their boxes."""
    return "\n".join(_lines(view, color_by, theme(dark))) + "\n"


def _lines(view: Drawing, color_by: str, colours: Theme) -> Iterator[str]:
    number = {box: i for i, box in enumerate(view.boxes)}
    texts = [_texts(box) for box in view.boxes]
    widths = [max(len(text) * (7.2 if i == 0 else 6.0) for i, text in enumerate(lines)) + 2 * PAD for lines in texts]
    heights = [len(lines) * LINE + PAD for lines in texts]
    drawn = view.links
    placed = layered(widths, heights, [(number[link.source], number[link.target]) for link in drawn])
    used = legend(view.boxes, color_by, colours)
    said = [(note, colours.faint) for note in view.notes] + [(line, colours.text) for line in view.heading]
    head = 34.0 + 16.0 * len(said) + (22.0 if used else 0.0)
    named = sum(len(name) * 6.2 + 17 for name, _ in used)
    width, height = max(placed.width, 320.0, named, *(len(line) * 6.0 for line, _ in said)) + 2 * MARGIN, placed.height + head + 2 * MARGIN
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
           f' font-family="{FONT}">')
    yield f'<rect width="100%" height="100%" fill="{colours.background}"/>'
    yield "<defs>" + "".join(
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>' for name, colour in (("a", colours.edge), ("s", colours.stored))) + "</defs>"
    yield f'<text x="{MARGIN}" y="{MARGIN}" font-size="16" font-weight="bold" fill="{colours.text}">{markup(view.title)}</text>'
    for i, (line, fill) in enumerate(said):
        yield f'<text x="{MARGIN}" y="{MARGIN + 18 + 16 * i}" font-size="11" fill="{fill}">{markup(line)}</text>'
    yield from _legend(used, MARGIN + 6 + 16 * len(said))
    yield f'<g transform="translate({MARGIN} {head + MARGIN / 2})">'
    for i, link in enumerate(drawn):
        yield from _edge(link, _route(placed, i, number[link.source], number[link.target], heights), colours)
    most = most_of(view.boxes, color_by)
    for i, box in enumerate(view.boxes):
        area = Area(placed.x[i], placed.y[i], widths[i], heights[i])
        yield from _box(box, texts[i], area, box_colours(box, color_by, most, colours))
    yield "</g></svg>"


def _legend(used: list[tuple[str, Colours]], top: float) -> Iterator[str]:
    """The colours that occur, side by side."""
    left = MARGIN
    for name, own in used:
        width = len(name) * 6.2 + 12
        yield (f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="16" rx="3" fill="{own.fill}" stroke="{own.border}"/>'
               f'<text x="{left + width / 2:.1f}" y="{top + 11.5:.1f}" font-size="9.5" text-anchor="middle"'
               f' fill="{own.text}">{markup(name)}</text>')
        left += width + 5


def _texts(box: Box) -> list[str]:
    title = box.title + (f" ×{box.times}" if box.times > 1 else "")
    frame = [box.cluster.title] if box.cluster is not None else []
    said = [title, *(line for line in box.lines if line), *box.badges, *found_lines(box)]
    return [*said, *(f"← {text}" for text in box.inputs), *(f"in {text}" for text in frame)]


def _route(placed: Placed, i: int, a: int, b: int, heights: list[float]) -> list[tuple[float, float]]:
    """The points of a line from the bottom of one box through its bends to the top of the other."""
    down = placed.y[a] <= placed.y[b]
    first = (placed.x[a], placed.y[a] + heights[a] / 2 * (1 if down else -1))
    last = (placed.x[b], placed.y[b] - heights[b] / 2 * (1 if down else -1))
    return [first, *placed.bends[i], last]


def _edge(link: BoxLink, points: list[tuple[float, float]], colours: Theme) -> Iterator[str]:
    """A smooth line; dashed, with its bytes, where the value goes through memory under a fusion policy."""
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        path += f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    if not link.stored:
        yield f'<path d="{path}" fill="none" stroke="{colours.edge}" marker-end="url(#a)"/>'
        return
    yield f'<g class="stored"><title>{markup(stored_tooltip(link))}</title>'
    yield f'<path d="{path}" fill="none" stroke="{colours.stored}" stroke-width="1.6" stroke-dasharray="6 4" marker-end="url(#s)"/>'
    (x0, y0), (x1, y1) = points[-2:]
    yield (f'<text x="{(x0 + x1) / 2 + 4:.1f}" y="{(y0 + y1) / 2:.1f}" font-size="9" fill="{colours.stored}">'
           f'{markup(stored_label(link))}</text></g>')


class Area(NamedTuple):
    """The middle of a box and its size, in pixels."""

    x: float
    y: float
    width: float
    height: float


def _box(box: Box, texts: list[str], area: Area, colours: Colours) -> Iterator[str]:
    x, y, width, height = area
    left, top = x - width / 2, y - height / 2
    dashed = ' stroke-dasharray="5 3"' if "open" in box.tags else ""
    stroke = 3 if stands_out(box) else 2 if "result" in box.tags else 1
    partner = f' data-partner="{markup(box.partner)}"' if box.partner else ""
    yield f'<g class="node"{partner}><title>{markup(tooltip_of(box) or box.title)}</title>'
    yield (f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="6" fill="{colours.fill}"'
           f' stroke="{colours.border}" stroke-width="{stroke}"{dashed}/>')
    for i, line in enumerate(texts):
        style = 'font-size="11" font-weight="bold"' if i == 0 else 'font-size="9.5"'
        y_line = top + PAD / 2 + LINE * (i + 0.75)
        yield f'<text x="{x:.1f}" y="{y_line:.1f}" {style} text-anchor="middle" fill="{colours.text}">{markup(line)}</text>'
    yield "</g>"
