"""Files of arrays, queries and numbers on the command line that are damaged or odd: each is a fault of the input, found in little time."""
from __future__ import annotations

import os
import struct
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import irscope
from irscope.api.options import RunOptions, ShowOptions, StatsOptions
from irscope.cli.errors import run
from irscope.cli.main import group
from irscope.cli.number_range import NumberRange
from irscope.fleet.out_of_memory import OutOfMemory, PeakBuffer
from irscope.fleet.peak_buffers import peak_buffers
from irscope.fusion.xla.gpu_device import device_named
from irscope.lint.baseline import write_baseline
from irscope.lint.config import read_config
from irscope.lint.machine import machine_named
from irscope.lint.session import Options, Session
from irscope.passes import pass_named
from irscope.query.language import parse
from irscope.source import UserError
from irscope.source.arrays import read_arrays
from irscope.source.writing import writing
from tests.effort import calls_in

FLOATS = "{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}"


def npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def npz(path: Path, member: bytes, compression: int = zipfile.ZIP_STORED, name: str = "x") -> str:
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr(f"{name}.npy", member)
    return str(path)


@pytest.mark.parametrize("member", [npy(FLOATS.replace("4,", f"{10**30},")), npy("{[]: 1}"), b"no array"])
def test_an_npz_with_a_member_that_is_no_array(tmp_path: Path, member: bytes) -> None:
    with pytest.raises(UserError, match="damaged|not an array"):
        read_arrays(npz(tmp_path / "a.npz", member))["x"]


def test_an_npz_whose_dtypes_are_no_array(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="dtypes is not an array"):
        read_arrays(npz(tmp_path / "a.npz", b"text", name="dtypes"))


def test_an_npz_with_damaged_lzma(tmp_path: Path) -> None:
    pytest.importorskip("lzma")
    path = tmp_path / "a.npz"
    npz(path, npy(FLOATS, bytes(16)), zipfile.ZIP_LZMA)
    data = bytearray(path.read_bytes())
    data[50:70] = bytes(20)
    path.write_bytes(data)
    with pytest.raises(UserError, match="damaged"):
        read_arrays(str(path))["x"]


def text(word: str) -> bytes:
    return b"X" + struct.pack("<I", len(word)) + word.encode()


def checkpoint(path: Path, pickle: bytes) -> str:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/data.pkl", b"\x80\x02" + pickle + b".")
        archive.writestr("m/data/0", np.arange(4, dtype=np.float32).tobytes())
    return str(path)


NESTED = b"K\x01" + b"2\x86" * 60
RECORDS = (b"}" + text("x") + b"ctorch._utils\n_rebuild_xla_tensor\n(cnumpy.core.multiarray\n_reconstruct\n)R(K\x01K\x04\x85cnumpy\ndtype\n"
           + text("(2,,)f4") + b"\x85R(K\x03" + text("<") + b"tb\x89" + text("x") + b"tbctorch\nfloat32\ntRs")


@pytest.mark.parametrize("pickle", [
    b"}q\x00" + text("model") + b"h\x00s",  # a dict that contains itself
    b"}" + NESTED + b"K\x01s",  # Python hashes the parts of a nested tuple each time
    NESTED + b"K\x01\x86Rd" + b"}(" + NESTED + b"K\x01d",
    text("storage") + NESTED + b"\x86Q",
    text("a") + b"2\x93" * 60,  # names that double
    b"c_codecs\nencode\n" + text("x") + text("nope") + b"\x86R",
    text("k" * 5000) + b"q\x000" + b"}h\x00" * 4000 + b"K\x01" + b"s" * 4000,  # paths of many megabytes
    RECORDS,
], ids=["itself", "key", "dict", "reference", "name", "encoding", "path", "records"])
def test_a_checkpoint_that_torch_did_not_write(tmp_path: Path, pickle: bytes) -> None:
    with pytest.raises(UserError, match="pickle|no tensors"):
        read_arrays(checkpoint(tmp_path / "a.pt", pickle))


def test_a_tensor_that_repeats_its_storage_takes_no_memory(tmp_path: Path) -> None:
    storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + b"K\x04tQ"
    size = b"J" + struct.pack("<i", 1 << 28) + b"\x85"
    found = read_arrays(checkpoint(tmp_path / "a.pt", b"}" + text("x") + b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x01" + size +
                                   b"K\x00\x85\x89}tRs"))["x"]
    assert found.shape == (1 << 28,) and found.strides == (0,) and found[-1] == 1


@pytest.mark.parametrize("pattern", ["a{99999999999}", "(" * 5000 + "a" + ")" * 5000])
def test_a_query_with_a_pattern_that_python_does_not_compile(pattern: str) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        parse(f'op~"{pattern}"')


def test_nan_is_no_number_of_a_range() -> None:
    with pytest.raises(click.BadParameter, match="not a number"):
        NumberRange(0).convert("nan", None, None)
    assert NumberRange(0).convert("inf", None, None) == float("inf")


def pattern_file(path: str) -> object:
    return pass_named(f"merge-composite{{file={path}}}")


@pytest.mark.skipif(sys.platform != "linux", reason="devices of Linux")
@pytest.mark.parametrize("read", [device_named, read_config, machine_named, pattern_file, lambda path: Session(Options(baseline=path))])
@pytest.mark.parametrize(("target", "why"), [("/proc/self/mem", "cannot be read: Input/output error"), ("/dev/zero", "is larger than 1 MiB")])
def test_a_device_in_place_of_a_small_text(read: Callable[[str], object], target: str, why: str, tmp_path: Path,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irscope.source.files.MAX_TEXT", 1 << 20)
    monkeypatch.setattr("os.path.isfile", os.path.exists)
    path = tmp_path / "x.toml"
    path.symlink_to(target)
    with pytest.raises(UserError, match=why):
        read(str(path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of Unix")
def test_a_baseline_may_come_through_a_pipe(tmp_path: Path) -> None:
    write_baseline(str(tmp_path / "b.json"), [])
    content = (tmp_path / "b.json").read_bytes()
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,), daemon=True)
    writer.start()
    assert Session(Options(baseline=str(tmp_path / "pipe"))).accepted == 0
    writer.join()


def test_a_dash_is_not_the_name_of_a_file_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="not written to standard output"), writing("-"):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("make", "name"), [
    (lambda: RunOptions(rtol=float("nan")), "rtol is nan"), (lambda: RunOptions(atol=-1.0), "atol is -1"), (lambda: RunOptions(threads=0), "threads"),
    (lambda: RunOptions(engine="numpy"), "engine is 'numpy'"), (lambda: RunOptions(bench_seconds=0), "bench_seconds is 0"),
    (lambda: ShowOptions(through=("tuple",)), "through is 'tuple'"), (lambda: StatsOptions(jobs=0), "jobs is 0"),
    (lambda: RunOptions(partitions=1025), "partitions is 1025"), (lambda: RunOptions(shapes={"x": (2, -1)}), "the shape of x is"),
    (lambda: RunOptions(dtypes={"x": "float"}), "the element type of x is 'float'"),
])
def test_options_in_python_have_the_ranges_of_the_command_line(make: Callable[[], object], name: str) -> None:
    with pytest.raises(UserError, match=name):
        make()


@pytest.mark.parametrize("environment", [{}, {"COMP_WORDS": "irscope"}, {"COMP_WORDS": "irscope", "COMP_CWORD": "-1"}, {"COMP_WORDS": "irscope", "COMP_CWORD": "\u00b2"}])
def test_a_completion_without_the_words_of_a_shell(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in {"_IRSCOPE_COMPLETE": "bash_complete", **environment}.items():
        monkeypatch.setenv(name, value)
    assert run(group, [], "irscope") == 2
    assert "COMP_WORDS" in capsys.readouterr().err


NEGATE = "HloModule m\nENTRY main { x = f32[4] parameter(0)\n ROOT n = f32[4] negate(x) }\n"


@pytest.mark.parametrize(("settings", "fault"), [
    ('previous = "before.hlo"', "takes other inputs"), ('shapes = {x = [-1]}', "the shape of x is"), ('shapes = {x = [1.5]}', "the shape of x"),
    ('shapes = {x = [true]}', "the shape of x"),
])
def test_a_model_of_the_settings_that_does_not_fit(settings: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "a.hlo").write_text(NEGATE)
    (tmp_path / "before.hlo").write_text(NEGATE.replace("f32", "s32"))
    previous = "" if "previous" in settings else 'previous = "a.hlo"\n'
    (tmp_path / "irscope.toml").write_text(f'[[check.model]]\npath = "a.hlo"\n{previous}{settings}\n')
    found = irscope.check(tmp_path).report.findings()
    assert [finding.code for finding in found] == ["CHK002"] and fault in found[0].message


def test_a_header_does_not_replace_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="is the name of the library's header"):
        irscope.write_library(NEGATE, "obj", "./model.h")


def test_integers_are_verified_exactly() -> None:
    text = "ENTRY main {{ x = s64[2] parameter(0)\n c = s64[2] constant({{1152921504606846976, {}}})\n ROOT r = s64[2] maximum(x, c) }}"
    assert irscope.verify(text.format(20), text.format(20)).same
    assert irscope.verify(text.format(20), text.format(21)).fault == "1 of 2 integers of result 0 differ"
    assert irscope.verify(text.format(20), text.format(21), rtol=1e-3).same
    for odd in ({"seed": -1}, {"rtol": float("nan")}):
        with pytest.raises(UserError, match="seed is"):
            irscope.verify(text, text, **odd)


def test_the_buffers_of_an_error_are_each_looked_up() -> None:
    def find(count: int) -> int:
        nodes = "".join(f" a{i} = f32[8] negate(p)\n" for i in range(count))
        module = irscope.load(f"HloModule m\nENTRY main {{ p = f32[8] parameter(0)\n{nodes} ROOT t = f32[8] add(a0, a1)\n}}\n").module()
        error = OutOfMemory(buffers=tuple(PeakBuffer(4096, "f32[8]", op_name=f"f/x{i}") for i in range(count)))
        return calls_in(peak_buffers, module, error)
    assert find(400) < 5 * find(100)


@pytest.mark.parametrize(("names", "note"), [
    (["out0"], "e.npz does not hold out1: not compared"), (["out0", "out1", "out2", "x"], "e.npz holds out2, which the program does not give"),
])
def test_outputs_that_are_not_compared_are_named(names: list[str], note: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = NEGATE.replace("ROOT n", "n").replace("}", " ROOT t = (f32[4], f32[4]) tuple(n, n) }")
    (tmp_path / "a.hlo").write_text(text)
    expected: dict[str, Any] = {name: np.full(4, -1, np.float32) for name in names}
    np.savez(tmp_path / "e.npz", **expected)
    np.savez(tmp_path / "x.npz", x=np.ones(4, np.float32))
    for _ in range(2):  # compiled, and from the cache
        args = ["compile-and-run", str(tmp_path / "a.hlo"), "--inputs", str(tmp_path / "x.npz"), "--expect", str(tmp_path / "e.npz")]
        assert run(group, args, "irscope") == 0
        assert note in capsys.readouterr().err


@pytest.mark.parametrize("cpu", ["nope", "i386", "x\0"])
def test_a_processor_that_llvm_does_not_know_is_refused_in_python(cpu: str) -> None:
    with pytest.raises(UserError, match="LLVM makes no code for this machine under the name"):
        irscope.compile(NEGATE, cpu=cpu)


def test_a_library_has_the_name_of_a_file() -> None:
    with pytest.raises(UserError, match="is no name of a file"):
        irscope.write_library(NEGATE, "obj", "a\0.o")
