"""What can be wrong with what compile-and-run is asked for, beside the dump: each is told clearly, with exit status 2."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Cli

TEXT = "HloModule m\n\nENTRY main {\n  x = f32[2,3] parameter(0)\n  y = f32[2,3] parameter(1)\n  ROOT z = f32[2,3] add(x, y)\n}\n"
ONES = np.ones((2, 3), np.float32)

# (arrays of inputs.npz, or its bytes; further arguments; words of the message)
REQUESTS: dict[str, tuple[dict[str, object] | bytes, tuple[str, ...], tuple[str, ...]]] = {
    "shape": ({"arg0": np.ones((2, 4), np.float32)}, (), ("arg0", "[2,4]", "f32[2,3]")),
    "dtype": ({"arg0": ONES.astype(np.float64)}, (), ("arg0", "float64", "astype(np.float32)")),
    "integers": ({"arg0": ONES.astype(np.int32)}, (), ("arg0", "int32")),
    "too many": ({"arg0": ONES, "arg1": ONES, "arg2": ONES}, (), ("arg2",)),
    "near name": ({"yy": ONES}, (), ("yy", "did you mean y?")),
    "objects": ({"arg0": np.array([{}], dtype=object)}, (), ("Python objects",)),
    "no npz": (b"hello", (), ("not a file of arrays", "np.savez")),
    "empty npz": (b"", (), ("not a file of arrays", "np.savez")),
    "cut npz": (b"PK\x03\x04cut", (), ("damaged", "np.savez")),
    "unknown shape": ({}, ("--shape", "w=2,3"), ("no input 'w'", "x, y")),
    "shape that does not fit": ({}, ("--shape", "x=4,3"), ("z", "shape")),
    "processor": ({}, ("--cpu", "znver33"), ("znver33", "did you mean znver3?")),
    "target": ({}, ("--emit", "asm", "--target", "nonsense"), ("no target nonsense", "aarch64-linux-gnu")),
    "binary to a terminal": ({}, ("--emit", "obj"), ("binary", "-o FILE")),
    "no name of a library": ({}, ("--emit", "so", "-o", ""), ("'' is no name of a file",)),
    "no such folder": ({}, ("--emit", "loops", "-o", "/no/such/folder/x"), ("/no/such/folder/x", "cannot be written")),
    **{f"{option} without a name": ({}, (option, ""), ("no such file",)) for option in ("--expect", "--expect-from", "--constants")},
    "--save-outputs without a name": ({}, ("--save-outputs", ""), ("cannot be written",)),
    "a NUL in the name of outputs": ({}, ("--save-outputs", "a\0b"), ("is not a file name",)),
    "a NUL in the name of weights": ({}, ("--weights", "a\0b"), ("there is no such file",)),
    "outputs to no such folder": ({}, ("--save-outputs", "/no/such/folder/x.npz"), ("/no/such/folder/x.npz", "cannot be written")),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_bad_requests_end_with_2_and_words(name: str, cli: Cli, tmp_path: Path) -> None:
    arrays, further, words = REQUESTS[name]
    model, inputs = tmp_path / "m.hlo", tmp_path / "inputs.npz"
    model.write_text(TEXT)
    if isinstance(arrays, bytes):
        inputs.write_bytes(arrays)
    else:
        np.savez(inputs, **arrays)  # type: ignore[arg-type]
    result = cli("compile-and-run", model, "--inputs", inputs, *further)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr, result.stderr


def test_a_missing_inputs_file_is_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(TEXT)
    result = cli("compile-and-run", tmp_path / "m.hlo", "--inputs", tmp_path / "none.npz")
    assert result.exit_code == 2
    assert "none.npz: there is no such file" in result.stderr


@pytest.mark.parametrize(("expected", "status", "words"), [
    ({"out0": 2 * ONES}, 0, "agrees"),
    ({"out0": ONES}, 1, "6 of 6 values differ"),
    ({"out0": np.ones((3, 2), np.float32)}, 2, "[3,2]"),
    ({"foo": ONES}, 2, "none of out0"),
])
def test_expectations_that_fail_are_1_and_those_that_fit_nothing_are_2(
        expected: dict[str, np.ndarray], status: int, words: str, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(TEXT)
    np.savez(tmp_path / "inputs.npz", arg0=ONES, arg1=ONES)
    np.savez(tmp_path / "expected.npz", **expected)  # type: ignore[arg-type]
    result = cli("compile-and-run", tmp_path / "m.hlo", "--inputs", tmp_path / "inputs.npz", "--expect", tmp_path / "expected.npz")
    assert result.exit_code == status
    assert words in result.output


def test_outputs_may_go_to_a_device(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(TEXT)
    assert cli("compile-and-run", tmp_path / "m.hlo", "--save-outputs", "/dev/null").exit_code == 0
