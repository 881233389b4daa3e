"""What a notebook shows: short reprs, pages without scripts, and pictures."""
from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

import irscope

SAMPLES = Path(__file__).parents[1] / "samples"
HOSTILE = "ENTRY main { p = f32[8] parameter(0)\n ROOT r = f32[8] custom-call(p), custom_call_target=\"<script>alert(1)</script>\" }"
LONG = "ENTRY main {\n p0 = f32[8] parameter(0)\n" + "".join(
    f" p{i} = f32[8] add(p{i - 1}, p{i - 1})\n" for i in range(1, 500)) + " ROOT r = f32[8] negate(p499)\n}"


class Tags(HTMLParser):
    """The tags of a page; all that are opened are closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.append(tag)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def objects(text: str) -> list[object]:
    reading = irscope.load(text)
    options = irscope.ShowOptions(view=irscope.View.SVG)
    return [reading, reading.module(), reading.module().main(), irscope.show(text), irscope.show(text, options), irscope.lint(text),
            irscope.diff(text, text)]


@pytest.mark.parametrize("name", ["mlp.pre.hlo", "wasteful.pre.hlo"])
def test_objects_draw_themselves(name: str) -> None:
    text = (SAMPLES / name).read_text()
    shown = [*objects(text), *irscope.lint(text).findings, irscope.opt(text, irscope.OptOptions(passes="share-equal")), irscope.compile(text)]
    pictures = [what._repr_svg_() for what in shown]  # type: ignore[attr-defined]
    for what, picture in zip(shown, pictures, strict=True):
        page = what._repr_html_()  # type: ignore[attr-defined]
        assert {"pre", "table", "img", "p"} & set(Tags(page).seen)
        if picture is not None:
            assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert sum(picture is not None for picture in pictures) == 6


@pytest.mark.parametrize("text", [
    "def @main(%x: Tensor[(8), float32]) {\n  nn.relu(%x)\n}\n",
    "graph(%x : Float(8)):\n  %y : Float(8) = aten::relu(%x)\n  return (%y)\n",
])
def test_graphs_of_every_format_draw_themselves(text: str) -> None:
    picture = irscope.load(text).module().main()._repr_svg_()
    assert picture is not None and "relu" in picture


def test_names_of_a_dump_are_text() -> None:
    for what in objects(HOSTILE):
        assert "script" not in Tags(what._repr_html_()).seen  # type: ignore[attr-defined]


@pytest.mark.parametrize("text", [HOSTILE, LONG])
def test_reprs_are_short(text: str) -> None:
    for what in [*objects(text), *irscope.lint(text).findings, irscope.opt(text, irscope.OptOptions(passes="share-equal"))]:
        assert len(repr(what)) < 400, type(what)
    assert repr(irscope.load(LONG)) == "<reading of '<text>': hlo, 1 module, 0 findings>"
    assert len(repr(irscope.compile(LONG))) < 100 and len(repr(irscope.run(LONG))) < 100


def test_a_text_that_cannot_be_read_shows_its_findings() -> None:
    reading = irscope.load("ENTRY main { p = f32[8] parameter(0)\n ROOT r = f32[8] nagate(q) }")
    assert "table" in Tags(reading._repr_html_() or "").seen
