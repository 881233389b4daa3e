"""The format is found by content, whatever the suffix and whatever stands around the dump."""
from __future__ import annotations

from pathlib import Path

import pytest

from irscope.formats import FORMATS, format_named
from irscope.formats.detect import SURE, detect, read
from irscope.source import SourceText

SAMPLES = sorted((Path(__file__).resolve().parents[2] / "samples").glob("*.hlo"))

TINY = "HloModule tiny\n\nENTRY main {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] negate(x)\n}\n"
HEADERLESS = "ENTRY main {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] negate(x)\n}\n"


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_samples_are_hlo_and_surely_so(path: Path) -> None:
    text = path.read_text()
    assert detect(text) == "hlo"
    assert format_named("hlo").sniff(text) >= SURE


@pytest.mark.parametrize("before", [
    "",
    "\n\n   \n",
    "epoch 1, loss 0.25\nWARNING: no GPU found, falling back to CPU\n",
    "import jax\nprint(lowered.as_text(dialect='hlo'))\n\n",
    "// RUN: hlo-opt %s\n/* a comment */\n",
    "{'learning_rate': 0.1}\n",
])
@pytest.mark.parametrize("after", ["", "done in 3 s\n", "\n" + TINY.replace("tiny", "second")])
def test_what_stands_around_a_dump_does_not_disturb(before: str, after: str) -> None:
    text = before + TINY + after
    assert detect(text) == "hlo"
    reading = read(SourceText("log.txt", text))
    assert reading.ok, [finding.render() for finding in reading.findings]
    assert reading.module().name == "tiny"
    assert [node.op.name for node in reading.module().main().nodes] == ["parameter", "negate"]


def test_a_module_without_a_header_is_hlo() -> None:
    assert detect(HEADERLESS) == "hlo"
    assert read(SourceText("x", HEADERLESS)).ok


@pytest.mark.parametrize("text", ["hello world\n", "a = b + c\n", "{\n}\n", "x: 1\ny: 2\n", "1 2 3\n", "digraph G { ENTRY -> ROOT }"])
def test_what_is_no_dump_is_not_taken_for_one(text: str) -> None:
    assert detect(text) is None


def test_every_folder_is_a_format_with_a_title() -> None:
    assert FORMATS == ("hlo", "torchscript", "inductor", "export", "hlo-pb", "onnx", "relay", "stablehlo")
    assert all(format_named(name).TITLE for name in FORMATS)
