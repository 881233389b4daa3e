"""``stats`` over 400 dumps with ten poisonous ones between them: each file is reported once, and no innocent one loses its figures, even
when processes are killed from outside."""
from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[2] / "samples"
LIMITS = ("--limit-time", "2.5", "--limit-memory", "1500M")
"""Of processor time and memory for each file; the samples take a hundredth of both."""


def doubled_calls(depth: int) -> str:
    """HLO whose computations each call the one before twice."""
    calls = "".join(f"c{n} {{\n  p = f32[] parameter(0)\n  a = f32[] call(p), to_apply=c{n - 1}\n  ROOT b = f32[] call(a), to_apply=c{n - 1}\n}}\n"
                    for n in range(1, depth))
    return (f"HloModule m\nc0 {{\n  p = f32[] parameter(0)\n  ROOT n = f32[] negate(p)\n}}\n{calls}"
            f"ENTRY e {{\n  x = f32[] parameter(0)\n  ROOT y = f32[] call(x), to_apply=c{depth - 1}\n}}\n")


def doubled_tuples(depth: int) -> str:
    """Relay whose tuples each hold the one before twice."""
    lets = "".join(f"  let %t{n} = (%t{n - 1}, %t{n - 1});\n" for n in range(1, depth))
    return f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) {{\n  let %t0 = (%x, %x);\n{lets}  %t{depth - 1}\n}}\n'


def long_text(count: int) -> str:
    """HLO that takes longer to read than the limit."""
    lines = "".join(f"  x{n} = f32[2] negate(x{n - 1})\n" for n in range(1, count))
    return f"HloModule long\nENTRY e {{\n  x0 = f32[2] parameter(0)\n{lines}  ROOT y = f32[2] negate(x{count - 1})\n}}\n"


POISON: dict[str, Callable[[], bytes]] = {
    "calls.hlo": lambda: doubled_calls(60).encode(),
    "tuples.relay": lambda: doubled_tuples(60).encode(),
    "long.hlo": lambda: long_text(1_500_000).encode(),
    "bomb.hlo.gz": lambda: gzip.compress(b"HloModule m\n") + gzip.compress(b" " * (32 << 20), 1) * 128,
    "brackets.hlo": lambda: b"HloModule m\nENTRY e {\n  x = " + b"(" * 200_000 + b"f32[2]" + b")" * 200_000 + b" parameter(0)\n}\n",
    "digits.hlo": lambda: b"HloModule m\nENTRY e {\n  ROOT x = f32[" + b"9" * 200_000 + b"] parameter(0)\n}\n",
    "huge.hlo": lambda: b"HloModule m\nENTRY e {\n  ROOT x = f32[4294967296,4294967296,4294967296] parameter(0)\n}\n",
    "cut.hlo": lambda: b"HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] ne",
    "zeros.hlo": lambda: b"\0" * (1 << 20),
    "noise.relay": lambda: bytes(range(256)) * 4096,
}
"""What ends by a limit, is refused, or is read in part; ``huge.hlo`` alone is a good text, of an array that no machine holds."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("dumps")
    texts = [(file.name, file.read_text()) for file in sorted(SAMPLES.glob("*.hlo"))]
    for number in range(400):
        name, text = texts[number % len(texts)]
        (path / f"{number:03}.{name}").write_text(text)
    for number, (name, made) in enumerate(POISON.items()):
        (path / f"{number * 40 + 17:03}.poison.{name}").write_bytes(made())
    yield path


def rows_of(folder: Path, kills: int) -> list[dict[str, object]]:
    """The rows of ``stats``, of whose workers so many are killed, a third of a second apart."""
    command = [sys.executable, "-m", "irscope", "stats", str(folder), "--format", "jsonl", "--jobs", "3", *LIMITS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        ended = threading.Event()

        def kill() -> None:
            for _ in range(kills):
                if ended.wait(0.3):
                    return
                for victim in workers_of(process.pid)[:1]:
                    os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        stdout, stderr = process.communicate()
        ended.set()
        killer.join()
    assert process.returncode == 2, stderr
    return [json.loads(line) for line in stdout.splitlines()]


def workers_of(process: int) -> list[int]:
    """The processes that a process started by its fork server, the youngest first."""
    children = _children()
    return sorted((worker for server in children.get(process, ()) for worker in children.get(server, ())), reverse=True)


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        found.setdefault(parent, []).append(int(status.parent.name))
    return found


@pytest.fixture(scope="module")
def undisturbed(folder: Path) -> list[dict[str, object]]:
    return rows_of(folder, kills=0)


def test_each_file_is_reported_once(folder: Path, undisturbed: list[dict[str, object]]) -> None:
    assert [row["file"] for row in undisturbed] == sorted(str(file) for file in folder.iterdir())


def test_poison_is_named_and_costs_no_other_file(undisturbed: list[dict[str, object]]) -> None:
    failed = {str(row["file"]).rsplit("poison.", 1)[-1]: row["error"] for row in undisturbed if not row["ok"]}
    assert set(failed) <= set(POISON) and {"long.hlo", "bomb.hlo.gz", "brackets.hlo", "digits.hlo", "cut.hlo", "zeros.hlo", "noise.relay"} <= set(failed)
    assert "takes more than 2.5 s of processor time" in str(failed["long.hlo"])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the workers in /proc")
def test_killed_workers_cost_no_file(folder: Path, undisturbed: list[dict[str, object]]) -> None:
    """Poison that takes seconds to read may lose three workers, and is then reported for that instead."""
    rows = rows_of(folder, kills=8)
    assert [(row["file"], row["ok"]) for row in rows] == [(row["file"], row["ok"]) for row in undisturbed]
    assert [row for row in rows if "poison" not in str(row["file"])] == [row for row in undisturbed if "poison" not in str(row["file"])]
