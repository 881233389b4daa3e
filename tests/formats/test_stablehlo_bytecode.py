"""MLIR bytecode and serialised Exported objects: recognised, read through a Python that has jaxlib, refused in words where there is none."""
from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from irscope import load
from irscope.formats.detect import detect_bytes
from irscope.formats.stablehlo.bytecode import bridge
from irscope.formats.stablehlo.bytecode.container import sniff_bytes, unpacked
from irscope.source import UserError
from tests.formats.stablehlo_texts import DATA, PLAIN

EXPORTED = (DATA / "scaled.jaxexport").read_bytes()
"""``jax.export.export(...).serialize()`` of jax 0.10.2."""
BEGIN = EXPORTED.index(b"ML\xefR")
StandIn = Callable[[str], None]
RAW = b"ML\xefR\x0dMLIR24.0.0git\0 and the rest"


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Makes an executable with a body of Python stand for the Python that has jaxlib."""
    def make(body: str) -> None:
        script = tmp_path / "python"
        script.write_text(f"#!{sys.executable}\nimport os, sys, time\n{body}\n")
        script.chmod(0o755)
        monkeypatch.setenv(bridge.PYTHON, str(script))
    return make


@pytest.fixture
def no_jaxlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(bridge.PYTHON, raising=False)
    monkeypatch.setattr(bridge, "find_spec", lambda name: None)


def test_bytecode_is_recognised() -> None:
    assert detect_bytes(RAW) == detect_bytes(EXPORTED) == detect_bytes(EXPORTED[BEGIN:]) == "stablehlo"
    assert sniff_bytes(b"\0" * 64) == sniff_bytes(b"") == sniff_bytes(bytes(range(256))) == 0


def test_the_bytecode_of_an_exported_object_is_found() -> None:
    found = unpacked(EXPORTED)
    assert found is not None and found.is_exported
    assert found.data.startswith(b"ML\xefR\x0dStableHLO_v1") and len(found.data) < len(EXPORTED) - BEGIN
    assert found.kind == f"a serialised jax.export.Exported, which holds StableHLO {found.version} as MLIR bytecode"
    raw = unpacked(RAW)
    assert raw is not None and raw.data == RAW and raw.kind == "MLIR bytecode of MLIR24.0.0git"


@pytest.mark.parametrize("at", range(0, BEGIN, 4))
def test_a_damaged_table_is_never_read_outside_of_the_file(at: int) -> None:
    for word in (b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f", b"\0\0\0\x80"):
        damaged = EXPORTED[:at] + word + EXPORTED[at + 4:]
        sniff_bytes(damaged)
        found = unpacked(damaged)
        assert found is None or found.data.startswith(b"ML\xefR")


def test_a_cut_off_exported_object_is_named() -> None:
    with pytest.raises(UserError, match=r"serialised jax\.export\.Exported, but its MLIR bytecode is damaged or cut off"):
        load(EXPORTED[:BEGIN + 40], name="f.jaxexport")


@pytest.mark.usefixtures("no_jaxlib")
@pytest.mark.parametrize("data", [RAW, EXPORTED], ids=["raw", "exported"])
def test_without_jaxlib_the_line_that_installs_it_is_given(data: bytes) -> None:
    with pytest.raises(UserError, match=r"f\.mlirbc is MLIR bytecode: reading it takes jaxlib, which is not installed") as caught:
        load(data, name="f.mlirbc")
    assert "pip install 'irscope[jax]'" in caught.value.help and "IRSCOPE_JAX_PYTHON" in caught.value.help


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script with a first line that names its interpreter")
class TestBridge:
    def test_the_text_of_jaxlib_is_read(self, stand_in: StandIn) -> None:
        stand_in(f"assert sys.stdin.buffer.read() == {RAW!r}\nassert sys.argv[1].endswith('print_text.py')\nprint({PLAIN!r})")
        reading = load(RAW, name="f.mlirbc")
        assert reading.ok and reading.format == "stablehlo" and reading.source.name == "f.mlirbc"
        assert [node.op.name for node in reading.module().main().nodes[-2:]] == ["add", "multiply"]

    def test_what_jaxlib_refuses_has_its_reason_and_the_version(self, stand_in: StandIn) -> None:
        stand_in("print('loc(\"-\":0:0): error: attempting to parse 9 bytes when only 5 remain\\nmore', file=sys.stderr)\nsys.exit(1)")
        with pytest.raises(UserError, match="does not read: attempting to parse 9 bytes when only 5 remain$"):
            load(RAW, name="f.mlirbc")
        with pytest.raises(UserError) as caught:
            load(EXPORTED, name="f.jaxexport")
        assert "it is StableHLO 1." in caught.value.help

    def test_a_crash_is_a_message(self, stand_in: StandIn) -> None:
        stand_in("os.abort()")
        with pytest.raises(UserError, match=r"does not read: jaxlib crashed on it \(status -6\)"):
            load(RAW, name="f.mlirbc")

    def test_a_child_that_never_ends_is_ended(self, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bridge, "SECONDS", 0.1)
        stand_in("time.sleep(1000)")
        with pytest.raises(UserError, match="does not read: jaxlib took too long"):
            load(RAW, name="f.mlirbc")

    def test_a_python_without_jaxlib_and_one_that_does_not_exist_are_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(bridge.PYTHON, sys.executable)
        if find_spec("jaxlib") is None:
            with pytest.raises(UserError, match="reading it takes jaxlib, which .* does not have"):
                load(RAW, name="f.mlirbc")
        monkeypatch.setenv(bridge.PYTHON, "/no/such/python")
        with pytest.raises(UserError, match="/no/such/python, which is to read f.mlirbc, does not run"):
            load(RAW, name="f.mlirbc")


@pytest.mark.oracle
def test_jaxlib_reads_an_exported_object(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(bridge.PYTHON, os.environ.get("PEERS_PYTHON", sys.executable))
    reading = load(EXPORTED)
    assert reading.ok and not reading.findings
    assert [node.op.name for node in reading.module().main().nodes if node.op.name not in ("parameter", "constant")] == ["dot", "tanh", "reduce"]
    with pytest.raises(UserError, match="which jaxlib does not read"):
        load(EXPORTED[BEGIN:BEGIN + 200])
