"""torch's files of weights: tensors come out as torch has them, and nothing in a file is ever run."""
from __future__ import annotations

import io
import os
import pickle
import warnings
import zipfile
from pathlib import Path
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from irscope.cli.main import group
from irscope.source import UserError
from irscope.source.arrays import read_arrays
from irscope.source.checkpoints import Checkpoint, is_checkpoint

DATA = Path(__file__).resolve().parent.parent / "data"


@pytest.mark.parametrize("name", ["state.pt", "whole.pt", "scripted.pt"])
def test_a_state_dict_a_module_and_an_archive_give_the_same_names(name: str) -> None:
    arrays = read_arrays(str(DATA / name))
    assert sorted(arrays) == ["fc.bias", "fc.weight", "norm.bias", "norm.num_batches_tracked", "norm.running_mean", "norm.running_var", "norm.weight"]
    assert arrays["fc.weight"].tolist() == (np.arange(6).reshape(2, 3) / 4).tolist()
    assert arrays["fc.bias"].tolist() == [0.5, -1.0]
    assert arrays["norm.num_batches_tracked"].dtype == np.int64


def test_views_types_and_the_names_that_training_scripts_add() -> None:
    arrays = read_arrays(str(DATA / "wrapped.pt"))
    base = np.arange(12.0).reshape(3, 4)
    assert sorted(arrays) == ["flags", "half", "none", "number", "part", "small", "turned", "whole"]
    assert arrays["turned"].tolist() == base.T.tolist()
    assert arrays["part"].tolist() == base[1:, 2:].tolist()
    assert arrays["half"].dtype.name == "bfloat16"
    assert arrays["half"].astype(np.float64).tolist() == base.tolist()
    assert arrays["small"].dtype.name == "float8_e4m3fn"
    assert arrays["small"].astype(np.float64).tolist() == base.tolist()
    assert arrays["flags"].tolist() == (base > 3).tolist()
    assert arrays["number"].item() == 7
    assert arrays["none"].shape == (0, 4)


def test_tensors_with_attributes_and_of_other_classes_are_tensors() -> None:
    arrays = read_arrays(str(DATA / "attributes.pt"))
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert sorted(arrays) == ["ids", "norm.bias", "norm.num_batches_tracked", "norm.running_mean", "norm.running_var", "norm.weight", "turned",
                              "weight"]
    assert arrays["ids"].tolist() == [list(range(8))]
    assert arrays["turned"].tolist() == base.T.tolist()
    assert arrays["weight"].tolist() == base.tolist()
    assert arrays["norm.running_var"].tolist() == [1, 1, 1]


def test_every_function_that_makes_a_tensor_is_known_or_named() -> None:
    arrays = read_arrays(str(DATA / "unusual.pt"))
    assert isinstance(arrays, Checkpoint)
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    pairs = base.view(np.complex64)
    expected: dict[str, Any] = {"numpy": base, "columns": base.T, "cpu": base.astype(np.float16), "conjugate": pairs.conj(), "negative": -pairs.imag,
                "half": base.astype(ml_dtypes.bfloat16), "wide": base.astype(np.uint16)}
    assert sorted(arrays) == sorted(expected)
    for name, array in expected.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].tolist() == array.tolist()
    assert arrays.unread == {"sparse": "torch._utils._rebuild_sparse_tensor", "nested": "torch._utils._rebuild_nested_tensor",
                             "meta": "torch._utils._rebuild_meta_tensor_no_storage"}


def test_a_module_without_parameters_has_an_empty_state_dict() -> None:
    assert read_arrays(str(DATA / "empty.pt")) == {}
    assert read_arrays(str(DATA / "empty_whole.pt")) == {}


def test_tensors_that_are_not_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("graph(%x : Float(2)):\n  return (%x)\n")
    result = CliRunner().invoke(group, ["compile-and-run", str(tmp_path / "x.txt"), "--weights", str(DATA / "unusual.pt")])
    assert result.exit_code == 0
    assert "these tensors are not read: sparse (torch._utils._rebuild_sparse_tensor), nested" in result.output


def test_the_format_before_1_6_is_told_apart() -> None:
    with pytest.raises(UserError, match=r"torch before 1\.6") as raised:
        read_arrays(str(DATA / "state_legacy.pt"))
    assert "torch.save(torch.load" in raised.value.help


def archive(path: Path, data: bytes, **members: bytes) -> str:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("w/data.pkl", data)
        for name, content in members.items():
            file.writestr(f"w/data/{name}", content)
    return str(path)


class Bad:
    """What a hostile file would run."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch ran",)


def test_nothing_in_a_file_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = archive(tmp_path / "bad.pt", pickle.dumps({"weight": Bad()}, 2))
    with pytest.raises(UserError, match="contains no tensors"):
        read_arrays(path)
    assert not (tmp_path / "ran").exists()


def tensor_pickle(size: tuple[int, ...], stride: tuple[int, ...], offset: int = 0) -> bytes:
    """A pickle as torch writes it, by hand: one tensor over storage 0."""
    class Tensor:
        def __reduce__(self) -> tuple[object, ...]:
            return rebuild, (Storage(), offset, size, stride, False, {})

    class Storage:
        pass

    def rebuild(*_: object) -> None:
        raise AssertionError("never called")
    rebuild.__module__, rebuild.__qualname__ = "torch._utils", "_rebuild_tensor_v2"

    table: Any = dict(pickle._Pickler.dispatch)

    class Writer(pickle._Pickler):
        dispatch: ClassVar[Any] = table

        def persistent_id(self, thing: object) -> object:
            return ("storage", FloatStorage, "0", "cpu", 4) if isinstance(thing, Storage) else None

        def save_global(self, thing: object, name: str | None = None) -> None:
            text = "torch\nFloatStorage\n" if thing is FloatStorage else "torch._utils\n_rebuild_tensor_v2\n"
            pickler: Any = self
            pickler.write(b"c" + text.encode())
            pickler.memoize(thing)

    table[type(rebuild)] = table[type] = Writer.save_global

    class FloatStorage:
        pass
    out = io.BytesIO()
    Writer(out, 2).dump({"w": Tensor()})
    return out.getvalue()


def test_tensors_stay_inside_their_storage(tmp_path: Path) -> None:
    content = np.arange(4, dtype=np.float32).tobytes()
    fine = archive(tmp_path / "fine.pt", tensor_pickle((2, 2), (1, 2)), **{"0": content})
    assert read_arrays(fine)["w"].tolist() == [[0, 2], [1, 3]]
    for n, (size, stride, offset) in enumerate((((5,), (1,), 0), ((2,), (1,), 3), ((2,), (-1,), 1), ((2, 2), (1000000000000, 1), 0))):
        path = archive(tmp_path / f"{n}.pt", tensor_pickle(size, stride, offset), **{"0": content})
        with pytest.raises(UserError):
            read_arrays(path)


def test_a_damaged_name_is_refused_without_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "w.pt"
    with zipfile.ZipFile(path, "w") as out, zipfile.ZipFile(DATA / "state.pt") as file:
        for name in file.namelist():
            content = file.read(name)
            out.writestr(name, content.replace(b"_rebuild_tensor_v2", b"_rebuild\\ensor_v2") if name.endswith("data.pkl") else content)
    with warnings.catch_warnings(record=True) as told, pytest.raises(UserError):
        warnings.simplefilter("always")
        read_arrays(str(path))
    assert not told


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damaged_files_are_refused_or_read(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    with zipfile.ZipFile(DATA / data.draw(st.sampled_from(["state.pt", "wrapped.pt", "whole.pt"]))) as file:
        members = {name: file.read(name) for name in file.namelist()}
    pickled = next(name for name in members if name.endswith("data.pkl"))
    text = bytearray(members[pickled])
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damaged") / "w.pt"
    with zipfile.ZipFile(path, "w") as out:
        for name, content in members.items():
            out.writestr(name, bytes(text) if name == pickled else content)
    assert is_checkpoint(str(path))
    try:
        read_arrays(str(path))
    except UserError:
        return
