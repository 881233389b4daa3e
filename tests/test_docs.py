"""What the documentation shows is what irscope does: its commands run, and print what stands below them."""
from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPO, Cli

PAGES = [REPO / "README.md", REPO / "samples" / "README.md", *sorted((REPO / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def transcripts() -> Iterator[tuple[str, str, list[str]]]:
    """(page, command, lines shown below it) of every ``$ irscope`` line about a sample."""
    for page in PAGES:
        for _, block in FENCE.findall(page.read_text(encoding="utf-8")):
            command, shown = "", list[str]()
            for line in [*block.splitlines(), "$ "]:
                if line.startswith("$ "):
                    if command.startswith("irscope ") and "samples/" in command:
                        yield page.name, command, shown
                    command, shown = line[2:].partition("  #")[0].strip(), []
                else:
                    shown.append(line)


def commands_in_tables() -> Iterator[str]:
    """Every `irscope ...` command about a sample that stands in running text."""
    for page in PAGES:
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        yield from re.findall(r"`(irscope [^`]*samples/[^`]*)`", text)


@pytest.mark.parametrize(("page", "command", "shown"), list(transcripts()), ids=lambda value: value if isinstance(value, str) else "")
def test_transcripts_are_true(page: str, command: str, shown: list[str], cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = inside(tmp_path, shlex.split(command)[1:])
    monkeypatch.chdir(REPO)
    result = cli(*words)
    assert result.exit_code in (0, 1), result.stderr
    printed = iter(line.rstrip() for line in result.output.splitlines())
    for line in shown:
        if line.strip() != "...":
            # A line that ends in dots is shown up to there.
            begins = line.endswith(" ...")
            found = any(p.startswith(line[:-3]) if begins else p == line.rstrip() for p in printed)
            assert found, f"{page} shows a line that is not printed there: {line}"


@pytest.mark.parametrize("command", sorted(set(commands_in_tables())))
def test_commands_in_the_text_run(command: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPO)
    result = cli(*inside(tmp_path, shlex.split(command)[1:]))
    assert result.exit_code in (0, 1), result.stderr


@pytest.mark.parametrize("page", ["README.md", "docs/api.md"])
def test_the_python_of_a_page_runs(page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Each page is one program; what a ``print`` is followed by in a comment is what it prints."""
    monkeypatch.chdir(REPO)
    blocks = [block for language, block in FENCE.findall((REPO / page).read_text(encoding="utf-8")) if language == "python"]
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
        printed = capsys.readouterr().out
        shown = re.findall(r"^ *print\(.*\)  # (.*)$", block, re.MULTILINE)
        assert all(line in printed for line in shown), printed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", FENCE.sub("", page.read_text(encoding="utf-8")))
    assert [link for link in links if not (page.parent / link).exists()] == []


def inside(folder: Path, words: list[str]) -> list[str]:
    """The words of a command, with what it writes (``-o FILE``) put into a folder of the test."""
    return [str(folder / word) if i and words[i - 1] == "-o" else word for i, word in enumerate(words)]


def test_the_glossary_names_files_that_exist() -> None:
    page = (REPO / "docs" / "glossary.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", page))
    assert len(named) > 20
    assert not [path for path in named if not (REPO / "irscope" / path).exists()]
