"""``--color-by``, ``--against`` and ``--numbers`` of drawings: what the user sees, and what is refused."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Cli

TEXT = """HloModule m
ENTRY e {
  x = f32[64]{0} parameter(0)
  a = f32[64]{0} exponential(x)
  b = f32[64]{0} tanh(a)
  ROOT r = f32[64]{0} add(a, b)
}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    return path


def fills(dot: str) -> dict[str, str]:
    """The fill of each box by the name of its node."""
    found = {}
    for line in dot.splitlines():
        if 'id="e/' in line:
            found[line.partition('id="e/')[2].partition('"')[0]] = line.partition('fillcolor="')[2].partition('"')[0]
    return found


@pytest.mark.parametrize(("name", "content"), [
    ("n.json", json.dumps({"a": 4, "%b": 1.0, "nowhere": 9})), ("n.json", json.dumps([["a", 4], ["e/b", 1]])),
    ("n.json", json.dumps([{"name": "a", "value": 3}, {"name": "a", "value": 1}, {"name": "b", "time": 1}, {"name": "r", "value": None}])),
    ("n.csv", "name,us\na,4\nb,1\n"),
    ("n.csv", "\ufeffa,4\nb,1\n"), ("n.json", json.dumps({"a": 1, "e/a": 3, "b": 1})), ("n.csv", "a;4\nb;1\nr;many\n"), ("n.tsv", "a\t4\nb\t1\n"),
    ("trace.json", json.dumps({"traceEvents": [
        {"ph": "X", "name": "a", "dur": 4}, {"ph": "X", "name": "op", "dur": 1, "args": {"hlo_op": "b", "hlo_module": "m(1)"}},
        {"ph": "X", "name": "a", "dur": 70, "args": {"hlo_module": "other"}}, {"ph": "M", "name": "a", "dur": 70}]})),
])
def test_numbers_of_the_user_are_colours(name: str, content: str, source: Path, tmp_path: Path, cli: Cli) -> None:
    (tmp_path / name).write_text(content)
    done = cli("show", source, "--numbers", tmp_path / name, "--color-by", "numbers", "--format", "dot")
    assert done.exit_code == 0, done.stderr
    found = fills(done.stdout)
    assert found["a"] == "#d73c2d" and found["b"] not in (found["a"], found["r"]) and found["x"] == found["r"]
    assert ">4</font>" in done.stdout, "the legend has the largest number"


def test_of_negative_numbers_none_is_the_hottest(source: Path, tmp_path: Path, cli: Cli) -> None:
    names = ["x", "a", "b", "r"]
    (tmp_path / "n.json").write_text(json.dumps({name: -9 + i for i, name in enumerate(names)}))
    done = cli("show", source, "--numbers", tmp_path / "n.json", "--color-by", "numbers", "--format", "dot")
    assert done.exit_code == 0 and {fills(done.stdout)[name] for name in names} == {"#ffffff"}


@pytest.mark.parametrize("content", [
    "[1, 2]", "{", "[" * 100_000, '{"a": 1e999}', '{"a": NaN}', '{"a": ' + "9" * 400 + "}", '{"a": true}', "name,many", '{"zz": 1}', "a," + "9" * 400,
    '{"traceEvents": {"a": []}}', "\x00", '"' + "x" * 200_000,
])
def test_files_without_numbers_of_the_program_are_refused(content: str, source: Path, tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "n").write_text(content)
    done = cli("show", source, "--numbers", tmp_path / "n", "--color-by", "numbers", "--format", "dot")
    assert done.exit_code == 2 and done.stderr.startswith("error: n"), (done.exit_code, done.stderr)


def test_changes_against_another_dump(source: Path, tmp_path: Path, cli: Cli) -> None:
    before = tmp_path / "before.hlo"
    before.write_text(TEXT.replace("tanh(a)", "negate(a)"))
    done = cli("show", source, "--against", before, "--color-by", "diff", "--format", "dot")
    assert done.exit_code == 0, done.stderr
    assert "before.hlo: 1 added, 0 changed, 1 node removed" in done.stdout
    found = fills(done.stdout)
    assert found["b"] == "#2f7fc1" and found["a"] == found["x"] == found["r"] == "#e4e6e9"
    same = cli("show", source, "--against", source, "--color-by", "diff", "--format", "dot")
    assert "no node changed" in same.stdout


@pytest.mark.parametrize(("arguments", "message"), [
    (("--color-by", "diff", "--format", "svg"), "--color-by diff needs --against DUMP"),
    (("--color-by", "numbers", "--format", "svg"), "--color-by numbers needs --numbers FILE"),
    (("--against", "x.hlo"), "--against colours a drawing or a page"), (("--numbers", "x"), "--numbers colours a drawing or a page"),
    (("--oom", "x", "--format", "svg"), "--oom shows the buffers of an error on a page"),
    (("--oom", "m.hlo", "--format", "html"), "has no out-of-memory error"),
    (("--against", "nowhere.hlo", "--format", "svg"), "nowhere.hlo"),
])
def test_requests_that_do_not_fit(arguments: tuple[str, ...], message: str, source: Path, tmp_path: Path, cli: Cli,
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = cli("show", source, *arguments)
    assert done.exit_code == 2 and message in done.stderr
