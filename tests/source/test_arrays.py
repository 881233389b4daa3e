"""Files of arrays: nothing is unpacked that nobody asks for, and what is damaged or hostile is refused in words."""
from __future__ import annotations

import json
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irscope.source import UserError
from irscope.source.arrays import Joined, read_arrays, write_arrays


def npz(path: Path, **arrays: Any) -> str:
    np.savez_compressed(path, **arrays)
    return str(path)


def test_members_are_unpacked_when_they_are_asked_for(tmp_path: Path) -> None:
    """A member that would not unpack does no harm until somebody wants it."""
    path = npz(tmp_path / "x.npz", x=np.arange(3.0), large=np.zeros(100_000))
    with zipfile.ZipFile(path) as archive:
        place = archive.getinfo("large.npy").header_offset
    data = bytearray(Path(path).read_bytes())
    data[place + 80:place + 120] = b"\xff" * 40
    Path(path).write_bytes(data)
    arrays = read_arrays(path)
    assert list(arrays) == ["x", "large"] and "large" in arrays and len(arrays) == 2
    assert arrays["x"].tolist() == [0, 1, 2]
    with pytest.raises(UserError, match=r"is not an \.npz, or a damaged one"):
        arrays["large"]
    with pytest.raises(KeyError):
        arrays["absent"]


def test_of_equal_names_the_first_counts(tmp_path: Path) -> None:
    first, second = read_arrays(npz(tmp_path / "a.npz", x=1)), read_arrays(npz(tmp_path / "b.npz", x=2, y=3))
    joined = Joined([first, second])
    assert sorted(joined) == ["x", "y"] and int(joined["x"]) == 1 and int(joined["y"]) == 3


def test_element_types_of_unsigned_views(tmp_path: Path) -> None:
    path = npz(tmp_path / "x.npz", x=np.array([0x3F80], np.uint16), dtypes=json.dumps({"x": "bfloat16"}))
    assert list(read_arrays(path)) == ["x"] and float(read_arrays(path)["x"][0]) == 1.0


@pytest.mark.parametrize("word", ["__name__", "finfo", "__builtins__"])
def test_an_element_type_is_a_type_of_numbers(tmp_path: Path, word: str) -> None:
    path = npz(tmp_path / "x.npz", x=np.zeros(2, np.uint16), dtypes=json.dumps({"x": word}))
    with pytest.raises(UserError, match=f"x is said to be {word}, which ml_dtypes does not have"):
        read_arrays(path)["x"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="is a pipe"):
        read_arrays(str(tmp_path / "pipe"))


def with_bits(path: str, name: str, offset: int, value: int) -> str:
    """The archive with two bytes of a member's two headers changed: the local one, and the one of the directory at the end."""
    data = bytearray(Path(path).read_bytes())
    with zipfile.ZipFile(path) as archive:
        place = archive.getinfo(name).header_offset
    data[place + offset:place + offset + 2] = struct.pack("<H", value)
    central = data.rindex(b"PK\x01\x02")
    data[central + offset + 2:central + offset + 4] = struct.pack("<H", value)
    Path(path).write_bytes(data)
    return path


@pytest.mark.parametrize(("offset", "value"), [(6, 1), (8, 99)], ids=["encrypted", "unknown compression"])
def test_members_that_cannot_be_unpacked_are_refused(tmp_path: Path, offset: int, value: int) -> None:
    path = with_bits(npz(tmp_path / "x.npz", x=np.arange(3)), "x.npy", offset, value)
    with pytest.raises(UserError, match="cannot be unpacked"):
        read_arrays(path)["x"]


def safetensors(path: Path, header: bytes, data: bytes = b"") -> str:
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    return str(path)


@pytest.mark.parametrize("entry", [
    {"dtype": "F32", "shape": [-1], "data_offsets": [0, 8]},
    {"dtype": "F32", "shape": [2], "data_offsets": [0, 800]},
    {"dtype": "F32", "shape": [2], "data_offsets": [-8, 8]},
    {"dtype": "F32", "shape": [2.0], "data_offsets": [0, 8]},
    {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]},
    {"dtype": "F33", "shape": [2], "data_offsets": [0, 8]},
    {"dtype": "F32", "shape": 2, "data_offsets": [0, 8]},
    {"dtype": "F32", "shape": [True, 2], "data_offsets": [0, 8]},
    [], None,
])
def test_false_headers_of_safetensors_are_refused(tmp_path: Path, entry: Any) -> None:
    path = safetensors(tmp_path / "x.safetensors", json.dumps({"w": entry}).encode(), bytes(8))
    with pytest.raises(UserError, match=r"is not a \.safetensors file, or a damaged one"):
        read_arrays(path)


def test_a_header_nested_without_end_is_refused(tmp_path: Path) -> None:
    path = safetensors(tmp_path / "x.safetensors", b'{"w":' + b"[" * 100_000 + b"]" * 100_000 + b"}", bytes(8))
    with pytest.raises(UserError, match=r"is not a \.safetensors file"):
        read_arrays(path)


def test_outputs_are_whole_and_no_inputs(tmp_path: Path) -> None:
    path = str(tmp_path / "x.npz")
    write_arrays(path, {"out0": np.arange(3)})
    assert read_arrays(path)["out0"].tolist() == [0, 1, 2]
    with pytest.raises(UserError, match="is an input; it is not overwritten"):
        write_arrays(path, {"out0": np.arange(4)}, [path])
    assert read_arrays(path)["out0"].tolist() == [0, 1, 2]
