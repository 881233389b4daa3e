"""Every command that reads a dump answers bad input with one clear message, exit status 2, and no traceback."""
from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from click.testing import Result

from tests.conftest import Cli

# Command lines that read the file FILE.
READERS = [
    "show FILE", "stats FILE", "lint FILE", "lint FILE --why-not-fused", "compile-and-run FILE", "compile-and-run FILE --engine reference",
    "opt FILE --passes share-equal", "diff FILE FILE",
]

GOOD = "HloModule m\n\nENTRY main {\n  x = f32[2,3] parameter(0)\n  ROOT y = f32[2,3] negate(x)\n}\n"

# name: (content, words of the message)
BAD: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "empty.hlo": (b"", ("is empty",)),
    "blank.hlo": (b"\n \n", ("only blanks",)),
    "model.pt": (b"PK\x03\x04 cut", ("damaged zip",)),
    "model.onnx": (b"\x08\x08\x12\x07pytorch\x1a\x062.13.0:\x80\x01\n\x0fB\x04Gemm", ("ONNX",)),
    "noise.hlo": (bytes(range(256)), ("binary",)),
    "letter.txt": (b"Dear all,\nplease find the dump attached.\n", ("Dear all",)),
    "stable.mlir": (b"module @jit_f {\n  %0 = linalg.add %a, %b : tensor<2xf32>\n}", ("MLIR", "StableHLO")),
    "cut.hlo.gz": (gzip.compress(GOOD.encode() * 50)[:40], ("cut off",)),
    "truncated.hlo": (GOOD[:70].encode(), ("truncated.hlo", "5:16")),
    "undefined.hlo": (GOOD.replace("negate(x)", "negate(z)").encode(), ("undefined.hlo", "5:28", "z")),
    "dtype.hlo": (GOOD.replace("x = f32", "x = f33").encode(), ("dtype.hlo", "4:7", "f33")),
}
# What the reader cannot make a whole graph of, but shows and lints as far as it goes.
PARTLY = ("truncated.hlo", "undefined.hlo", "dtype.hlo")


def run(cli: Cli, command: str, file: object, input: str | None = None) -> Result:
    """Run a command line with FILE replaced."""
    return cli(*(str(file) if word == "FILE" else word for word in command.split()), input=input)


@pytest.fixture
def bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the bad files, which is also where irscope is started: a table has no room for long paths."""
    monkeypatch.chdir(tmp_path)
    for name, (content, _) in BAD.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("command", READERS)
def test_bad_files_end_with_2_and_words(command: str, name: str, bad: Path, cli: Cli) -> None:
    assert (bad / name).exists()
    result = run(cli, command, name)
    assert "Traceback" not in result.stderr
    if name in PARTLY and command.startswith(("show", "lint")):
        assert result.exit_code in (0, 1, 2)
    else:
        assert result.exit_code == 2, result.output
    said = result.stderr + result.stdout
    for word in BAD[name][1]:
        assert word in said, said


@pytest.mark.parametrize("command", READERS)
def test_a_missing_file_is_named_and_the_near_one_offered(command: str, bad: Path, cli: Cli) -> None:
    (bad / "model.hlo").write_text(GOOD)
    result = run(cli, command, "modle.hlo")
    assert result.exit_code == 2
    assert "no such file" in result.stderr + result.stdout


@pytest.mark.parametrize("command", READERS)
def test_standard_input_and_gzip_are_read(command: str, tmp_path: Path, cli: Cli) -> None:
    if command.count("FILE") == 1:
        assert run(cli, command, "-", GOOD).exit_code == 0
    path = tmp_path / "m.txt"
    path.write_bytes(gzip.compress(GOOD.encode()))
    assert run(cli, command, path).exit_code == 0
