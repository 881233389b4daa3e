"""How much room a drawing takes, estimated before it has a layout."""
from __future__ import annotations

from collections import Counter, defaultdict

from irscope.render.view import Box, BoxFrame, Drawing, frames

WIDEST, HIGHEST = 1400, 1300
"""Pixels of boxes, as estimated here. With the space for its lines a drawing is up to twice as wide, and half as high again: scaled to a
screen of 1440 by 900, which makes it 0.56 to 1 times as large, it is still read."""
GAP, LINE = 54, 13
"""Pixels between two boxes with their margins, and of a line."""
LETTER, MARGIN = 8, 44
"""Pixels of a letter of a title, and around a box."""


def screens_of(view: Drawing) -> float:
    """How many screens a drawing fills, by the longest chain of boxes or by the widest rows, whichever is more."""
    bottoms = _bottoms(view)
    rows: dict[BoxFrame | None, Counter[int]] = defaultdict(Counter)
    for box in view.boxes:
        width = MARGIN + LETTER * max(len(box.title), *(len(line) * 3 // 4 for line in (*box.lines, *box.badges, *box.inputs)), 0)
        outermost = next(reversed(list(frames(box))), None)
        rows[outermost][bottoms[box] // (2 * GAP)] += width
    width = sum(max(row.values()) for row in rows.values())  # frames are drawn side by side
    return max(width / WIDEST, max(bottoms.values(), default=0) / HIGHEST)


def _bottoms(view: Drawing) -> dict[Box, int]:
    """Where the bottom of each box would be if each were directly below its sources."""
    users: dict[Box, list[Box]] = defaultdict(list)
    waiting = Counter(link.target for link in view.links)
    for link in view.links:
        users[link.source].append(link.target)
    top = dict.fromkeys(view.boxes, 0)
    bottom = dict(top)
    ready = [box for box in view.boxes if not waiting[box]]
    while ready:
        box = ready.pop()
        bottom[box] = top[box] + GAP + LINE * (1 + len(box.lines) + len(box.badges) + len(box.inputs))
        for user in users[box]:
            top[user] = max(top[user], bottom[box])
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    return bottom
