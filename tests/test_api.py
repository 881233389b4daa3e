"""What notebooks and scripts use."""
from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irscope
from irscope import api

TEXT = "ENTRY main {\n  x = f32[2,3] parameter(0)\n  ROOT y = f32[2,3] multiply(x, x)\n}\n"


def test_the_examples_in_the_docstrings_are_true() -> None:
    for name in sorted(set(api.LAZY.values())):
        failed, _ = doctest.testmod(import_module(name))
        assert failed == 0, name


def test_load_takes_a_path_a_text_and_bytes(tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(TEXT)
    for given in (tmp_path / "m.hlo", str(tmp_path / "m.hlo"), TEXT, TEXT.encode()):
        assert [node.name for node in irscope.load(given).module().main().nodes] == ["x", "y"]


def test_load_names_what_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(TEXT)
    assert irscope.load(tmp_path / "m.hlo").source.name == str(tmp_path / "m.hlo")
    assert irscope.load(TEXT, name="cell 3").source.name == "cell 3"


def test_compile_runs_what_load_read() -> None:
    model = irscope.compile(irscope.load(TEXT))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(model(x)[0], x * x)


def test_compile_refuses_what_cannot_be_read() -> None:
    with pytest.raises(irscope.UserError, match="no such file"):
        irscope.compile("no-such-model.hlo")


def test_numbers_of_numpy_are_arrays_without_dimensions() -> None:
    model = irscope.compile("HloModule m\nENTRY e { a = f32[] parameter(0)\nb = f32[] parameter(1)\nROOT r = f32[] subtract(a, b) }")
    three: Any = np.float32(3)
    one: Any = np.float32(1)
    plain: Any = 1.0
    assert model(three, one)[0] == 2
    with pytest.raises(ValueError, match="input 1"):
        model(three, plain)
