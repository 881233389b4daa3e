"""Non-maximum suppression: removes the boxes of detection networks that overlap a better one, best first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from irscope.formats.relay.algebra import Relay, steps_of
from irscope.formats.relay.operators import Attributes, operator
from irscope.graph import Node
from irscope.graph.dtypes import F32, S32, S64
from irscope.lazy import np
from irscope.ops.faults import TypeFault
from irscope.ops.loops import counted
from irscope.ops.tensors import Tensors

Overlap = Callable[[Tensors, Sequence[Node], Sequence[Node]], Node]
"""From the four coordinates of one box, (B, 1) each, and those of all, (B, N) each: intersection over union, (B, N)."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Boxes in the order of processing, all (B, N) but ``boxes``, (B, N, 4).

    ``able`` may be kept, ``mortal`` may be suppressed, ``strong`` suppress others; boxes of one ``group`` (None: all are one) suppress each
    other. The sets are pred.
    """

    boxes: Node
    able: Node
    mortal: Node
    strong: Node
    group: Node | None = None


def survivors(t: Relay, c: Candidates, threshold: Node, limit: Node, overlap: Overlap | None = None,
              strict: bool = False) -> tuple[Node, Node]:
    """The boxes that are kept, (B, N), and their number per batch, (B).

    In order, keeps each box that may be kept and is not suppressed, up to ``limit`` (B) per batch; a kept box suppresses the later ones
    whose overlap reaches the threshold (``strict``: is above it).
    """
    b, n, _ = t.shape(c.boxes)
    measure = overlap or overlap_of_corners
    group = c.group if c.group is not None else t.full((b, n), 0, S32)
    nothing = t.compare("NE", t.full((b, n), 0, S32), t.array(0, S32))
    state = [c.boxes, c.able, c.mortal, c.strong, group, threshold, limit, nothing, nothing, t.full((b,), 0, S32)]

    def step(k: Tensors, at: Node, now: list[Node]) -> list[Node]:
        boxes, able, mortal, strong, group, threshold, limit, dead, kept, count = now
        zero = k.array(0, S32)

        def mine(x: Node) -> Node:
            return k.dynamic_slice(x, (zero, at), (b, 1))
        one = k.dynamic_slice(boxes, (zero, at, zero), (b, 1, 4))
        first = [k.reshape(k.slice_dim(one, 2, i, i + 1), (b, 1)) for i in range(4)]
        others = [k.reshape(k.slice_dim(boxes, 2, i, i + 1), (b, n)) for i in range(4)]
        room = k.compare("LT", k.reshape(count, (b, 1)), k.reshape(limit, (b, 1)))
        keep = k.binary("and", k.binary("and", mine(able), k.unary("not", mine(dead))), room)
        near = k.compare("GT" if strict else "GE", measure(k, first, others), k.broadcast_to(threshold, (b, n)))
        hit = k.binary("and", k.binary("and", near, mortal), k.compare("EQ", mine(group), group))
        hit = k.binary("and", hit, k.broadcast_to(k.binary("and", keep, mine(strong)), (b, n)))
        here = k.compare("EQ", k.iota((b, n), 1, S32), k.broadcast_to(at, (b, n)))
        here = k.binary("and", here, k.broadcast_to(keep, (b, n)))
        total = k.add(count, k.convert(k.reshape(keep, (b,)), S32))
        return [*now[:7], k.binary("or", dead, hit), k.binary("or", kept, here), total]

    made = counted(t, n, state, step, "suppress")
    return made[8], made[9]


def overlap_of_corners(t: Tensors, a: Sequence[Node], b: Sequence[Node]) -> Node:
    """Any two opposite corners, in any order; 0 where both boxes together have no area."""
    left, top, right, bottom = (
        [pick(box[i], box[i + 2]) for box in (a, b)] for pick, i in ((t.minimum, 0), (t.minimum, 1), (t.maximum, 0), (t.maximum, 1))
    )
    zero = t.like(b[0], 0)
    width = t.maximum(zero, t.sub(t.minimum(*right), t.maximum(*left)))
    height = t.maximum(zero, t.sub(t.minimum(*bottom), t.maximum(*top)))
    area = t.mul(height, width)
    first, second = (t.mul(t.sub(right[i], left[i]), t.sub(bottom[i], top[i])) for i in (0, 1))
    union = t.sub(t.add(first, second), area)
    return t.select(t.compare("LE", union, zero), zero, t.div(area, union))


def columns(t: Relay, x: Node) -> list[Node]:
    """The slices along the last axis."""
    *lead, n = t.shape(x)
    steps_of(n)
    return [t.reshape(t.slice_dim(x, len(lead), i, i + 1), tuple(lead)) for i in range(n)]


def rows(t: Relay, x: Node, order: Node) -> Node:
    """Rows of each batch of ``x`` (B, N, ...), selected by ``order`` (B, M)."""
    shape, (b, m) = t.shape(x), t.shape(order)
    flat = t.reshape(x, (b * shape[1], *shape[2:]))
    at = t.add(t.convert(order, S64), t.scale(t.iota((b, m), 0, S64), shape[1]))
    return t.take(flat, at, 0)


def best_first(t: Relay, score: Node, counts: Node) -> tuple[Node, Node]:
    """The scores (B, N) where ``counts`` (B, N), in descending order, followed by the others; and their former positions."""
    key = t.select(counts, score, t.like(score, -np.inf))
    values, places = t.sort([key, t.iota(t.shape(score), 1, S32)], 1, True)
    return values, places


def to_front(t: Relay, wanted: Node, *values: Node) -> list[Node]:
    """Values (B, N) or (B, N, K) with the wanted ones (B, N) first, in their former order; the order of the others is unspecified."""
    n = t.shape(wanted)[1]
    place = t.iota(t.shape(wanted), 1, S32)
    order = t.sort([t.select(wanted, place, t.plus(place, n)), place], 1)[1]
    return [rows(t, value, order) for value in values]


def first_ones(t: Relay, count: Node, n: int) -> Node:
    """(B, n): whether a position is below the count (B)."""
    b = t.shape(count)[0]
    return t.compare("LT", t.iota((b, n), 1, S32), t.broadcast_to(t.reshape(count, (b, 1)), (b, n)))


def _scalar(t: Relay, x: Node, like: Node) -> Node:
    return t.convert(t.reshape(x, ()), t.dtype(like))


def _require_columns(have: int, *wanted: int) -> None:
    """Raise TypeFault where boxes have fewer numbers than the operator reads."""
    if have < max(wanted):
        raise TypeFault(f"boxes have {have} numbers each, {max(wanted)} are read")


@operator("vision.non_max_suppression(data: 3d, valid_count, indices, max_output_size, iou_threshold; force_suppress=False, top_k=-1, "
          "coord_start=2, score_index=1, id_index=0, return_indices=True, invalid_to_bottom=False)")
def non_max_suppression(t: Relay, a: Attributes, x: Node, valid: Node, indices: Node, most: Node, threshold: Node) -> object:
    """The boxes that no better one of their class overlaps; the others are -1."""
    b, n, _ = t.shape(x)
    counted_in = first_ones(t, t.convert(t.reshape(valid, (b,)), S32), n)
    column = columns(t, x)
    _require_columns(len(column), int(a.coord_start) + 4, int(a.score_index) + 1, int(a.id_index) + 1)
    _, order = best_first(t, column[int(a.score_index)], counted_in)
    boxes = rows(t, x, order)
    column = columns(t, boxes)
    score, start = column[int(a.score_index)], int(a.coord_start)
    looked_at = counted_in
    if int(a.top_k) > 0:
        looked_at = t.binary("and", counted_in, t.compare("LT", t.iota((b, n), 1, S32), t.array(int(a.top_k), S32)))
    able = t.binary("and", looked_at, t.compare("GT", score, t.like(score, 0)))
    ident = column[int(a.id_index)] if int(a.id_index) >= 0 else None
    strong = t.compare("GE", ident, t.like(ident, 0)) if ident is not None else looked_at
    group = ident if ident is not None and not a.force_suppress else None
    limit = t.broadcast_to(t.convert(t.reshape(most, ()), S32), (b,))
    unlimited = t.select(t.compare("LT", limit, t.like(limit, 0)), t.like(limit, n), limit)
    corners = t.slice_dim(boxes, 2, start, start + 4)
    close = _scalar(t, threshold, x)
    kept, count = survivors(t, Candidates(corners, able, able, strong, group), close, unlimited)
    # Boxes without a positive score are not compared; they are dropped only beyond the limit.
    full = t.compare("EQ", t.reshape(count, (b, 1)), t.reshape(limit, (b, 1)))
    stays = t.binary("and", looked_at, t.select(able, kept, t.unary("not", t.broadcast_to(full, (b, n)))))
    found = t.select(t.reshape(stays, (b, n, 1)), boxes, t.like(boxes, -1))
    places = t.select(stays, order, t.like(order, -1))
    # A threshold of 0 or less disables the comparison.
    plain = t.select(t.reshape(counted_in, (b, n, 1)), x, t.like(x, -1))
    here = t.select(counted_in, t.iota((b, n), 1, S32), t.full((b, n), -1, S32))
    compares = t.compare("GT", close, t.like(close, 0))
    found, places = t.select(compares, found, plain), t.select(compares, places, here)
    if a.return_indices:
        return _places(t, places, indices)
    if a.invalid_to_bottom:
        real = t.compare("GE", columns(t, found)[0], t.like(columns(t, found)[0], 0))
        moved, flag = to_front(t, real, found, t.convert(real, S32))
        found = t.select(t.reshape(t.compare("EQ", flag, t.like(flag, 1)), (b, n, 1)), moved, t.like(moved, -1))
    return found


def _places(t: Relay, places: Node, indices: Node) -> list[Node]:
    """The remaining positions (-1: none) as indices of the caller's data, moved to the front, and their number."""
    b, n = t.shape(places)
    names = t.gather_elements(indices, t.convert(t.maximum(places, t.like(places, 0)), S64), 1)
    names = t.select(t.compare("GE", places, t.like(places, 0)), t.convert(names, S32), t.like(places, -1))
    real = t.compare("GE", names, t.like(names, 0))
    (moved,) = to_front(t, real, names)
    count = t.sum(t.convert(real, S32), [1])
    return [t.select(first_ones(t, count, n), moved, t.like(moved, -1)), t.reshape(count, (b, 1))]


@operator("vision.all_class_non_max_suppression(boxes: 3d, scores: 3d, max_output_boxes_per_class, iou_threshold, score_threshold; "
          "output_format='onnx')")
def all_class_non_max_suppression(t: Relay, a: Attributes, boxes: Node, scores: Node, most: Node, iou: Node, least: Node) -> list[Node]:
    """Each class separately: the kept boxes as (batch, class, box), or (class, box) for each batch, the best of a class first."""
    b, c, n = t.shape(scores)
    flat = t.reshape(scores, (b * c, n))
    everything = t.compare("EQ", t.iota((b * c, n), 1, S32), t.iota((b * c, n), 1, S32))
    value, order = best_first(t, flat, everything)
    enough = t.compare("GT", value, t.broadcast_to(_scalar(t, least, value), (b * c, n)))
    able = t.binary("and", enough, t.compare("GT", value, t.like(value, -1)))
    mortal = t.compare("GT", value, t.like(value, 0))
    owner = t.reshape(t.broadcast_to(t.reshape(boxes, (b, 1, n, 4)), (b, c, n, 4)), (b * c, n, 4))
    limit = t.broadcast_to(t.convert(t.reshape(most, ()), S32), (b * c,))
    limit = t.select(t.compare("GT", limit, t.like(limit, 0)), limit, t.like(limit, n))
    close = _scalar(t, iou, boxes)
    limit = t.select(t.compare("GT", close, t.like(close, 0)), limit, t.like(limit, 0))
    kept, _ = survivors(t, Candidates(rows(t, owner, order), able, mortal, able), close, limit)
    numbers = [t.broadcast_to(t.reshape(t.iota((b, c), d, S64), (b * c, 1)), (b * c, n)) for d in (0, 1)]
    parts = [*numbers, t.convert(order, S64)]
    if a.output_format == "onnx":
        return _listed(t, kept, [t.reshape(p, (1, b * c * n)) for p in parts])
    kept, value = t.reshape(kept, (b, c * n)), t.reshape(value, (b, c * n))
    pairs = t.concat([t.reshape(p, (b, c * n, 1)) for p in parts[1:]], 2)
    count = t.sum(t.convert(kept, S32), [1])
    moved, worth = to_front(t, kept, pairs, value)
    real = first_ones(t, count, c * n)
    pairs = t.select(t.reshape(real, (b, c * n, 1)), moved, t.like(moved, 0))
    return [pairs, t.select(real, t.convert(worth, F32), t.full((b, c * n), 0, F32)), t.convert(count, S64)]


def _listed(t: Relay, kept: Node, parts: Sequence[Node]) -> list[Node]:
    """Rows of numbers for the kept boxes, followed by zeros, and their number."""
    total = t.shape(parts[0])[1]
    flags = t.reshape(kept, (1, total))
    (moved,) = to_front(t, flags, t.concat([t.reshape(p, (1, total, 1)) for p in parts], 2))
    count = t.sum(t.convert(flags, S32), [1])
    real = t.reshape(first_ones(t, count, total), (total, 1))
    found = t.reshape(moved, (total, len(parts)))
    return [t.select(real, found, t.like(found, 0)), t.convert(count, S64)]


@operator("vision.regular_non_max_suppression(boxes: 3d, scores: 3d; max_detections_per_class!, max_detections!, num_classes!, "
          "iou_threshold!, score_threshold!)")
def regular_non_max_suppression(t: Relay, a: Attributes, boxes: Node, scores: Node) -> list[Node]:
    """Each class separately, then the best of all: boxes, classes, scores, and their number, padded with zeros (TFLite's)."""
    b, n, classes = t.shape(scores)
    c, most = int(a.num_classes), int(a.max_detections)
    own = t.slice_dim(scores, 2, classes - c, classes)
    flat = t.reshape(t.transpose(own, (0, 2, 1)), (b * c, n))
    value, order = best_first(t, flat, t.compare("GE", flat, t.like(flat, float(a.score_threshold))))
    able = t.compare("GE", value, t.like(value, float(a.score_threshold)))
    owner = t.reshape(t.broadcast_to(t.reshape(boxes, (b, 1, n, 4)), (b, c, n, 4)), (b * c, n, 4))
    limit = t.full((b * c,), int(a.max_detections_per_class), S32)
    close = t.array(float(a.iou_threshold), t.dtype(boxes))
    kept, _ = survivors(t, Candidates(rows(t, owner, order), able, able, able), close, limit, _overlap_of_areas, True)
    kept, value = t.reshape(kept, (b, c * n)), t.reshape(value, (b, c * n))
    which = t.reshape(order, (b, c * n))
    _, place = best_first(t, value, kept)
    if c * n < most:
        place = t.concat([place, t.full((b, most - c * n), 0, S32)], 1)
    place = t.slice_dim(place, 1, 0, most)
    count = t.sum(t.convert(kept, S32), [1])
    count = t.minimum(count, t.like(count, most))
    real = first_ones(t, count, most)
    box = rows(t, boxes, rows(t, which, place))
    kind = t.convert(t.binary("divide", place, t.like(place, n)), F32)
    worth = rows(t, value, place)
    return [
        t.select(t.reshape(real, (b, most, 1)), box, t.like(box, 0)),
        t.select(real, kind, t.like(kind, 0)),
        t.select(real, worth, t.like(worth, 0)),
        count,
    ]


def _overlap_of_areas(t: Tensors, a: Sequence[Node], b: Sequence[Node]) -> Node:
    """(ymin, xmin, ymax, xmax); 0 where one of them has no area."""
    zero = t.like(b[0], 0)
    first, second = (t.mul(t.sub(box[2], box[0]), t.sub(box[3], box[1])) for box in (a, b))
    height = t.maximum(t.sub(t.minimum(a[2], b[2]), t.maximum(a[0], b[0])), zero)
    width = t.maximum(t.sub(t.minimum(a[3], b[3]), t.maximum(a[1], b[1])), zero)
    both = t.mul(height, width)
    real = t.binary("and", t.broadcast_to(t.compare("GT", first, t.like(first, 0)), t.shape(second)), t.compare("GT", second, zero))
    return t.select(real, t.div(both, t.sub(t.add(first, second), both)), zero)
