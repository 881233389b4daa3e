"""docs/formats/torch-operators.md lists every operator of torch that irscope knows; ``make golden`` writes it anew."""
from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from irscope.formats.torchscript.operators import names, overloads

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "formats" / "torch-operators.md"
CORE = ROOT / "tests" / "data" / "export" / "core_operators.txt"
"""The operators of aten that torch 2.13 tags as core, to which run_decompositions reduces a program (torch.Tag.core)."""
HEAD = """# Operators of torch
The operators that irscope reads, types, runs and compiles in exported programs, FX graphs and TorchScript.
`make golden` writes this page from their declarations in `irscope/formats/torchscript/operators/`, a file a row. In-place operators (`add_`)
are those of their names without the underscore. Operators that draw random numbers have types and are not run. Higher-order operators are in
[export.md](export.md); an operator that is not listed is opaque: shown and compared, not run.

"""


def families() -> dict[str, list[str]]:
    """The names of operators by the file that declares them."""
    found: dict[str, list[str]] = {}
    for name in names():
        declared = overloads(name)
        assert declared is not None
        found.setdefault(declared.choices[0].function.__module__, []).append(name.removeprefix("aten::"))
    return found


NUMBERS = ("_local_scalar_dense",)
"""Operators that make a number of Python, which running a program takes care of itself."""


def unknown_core() -> list[str]:
    return [name for name in CORE.read_text().split() if overloads(f"aten::{name}") is None and name not in NUMBERS]


def page() -> Iterator[str]:
    core = CORE.read_text().split()
    rows = sorted(families().items())
    yield HEAD
    yield f"{sum(len(listed) for _, listed in rows):,} operators, and {len(core) - len(unknown_core())} of the {len(core)} operators that torch 2.13 tags as core.\n\n"
    yield "| family | number | operators |\n|---|---|---|\n"
    for module, listed in rows:
        doc = (import_module(module).__doc__ or "").partition("\n")[0].partition(":")[0].rstrip(".")
        yield f"| {doc} (`{module.rpartition('.')[2]}.py`) | {len(listed)} | {' '.join(f'`{name}`' for name in listed)} |\n"


def test_the_page_lists_what_is_declared(request: pytest.FixtureRequest) -> None:
    text = "".join(page())
    if request.config.getoption("--update-golden"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text, "make golden writes it anew; then read the difference"


def test_every_core_operator_is_known() -> None:
    """Those to which run_decompositions reduces every program."""
    assert unknown_core() == []
