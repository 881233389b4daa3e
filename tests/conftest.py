"""What all tests share: the command line, called in this process, and golden files."""
from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, settings

# A busy machine draws examples slowly; that says nothing about irscope.
settings.register_profile("irscope", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("irscope")

# A shell ignores Ctrl-C for what it starts in the background, and processes inherit that: tests of interrupts would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

REPO = Path(__file__).resolve().parent.parent
Cli = Callable[..., Result]


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compiled objects of the tests lie in a folder of their own, not among the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IRSCOPE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


LARGE = 16 << 20
"""Bytes of an arena that is not followed element by element: the tests would take long."""


@pytest.fixture(autouse=True, scope="session")
def verified() -> Iterator[None]:
    """Whatever a test lowers is verified: every kernel stays within its buffers, every read finds a value."""
    from irscope.lower.lowering import Lowering
    from irscope.lower.program import Program
    from irscope.lower.verify import verify_kernel, verify_program

    run = Lowering.run

    def and_verify(self: Lowering) -> Program:
        program = run(self)
        small = program.arena_bytes <= LARGE
        problems = verify_program(program) if small else [p for kernel in program.kernels() for p in verify_kernel(kernel)]
        assert problems == [], problems
        return program

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lowering, "run", and_verify)
        yield


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
    monkeypatch.setenv("COLUMNS", "120")  # whatever terminal the tests are started from
    monkeypatch.setattr("irscope.source.watchdog.ENDING", 10.0)  # collecting the objects of a whole test run may take a second
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)

    def call(*args: object, input: str | bytes | None = None, **extra: Any) -> Result:
        return CliRunner().invoke(group, [str(arg) for arg in args], input=input, **extra)

    return call


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting 22,000 tests leaves no garbage; looking for it takes a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.unfreeze()
        gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew instead of comparing with them")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden("tree.txt", text)`` holds the text to the file ``golden/tree.txt`` beside the test; ``make golden`` writes it anew."""

    def compare(name: str, text: str) -> None:
        path = request.path.parent / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"{path} is not there yet: make golden writes it"
        assert text == path.read_text(encoding="utf-8")

    return compare
