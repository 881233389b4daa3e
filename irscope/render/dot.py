"""A drawing as DOT text, and through graphviz as SVG or PNG. The only file that knows the graphviz packages."""
from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from math import log2
from typing import TYPE_CHECKING

from irscope.lazy import LazyModule
from irscope.render.marks import found_lines, stands_out, stored_label, stored_tooltip, tooltip_of
from irscope.render.palette import Colours
from irscope.render.theme import Theme, box_colours, class_colours, legend, most_of, theme
from irscope.render.units import short
from irscope.render.view import Box, BoxFrame, BoxLink, Drawing
from irscope.source import UserError
from irscope.source.budget import current
from irscope.source.visible import markup, visible

if TYPE_CHECKING:
    from graphviz.backend import dot_command, execute
else:  # of use only where the dot program draws
    dot_command, execute = LazyModule("graphviz.backend.dot_command"), LazyModule("graphviz.backend.execute")

FONT = "DejaVu Sans,Verdana,Helvetica,sans-serif"
TIMEOUT = 60.0
"""Seconds that graphviz may take, if the budget has as many left."""
LEGEND = 13
"""Colours of a legend in one row."""
MAX_HEADING, MAX_LINE, MAX_TIP = 400, 120, 4000
"""Characters of a line above the drawing, of any other line, and of a tooltip: longer ones are cut. Graphviz refuses labels and strings
from 16 KiB on."""


def dot_text(view: Drawing, color_by: str = "class", dark: bool = False) -> str:
    """The drawing as DOT."""
    return "\n".join(_lines(view, color_by, theme(dark))) + "\n"


def draw(text: str, format: str) -> bytes:
    """Lay out DOT text and draw it as ``svg``, ``png`` or ``pdf``: by the ``dot`` program, else by the wheel that carries graphviz.

    Raises UserError if neither is installed, if graphviz fails, or if it takes longer than :data:`TIMEOUT` or the budget.
    """
    if shutil.which("dot"):
        return _by_program(text, format)
    if has_wheel():
        return _by_wheel(text, format)
    raise UserError(f"{format} needs graphviz, and there is none on this machine",
                    "pip install 'irscope[draw]' (a wheel with graphviz in it), or install graphviz so that `dot` is on PATH;\n"
                    "-o FILE.html and -o FILE.dot need neither")


def has_wheel() -> bool:
    """Whether the wheel that bundles the graphviz libraries is installed."""
    return find_spec("pygraphviz") is not None


def can_draw() -> bool:
    """Whether PNG and laid-out SVG are possible here."""
    return shutil.which("dot") is not None or has_wheel()


def _by_program(text: str, format: str) -> bytes:
    try:
        command = [dot_command.DOT_BINARY, f"-T{format}"]
        done = execute.run_check(command, input=text.encode(), capture_output=True, quiet=True, timeout=_patience())
    except subprocess.TimeoutExpired as late:
        raise _too_slow(late.timeout) from None
    except execute.CalledProcessError as error:
        raise _failed(error.stderr, error.returncode) from None
    return bytes(done.stdout)


def _by_wheel(text: str, format: str) -> bytes:
    """In a process of its own: the library can neither be interrupted nor limited, and aborts the process on some faults."""
    program = ("import sys, pygraphviz as p; g = p.AGraph(string=sys.stdin.buffer.read().decode()); g.layout('dot');"
               f" sys.stdout.buffer.write(g.draw(format={format!r}))")
    try:
        done = subprocess.run([sys.executable, "-c", program], input=text.encode(), capture_output=True, timeout=_patience(), check=False)
    except subprocess.TimeoutExpired as late:
        raise _too_slow(late.timeout) from None
    if done.returncode or not done.stdout:
        raise _failed(done.stderr, done.returncode)
    return done.stdout


def _patience() -> float:
    """The seconds that graphviz may take: it runs in a process that no budget sees."""
    budget = current()
    if budget is None or budget.limits.seconds is None:
        return TIMEOUT
    return max(0.1, min(TIMEOUT, budget.limits.seconds - budget.seconds()))


def _too_slow(seconds: float) -> UserError:
    return UserError(f"graphviz did not finish the drawing in {seconds:.1f} s", "draw less: --max-nodes 100, --depth 1, or --around NODE")


def _failed(said: bytes | str | None, status: int) -> UserError:
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said or ""
    lines = text.strip().splitlines()
    return UserError(f"graphviz failed: {lines[-1] if lines else f'status {status}'}", "-o FILE.html needs no graphviz")


def _lines(view: Drawing, color_by: str, colours: Theme) -> Iterator[str]:
    names = {box: f"n{i}" for i, box in enumerate(view.boxes)}
    yield "digraph irscope {"
    # Without these limits dot needs half a minute for a thousand nodes that share one input; with them under a second.
    yield "  graph [rankdir=TB, nslimit=1, nslimit1=1, mclimit=0.5, compound=true, ranksep=0.35, nodesep=0.25, pad=0.3, dpi=96,"
    splines = "polyline" if len(view.boxes) > 300 else "spline"
    yield f'         splines={splines}, bgcolor="{colours.background}", fontname="{FONT}", fontsize=14, fontcolor="{colours.text}",'
    yield f"         labelloc=t, labeljust=l, label={_title(view, color_by, colours)}];"
    yield f'  node [shape=box, style="filled,rounded", fontname="{FONT}", fontsize=11, margin="0.12,0.06", height=0.3, penwidth=1];'
    yield f'  edge [color="{colours.edge}", arrowsize=0.6, fontname="{FONT}", fontsize=9, fontcolor="{colours.faint}"];'
    yield from _boxes(view, names, color_by, colours)
    for link in view.links:
        yield f"  {names[link.source]} -> {names[link.target]}{_link_attributes(link, colours)};"
    yield "}"


def _boxes(view: Drawing, names: dict[Box, str], color_by: str, colours: Theme) -> Iterator[str]:
    """Boxes inside their clusters; clusters inside their parents."""
    inside: dict[BoxFrame | None, list[Box]] = {}
    below: dict[BoxFrame | None, list[BoxFrame]] = {}
    for box in view.boxes:
        inside.setdefault(box.cluster, []).append(box)
    for frame in view.clusters:
        below.setdefault(frame.parent, []).append(frame)
    most = most_of(view.boxes, color_by)
    number = 0
    stack: list[tuple[BoxFrame | None, bool, int]] = [(None, False, 0)]
    while stack:
        cluster, done, depth = stack.pop()
        pad = "  " * (depth + 1)
        if done:
            yield pad[2:] + "}"
            continue
        if cluster is not None:
            edge = class_colours(cluster.kind, colours).border
            fill = colours.cluster if depth % 2 else colours.background
            yield f"{pad[2:]}subgraph cluster_{number} {{"
            title = _quote(short(cluster.title, MAX_LINE))
            yield (f'{pad}graph [label={title}, labelloc=t, labeljust=l, style="rounded,filled", color="{edge}",'
                   f' fillcolor="{fill}", fontsize=11, fontcolor="{colours.text}", margin=10];')
            number += 1
            stack.append((cluster, True, depth))
        for box in inside.get(cluster, []):
            yield pad + names[box] + _box_attributes(box, box_colours(box, color_by, most, colours)) + ";"
        stack.extend((child, False, depth + 1) for child in reversed(below.get(cluster, [])))


def _box_attributes(box: Box, colours: Colours) -> str:
    rows = [f"<b>{_cut(box.title)}</b>" + (f" <b>&#215;{box.times}</b>" if box.times > 1 else "")]
    rows += [f'<font point-size="9">{_cut(line)}</font>' for line in box.lines if line]
    rows += [f'<font point-size="9"><b>{_cut(line)}</b></font>' for line in (*box.badges, *found_lines(box))]
    rows += [f'<font point-size="9"><i>&#8592; {_cut(text)}</i></font>' for text in box.inputs]
    style = "filled,rounded" + (",dashed" if "open" in box.tags else "")
    wide = ", penwidth=3" if stands_out(box) else ", penwidth=2, peripheries=2" if "result" in box.tags else ""
    tooltip = tooltip_of(box)
    tip = f", tooltip={_quote(tooltip)}" if tooltip else ""
    ident = f", id={_quote(box.key)}" if 0 < len(box.key) <= MAX_TIP else ""
    return (f' [label=<{"<br/>".join(rows)}>, style="{style}", fillcolor="{colours.fill}", color="{colours.border}",'
            f' fontcolor="{colours.text}"{wide}{tip}{ident}]')


def _link_attributes(link: BoxLink, colours: Theme) -> str:
    # From 1 for scalars to 4 for a gibibyte: the big tensors are what a reader looks for.
    width = 1.0 if link.bytes < 1024 else min(4.0, 1.0 + (log2(link.bytes) - 10) * 0.15)
    parts = [f"penwidth={width:.2g}"]
    label = link.label or stored_label(link)
    if label:
        parts.append(f"label={_quote(short(label, MAX_LINE))}")
    if link.stored:
        parts += [f'style=dashed, color="{colours.stored}", fontcolor="{colours.stored}"']
    if link.stored or link.n > 1:
        tip = _quote(stored_tooltip(link) or f"{link.n} values")
        parts.append(f"tooltip={tip}" + (f", labeltooltip={tip}" if label else ""))
    return f" [{', '.join(parts)}]"


def _title(view: Drawing, color_by: str, colours: Theme) -> str:
    """The title, the notes, and a legend of the colours that occur."""
    rows = [f'<tr><td align="left"><font point-size="16"><b>{_cut(view.title, MAX_HEADING)}</b></font></td></tr>']
    notes = (_cut(note, MAX_HEADING) for note in view.notes)
    rows += [f'<tr><td align="left"><font point-size="10" color="{colours.faint}">{note}</font></td></tr>' for note in notes]
    rows += [f'<tr><td align="left"><font point-size="10">{_cut(line, MAX_HEADING)}</font></td></tr>' for line in view.heading]
    cells = [f'<td bgcolor="{c.fill}" color="{c.border}" border="1"><font point-size="9" color="{c.text}">{_cut(name)}</font></td>'
             for name, c in legend(view.boxes, color_by, colours)]
    if cells:
        lines = "".join(f"<tr>{''.join(cells[i:i + LEGEND])}</tr>" for i in range(0, len(cells), LEGEND))
        table = f'<table align="left" border="0" cellborder="0" cellspacing="3" cellpadding="3">{lines}</table>'
        rows.append(f'<tr><td align="left">{table}</td></tr>')
    return '<<table border="0" cellborder="0" cellspacing="0" cellpadding="1">' + "".join(rows) + "</table>>"


def _cut(text: str, width: int = MAX_LINE) -> str:
    """A line of a label."""
    return markup(short(text, width))


def _quote(text: str) -> str:
    return '"' + visible(short(text, MAX_TIP)).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
