"""Drawings of odd graphs: results that a tuple does not have, bodies that nest a thousand deep below many callers, long edges."""
from __future__ import annotations

from pathlib import Path

import pytest

import irscope
from irscope.analysis.survey import Survey
from irscope.render import dot, drawing, layout
from irscope.render.detail import MAX_LEVELS, detail_view
from irscope.render.layout import layered
from irscope.render.view import BoxOptions, Drawing
from tests.conftest import Cli
from tests.effort import calls_in


def drawn(text: str) -> Drawing:
    survey = Survey(irscope.load(text, format="hlo").module())
    entry = survey.entry
    assert entry is not None
    return detail_view(survey, entry, BoxOptions())


def calls(depth: int, callers: int) -> str:
    """``callers`` calls of a computation that calls the next, and so on, ``depth`` deep."""
    inner = "\n".join(f"fn{i} {{ x = f32[8] parameter(0)\n ROOT r = f32[8] call(x), to_apply=fn{i - 1} }}" for i in range(1, depth))
    outer = "\n".join(f" c.{i} = f32[8] call(p), to_apply=fn{depth - 1}" for i in range(callers))
    return (f"HloModule m\nfn0 {{ x = f32[8] parameter(0)\n ROOT r = f32[8] tanh(x) }}\n{inner}\nENTRY e {{ p = f32[8] parameter(0)\n{outer}\n"
            f" ROOT t = f32[8] add(c.0, c.{callers - 1}) }}")


def test_a_negative_index_of_a_tuple_is_drawn() -> None:
    view = drawn("HloModule m\nENTRY e { p = f32[8] parameter(0)\n t = (f32[8]) tuple(p)\n"
                 " g = f32[8] get-tuple-element(t), index=-5\n ROOT r = f32[8] tanh(g) }")
    assert any(box.title == "tanh" for box in view.boxes)


def test_frames_of_nested_calls_end_at_a_depth() -> None:
    view = drawn(calls(500, 2))
    assert len(view.clusters) == 2 * MAX_LEVELS
    small, large = (calls_in(drawn, calls(depth, 20)) for depth in (100, 400))
    assert large < 6 * small


def collected(n: int) -> str:
    """A chain whose every value is concatenated: the edges cross n**2 / 2 rows."""
    steps = "".join(f" m{i} = f32[8] tanh({f'm{i - 1}' if i else 'x'})\n" for i in range(n))
    return (f"HloModule m\nENTRY e {{\n x = f32[8] parameter(0)\n{steps}"
            f" ROOT r = f32[{8 * n}] concatenate({', '.join(f'm{i}' for i in range(n))}), dimensions={{0}}\n}}\n")


def test_only_short_edges_are_laid_out_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def placed(n: int) -> None:
        layered([50.0] * (n + 1), [20.0] * (n + 1), [(i, i + 1) for i in range(n)] + [(i, n) for i in range(n)])
    monkeypatch.setattr(layout, "MAX_DUMMIES", 1000)
    small, large = (calls_in(placed, n) for n in (100, 400))
    assert large < 6 * small


def test_graphviz_draws_no_thousand_long_edges(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It took minutes; irscope's own layout draws them."""
    monkeypatch.setattr(drawing, "can_draw", lambda: True)
    monkeypatch.setattr(drawing, "MAX_DUMMIES", 1000)
    monkeypatch.setattr(drawing, "draw", lambda text, format: b"<svg by='graphviz'/>")
    for n, by_graphviz in ((20, True), (60, False)):
        (tmp_path / "m.hlo").write_text(collected(n))
        done = cli("show", tmp_path / "m.hlo", "--max-nodes", "5000", "-o", tmp_path / "m.svg")
        assert done.exit_code == 0
        assert ("graphviz" in (tmp_path / "m.svg").read_text()) == by_graphviz


def test_graphviz_has_as_long_as_the_budget() -> None:
    assert dot._patience() == dot.TIMEOUT
    with irscope.limits(seconds=3):
        assert 2 < dot._patience() <= 3
