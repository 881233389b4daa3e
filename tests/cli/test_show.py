"""``irscope show`` as a user calls it."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

import irscope
from tests.analysis.texts import FUSED, LOOP, layers
from tests.conftest import Cli


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.hlo"
    path.write_text(FUSED)
    return path


@pytest.mark.parametrize(("suffix", "begin"), [("svg", "<"), ("dot", "digraph irscope {"), ("html", "<!doctype html>"), ("json", "{"), ("txt", "HloModule fused")])
def test_the_suffix_chooses_the_format(suffix: str, begin: str, model: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / f"out.{suffix}"
    result = cli("show", model, "-o", out)
    assert (result.exit_code, result.stdout) == (0, "")
    assert out.read_text().startswith(begin)


def test_an_unknown_suffix_and_the_input_itself_are_refused(model: Path, cli: Cli) -> None:
    assert "no format has the suffix .bmp" in cli("show", model, "-o", "x.bmp").stderr
    result = cli("show", model, "-o", model, "--format", "text")
    assert result.exit_code == 2
    assert "it is not overwritten" in result.stderr
    assert model.read_text() == FUSED


def test_a_dump_of_the_folder_that_is_shown_is_not_overwritten(model: Path, cli: Cli) -> None:
    result = cli("show", model.parent, "-o", model, "--format", "json")
    assert result.exit_code == 2 and "it is not overwritten" in result.stderr
    assert model.read_text() == FUSED


def test_several_files_are_shown_one_after_the_other(model: Path, tmp_path: Path, cli: Cli) -> None:
    other = tmp_path / "loop.hlo"
    other.write_text(LOOP)
    result = cli("show", model, tmp_path / "missing.hlo", other)
    assert result.exit_code == 2
    assert "HLO module fused" in result.stdout
    assert "HLO module loop" in result.stdout
    assert "missing.hlo: no such file" in result.stderr
    assert cli("show", model, other, "-o", tmp_path / "x.svg").exit_code == 2


def test_text_is_the_dumps_own(model: Path, cli: Cli) -> None:
    assert cli("show", model, "--format", "text").stdout == FUSED
    graph = cli("show", model, "--format", "text", "--graph", "add_f32").stdout
    assert graph.splitlines() == ["add_f32 {", "  a = f32[] parameter(0)", "  b = f32[] parameter(1)", "  ROOT s = f32[] add(a, b)", "}"]


def test_what_is_picked_is_written_as_a_module(model: Path, cli: Cli) -> None:
    picked = cli("show", model, "--format", "text", "--where", "op=dot").stdout
    assert "ROOT %dot = f32[8,16] dot(%x, %w), lhs_contracting_dims={1}" in picked
    assert irscope.load(picked).ok


@pytest.mark.parametrize(("options", "nodes"), [
    (("--around", "%biased", "--radius", "1"), {"dot", "bias", "biased", "total"}), (("--between", "x", "total"), {"x", "dot", "biased", "total"}),
    (("--where", "op=add"), {"s", "sum"}), (("--around", "fused_computation/wide", "--radius", "0"), {"wide"}),
    (("--graph", "fused_computation", "--around", "wide", "--radius", "1"), {"p1", "wide", "sum"}),
])
def test_nodes_are_picked(options: tuple[str, ...], nodes: set[str], model: Path, cli: Cli) -> None:
    found = json.loads(cli("show", model, "--format", "json", *options).stdout)
    assert {node["name"] for graph in found["modules"][0]["graphs"] for node in graph["nodes"]} == nodes
    assert cli("show", model, *options).exit_code == 0


@pytest.mark.parametrize(("options", "words"), [
    (("--around", "%bised"), "did you mean biased?"), (("--graph", "man"), "did you mean main?"), (("--where", "op=dott"), "no node matches"),
    (("--where", "op>3"), "op is text"), (("--between", "bias", "x"), "no path between"), (("--module", "fuse"), "did you mean fused?"),
    (("--between", "dot", "wide"), "stands in main"),
])
def test_what_is_not_there_is_told(options: tuple[str, ...], words: str, model: Path, cli: Cli) -> None:
    result = cli("show", model, *options)
    assert result.exit_code == 2
    assert words in result.stderr


def test_unknown_opcodes_still_show(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "odd.hlo"
    path.write_text(FUSED.replace("reduce(biased, zero)", "frobnicate(biased, zero)"))
    result = cli("show", path)
    assert result.exit_code == 2
    assert "frobnicate" in result.stdout
    assert cli("show", path, "-o", tmp_path / "odd.dot").exit_code == 2
    assert "frobnicate" in (tmp_path / "odd.dot").read_text()


def test_the_tree_goes_by_scope_or_by_computation(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "layers.hlo"
    path.write_text(layers(12, scoped=True))
    assert "layer_0..11 ×12" in cli("show", path).stdout
    assert "layer_0" not in cli("show", path, "--by", "graph").stdout
    assert "×12" in cli("show", path, "--by", "graph").stdout
    assert "layer_0" not in cli("show", path, "--depth", 1).stdout


def test_no_colour_in_a_pipe_and_none_when_not_wanted(model: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in cli("show", model, color=True).stdout
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in cli("show", model, color=True).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in cli("show", model, color=True).stdout


def test_several_modules_in_a_text_are_all_shown(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "two.txt"
    path.write_text(FUSED + "\n" + LOOP)
    result = cli("show", path)
    assert result.stdout.count("HLO module") == 2
    assert "HLO module fused" not in cli("show", path, "--module", "loop").stdout
    assert "HLO module loop" in cli("show", path, "--graph", "body").stdout


def test_inputs_are_bound_to_shapes_and_types(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "open.hlo"
    path.write_text("HloModule m\nENTRY main {\n  x = f32[?,4] parameter(0)\n  ROOT y = f32[?,4] negate(x)\n}\n")
    assert "y f32[?,4]" in cli("show", path).stdout
    assert "y bf16[8,4]" in cli("show", path, "--shape", "x=8,4", "--dtype", "x=bf16").stdout
    wrong = cli("show", path, "--shape", "z=8,4")
    assert wrong.exit_code == 2
    assert "there is no input 'z'" in wrong.stderr


def test_a_module_of_which_nothing_could_be_read_is_shown_with_its_findings(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "header.hlo"
    path.write_text("HloModule only_a_header\n")
    result = cli("show", path)
    assert result.exit_code == 2
    assert "only_a_header" in result.stdout + result.stderr
