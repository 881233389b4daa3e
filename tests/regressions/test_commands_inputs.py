"""Files of arrays, queries and numbers on the command line that are damaged or odd: each is a fault of the input, found in little time."""
from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import click
import numpy as np
import pytest

from irscope.cli.number_range import NumberRange
from irscope.query.language import parse
from irscope.source import UserError
from irscope.source.arrays import read_arrays

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
