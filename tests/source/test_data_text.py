"""Data in texts: whatever is wrong with them is a ValueError, and every reader of them reports it as a fault of the file."""
from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from irscope.formats.onnx.provenance import _scope
from irscope.formats.relay.metadata import constants_of
from irscope.fusion.xla.gpu_device import device_named
from irscope.lint.machine import machine_named
from irscope.passes.pattern_text import _value
from irscope.source import UserError
from irscope.source.data_text import first_json_value, json_value, python_literal, strict_json, toml_table, whole_number
from tests.conftest import Cli

DEEP = 200_000
PACKAGE = Path(__file__).parents[2] / "irscope"


@pytest.mark.parametrize(("parse", "text"), [
    (json_value, "[" * DEEP), (json_value, "nothing"), (json_value, b"\xff\xfe\xfd"), (first_json_value, "[" * DEEP), (first_json_value, ""),
    (toml_table, "x = " + "[" * DEEP), (toml_table, "x = "), (python_literal, "{[]: 1}"), (python_literal, "-" * DEEP + "1"),
    (python_literal, "(" * DEEP), (python_literal, "f(x)"), (whole_number, float("inf")), (whole_number, float("nan")), (whole_number, None),
])
def test_every_fault_is_a_value_error(parse: Callable[[object], object], text: object) -> None:
    with pytest.raises(ValueError):
        parse(text)


def test_what_is_sound_is_read() -> None:
    assert json_value('{"a": [1]}') == {"a": [1]} and first_json_value("[2] and more") == [2]
    assert toml_table("a = 1") == {"a": 1} and python_literal("{'a': (1, 2.5)}") == {"a": (1, 2.5)} and whole_number(3) == 3


def test_only_one_file_calls_the_parsers() -> None:
    called = re.compile(r"json\.loads?\(|raw_decode\(|tomllib\.loads?\(|literal_eval\(")
    callers = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if called.search(path.read_text())]
    assert callers == ["source/data_text.py"]


@pytest.mark.parametrize("text", [
    "graph(%x : Tensor):\n  %c : float = prim::Constant[value=inf]()\n  %y : Tensor = aten::mul(%x, %c)\n  return (%y)\n",
    "fn (%x: Tensor[(2, 2), float32]) { broadcast_to(%x, shape=[65536, nan, 17]) }\n",
    "fn (%x: Tensor[(2, 2), float32]) { clip(%x, a_min=-inff, a_max=inff) }\n",
])
def test_output_in_json_has_no_infinities(text: str, tmp_path: Path, cli: Cli) -> None:
    """Found by the fuzzer: an attribute that is infinite or NaN was written as Python writes it."""
    def refuse(constant: str) -> None:
        raise AssertionError(constant)
    path = tmp_path / "m.txt"
    path.write_text(text)
    for line in ("show FILE --format json", "lint FILE --isolated --format json", "stats FILE --format json", "lint FILE --audit memory --format json"):
        out = cli(*line.replace("FILE", str(path)).split()).stdout
        if out.strip():
            json.loads(out, parse_constant=refuse)


def test_strict_json_keeps_all_but_what_json_does_not_have() -> None:
    assert strict_json({"b": [1.5, float("nan"), (float("-inf"), "NaN")]}, indent=1) == json.dumps({"b": [1.5, None, [None, "NaN"]]}, indent=1)


@pytest.mark.parametrize(("words", "name", "text"), [
    ("--config", "x.toml", "select = " + "[" * DEEP), ("--machine", "x.toml", "base = " + "[" * DEEP), ("--baseline", "x.json", "[" * DEEP),
    ("--baseline", "x.json", '{"findings": [{"fingerprint": "a", "count": 1e999}]}'),
    ("--baseline", "x.json", '{"findings": [], "fusion": {"a": {"kernels": 1e999, "traffic": 1, "policy": "x", "apart": {}}}}'),
    ("--machine", "x.toml", "launch_us = {value = 1, policies = 5}"), ("--machine", "x.toml", "read_gbs = 1" + "0" * 400),
    ("--machine", "x.toml", "read_gbs = inf"), ("--machine", "x.toml", "vector_gflops = 5e-324"),
])
def test_odd_values_are_faults_of_the_file(words: str, name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.hlo").write_text("ENTRY e {\n  p = f32[8] parameter(0)\n  ROOT n = f32[8] negate(p)\n}\n")
    Path(name).write_text(text)
    result = cli("lint", "m.hlo", words, name)
    assert result.exit_code == 2 and name in result.stderr, result.stderr


@pytest.mark.parametrize("number", ["1.2.3", "1e999", "0", "e"])
def test_odd_numbers_of_a_device_are_faults_of_its_text(number: str, tmp_path: Path) -> None:
    path = tmp_path / "gpu.txt"
    path.write_text(f"gpu_device_info {{\n  core_count: {number}\n}}\n")
    with pytest.raises(UserError, match="core_count"):
        device_named(str(path))


def test_data_inside_a_dump_that_cannot_be_read_are_left_out(cli: Cli, tmp_path: Path) -> None:
    assert constants_of("{" + '"nodes": ' + "[" * DEEP) == {}
    assert constants_of('{"root": 0, "nodes": [{"keys": ["relay.Constant"], "data": [1]}, {"data": [2]}, {"attrs": {"data": 1e999}}]}') == {}
    assert _scope("[{[]: 1}, 'x']") == "" and _value("{[]: 1}") == "{[]: 1}"
    text = tmp_path / "m.hlo"
    text.write_text('ENTRY e {\n  p = f32[8,8] parameter(0)\n  ROOT c = f32[8,8] custom-call(p), custom_call_target="lapack_spotrf_ffi", '
                    'backend_config={"a":' + "[" * 5000 + "]" * 5000 + "}\n}\n")
    assert cli("lint", text, "--isolated").exit_code in (0, 1, 2) and cli("compile-and-run", text).exit_code in (0, 2)


def test_a_machine_has_the_numbers_that_it_may_have(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    path.write_text("read_gbs = 1e18\nwrite_gbs = 1e-12\n")
    assert (machine_named(str(path)).read_gbs, machine_named(str(path)).write_gbs) == (1e18, 1e-12)
