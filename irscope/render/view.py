"""What a drawing shows: boxes, links and clusters, before any of them has a place or a colour."""
from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from irscope.analysis.highlights import Highlights
from irscope.graph import Node
from irscope.render.kernel_plan import KernelPlan, StoredEdge
from irscope.source import Finding

MAX_BOXES = 60
"""More boxes than this are a wall: sections stay closed instead."""
MIN_BOXES = 5
"""Fewer boxes than this say little of a program: code is opened that is closed in other drawings."""
MAX_LINKS_OF_A_VALUE = 16
"""A value with more users than this is written into their boxes; lines to all of them hide everything else, and cost minutes."""

MAX_LINES = 2
"""More lines than this between two frames are drawn as one."""

MANY = 40
"""From so many boxes on, a parameter that several boxes take is written into each of them."""


@dataclass(slots=True, eq=False)
class BoxFrame:
    """A frame around boxes: a kernel, the body of a fusion or loop, a section of an outline."""

    title: str
    parent: BoxFrame | None = None
    kind: str = "section"


@dataclass(slots=True, eq=False)
class Box:
    """A node, or a closed section. ``inputs`` are operands that are written instead of drawn; ``tags`` say what is special:
    ``centre`` (asked for), ``open`` (some operands are not in the drawing), ``result``, ``highlight``. ``findings`` are those about what
    it shows, ``badges`` say what in it stands out. What its colour needs is in ``category``, ``group`` (number and name of its kernel or
    fusion), ``bytes`` (of traffic), ``number`` (the user's) and ``is_open`` (whether part of its cost and traffic is unknown). In a
    comparison, ``change`` is the kind of its change, and ``partner`` a number that it shares with its partner on the other side."""

    title: str
    work: str
    lines: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    cluster: BoxFrame | None = None
    node: Node | None = None
    tooltip: str = ""
    cost: float = 0.0
    times: int = 1
    tags: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)
    badges: list[str] = field(default_factory=list)
    key: str = ""
    category: str = ""
    group: tuple[int, str] | None = None
    bytes: float = 0.0
    number: float | None = None
    is_open: bool = False
    change: str = ""
    partner: str = ""


@dataclass(slots=True, eq=False)
class BoxLink:
    """A value that goes from box to box; ``n`` values of ``bytes`` together, those of ``stored`` through memory under a fusion policy."""

    source: Box
    target: Box
    n: int = 1
    bytes: int = 0
    label: str = ""
    stored: list[StoredEdge] = field(default_factory=list)


@dataclass(slots=True)
class Drawing:
    """Everything that a drawing holds; ``notes`` say what it leaves out, ``heading`` what stands out in the program."""

    title: str
    boxes: list[Box] = field(default_factory=list)
    links: list[BoxLink] = field(default_factory=list)
    clusters: list[BoxFrame] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    heading: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class BoxOptions:
    """What to draw. ``picked`` limits it to these nodes; ``centre`` is the one that was asked for; ``depth`` how many levels open;
    ``findings`` and ``highlights`` are marked where they are; the kernels of ``plan`` are framed, and its unfused edges marked.

    ``generous`` opens what says little, too: the user asked for many boxes. ``color_by`` is what the colours mean, with the ``changes``
    and ``numbers`` of nodes that it may show, on a ``dark`` ground or a light one. ``note`` is written below the title.
    """

    max_boxes: int = MAX_BOXES
    generous: bool = False
    highlights: Highlights = field(default_factory=Highlights)
    depth: int | None = None
    picked: Collection[Node] | None = None
    centre: Node | None = None
    findings: Sequence[Finding] = ()
    plan: KernelPlan = field(default_factory=KernelPlan)
    color_by: str = "class"
    changes: Mapping[Node, str] = field(default_factory=dict)
    numbers: Mapping[Node, float] = field(default_factory=dict)
    dark: bool = False
    note: str = ""


def stub_crowds(view: Drawing) -> None:
    """Replace the links of values with very many users by words in their boxes; in a large drawing, those of shared parameters too."""
    out: dict[Box, list[BoxLink]] = {}
    for link in view.links:
        out.setdefault(link.source, []).append(link)
    large = len(view.boxes) > MANY
    crowds = dict.fromkeys(box for box, links in out.items()
                           if len(links) > MAX_LINKS_OF_A_VALUE or (large and len(links) > 1 and box.work == "parameter"))
    gone: set[Box] = set()
    for box in crowds:
        box.lines.append(f"used by {len(out[box])}")
        name = f"%{box.node.name}" if box.node is not None else box.title
        if box.work == "parameter" and box.node is not None and "centre" not in box.tags:
            gone.add(box)
            name = f"{box.node.name} {box.lines[0]}"
        for link in out[box]:
            link.target.inputs.append(name)
    gone -= {link.target for link in view.links if link.source not in crowds}
    view.links = [link for link in view.links if link.source not in crowds]
    view.boxes = [box for box in view.boxes if box not in gone]


def count_inputs(view: Drawing, most: int) -> None:
    """Limit the inputs of each box to ``most`` lines; where there are more, the last line says how many are left out."""
    for box in view.boxes:
        if len(box.inputs) > most:
            box.inputs[most - 1:] = [f"+{len(box.inputs) - most + 1} more"]


def bundle(view: Drawing) -> None:
    """Replace more than MAX_LINES lines between two frames, or between a frame and a box, by the one of most bytes, which gets the values,
    the bytes and the stored edges of all."""
    groups: dict[tuple[BoxFrame | Box, BoxFrame | Box], list[BoxLink]] = {}
    for link in view.links:
        groups.setdefault(_sides(link), []).append(link)
    kept: list[BoxLink] = []
    for sides, links in groups.items():
        if len(links) <= MAX_LINES or all(isinstance(side, Box) for side in sides):
            kept += links
            continue
        most = max(links, key=lambda link: link.bytes)
        most.n, most.bytes = sum(link.n for link in links), sum(link.bytes for link in links)
        most.stored = [edge for link in links for edge in link.stored]
        kept.append(most)
    view.links = kept


def _sides(link: BoxLink) -> tuple[BoxFrame | Box, BoxFrame | Box]:
    """The largest frames around each end of a link that the other end is outside of; the ends themselves where there are none."""
    inside: dict[BoxFrame | None, BoxFrame | Box] = {None: link.target}
    for cluster in frames(link.target):
        inside[cluster] = inside[None]
        inside[None] = cluster
    source: BoxFrame | Box = link.source
    for cluster in frames(link.source):
        if cluster in inside:
            return source, inside[cluster]
        source = cluster
    return source, inside[None]


def frames(box: Box) -> Iterator[BoxFrame]:
    """The frames around a box, the smallest first."""
    cluster = box.cluster
    while cluster is not None:
        yield cluster
        cluster = cluster.parent
