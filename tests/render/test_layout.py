"""The layered layout: sources above targets, nothing overlaps, cycles do no harm."""
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from irscope.render.layout import layered

GRAPHS = st.integers(1, 14).flatmap(lambda n: st.tuples(
    st.lists(st.floats(5, 90), min_size=n, max_size=n),
    st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=30)))


@given(GRAPHS)
def test_boxes_do_not_overlap_and_lie_inside(graph: tuple[list[float], list[tuple[int, int]]]) -> None:
    widths, edges = graph
    heights = [20.0 + i for i in range(len(widths))]
    placed = layered(widths, heights, edges)
    for i in range(len(widths)):
        assert placed.x[i] - widths[i] / 2 >= -1e-6
        assert placed.x[i] + widths[i] / 2 <= placed.width + 1e-6
        assert placed.y[i] - heights[i] / 2 >= -1e-6
        assert placed.y[i] + heights[i] / 2 <= placed.height + 1e-6
        for j in range(i):
            apart_x = abs(placed.x[i] - placed.x[j]) >= (widths[i] + widths[j]) / 2 - 1e-6
            apart_y = abs(placed.y[i] - placed.y[j]) >= (heights[i] + heights[j]) / 2 - 1e-6
            assert apart_x or apart_y


@given(GRAPHS)
def test_without_cycles_every_edge_points_down(graph: tuple[list[float], list[tuple[int, int]]]) -> None:
    widths, edges = graph
    forward = [(min(a, b), max(a, b)) for a, b in edges if a != b]
    placed = layered(widths, [10.0] * len(widths), forward)
    for (a, b), bends in zip(forward, placed.bends, strict=True):
        points = [placed.y[a], *(y for _, y in bends), placed.y[b]]
        assert points == sorted(points)
        assert placed.y[a] < placed.y[b]


def test_a_chain_is_a_straight_line() -> None:
    placed = layered([30.0, 50.0, 10.0], [10.0] * 3, [(0, 1), (1, 2)])
    assert max(placed.x) - min(placed.x) < 1e-6


def test_an_empty_drawing_has_no_size() -> None:
    assert layered([], [], []).width == 0
