"""The options that every reading command shares, and loading through them."""
from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from irscope.api.loading import whole
from irscope.api.options import InputOptions
from irscope.api.paths import once_stdin
from irscope.cli.options import options
from irscope.formats.hlo.dialect import HLO
from irscope.graph import Module, Reading
from irscope.source import Finding, Severity, SourceText, UserError
from tests.conftest import Cli


@click.command()
@options(asked=InputOptions)
def bound(asked: InputOptions) -> None:
    """Prints what the options were read as."""
    click.echo(f"{asked.shapes} {asked.dtypes}")


def test_shapes_and_dtypes_are_bound_by_name() -> None:
    result = CliRunner().invoke(bound, ["--shape", "x=8,3,224", "--shape", "s=", "--dtype", "x=bf16"])
    assert result.output == "{'x': (8, 3, 224), 's': ()} {'x': 'bf16'}\n"


@pytest.mark.parametrize(("args", "words"), [
    (["--shape", "x"], "'x' is not NAME=DIM"),
    (["--shape", "x=2,-1"], "'x=2,-1' is not NAME=DIM"),
    (["--shape", "x=2,three"], "'x=2,three' is not NAME=DIM"),
    (["--dtype", "x"], "'x' is not NAME=DTYPE"),
    (["--dtype", "x=bf61"], "did you mean bf16?"),
])
def test_odd_bindings_are_usage_errors(args: list[str], words: str) -> None:
    result = CliRunner().invoke(bound, args)
    assert result.exit_code == 2
    assert words in result.output


def test_standard_input_can_be_given_once() -> None:
    assert once_stdin(("-", "a")) == ("-", "a")
    with pytest.raises(UserError, match="once"):
        once_stdin(("-", "a", "-"))


def test_a_reading_with_errors_is_told_in_full() -> None:
    source = SourceText("m.hlo", "x")
    warning = Finding("HLO050", "odd", Severity.WARNING, "odd", source, 0)
    errors = [Finding("HLO001", "bad", Severity.ERROR, f"bad {i}", source, 0) for i in range(2)]
    with pytest.raises(UserError, match="m.hlo: 2 errors in the text") as caught:
        whole(Reading(source, "hlo", [Module("m", HLO)], [warning, *errors], ok=False))
    assert caught.value.findings == tuple(errors)


def test_a_reading_without_a_module_is_an_error() -> None:
    with pytest.raises(UserError, match="no module"):
        whole(Reading(SourceText("m.hlo", "x"), "hlo"))


def test_a_whole_reading_passes() -> None:
    whole(Reading(SourceText("m.hlo", "x"), "hlo", [Module("m", HLO)]))


def test_the_package_offers_load_lazily(tmp_path: Path) -> None:
    import irscope

    assert "load" in dir(irscope)
    with pytest.raises(irscope.UserError, match="no such file"):
        irscope.load(tmp_path / "none.hlo")
    with pytest.raises(AttributeError, match="no attribute 'lood'"):
        irscope.lood  # noqa: B018


def test_of_several_modules_the_first_is_taken_and_the_others_told(tmp_path: Path, cli: Cli) -> None:
    one = "HloModule m\n\nENTRY e {\n  ROOT x = f32[2] parameter(0)\n}\n\n"
    (tmp_path / "two.hlo").write_text(one + one)
    (tmp_path / "one.hlo").write_text(one)
    note = f"note: {tmp_path}/two.hlo holds 2 modules; the first, m (line 3), is taken, and not m (line 9)\n"
    for args in (["diff", f"{tmp_path}/two.hlo", f"{tmp_path}/one.hlo"], ["opt", f"{tmp_path}/two.hlo", "--passes", "remove-dead"],
                 ["compile-and-run", f"{tmp_path}/two.hlo", "--engine", "reference"]):
        assert note in cli(*args).stderr
    assert "note" not in cli("diff", tmp_path / "one.hlo", tmp_path / "one.hlo").stderr
