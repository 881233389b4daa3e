"""``--limit-time`` and ``--limit-memory``: a file that takes more is reported by name, with the limit and status 2, and others go on."""
from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from irscope.cli.main import COMMANDS
from tests.conftest import Cli

GOOD = "HloModule good\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] negate(x)\n}\n"
FOREVER = """HloModule forever
condition { p = (s32[]) parameter(0)  ROOT t = pred[] constant(true) }
body { p = (s32[]) parameter(0)  x = s32[] get-tuple-element(p), index=0  o = s32[] constant(1)  y = s32[] add(x, o)  ROOT t = (s32[]) tuple(y) }
ENTRY e { z = s32[] parameter(0)  i = (s32[]) tuple(z)  ROOT w = (s32[]) while(i), condition=condition, body=body }
"""


def long_text(count: int = 40_000) -> str:
    """A text that takes longer to read than the smallest limit."""
    lines = "".join(f"  x{n} = f32[2] negate(x{n - 1})\n" for n in range(1, count))
    return f"HloModule long\nENTRY e {{\n  x0 = f32[2] parameter(0)\n{lines}  ROOT y = f32[2] negate(x{count - 1})\n}}\n"


def bomb(path: Path, size: int) -> Path:
    """A gzip file of some kilobytes that unpacks to ``size`` bytes."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"HloModule m\n")
        for _ in range(size >> 20):
            file.write(b" " * (1 << 20))
    return path


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_the_limits(cli: Cli, name: str) -> None:
    said = cli(name, "--help").stdout
    assert "--limit-time" in said and "--limit-memory" in said


@pytest.mark.parametrize("words", [("--limit-memory", "much"), ("--limit-time", "-1"), ("--limit-time", "soon")])
def test_what_is_no_limit_is_told(cli: Cli, samples: Path, words: tuple[str, str]) -> None:
    done = cli("show", samples / "mlp.pre.hlo", *words)
    assert done.exit_code == 2 and words[0] in done.stderr


@pytest.mark.parametrize("command", ["show", "lint", "stats", "opt", "diff", "compile-and-run"])
def test_time_holds_for_every_command(cli: Cli, tmp_path: Path, command: str) -> None:
    path = tmp_path / "long.hlo"
    path.write_text(long_text(100_000))
    more = {"diff": (path,), "opt": ("--passes", "share-equal")}.get(command, ())
    done = cli(command, path, *more, "--limit-time", "0.1")
    assert done.exit_code == 2
    assert "long.hlo takes more than 0.1 s of processor time" in done.stdout + done.stderr


def test_no_limit_is_zero(cli: Cli, samples: Path) -> None:
    assert cli("show", samples / "mlp.pre.hlo", "--limit-time", "0", "--limit-memory", "0").exit_code == 0


def test_in_stats_it_is_a_row_and_the_others_go_on(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.hlo").write_text(GOOD)
    (tmp_path / "b.hlo").write_text(long_text(1_000_000))
    (tmp_path / "c.hlo").write_text(GOOD)
    for jobs in ((), ("--jobs", "2")):
        done = cli("stats", tmp_path, "--format", "jsonl", "--limit-time", "1.5", *jobs)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert done.exit_code == 2
        assert [row["ok"] for row in rows] == [True, False, True], rows
        assert "b.hlo takes more than 1.5 s of processor time" in rows[1]["error"]


def test_lint_goes_on_with_the_other_files(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.hlo").write_text(long_text(300_000))
    (tmp_path / "b.hlo").write_text(GOOD)
    done = cli("lint", tmp_path, "--limit-time", "1", "--format", "json")
    assert done.exit_code == 2
    assert "a.hlo takes more than 1 s" in done.stderr and "b.hlo" not in done.stderr
    assert [Path(file["file"]).name for file in json.loads(done.stdout)["files"]] == ["b.hlo"]


def test_a_gzip_bomb_is_not_unpacked(cli: Cli, tmp_path: Path) -> None:
    path = bomb(tmp_path / "bomb.hlo.gz", 256 << 20)
    assert path.stat().st_size < 2 << 20
    for command in ("show", "stats", "lint"):
        done = cli(command, path, "--limit-memory", "64MiB")
        assert done.exit_code == 2
        assert "bomb.hlo.gz takes more than 64 MiB of memory" in done.stdout + done.stderr


def test_the_largest_text_holds_without_limits(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from irscope.source import files

    path = bomb(tmp_path / "bomb.hlo.gz", 8 << 20)
    monkeypatch.setattr(files.read_bytes, "__defaults__", (4 << 20,))
    done = cli("show", path, "--limit-memory", "0")
    assert done.exit_code == 2 and "unpacks to more than 4 MiB" in done.stderr


@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_arrays_that_are_too_large_are_not_unpacked(cli: Cli, tmp_path: Path, kind: str) -> None:
    (tmp_path / "m.hlo").write_text(GOOD)
    path = tmp_path / f"w.{kind}"
    large = 256 << 20
    if kind == "safetensors":
        header = json.dumps({"x": {"dtype": "U8", "shape": [large], "data_offsets": [0, large]}}).encode()
        with open(path, "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            file.truncate(8 + len(header) + large)
    else:
        head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({large // 4},), }}".ljust(117) + "\n"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive, archive.open("x.npy", "w") as member:
            member.write(b"\x93NUMPY\x01\x00v\x00" + head.encode())
            for _ in range(large >> 20):
                member.write(bytes(1 << 20))
    done = cli("compile-and-run", tmp_path / "m.hlo", "--inputs", path, "--limit-memory", "128MiB")
    assert done.exit_code == 2
    assert "takes more than 128 MiB of memory" in done.stderr and f"w.{path.suffix[1:]}: x has 256 MiB" in done.stderr


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize("limit", ["1", "0.6"], ids=["compiled", "from the cache"])
def test_machine_code_without_end_is_ended(limit: str, cache: str, tmp_path: Path) -> None:
    (tmp_path / "forever.hlo").write_text(FOREVER)
    done = subprocess.run([sys.executable, "-m", "irscope", "compile-and-run", "forever.hlo", "--limit-time", limit], cwd=tmp_path,
                          env={"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "IRSCOPE_CACHE": cache}, capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: forever.hlo takes more than {limit} s of processor time\n   help: --limit-time")


def test_the_reference_without_end_is_ended(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "forever.hlo").write_text(FOREVER)
    done = cli("compile-and-run", tmp_path / "forever.hlo", "--engine", "reference", "--limit-time", "0.3")
    assert done.exit_code == 2 and "forever.hlo takes more than 0.3 s of processor time" in done.stderr


ENDLESS_CONSTANT = FOREVER.replace("z = s32[] parameter(0)", "z = s32[] constant(0)")
LONG_SUM = """HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
ENTRY main { c = f32[] constant(1)  b = f32[1000000,1000000] broadcast(c), dimensions={}  ROOT n = f32[] reduce(b, c), dimensions={0,1}, to_apply=add }
"""
LARGE_DOT = """HloModule m
ENTRY main { i = f32[30000,30000] iota(), iota_dimension=0
  ROOT d = f32[30000,30000] dot(i, i), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
"""


@pytest.mark.parametrize("text", [ENDLESS_CONSTANT, LONG_SUM, LARGE_DOT])
@pytest.mark.parametrize("stage", ["loops", "llvm"])
def test_what_is_costly_is_not_computed_while_compiling(cli: Cli, tmp_path: Path, text: str, stage: str) -> None:
    (tmp_path / "m.hlo").write_text(text)
    done = cli("compile-and-run", tmp_path / "m.hlo", "--emit", stage, "--limit-time", "20", "--limit-memory", "1GiB")
    assert done.exit_code == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize(("text", "said"), [
    (LONG_SUM, "%b, f32[1000000,1000000], has 3.638 TiB"), (LARGE_DOT, "%i, f32[30000,30000], has 3.353 GiB")])
def test_the_reference_refuses_arrays_by_name(cli: Cli, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "m.hlo").write_text(text)
    done = cli("compile-and-run", tmp_path / "m.hlo", "--engine", "reference", "--limit-memory", "1GiB")
    assert done.exit_code == 2 and f"takes more than 1 GiB of memory: {said}" in done.stderr


def test_memory_of_all_threads_counts_before_a_program_runs(cli: Cli, tmp_path: Path) -> None:
    """Values on the way, 64 MiB, and the packed image of each of two threads, 128 MiB: each alone is below the limit."""
    (tmp_path / "m.relay").write_text("""def @main(%x: Tensor[(8, 8, 512, 512), float32]) {
      nn.conv2d(%x, %x, padding=[1, 1, 1, 1], channels=8, kernel_size=[512, 512])
    }""")
    done = cli("compile-and-run", tmp_path / "m.relay", "--threads", "2", "--limit-memory", "250MiB")
    assert done.exit_code == 2 and "takes more than 250 MiB of memory: what m.relay computes on the way has 320" in done.stderr


@pytest.mark.parametrize("engine", ["llvm", "reference"])
def test_inputs_are_refused_by_name(cli: Cli, tmp_path: Path, engine: str) -> None:
    (tmp_path / "m.hlo").write_text(GOOD.replace("f32[2]", "f32[1000000,1000000]"))
    done = cli("compile-and-run", tmp_path / "m.hlo", "--engine", engine)
    assert done.exit_code == 2 and "of memory: x: f32[1000000,1000000] has 7.276 TiB" in done.stderr, done.stderr


@pytest.mark.parametrize("limit", ["1", "0.6"], ids=["compiled", "from the cache"])
def test_what_is_costly_ends_by_its_limit(limit: str, cache: str, tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(LONG_SUM)
    done = subprocess.run([sys.executable, "-m", "irscope", "compile-and-run", "m.hlo", "--limit-time", limit], cwd=tmp_path,
                          env={"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "IRSCOPE_CACHE": cache}, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"error: m.hlo takes more than {limit} s of processor time")


@pytest.mark.parametrize(("trips", "early"), [(10, True), (1 << 40, False)])
def test_loops_over_constants_whose_trips_are_known(cli: Cli, tmp_path: Path, trips: int, early: bool) -> None:
    (tmp_path / "m.hlo").write_text(f"""HloModule m
condition {{ p = (s64[]) parameter(0)  x = s64[] get-tuple-element(p), index=0  n = s64[] constant({trips})  ROOT t = pred[] compare(x, n), direction=LT }}
body {{ p = (s64[]) parameter(0)  x = s64[] get-tuple-element(p), index=0  o = s64[] constant(1)  y = s64[] add(x, o)  ROOT t = (s64[]) tuple(y) }}
ENTRY e {{ a = s64[] parameter(0)  z = s64[] constant(0)  i = (s64[]) tuple(z)  w = (s64[]) while(i), condition=condition, body=body
  g = s64[] get-tuple-element(w), index=0  ROOT r = s64[] add(g, a) }}
""")
    done = cli("compile-and-run", tmp_path / "m.hlo", "--emit", "loops", "--limit-time", "20")
    assert done.exit_code == 0 and ("loop while" not in done.stdout) is early, done.stdout


def test_time_holds_for_a_regular_expression(tmp_path: Path) -> None:
    """A search keeps the interpreter's lock: a thread alone could not stop it."""
    path = tmp_path / "m.hlo"
    path.write_text(GOOD.replace("y = f32", "a" * 40 + "b = f32"))
    done = subprocess.run([sys.executable, "-m", "irscope", "show", str(path), "--where", "name~/(a+a+)+$/", "--limit-time", "0.5"],
                          capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and "takes more than 0.5 s of processor time" in done.stderr
