"""No command takes a text that is not sound for a defect: each is answered with status 0, 1 or 2, and words.

``tests/data/unsound`` holds texts that once met rules, policies, passes, drawings or the compiler half-read or ill-typed, with a command each.
"""
from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from irscope.cli.errors import run
from irscope.cli.main import group

ROOT = Path(__file__).parents[2]
TEXTS = ROOT / "tests/data/unsound"
COMMANDS = dict(line.split(": ", 1) for line in (TEXTS / "commands.txt").read_text().splitlines())
SAMPLES = ("mlp.pre.hlo", "mlp.opt.hlo", "wasteful.pre.hlo", "risky.scripted.txt", "risky.traced.txt", "conv_cast_relu.relay",
           "conv_two_consumers.relay", "dense.relay", "rank_mismatch.relay")
ASKED = ("show FILE", "show FILE --format json", "show FILE --format text", "show FILE --lint", "show FILE --format dot",
         "show FILE --format dot --policy irscope", "show FILE --format dot --policy inductor", "stats FILE", "lint FILE",
         "lint FILE --max-kernels 1 --max-memory 1", "lint FILE --why-not-fused --policy xla-cpu", "lint FILE --why-not-fused --policy tvm",
         "lint FILE --why-not-fused --policy inductor", "lint FILE --why-not-fused --policy xla-gpu", "lint FILE --audit shape",
         "lint FILE --audit memory", "lint FILE --audit parallel", "lint FILE --fix", "opt FILE --passes simplify-algebra,share-equal",
         "opt FILE --passes fold-scale-axis,convert-layout", "opt FILE --passes fuse-ops", "opt FILE --to hlo", "diff FILE FILE",
         "compile-and-run FILE --emit loops")
SEEDS = range(24)


def answer(command: str, file: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit status of a command line, and all that it said."""
    status = run(group, [str(file) if word == "FILE" else word for word in command.split()], "irscope")
    said = capsys.readouterr()
    return status, said.out + said.err


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_not_sound_is_answered(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, said = answer(COMMANDS[name], TEXTS / f"{name}.txt", capsys)
    assert status in (0, 1, 2) and said.strip(), said
    assert status == 0 or "error" in said, said


def test_a_drawing_with_kernels_says_why_there_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    status, said = answer("show FILE --format dot --policy irscope", TEXTS / "graph-node-1.txt", capsys)
    assert status == 2 and "fusion policies and gates did not look at graph-node-1.txt: it has no graph that runs" in said


def test_lint_says_that_rules_did_not_look(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "ENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] frobnicate(x), a={b\n}\n"
    (tmp_path / "m.hlo").write_text(text)
    for form in ("full", "json", "concise", "github"):
        status, said = answer(f"lint FILE --format {form}", tmp_path / "m.hlo", capsys)
        assert status == 2 and "policies and gates did not look at m.hlo: the text is cut off after 4 lines" in said


def _cut(text: str, rng: random.Random) -> str:
    """A word, number or bracketed list left out, doubled, or replaced by another of the same text."""
    pieces = list(re.finditer(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}|%?[\w.:]+|\d+", text))
    one, other = rng.choice(pieces), rng.choice(pieces)
    new: Callable[[], str] = rng.choice((lambda: "", lambda: other[0], lambda: one[0] + one[0], lambda: one[0][:1] + one[0][-1:], lambda: "9"))
    return text[:one.start()] + new() + text[one.end():]


@pytest.mark.parametrize("sample", SAMPLES)
def test_no_mutated_sample_is_taken_for_a_defect(sample: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "samples" / sample).read_text()
    for seed in SEEDS:
        rng = random.Random(f"{sample} {seed}")
        mutated = text
        for _ in range(rng.randint(1, 2)):
            mutated = _cut(mutated, rng)
        file = tmp_path / f"{seed}.{'hlo' if sample.endswith('hlo') else 'txt'}"
        file.write_text(mutated)
        for command in rng.sample(ASKED, 2):
            status, said = answer(command, file, capsys)
            assert status in (0, 1, 2), f"{command}, seed {seed}:\n{mutated}\n{said}"
