"""Trees that end in operators, and links from a terminal to the user's program."""
from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from irscope import api
from irscope.analysis.survey import Survey
from irscope.cli.main import main
from irscope.cli.streams import Guarded
from irscope.render.operators import OperatorRows
from irscope.render.paint import Paint
from irscope.render.screen import ScreenOptions
from irscope.source.links import follows_links, linked
from tests.analysis.texts import layers
from tests.render.test_screen import TEXTS, shown

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.mark.parametrize("name", TEXTS)
def test_the_tree_with_operators_is_as_it_was(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{name}.ops.txt", "\n".join(shown(TEXTS[name], 120, options=ScreenOptions(operators=True))) + "\n")


@pytest.mark.parametrize("sample", ["transformer.opt.hlo", "transformer.pre.hlo", "newton.opt.hlo", "wasteful.pre.hlo", "mlp.opt.hlo"])
@pytest.mark.parametrize("by", ["scope_outline", "graph_outline"])
def test_operators_sum_up_to_the_figures_of_their_section(sample: str, by: str) -> None:
    survey = Survey(api.load((SAMPLES / sample).read_text()).module())
    root = getattr(survey, by)
    operators = OperatorRows(survey, root)
    checked = 0
    for section in root.walk():
        if section.children or section.kind == "body":
            continue
        inside = [one for copy in section.copies or [section] for one in operators.of(copy)]
        assert section.flops == pytest.approx(sum(one.flops for one in inside)), section.title
        assert section.bytes == pytest.approx(sum(one.bytes for one in inside)), section.title
        checked += 1
    assert checked


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160])
def test_no_line_with_operators_is_wider_than_the_terminal(width: int) -> None:
    for text in TEXTS.values():
        assert [line for line in shown(text, width, options=ScreenOptions(operators=True)) if len(line) > width] == []


def test_a_section_lists_its_costliest_operators_and_counts_the_others() -> None:
    body = "\n".join(f"  a{i} = f32[{i + 1}] negate(x{i})\n  x{i} = f32[{i + 1}] parameter({i})" for i in range(40))
    text = "HloModule m\nENTRY e {\n" + "\n".join(sorted(body.splitlines(), key=lambda line: "parameter" not in line)) + (
        "\n  ROOT t = (f32[1]) tuple(a0)\n}\n")
    few = shown(text, options=ScreenOptions(operators=True))
    assert any("%a39 " in line for line in few) and any("operators more" in line for line in few)
    everything = shown(text, options=ScreenOptions(operators=True, everything=True))
    assert sum("negate %a" in line for line in everything) == 40 and not any("operators more" in line for line in everything)


def test_show_takes_ops_for_trees_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "m.hlo"
    source.write_text(layers(3, scoped=True))
    assert main(["show", str(source), "--ops"]) == 0
    assert "dot {1}x{0} %s0_0 f32[4,4]" in capsys.readouterr().out
    assert main(["show", str(source), "--ops", "-o", str(tmp_path / "m.svg")]) == 2
    assert "--ops" in capsys.readouterr().err


def test_lines_of_files_on_this_machine_are_links(tmp_path: Path) -> None:
    file = tmp_path / "my model.py"
    file.write_text("x")
    link = linked("model.py:12", f"{file}:12")
    assert re.fullmatch(r"\x1b\]8;id=irscope-[0-9a-f]{16};file:///\S+/my%20model\.py#12\x1b\\model\.py:12\x1b\]8;;\x1b\\", link)
    assert linked("x", str(tmp_path / "none.py") + ":3") == "x" and linked("x", str(file)) == "x" and linked("x", "//host/share/x.py:1") == "x"
    assert Paint(80, True, True).link("a", f"{file}:1") == "a" and "8;id" in Paint(80, True, True, True).link("a", f"{file}:1")


class _Stream:
    def __init__(self, terminal: bool) -> None:
        self.terminal, self.text = terminal, ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def isatty(self) -> bool:
        return self.terminal


def test_links_of_a_dump_do_not_reach_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    file.write_text("x")
    mine, stream = linked("m.py:1", f"{file}:1"), _Stream(True)
    Guarded(stream, colour=True).write(mine)  # type: ignore[arg-type]
    assert stream.text == mine
    for bad in ("\x1b]8;;file:///etc/passwd\x1b\\click", "\x1b]8;id=irscope-0000000000000000;file:///x\x1b\\y", "\x1b]8;;http://x\x07y"):
        stream.text = ""
        Guarded(stream, colour=True).write(bad)  # type: ignore[arg-type]
        assert "\x1b" not in stream.text and "\u241b]8;" in stream.text
    stream.text = ""
    Guarded(stream, colour=False).write(mine)  # type: ignore[arg-type]
    assert "\x1b" not in stream.text


def test_links_are_for_terminals_that_follow_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_HYPERLINK", "CI", "VTE_VERSION", "KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "DOMTERM", "TERM_PROGRAM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert not follows_links(_Stream(True))
    monkeypatch.setenv("VTE_VERSION", "6800")
    assert follows_links(_Stream(True)) and not follows_links(_Stream(False))
    monkeypatch.setenv("FORCE_HYPERLINK", "0")
    assert not follows_links(_Stream(True))
    monkeypatch.setenv("FORCE_HYPERLINK", "1")
    assert follows_links(_Stream(False))


def test_places_with_digits_of_other_scripts_are_no_places(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text("")
    assert linked("text", f"{file}:\u0661\u0662") == "text"


def test_names_that_are_no_unicode_can_be_linked(tmp_path: Path) -> None:
    file = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.py")
    try:
        Path(file).write_text("")
    except OSError:
        pytest.skip("the file system has names in Unicode alone")
    assert "/%FF.py#3" in linked("text", f"{file}:3")
