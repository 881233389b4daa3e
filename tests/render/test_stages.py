"""Stages on a page: equal ones share a block, the last is the page's own, and of many the ends are kept."""
from __future__ import annotations

import pytest

import irscope
from irscope.render import page_stages
from irscope.render.page_stages import PageStage, stage_data

TEXT = "HloModule m\nENTRY e {{\n p = f32[2] parameter(0)\n ROOT r = f32[2] {}(p)\n}}\n"


def stages(*ops: str) -> list[PageStage]:
    return [PageStage(f"{i} {op}", irscope.load(TEXT.format(op)).module()) for i, op in enumerate(ops)]


@pytest.mark.parametrize(("ops", "blocks", "count"), [
    (("negate", "tanh"), [0, -1], 1), (("negate", "negate", "tanh"), [0, 0, -1], 1), (("negate", "tanh", "tanh"), [0, -1, -1], 1),
    (("negate", "tanh", "tanh", "tanh"), [0, -1, -1, -1], 1), (("tanh", "tanh"), [-1, -1], 0), (("negate", "tanh", "negate"), [0, 1, -1], 2),
    (("tanh",), [-1], 0), ((), [], 0),
])
def test_equal_stages_share_a_block(ops: tuple[str, ...], blocks: list[int], count: int) -> None:
    rows, found, left_out = stage_data(stages(*ops))
    assert [row[1] for row in rows] == blocks and [row[0] for row in rows] == [f"{i} {op}" for i, op in enumerate(ops)]
    assert len(found) == count and left_out == 0
    for row in rows:
        block = row[1]
        assert isinstance(block, int)
        if block >= 0:
            assert str(row[0]).split()[1] in {op[0] for op in found[block]["ops"]}


def test_of_many_stages_the_ends_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_stages, "MAX_NODES", 6)
    rows, _, left_out = stage_data(stages("negate", "tanh", "exponential", "abs", "sine"))
    assert [row[0] for row in rows] == ["0 negate", "3 abs", "4 sine"] and left_out == 2
