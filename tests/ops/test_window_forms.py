"""Windows that are running reductions, and those of which no two meet."""
from __future__ import annotations

from typing import Any

import pytest

from irscope.lower.tile import For
from irscope.lower.traversal import walk
from irscope.ops.attrs import Window
from irscope.ops.window import running_dimension
from tests.ops.running import kernel_of
from tests.ops.typed_nodes import node_of

ADD = "(f32[], f32[]) -> f32[] add(a, b)"
LESS = "(f32[], f32[]) -> pred[] compare(a, b), direction=LT"


@pytest.mark.parametrize(("window", "want"), [
    (Window.make((1, 6), pad=((0, 0), (5, 0))), 1), (Window.make((1, 6), pad=((0, 0), (0, 5))), 1), (Window.make((4, 1), pad=((3, 0), (0, 0))), 0),
    (Window.make((1, 6), pad=((0, 0), (4, 1))), None), (Window.make((1, 6), pad=((0, 0), (5, 1))), None), (Window.make((1, 6), pad=((0, 0), (1, 5))), None),
    (Window.make((1, 5), pad=((0, 0), (4, 0))), None), (Window.make((1, 7), pad=((0, 0), (6, 0))), None), (Window.make((1, 1)), None),
    (Window.make((4, 6), pad=((3, 0), (5, 0))), None), (Window.make((1, 6), pad=((1, 0), (5, 0))), None), (Window.make((1, 6), pad=((0, 1), (5, 0))), None),
    (Window.make((1, 6), stride=(1, 2), pad=((0, 0), (5, 0))), None), (Window.make((1, 6), stride=(2, 1), pad=((0, 0), (5, 0))), None),
    (Window.make((1, 6), pad=((0, 0), (5, 0)), lhs_dilate=(1, 2)), None), (Window.make((1, 6), pad=((0, 0), (5, 0)), rhs_dilate=(1, 2)), None),
])
def test_running_reductions(window: Window, want: int | None) -> None:
    """Over f32[4,6], all elements before or after each."""
    node = node_of("reduce-window", "f32[4,6], f32[]", "f32[4,6]", {"window": window}, [ADD])
    assert running_dimension(node) == want


@pytest.mark.parametrize(("options", "count", "kinds"), [
    ({"stride": (2,)}, 3, {"par"}), ({"stride": (1,)}, 5, {"par", "for"}), ({"stride": (3,)}, 2, {"par"}), ({"stride": (2,), "rhs_dilate": (2,)}, 2, {"par", "for"}),
    ({"stride": (3,), "rhs_dilate": (2,)}, 2, {"par"})])
def test_windows_that_do_not_meet_are_independent(options: dict[str, Any], count: int, kinds: set[str]) -> None:
    """Windows of 2 over 6 elements: where two may choose the same element, they run one after the other."""
    node = node_of("select-and-scatter", f"f32[6], f32[{count}], f32[]", "f32[6]", {"window": Window.make((2,), **options)}, [LESS, ADD])
    [kernel] = kernel_of(node).kernels()
    assert {s.kind for s in kernel.body if isinstance(s, For)} == kinds and any(isinstance(s, For) for s in walk(kernel.body))
