"""Drawings of odd graphs: results that a tuple does not have, and bodies that nest a thousand deep below many callers."""
from __future__ import annotations

import irscope
from irscope.analysis.survey import Survey
from irscope.render.detail import MAX_LEVELS, detail_view
from irscope.render.view import BoxOptions, Drawing
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
