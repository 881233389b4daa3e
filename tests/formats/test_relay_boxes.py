"""Non-maximum suppression and what stands around it, held against loops over single boxes."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.formats.relay_numbers import ran, types

Array = np.ndarray[Any, Any]


def some_boxes(seed: int, n: int, lead: tuple[int, ...] = ()) -> Array:
    rng = np.random.default_rng(seed)
    corner, size = rng.uniform(0, 8, (*lead, n, 2)), rng.uniform(1, 5, (*lead, n, 2))
    return np.concatenate([corner, corner + size], -1).astype(np.float32)


def overlap(a: Array, b: Array) -> float:
    left, top = (max(min(a[i], a[i + 2]), min(b[i], b[i + 2])) for i in (0, 1))
    right, bottom = (min(max(a[i], a[i + 2]), max(b[i], b[i + 2])) for i in (0, 1))
    area = max(0.0, right - left) * max(0.0, bottom - top)
    union = sum(abs(x[2] - x[0]) * abs(x[3] - x[1]) for x in (a, b)) - area
    return 0.0 if union <= 0 else area / union


def suppressed(data: Array, valid: int, most: int, threshold: float, top_k: int, per_class: bool) -> tuple[list[int], list[int]]:
    """The places, in the order of the scores, that are looked at, and of them those that stay."""
    order = sorted(range(valid), key=lambda i: -data[i, 1])
    looked_at = order[:top_k] if 0 < top_k < valid else order
    kept: list[int] = []
    stays: list[int] = []
    for place in looked_at:
        if len(kept) == most:
            continue
        if data[place, 1] <= 0:
            stays.append(place)
            continue
        rivals = [k for k in kept if data[k, 0] >= 0 and (not per_class or data[k, 0] == data[place, 0])]
        if all(overlap(data[k, 2:6], data[place, 2:6]) < threshold for k in rivals):
            kept.append(place)
            stays.append(place)
    return looked_at, stays


def detections(seed: int, n: int) -> Array:
    rng = np.random.default_rng(seed)
    head = np.stack([rng.integers(0, 3, n), rng.permutation(n) / n + 0.01], 1)
    return np.concatenate([head, some_boxes(seed, n)], 1).astype(np.float32)


@pytest.mark.parametrize(("most", "top_k", "force"), [(-1, -1, False), (3, -1, True), (-1, 7, False), (4, 9, False)])
def test_suppression_gives_the_boxes_that_stay(most: int, top_k: int, force: bool) -> None:
    data = np.stack([detections(1, 16), detections(2, 16)])
    data[0, 3, 1] = -0.5  # no score: never compared
    valid = np.array([16, 11], np.int32)
    indices = np.broadcast_to(np.arange(16, dtype=np.int32) + 100, (2, 16)).copy()
    attrs = f"force_suppress={force}, top_k={top_k}, return_indices={{}}, invalid_to_bottom=False"
    call = "vision.non_max_suppression(%x0, %x1, %x2, %x3, %x4, " + attrs + ")"
    given = (data, valid, indices, np.int32(most), np.float32(0.4))
    places, counts = ran(call.format(True), *given)
    (boxes,) = ran(call.format(False), *given)
    for b in range(2):
        looked_at, stays = suppressed(data[b], int(valid[b]), most, 0.4, top_k, not force)
        assert places[b].tolist() == [100 + p for p in stays] + [-1] * (16 - len(stays))
        assert counts[b].tolist() == [len(stays)]
        wanted = [data[b, p] if p in stays else np.full(6, -1) for p in looked_at] + [np.full(6, -1)] * (16 - len(looked_at))
        np.testing.assert_array_equal(boxes[b], np.stack(wanted))


def test_without_a_threshold_nothing_is_compared_and_boxes_move_to_the_front_when_asked() -> None:
    data = detections(3, 8)[None]
    data[0, 1, 0] = -1
    given = (data, np.array([5], np.int32), np.arange(8, dtype=np.int32)[None], np.int32(-1), np.float32(0))
    (boxes,) = ran("vision.non_max_suppression(%x0, %x1, %x2, %x3, %x4, return_indices=False, invalid_to_bottom=True)", *given)
    real = [p for p in range(5) if data[0, p, 0] >= 0]
    np.testing.assert_array_equal(boxes[0], np.concatenate([data[0, real], np.full((8 - len(real), 6), -1)]))


@pytest.mark.parametrize("most", [0, 2])
def test_every_class_by_itself(most: int) -> None:
    boxes, scores = some_boxes(5, 9, (2,)), np.random.default_rng(6).uniform(-0.2, 1, (2, 3, 9)).astype(np.float32)
    wanted: list[list[int]] = []
    for b, c in np.ndindex(2, 3):
        order = sorted((i for i in range(9) if scores[b, c, i] > 0.1), key=lambda i: -scores[b, c, i])
        kept: list[int] = []
        for i in order[:]:
            if len(kept) < (most or 9) and all(overlap(boxes[b, k], boxes[b, i]) < 0.3 for k in kept):
                kept.append(i)
        wanted += [[b, c, i] for i in kept]
    given = (boxes, scores, np.int64(most), np.float32(0.3), np.float32(0.1))
    rows, total = ran("vision.all_class_non_max_suppression(%x0, %x1, %x2, %x3, %x4)", *given)
    assert total.tolist() == [len(wanted)] and rows.shape == (54, 3) and rows.dtype == np.int64
    assert rows[:len(wanted)].tolist() == wanted and not rows[len(wanted):].any()
    pairs, worth, counts = ran("vision.all_class_non_max_suppression(%x0, %x1, %x2, %x3, %x4, output_format=\"tensorflow\")", *given)
    for b in range(2):
        mine = [row[1:] for row in wanted if row[0] == b]
        assert counts[b] == len(mine) and pairs[b, :len(mine)].tolist() == mine
        np.testing.assert_array_equal(worth[b, :len(mine)], [scores[b, c, i] for c, i in mine])


def test_the_best_of_all_classes() -> None:
    boxes, scores = some_boxes(7, 8, (1,)), np.random.default_rng(8).uniform(0, 1, (1, 8, 4)).astype(np.float32)
    chosen: list[tuple[float, int, int]] = []
    for c in range(3):
        order = sorted((i for i in range(8) if scores[0, i, c + 1] >= 0.3), key=lambda i: -scores[0, i, c + 1])
        kept: list[int] = []
        for i in order:
            if len(kept) < 3 and all(overlap(boxes[0, k], boxes[0, i]) <= 0.3 for k in kept):
                kept.append(i)
        chosen += [(float(scores[0, i, c + 1]), c, i) for i in kept]
    chosen = sorted(chosen, key=lambda row: -row[0])[:5]
    got = ran("vision.regular_non_max_suppression(%x0, %x1, max_detections_per_class=3, max_detections=5, num_classes=3, "
              "iou_threshold=0.3f, score_threshold=0.3f)", boxes, scores)
    count = int(got[3][0])
    assert count == len(chosen)
    np.testing.assert_array_equal(got[0][0, :count], [boxes[0, i] for _, _, i in chosen])
    assert got[1][0, :count].tolist() == [c for _, c, _ in chosen]
    np.testing.assert_array_equal(got[2][0, :count], np.array([s for s, _, _ in chosen], np.float32))
    assert not got[0][0, count:].any()


@pytest.mark.parametrize("background", [False, True])
def test_predictions_move_anchors(background: bool) -> None:
    rng = np.random.default_rng(9)
    prob, loc = rng.uniform(0, 1, (2, 3, 6)).astype(np.float32), rng.standard_normal((2, 24)).astype(np.float32)
    prob[0, 1:, 2] = 0.001
    anchor = (some_boxes(10, 6) / 16)[None]
    out, counts = ran(f"vision.multibox_transform_loc(%x0, %x1, %x2, clip=True, threshold=0.02f, keep_background={background})", prob, loc, anchor)
    for b in range(2):
        wanted = []
        for j in range(6):
            first = 0 if background else 1
            kind = first + int(np.argmax(prob[b, first:, j]))
            score = prob[b, kind, j]
            if kind > 0 and score < 0.02:
                kind = 0
            if kind > 0 or background:
                al, at, ar, ab = anchor[0, j]
                px, py, pw, ph = loc[b, 4 * j:4 * j + 4]
                ox, oy = px * 0.1 * (ar - al) + (al + ar) / 2, py * 0.1 * (ab - at) + (at + ab) / 2
                ow, oh = math.exp(pw * 0.2) * (ar - al) / 2, math.exp(ph * 0.2) * (ab - at) / 2
                wanted.append([kind - (not background), score, *np.clip([ox - ow, oy - oh, ox + ow, oy + oh], 0, 1)])
        assert counts[b] == len(wanted)
        np.testing.assert_allclose(out[b, :len(wanted)], wanted, rtol=1e-5, atol=1e-6)


def test_proposals_are_repeated_until_there_are_enough() -> None:
    rng = np.random.default_rng(11)
    prob, move = rng.uniform(0, 1, (1, 4, 3, 3)).astype(np.float32), (0.3 * rng.standard_normal((1, 8, 3, 3))).astype(np.float32)
    info = np.array([[40, 48, 1]], np.float32)
    (out,) = ran("vision.proposal(%x0, %x1, %x2, scales=[1f, 2f], ratios=[1f], feature_stride=16, threshold=0.3f, rpn_pre_nms_top_n=12, "
                 "rpn_post_nms_top_n=10, rpn_min_size=4)", prob, move, info)
    candidates = []
    for h in range(3):
        for w in range(3):
            for k, scale in enumerate((1.0, 2.0)):
                side = math.floor(16 + 0.5) * scale
                half = 0.5 * (side - 1)
                x1, y1, x2, y2 = 7.5 - half + 16 * w, 7.5 - half + 16 * h, 7.5 + half + 16 * w, 7.5 + half + 16 * h
                dx, dy, dw, dh = move[0, 4 * k:4 * k + 4, h, w]
                bw, bh = x2 - x1 + 1, y2 - y1 + 1
                cx, cy = dx * bw + x1 + 0.5 * (bw - 1), dy * bh + y1 + 0.5 * (bh - 1)
                pw, ph = math.exp(dw) * bw, math.exp(dh) * bh
                box = [min(max(cx - 0.5 * (pw - 1), 0), 47), min(max(cy - 0.5 * (ph - 1), 0), 39),
                       min(max(cx + 0.5 * (pw - 1), 0), 47), min(max(cy + 0.5 * (ph - 1), 0), 39)]
                score = -1.0 if h >= 2 or w >= 3 else float(prob[0, 2 + k, h, w])
                if box[2] - box[0] + 1 < 4 or box[3] - box[1] + 1 < 4:
                    box, score = [box[0] - 2, box[1] - 2, box[2] + 2, box[3] + 2], -1.0
                candidates.append((score, box))
    candidates = sorted(candidates, key=lambda c: -c[0])[:12]
    kept: list[list[float]] = []
    for _, box in candidates:
        def near(o: list[float], box: list[float] = box) -> float:
            w, h = min(o[2], box[2]) - max(o[0], box[0]) + 1, min(o[3], box[3]) - max(o[1], box[1]) + 1
            both = max(0.0, w) * max(0.0, h)
            return both / ((o[2] - o[0] + 1) * (o[3] - o[1] + 1) + (box[2] - box[0] + 1) * (box[3] - box[1] + 1) - both)
        if all(near(o) <= 0.3 for o in kept):
            kept.append(box)
    assert 1 < len(kept) < 10
    np.testing.assert_allclose(out, [[0, *kept[i % len(kept)]] for i in range(10)], rtol=1e-4, atol=1e-3)


def test_types_are_known_before_anything_runs() -> None:
    boxes = np.zeros((2, 5, 6), np.float32)
    call = "vision.non_max_suppression(%x0, %x1, %x2, %x3, %x4)"
    assert types(call, boxes, np.zeros(2, np.int32), np.zeros((2, 5), np.int32), np.int32(0), np.float32(0)) == "(s32[2,5], s32[2,1])"
