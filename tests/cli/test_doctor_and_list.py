"""What irscope says of the machine and of itself."""
from __future__ import annotations

import json

import pytest

from irscope.formats import FORMATS
from irscope.version import __version__
from tests.conftest import Cli


def test_doctor_tells_versions_processor_and_drawing(cli: Cli) -> None:
    result = cli("doctor")
    assert result.exit_code == 0
    for word in (__version__, "llvmlite", "cores", "dot", "cache", "encoding"):
        assert word in result.stdout


def test_doctor_json_has_the_same_facts(cli: Cli) -> None:
    facts = json.loads(cli("doctor", "--format", "json").stdout)
    assert facts["irscope"]["version"] == __version__
    assert set(facts) == {"irscope", "packages", "processor", "drawing", "cache", "terminal"}


def test_doctor_objects_to_a_missing_package(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irscope.api.environment.NEEDED", ("numpy", "a-package-that-nobody-has"))
    result = cli("doctor")
    assert result.exit_code == 1
    assert "missing (pip install a-package-that-nobody-has)" in result.stdout


def test_doctor_survives_a_broken_llvm(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise OSError("libllvmlite.so: cannot open shared object file")

    monkeypatch.setattr("irscope.backends.llvm_compile.host", broken)
    result = cli("doctor")
    assert result.exit_code == 0
    assert "unusable: libllvmlite.so" in result.stdout


def test_list_formats_names_all_and_says_which_are_read(cli: Cli) -> None:
    rows = json.loads(cli("list", "formats", "--format", "json").stdout)
    assert [row["name"] for row in rows] == list(FORMATS)
    assert {row["reads"] for row in rows} == {"yes"} and all(row["title"] for row in rows)


@pytest.mark.parametrize(("kind", "known"), [("ops", "dot"), ("rules", "DTY"), ("policies", "irscope"), ("formats", "hlo"), ("targets", "aarch64-"), ("passes", "share-equal")])
def test_list_knows(kind: str, known: str, cli: Cli) -> None:
    result = cli("list", kind)
    assert result.exit_code == 0
    assert any(line.startswith(known) for line in result.stdout.splitlines())


def test_list_of_an_unknown_kind_is_a_usage_error(cli: Cli) -> None:
    assert cli("list", "cheeses").exit_code == 2
