"""Which stages of a dumped module a page has."""
from __future__ import annotations

from pathlib import Path

import pytest

import irscope
from irscope.api import stages as under_test
from irscope.fleet.dump_folder import Stage

TEXT = "HloModule m\nENTRY e {{\n p = f32[2] parameter(0)\n ROOT r = f32[2] {}(p)\n}}\n"


def test_stages_that_are_too_much_or_unreadable_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stages = []
    for i, op in enumerate(("negate", "tanh", "exponential", "abs", "sine")):
        path = tmp_path / f"{i}.txt"
        path.write_text(TEXT.format(op))
        stages.append(Stage(str(path), f"{i:04d}.pipeline.after_{op}", (1, i)))
    last = irscope.load(tmp_path / "4.txt")
    found, left_out = under_test.stages_of_folder(stages, last)
    assert [stage.words for stage in found] == [f"{i} {op} (pipeline)" for i, op in enumerate(("negate", "tanh", "exponential", "abs", "sine"))]
    assert left_out == 0 and found[-1].module is last.module()
    monkeypatch.setattr(under_test, "MAX_BYTES", 2 * len(TEXT.format("negate")) + 5)
    found, left_out = under_test.stages_of_folder(stages, last)
    assert [stage.words.split()[1] for stage in found] == ["negate", "abs", "sine"] and left_out == 2
    (tmp_path / "3.txt").write_text("no module")
    found, left_out = under_test.stages_of_folder([stages[0], *stages[3:]], last)
    assert [stage.words.split()[1] for stage in found] == ["negate", "sine"] and left_out == 1, "what is unreadable is not on the page"
    (tmp_path / "0.txt").unlink()
    assert [stage.words.split()[1] for stage in under_test.stages_of_folder(stages[:1] + stages[3:], last)[0]] == []
    assert under_test.stages_of_folder(stages[4:], last) == ([], 0)
