"""compile-and-run as a user calls it: inputs by name, comparisons, files, stages, and one clear message for each fault."""
from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irscope
from irscope.api import RunOptions
from irscope.cli.run_report import print_tables
from tests.conftest import Cli

TEXT = """HloModule m
ENTRY main {
  features = f32[2,3] parameter(0)
  weights = f32[3] parameter(1)
  b = f32[2,3] broadcast(weights), dimensions={1}
  ROOT r = f32[2,3] add(features, b)
}
"""


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "a.hlo"
    path.write_text(TEXT)
    return path


def arrays(path: Path, **values: Any) -> Path:
    np.savez(path, **values)
    return path


ONES = {"features": np.ones((2, 3), np.float32), "weights": np.arange(3, dtype=np.float32)}


def test_inputs_by_name_and_by_place_give_the_same(cli: Cli, text: Path, tmp_path: Path) -> None:
    by_name = arrays(tmp_path / "n.npz", **ONES)
    by_place = arrays(tmp_path / "p.npz", arg0=ONES["features"], arg1=ONES["weights"])
    for number, given in enumerate((by_name, by_place)):
        out = tmp_path / f"out{number}.npz"
        assert cli("compile-and-run", text, "--inputs", given, "--save-outputs", out).exit_code == 0
        np.testing.assert_array_equal(np.load(out)["out0"], ONES["features"] + ONES["weights"])


def test_an_input_is_given_once(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text("ENTRY main { p = f32[2] parameter(0)\n ROOT n = f32[2] negate(p) }")
    given = arrays(tmp_path / "x.npz", p=np.ones(2, np.float32), arg0=np.zeros(2, np.float32))
    result = cli("compile-and-run", tmp_path / "m.hlo", "--inputs", given)
    assert result.exit_code == 2 and "p is given by its name and as arg0" in result.stderr


def test_json_has_every_key(cli: Cli, text: Path, tmp_path: Path) -> None:
    result = cli("compile-and-run", text, "--check", "--bench", "--runs", 5, "--threads", 1, "--format", "json")
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert {"ok", "outputs", "kernels", "interpreted_ops", "threads", "load_s", "compile_s", "samples_us", "median_us", "min_us", "flops",
            "peak_rss_mb", "max_abs_error", "max_rel_error", "version"} <= told.keys()
    assert told["outputs"] == [{"name": "out0", "dtype": "f32", "shape": [2, 3]}]
    assert told["interpreted_ops"] == [] and told["threads"] == 1 and len(told["samples_us"]) == 5


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the parent's peak is left out where there is a /proc")
def test_the_peak_of_memory_is_not_that_of_a_large_parent(text: Path) -> None:
    start = "import subprocess, sys; held = bytearray(b'x') * 700_000_000; sys.exit(subprocess.run([sys.executable, *sys.argv[1:]]).returncode)"
    run = subprocess.run([sys.executable, "-c", start, "-m", "irscope", "compile-and-run", str(text), "--format", "json", "--threads", "1"],
                         capture_output=True, text=True, check=True)
    assert 10 < json.loads(run.stdout)["peak_rss_mb"] < 600


def test_loops_name_the_users_lines(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "old.hlo"
    path.write_text("""HloModule m
ENTRY main {
  x = f32[64,64] parameter(0)
  d = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="net/dense" source_file="/u/m.py" source_line=7}
  t = f32[64,64] tanh(d), metadata={op_name="net/act" source_file="/u/m.py" source_line=8}
  ROOT n = f32[64,64] negate(t)
}
""")
    lines = cli("compile-and-run", path, "--emit", "loops").stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("kernel "))
    assert lines[at + 1:at + 3] == ["  # /u/m.py:7  %d  net/dense", "  # /u/m.py:8  %t  net/act"]


def test_weights_are_fixed_and_the_rest_is_drawn(cli: Cli, text: Path, tmp_path: Path) -> None:
    weights = arrays(tmp_path / "w.npz", weights=ONES["weights"])
    result = cli("compile-and-run", text, "--weights", weights, "--check")
    assert result.exit_code == 0
    assert "drawn from seed 0: features" in result.stderr


def test_the_seed_decides_what_is_drawn(cli: Cli, text: Path, tmp_path: Path) -> None:
    def run(seed: int) -> np.ndarray:
        out = tmp_path / "o.npz"
        cli("compile-and-run", text, "--seed", seed, "--save-outputs", out)
        return np.load(out)["out0"]  # type: ignore[no-any-return]
    np.testing.assert_array_equal(run(3), run(3))
    assert (run(3) != run(4)).any()


def test_the_reference_engine_is_told_as_interpreted(cli: Cli, text: Path) -> None:
    told = json.loads(cli("compile-and-run", text, "--engine", "reference", "--format", "json").stdout)
    assert told["interpreted_ops"] == ["add", "broadcast"]


def test_expectations_that_fail_are_status_one(cli: Cli, text: Path, tmp_path: Path) -> None:
    given = arrays(tmp_path / "n.npz", **ONES)
    right = arrays(tmp_path / "r.npz", out0=ONES["features"] + ONES["weights"])
    wrong = arrays(tmp_path / "w.npz", out0=ONES["features"])
    assert cli("compile-and-run", text, "--inputs", given, "--expect", right).exit_code == 0
    result = cli("compile-and-run", text, "--inputs", given, "--expect", wrong)
    assert result.exit_code == 1 and "4 of 6 values differ" in result.stderr
    assert cli("compile-and-run", text, "--inputs", given, "--expect", wrong, "--atol", 5).exit_code == 0


def test_bfloat16_travels_as_bits(cli: Cli, tmp_path: Path) -> None:
    text = tmp_path / "b.hlo"
    text.write_text("ENTRY main {\n x = bf16[3] parameter(0)\n ROOT n = bf16[3] negate(x)\n}\n")
    given = arrays(tmp_path / "x.npz", arg0=np.array([0x3F80, 0x4000, 0x4040], np.uint16), dtypes=json.dumps({"arg0": "bfloat16"}))
    assert cli("compile-and-run", text, "--inputs", given, "--save-outputs", tmp_path / "o.npz").exit_code == 0
    out = np.load(tmp_path / "o.npz")["out0"]
    assert out.dtype == np.uint16 and out.tolist() == [0xBF80, 0xC000, 0xC040]


@pytest.mark.parametrize("dtypes", [{"dtypes": json.dumps({"arg0": "bfloat16"})}, {}])
def test_a_single_bfloat16_stays_a_scalar(cli: Cli, tmp_path: Path, dtypes: dict[str, Any]) -> None:
    text = tmp_path / "b.hlo"
    text.write_text("ENTRY main {\n x = bf16[] parameter(0)\n ROOT n = bf16[] negate(x)\n}\n")
    given = arrays(tmp_path / "x.npz", arg0=np.array(0x3F80, np.uint16), **dtypes)
    assert cli("compile-and-run", text, "--inputs", given, "--save-outputs", tmp_path / "o.npz").exit_code == 0
    out = np.load(tmp_path / "o.npz")["out0"]
    assert out.shape == () and out == 0xBF80


@pytest.mark.parametrize("stage", ["loops", "llvm", "asm"])
def test_stages_are_written(cli: Cli, text: Path, tmp_path: Path, stage: str) -> None:
    path = tmp_path / "stage.txt"
    assert cli("compile-and-run", text, "--emit", stage, "-o", path).exit_code == 0
    assert {"loops": "kernel r(", "llvm": "define void @", "asm": ".globl"}[stage] in path.read_text()


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "near": ({"featurs": ONES["features"]}, "did you mean features?"),
    "shape": ({"features": np.ones((3, 2), np.float32)}, "has the shape [3,2]"),
    "dtype": ({"features": np.ones((2, 3))}, "array.astype(np.float32)"),
    "place": ({"arg9": np.ones(3, np.float32)}, "the graph takes 2"),
    "object": ({"features": np.array([{}], dtype=object)}, "Python objects"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_arrays_that_do_not_fit(cli: Cli, text: Path, tmp_path: Path, name: str) -> None:
    values, word = FAULTS[name]
    result = cli("compile-and-run", text, "--inputs", arrays(tmp_path / "x.npz", **values))
    assert result.exit_code == 2 and word in result.stderr and result.stdout == ""


def test_names_that_the_graph_does_not_have_are_ignored_with_a_note(cli: Cli, text: Path, tmp_path: Path) -> None:
    result = cli("compile-and-run", text, "--inputs", arrays(tmp_path / "x.npz", **ONES, out0=ONES["features"], other=np.ones(1)))
    assert result.exit_code == 0 and result.stderr.count("note:") == 1 and "out0, other" in result.stderr


CANNOT = {
    "rng": ("a = f32[] constant(0)\nROOT r = f32[4] rng(a, a), distribution=rng_uniform", "rng-bit-generator"),
    "library": ("a = f32[4] parameter(0)\nROOT r = f32[4] custom-call(a), custom_call_target=\"my_kernel\"", "'my_kernel'"),
    "types": ("a = f32[4] parameter(0)\nb = f32[3] parameter(1)\nROOT r = f32[4] add(a, b)", "disagree on shape"),
    "elided": ("a = f32[20] parameter(0)\nc = f32[20] constant({...})\nROOT r = f32[20] add(a, c)", "--fill-elided"),
    "open": ("a = f32[?,4] parameter(0)\nROOT r = f32[?,4] negate(a)", "--shape a=8,4"),
    "send": ("a = f32[4] parameter(0)\nt = token[] after-all()\ns = (f32[4], u32[], token[]) send(a, t), channel_id=1\n"
             "d = token[] send-done(s), channel_id=1\nROOT r = f32[4] negate(a)", "another program"),
}


@pytest.mark.parametrize("name", CANNOT)
def test_what_cannot_run_says_why_and_what_to_do(cli: Cli, tmp_path: Path, name: str) -> None:
    lines, word = CANNOT[name]
    path = tmp_path / "c.hlo"
    path.write_text("HloModule m\nENTRY main {\n" + lines + "\n}\n")
    result = cli("compile-and-run", path)
    assert result.exit_code == 2 and word in result.stderr


def test_open_shapes_come_from_the_arrays_or_the_command_line(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "o.hlo"
    path.write_text("HloModule m\nENTRY main {\n" + CANNOT["open"][0] + "\n}\n")
    given = arrays(tmp_path / "x.npz", a=np.ones((5, 4), np.float32))
    for extra, rows in ((("--inputs", given), 5), (("--shape", "a=3,4"), 3)):
        told = json.loads(cli("compile-and-run", path, *extra, "--format", "json").stdout)
        assert told["outputs"][0]["shape"] == [rows, 4]


def test_elided_constants_are_given_or_drawn(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "e.hlo"
    path.write_text("HloModule m\nENTRY main {\n" + CANNOT["elided"][0] + "\n}\n")
    given = arrays(tmp_path / "c.npz", c=np.full(20, 2, np.float32))
    zeros = arrays(tmp_path / "x.npz", a=np.zeros(20, np.float32))
    assert cli("compile-and-run", path, "--inputs", zeros, "--constants", given, "--save-outputs", tmp_path / "o.npz").exit_code == 0
    assert (np.load(tmp_path / "o.npz")["out0"] == 2).all()
    assert cli("compile-and-run", path, "--fill-elided").exit_code == 0


def test_a_file_that_is_not_there_is_told_even_where_nothing_needs_it(cli: Cli, text: Path) -> None:
    for option in ("--inputs", "--weights", "--constants", "--expect"):
        result = cli("compile-and-run", text, option, "nowhere.npz")
        assert result.exit_code == 2 and "nowhere.npz: there is no such file" in result.stderr, option


def test_every_file_is_read_once(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from irscope.source import arrays as files

    path = tmp_path / "t.txt"
    path.write_text("graph(%x : Tensor, %w : Tensor):\n  %1 : Tensor = aten::mul(%x, %w)\n  return (%1)\n")
    given = arrays(tmp_path / "x.npz", x=np.full((2, 3), 2, np.float32))
    fixed = arrays(tmp_path / "w.npz", w=np.full((2, 3), 3, np.float32))
    read: list[str] = []
    plain = files.read_arrays

    def counted(path: str) -> Mapping[str, Any]:
        read.append(path)
        return plain(path)

    for room in ("arrays", "stored_programs"):
        monkeypatch.setattr(f"irscope.api.{room}.read_arrays", counted)
    result = cli("compile-and-run", path, "--inputs", given, "--weights", fixed, "--save-outputs", tmp_path / "o.npz")
    assert result.exit_code == 0, result.stderr
    assert sorted(read) == sorted((str(given), str(fixed)))
    assert (np.load(tmp_path / "o.npz")["out0"] == 6).all()


def test_partitions_get_their_inputs_together_or_one_by_one(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "p.hlo"
    path.write_text("""HloModule m, num_partitions=2
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY main { x = f32[2] parameter(0)
  w = f32[2] parameter(1)
  m = f32[2] multiply(x, w)
  ROOT r = f32[2] all-reduce(m), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=sum }
""")
    two, ten = np.full(2, 2, np.float32), np.full(2, 10, np.float32)
    given = arrays(tmp_path / "x.npz", **{"x@0": two, "arg0@1": ten, "w": np.array([1, 3], np.float32)})
    out = tmp_path / "o.npz"
    result = cli("compile-and-run", path, "--partitions", 2, "--inputs", given, "--check", "--save-outputs", out)
    assert result.exit_code == 0, result.stderr
    with np.load(out) as saved:
        assert saved["out0"].tolist() == saved["out1"].tolist() == [12, 36]
    assert "--partitions" not in result.stderr
    assert "out0 (out0@0)" in result.stdout and "out1 (out0@1)" in result.stdout
    twelve, wrong = np.array([12, 36], np.float32), np.zeros(2, np.float32)
    for named, status in (({"out0@1": twelve}, 0), ({"out0@0": twelve, "out1": twelve}, 0), ({"out0@1": wrong}, 1), ({"out1@0": twelve}, 2)):
        told = cli("compile-and-run", path, "--partitions", 2, "--inputs", given, "--expect", arrays(tmp_path / "e.npz", **named))
        assert told.exit_code == status, told.stderr
    assert "or out0@1 of device 1" in told.stderr
    alone = cli("compile-and-run", path)
    assert alone.exit_code == 0 and "one of 2 devices, and runs as if it were alone; --partitions 2 runs all" in alone.stderr


def test_a_sum_that_is_rounded_to_half_precision_may_land_one_step_away(cli: Cli, samples: Path) -> None:
    """The convolution's sums differ in their last bits, and one of 16,384 ends on the other side of a step of float16."""
    result = cli("compile-and-run", samples / "conv_cast_relu.relay", "--check")
    assert result.exit_code == 0, result.stderr
    strict = cli("compile-and-run", samples / "conv_cast_relu.relay", "--check", "--rtol", 1e-9)
    assert strict.exit_code == 1


def test_a_constant_without_a_value_is_told_at_its_place(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "elided.hlo"
    path.write_text('HloModule m\nENTRY e {\n  a = f32[99] parameter(0)\n'
                    '  c = f32[99] constant({...}), metadata={source_file="/u/m.py" source_line=3}\n  ROOT s = f32[99] add(a, c)\n}\n')
    run = cli("compile-and-run", path)
    assert run.exit_code == 2
    for words in ("elided.hlo:4:3: error[KRN001]: the text elides the value of the constant %c, f32[99]", "from: /u/m.py:3",
                  "--constants C.npz gives it by name", "error: the constant %c has no value"):
        assert words in run.stderr


def test_paths_of_results_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    result = irscope.run(TEXT)
    result.paths = ("['a[/b]'][bold]",)
    print_tables(RunOptions(), result)
    assert "out0 ['a[/b]'][bold]" in capsys.readouterr().out
