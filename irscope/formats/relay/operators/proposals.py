"""Turns a detection network's predictions for anchors into boxes."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, sqrt

from irscope.formats.relay.algebra import Relay, shape_text, steps_of, table_of
from irscope.formats.relay.operators import Attributes, operator
from irscope.formats.relay.operators.suppression import Candidates, best_first, columns, rows, survivors, to_front
from irscope.graph import Node
from irscope.graph.dtypes import S32
from irscope.lazy import Array, np
from irscope.ops.faults import TypeFault
from irscope.ops.tensors import Tensors


@operator("vision.multibox_transform_loc(cls_prob: 3d, loc_pred: 2d, anchor: 3d; clip=True, threshold=0.01, variances=[0.1, 0.1, 0.2, "
          "0.2], keep_background=False)")
def multibox_transform_loc(t: Relay, a: Attributes, prob: Node, loc: Node, anchor: Node) -> list[Node]:
    """Anchors with predicted offsets, as (class, score, box), those with a class first, followed by -1; and their number."""
    b, classes, n = t.shape(prob)
    first = 0 if a.keep_background else 1
    score, kind = t.arg_extreme(t.slice_dim(prob, 1, first, classes), 1, True, S32)
    # A score of no more than -1 leaves the class at 0, and the score at -1.
    high = t.compare("GT", score, t.like(score, -1))
    kind = t.select(high, t.plus(kind, first), t.like(kind, 0))
    score = t.maximum(score, t.like(score, -1))
    weak = t.binary("and", t.compare("GT", kind, t.like(kind, 0)), t.compare("LT", score, t.like(score, float(a.threshold))))
    kind = t.select(weak, t.like(kind, 0), kind)
    wanted = t.compare("GE" if a.keep_background else "GT", kind, t.like(kind, 0))
    if t.shape(anchor)[2] != 4:
        raise TypeFault(f"anchors have four numbers each, got {shape_text(t.shape(anchor))}")
    left, top, right, bottom = columns(t, anchor)  # (1, N) each
    x, y, w, h = columns(t, t.reshape(loc, (b, n, 4)))
    if len(a.variances) != 4:
        raise TypeFault(f"variances are four numbers, got {len(a.variances)}")
    vx, vy, vw, vh = (float(v) for v in a.variances)
    wide, high_ = t.sub(right, left), t.sub(bottom, top)
    cx = t.add(t.mul(t.scale(x, vx), wide), t.scale(t.add(left, right), 0.5))
    cy = t.add(t.mul(t.scale(y, vy), high_), t.scale(t.add(top, bottom), 0.5))
    half_w = t.scale(t.mul(t.unary("exponential", t.scale(w, vw)), wide), 0.5)
    half_h = t.scale(t.mul(t.unary("exponential", t.scale(h, vh)), high_), 0.5)
    box = [t.sub(cx, half_w), t.sub(cy, half_h), t.add(cx, half_w), t.add(cy, half_h)]
    if a.clip:
        box = [t.maximum(t.minimum(v, t.like(v, 1)), t.like(v, 0)) for v in box]
    dtype = t.dtype(loc)
    named = t.convert(t.plus(kind, 0 if a.keep_background else -1), dtype)
    whole = t.concat([t.reshape(v, (b, n, 1)) for v in (named, t.convert(score, dtype), *box)], 2)
    (moved,) = to_front(t, wanted, whole)
    count = t.sum(t.convert(wanted, S32), [1])
    real = t.compare("LT", t.iota((b, n), 1, S32), t.broadcast_to(t.reshape(count, (b, 1)), (b, n)))
    return [t.select(t.reshape(real, (b, n, 1)), moved, t.like(moved, -1)), count]


SMALLEST, LARGEST = 1e-6, 1e6
"""The range of the scales and ratios of anchors."""


def anchors(a: Attributes) -> list[tuple[float, float, float, float]]:
    """The boxes around the first pixel, one for each ratio and scale (Faster R-CNN's)."""
    base, found = float(a.feature_stride), []
    for ratio in a.ratios:
        for scale in a.scales:
            centre = 0.5 * (base - 1.0)
            w = floor(sqrt(floor(base * base / ratio)) + 0.5) * scale
            h = floor(w / scale * ratio + 0.5) * scale
            found.append((centre - 0.5 * (w - 1.0), centre - 0.5 * (h - 1.0), centre + 0.5 * (w - 1.0), centre + 0.5 * (h - 1.0)))
    return found


@operator("vision.proposal(cls_prob: 4d, bbox_pred: 4d, im_info: 2d; scales=[4.0, 8.0, 16.0, 32.0], ratios=[0.5, 1.0, 2.0], "
          "feature_stride=16, threshold=0.7, rpn_pre_nms_top_n=6000, rpn_post_nms_top_n=300, rpn_min_size=16, iou_loss=False)")
def proposal(t: Relay, a: Attributes, prob: Node, moved_by: Node, info: Node) -> Node:
    """The best boxes as (batch, box), repeated in order where there are fewer than requested."""
    b, twice, height, width = t.shape(prob)
    k = len(a.scales) * len(a.ratios)
    if not k or not all(SMALLEST <= v <= LARGEST for v in (*a.scales, *a.ratios)):
        wanted = f"scales and ratios from {SMALLEST} to {LARGEST} are needed"
        raise TypeFault(f"{wanted}, got {shape_text(a.scales)} and {shape_text(a.ratios)}")
    if twice != 2 * k:
        raise TypeFault(f"cls_prob has {twice} channels, {k} anchors take {2 * k}")
    n, post = table_of(8 * height * width * steps_of(k)) // 8, int(a.rpn_post_nms_top_n)
    boxes, score = _predicted(t, a, prob, moved_by, info, k)
    pre = min(int(a.rpn_pre_nms_top_n), n) if int(a.rpn_pre_nms_top_n) > 0 else n
    everything = t.compare("EQ", t.iota((b, n), 1, S32), t.iota((b, n), 1, S32))
    _, order = best_first(t, score, everything)
    boxes = rows(t, boxes, t.slice_dim(order, 1, 0, pre))
    able = t.slice_dim(everything, 1, 0, pre)
    threshold = t.array(float(a.threshold), t.dtype(boxes))
    kept, count = survivors(t, Candidates(boxes, able, able, able), threshold, t.full((b,), pre, S32), _overlap_of_pixels, True)
    (front,) = to_front(t, kept, boxes)
    at = t.binary("remainder", t.iota((b, post), 1, S32), t.broadcast_to(t.reshape(count, (b, 1)), (b, post)))
    chosen = rows(t, front, at)
    number = t.broadcast_to(t.reshape(t.iota((b, 1), 0, t.dtype(boxes)), (b, 1, 1)), (b, post, 1))
    return t.reshape(t.concat([number, chosen], 2), (b * post, 5))


def _predicted(t: Relay, a: Attributes, prob: Node, moved_by: Node, info: Node, k: int) -> tuple[Node, Node]:
    """The boxes (B, N, 4) and scores (B, N) of all anchors at all pixels."""
    b, _, height, width = t.shape(prob)
    n, dtype = height * width * k, t.dtype(prob)
    base = np.asarray(anchors(a))[None, None]
    shift = np.stack(np.meshgrid(np.arange(width), np.arange(height)), -1)[:, :, None, :] * float(a.feature_stride)
    corners = (base + np.concatenate([shift, shift], -1)).reshape(1, n, 4)
    x1, y1, x2, y2 = (t.array(corners[..., i], dtype) for i in range(4))
    delta = t.reshape(t.transpose(t.reshape(moved_by, (b, k, 4, height, width)), (0, 3, 4, 1, 2)), (b, n, 4))
    dx, dy, dw, dh = columns(t, delta)
    if a.iou_loss:
        box = [t.add(x1, dx), t.add(y1, dy), t.add(x2, dw), t.add(y2, dh)]
    else:
        w, h = t.plus(t.sub(x2, x1), 1), t.plus(t.sub(y2, y1), 1)
        cx = t.add(t.mul(dx, w), t.add(x1, t.scale(t.plus(w, -1), 0.5)))
        cy = t.add(t.mul(dy, h), t.add(y1, t.scale(t.plus(h, -1), 0.5)))
        half_w = t.scale(t.plus(t.mul(t.unary("exponential", dw), w), -1), 0.5)
        half_h = t.scale(t.plus(t.mul(t.unary("exponential", dh), h), -1), 0.5)
        box = [t.sub(cx, half_w), t.sub(cy, half_h), t.add(cx, half_w), t.add(cy, half_h)]
    tall, wide, scale = (t.slice_dim(info, 1, i, i + 1) for i in range(3))  # (B, 1) each
    for i, size in enumerate((wide, tall, wide, tall)):
        v = t.minimum(box[i], t.broadcast_to(t.plus(size, -1), (b, n)))
        box[i] = t.maximum(v, t.like(v, 0))
    score = t.reshape(t.transpose(t.slice_dim(prob, 1, k, 2 * k), (0, 2, 3, 1)), (b, n))
    # Pixels beyond the image, and boxes that are too small, come last.
    place = np.arange(n) // k

    def far(size: Node, at: Array) -> Node:
        real = t.convert(t.div(size, t.like(size, float(a.feature_stride))), S32)
        return t.compare("GE", t.array(at.reshape(1, n), S32), real)

    outside = t.binary("or", far(tall, place // width), far(wide, place % width))
    score = t.select(outside, t.like(score, -1), score)
    least = t.broadcast_to(t.scale(scale, float(a.rpn_min_size)), (b, n))
    small = t.binary("or", t.compare("LT", t.plus(t.sub(box[2], box[0]), 1), least),
                     t.compare("LT", t.plus(t.sub(box[3], box[1]), 1), least))
    half = t.select(small, t.scale(least, 0.5), t.like(least, 0))
    box = [t.sub(box[0], half), t.sub(box[1], half), t.add(box[2], half), t.add(box[3], half)]
    return t.concat([t.reshape(v, (b, n, 1)) for v in box], 2), t.select(small, t.like(score, -1), score)


def _overlap_of_pixels(t: Tensors, a: Sequence[Node], b: Sequence[Node]) -> Node:
    """Boxes of whole pixels, the last one included."""

    def span(low: Node, high: Node) -> Node:
        return t.plus(t.sub(high, low), 1)
    zero = t.like(b[0], 0)
    both = t.mul(t.maximum(zero, span(t.maximum(a[0], b[0]), t.minimum(a[2], b[2]))),
                 t.maximum(zero, span(t.maximum(a[1], b[1]), t.minimum(a[3], b[3]))))
    first, second = (t.mul(span(box[0], box[2]), span(box[1], box[3])) for box in (a, b))
    return t.div(both, t.sub(t.add(first, second), both))
