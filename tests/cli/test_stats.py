"""``irscope stats`` as scripts call it."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.analysis.texts import FUSED, LOOP
from tests.conftest import Cli

KEYS = {"file", "format", "ok", "error", "graphs", "nodes", "ops", "parameters", "parameter_bytes", "flops", "bytes"}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {"fused.hlo": FUSED, "broken.hlo": FUSED.replace("dot(x, w)", "dot(x, v)"), "loop.hlo": LOOP, "empty.hlo": ""}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: tmp_path / name for name in texts}


def test_one_object_a_file_in_the_order_given(files: dict[str, Path], cli: Cli) -> None:
    given = [files["loop.hlo"], files["broken.hlo"], "missing.hlo", files["empty.hlo"], files["fused.hlo"]]
    result = cli("stats", "--format", "jsonl", *given)
    assert result.exit_code == 2
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert [r["file"] for r in records] == [str(g) for g in given]
    assert [r["ok"] for r in records] == [True, False, False, False, True]
    assert all(set(r) == KEYS for r in records)
    assert records[1]["error"].startswith("20:26: ")
    assert records[1]["nodes"] > 0
    assert records[4]["nodes"] == 14
    assert records[4]["graphs"] == 3


def test_signature_adds_inputs_and_outputs(files: dict[str, Path], cli: Cli) -> None:
    record = json.loads(cli("stats", "--format", "json", "--signature", files["fused.hlo"]).stdout)[0]
    assert set(record) == KEYS | {"inputs", "outputs"}
    assert record["inputs"][1] == {"name": "w", "dtype": "f32", "shape": [4, 16]}
    assert record["outputs"] == [{"name": "total", "dtype": "f32", "shape": [8]}]


def test_all_good_is_status_0_and_a_table_has_sums(files: dict[str, Path], cli: Cli) -> None:
    result = cli("stats", files["fused.hlo"], files["loop.hlo"])
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].startswith("2 files")
    assert "1.3 kFLOP" in result.stdout


def test_folders_are_searched(files: dict[str, Path], cli: Cli) -> None:
    result = cli("stats", files["fused.hlo"].parent, "--format", "jsonl")
    assert len(result.stdout.splitlines()) == 4
    assert "2 of 4 files not ok" in result.stderr


def test_standard_input_and_output_files(files: dict[str, Path], tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "out.jsonl"
    assert cli("stats", "-", "--format", "jsonl", "-o", out, input=LOOP).exit_code == 0
    assert json.loads(out.read_text())["file"] == "-"


def test_a_folder_without_dumps_is_told(tmp_path: Path, cli: Cli) -> None:
    result = cli("stats", tmp_path)
    assert result.exit_code == 2
    assert "no dump in" in result.stderr


def test_the_table_says_what_to_do_once(tmp_path: Path, cli: Cli) -> None:
    for name in ("a.hlo", "b.hlo"):
        (tmp_path / name).write_text("HloModule m\n\nENTRY e {\n  ROOT x = ")
    (tmp_path / "c.hlo").write_text("")
    table = cli("stats", tmp_path).stdout
    assert table.count("    help: the whole dump is needed") == 1
    assert table.count("    help: was the program that wrote it stopped") == 1
    assert '"help"' not in cli("stats", tmp_path, "--format", "json").stdout
