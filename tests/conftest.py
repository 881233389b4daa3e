"""What all tests share: the command line, called in this process."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

REPO = Path(__file__).resolve().parent.parent
Cli = Callable[..., Result]


@pytest.fixture
def repo() -> Path:
    """The root of the checkout."""
    return REPO


@pytest.fixture
def samples() -> Path:
    """The folder of the sample dumps."""
    return REPO / "samples"


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch) -> Cli:
    """``cli("show", path, input=...)`` runs irscope as a user would and gives exit_code, stdout and stderr."""
    from irscope.cli.main import group

    monkeypatch.setenv("IRSCOPE_TRACEBACK", "1")

    def call(*args: object, input: str | bytes | None = None, **extra: Any) -> Result:
        return CliRunner().invoke(group, [str(arg) for arg in args], input=input, **extra)

    return call
