"""What notebooks and scripts use."""
from __future__ import annotations

import doctest
import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irscope
from irscope import api
from irscope.analysis.neighbourhood import THROUGH
from irscope.api.options import option_fields
from tests.conftest import REPO

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


def test_packages_that_share_a_name_with_a_function_can_be_called() -> None:
    import irscope.diff.compare
    import irscope.lint.rule

    assert [node.name for node in irscope.load(TEXT).module().main().nodes] == ["x", "y"]
    assert irscope.lint(TEXT, irscope.LintOptions(isolated=True)).findings == []
    assert irscope.diff(TEXT, TEXT).same
    assert inspect.ismodule(irscope.lint.rule)  # type: ignore[attr-defined]


def test_every_public_name_is_there_and_documented() -> None:
    assert sorted(api.LAZY) == sorted(api.__all__)
    for name in irscope.__all__:
        value = getattr(irscope, name)
        assert name == "__version__" or value.__doc__, name
        assert name in api.LAZY or name in ("__version__", "UserError", "BudgetExceeded", "limits"), name


def test_public_functions_show_an_example() -> None:
    functions = [value for name in api.LAZY if inspect.isfunction(value := getattr(api, name))]
    assert len(functions) > 15
    page = (REPO / "docs" / "api.md").read_text()
    for function in functions:
        doc = function.__doc__ or ""
        assert ">>> " in doc or function.__name__ in ("scalar_loops", "explain_all"), function.__name__
        assert len(inspect.signature(function).parameters) <= 6, function.__name__
    assert all(f"`{name}(" in page for name in irscope.__all__ if inspect.isfunction(getattr(irscope, name)) and name != "limits")


def test_options_are_frozen_and_say_what_they_do() -> None:
    for record in (irscope.LintOptions, irscope.OptOptions, irscope.ShowOptions, irscope.RunOptions, irscope.DiffOptions):
        assert all(told.help for told in option_fields(record).values())
        with pytest.raises(AttributeError):
            record().source_format = "hlo"  # type: ignore[misc]


def test_lint_takes_dumps_paths_and_folders(tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(TEXT)
    options = irscope.LintOptions(isolated=True)
    result = irscope.lint([tmp_path, TEXT, irscope.load(TEXT, name="cell 3")], options)
    assert [file.file for file in result.report.files] == [str(tmp_path / "m.hlo"), "<text>", "cell 3"]
    assert set(result.as_json()) == {"version", "files"} and not result.fails and result.readable


def test_lint_of_several_names_those_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "junk.txt").write_text("hello world\n")
    result = irscope.lint([tmp_path / "junk.txt", TEXT], irscope.LintOptions(isolated=True))
    assert list(result.errors) == [str(tmp_path / "junk.txt")] and not result.readable


def test_run_takes_arrays_and_files(tmp_path: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.savez(tmp_path / "x.npz", x=x)
    by_file = irscope.run(TEXT, irscope.RunOptions(inputs=(str(tmp_path / "x.npz"),), threads=1, bench=True, runs=2))
    by_array = irscope.run(TEXT, irscope.RunOptions(engine="reference"), inputs={"x": x})
    assert np.array_equal(by_file.outputs[0], by_array.outputs[0]) and np.array_equal(by_array.outputs[0], x * x)
    assert by_file.ok and len(by_file.samples_us) == 2 and by_file.median_us > 0 and by_array.drawn == []


def test_a_watcher_hears_notes_and_stages() -> None:
    class NoteLogger(irscope.Watcher):
        def __init__(self) -> None:
            self.notes: list[str] = []

        def note(self, text: str) -> None:
            self.notes.append(text)

    logger = NoteLogger()
    irscope.run(TEXT, irscope.RunOptions(engine="reference"), inputs={"odd": np.ones(3, np.float32)}, watch=logger)
    assert logger.notes == ["not inputs of the graph, and ignored: odd"]


def test_verify_allows_what_narrow_types_round() -> None:
    """A difference that f16 rounds twice is up to two steps of f16 away, 2e-3 of the largest value."""
    text = ("HloModule m\nENTRY e {{ p = {0}[64] parameter(0)\n q = {0}[64] parameter(1)\n a = {0}[64] add(p, q)\n"
            " ROOT r = {0}[64] subtract({1}) }}\n")
    one, two = text.format("f16", "a, q"), text.format("f16", "a, q").replace("subtract(a, q)", "copy(p)")
    narrow = irscope.verify(one, two)
    assert narrow.same and 1e-4 < narrow.largest < narrow.rtol == 5e-3
    assert not irscope.verify(one, two, rtol=1e-4).same
    assert irscope.verify(one.replace("f16", "f32"), two.replace("f16", "f32")).rtol == 1e-4


def test_verify_compares_the_numbers_of_two_dumps() -> None:
    assert irscope.verify(TEXT, TEXT).same
    other = irscope.verify(TEXT, TEXT.replace("multiply", "add"))
    assert not other.same and other.largest > 0 and "NOT the same" in str(other)
    with pytest.raises(irscope.UserError, match="%x is f32"):
        irscope.verify(TEXT, TEXT.replace("2,3", "3,2"))


def test_show_draws_and_writes() -> None:
    assert irscope.show(TEXT, irscope.ShowOptions(view=irscope.View.SVG)).draw().startswith(b"<")
    assert "multiply" in str(irscope.show(TEXT))
    with pytest.raises(irscope.UserError, match="frames kernels in a drawing"):
        irscope.show(TEXT, irscope.ShowOptions(policy="xla-cpu"))


def test_emit_refuses_an_unknown_stage() -> None:
    with pytest.raises(irscope.UserError, match="there is no stage"):
        irscope.emit(TEXT, "fortran")


def test_a_neighbourhood_goes_through_what_the_option_offers() -> None:
    """The options list the words themselves: importing the analysis would slow each start down."""
    assert option_fields(api.ShowOptions)["through"].choices == THROUGH
