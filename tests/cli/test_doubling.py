"""Texts of two kilobytes that hold a value, or call a function, 2**60 times: each distinct one is walked once, or refused at once.

Every command runs under a limit that it must not reach, so that an answer in words is an answer in time.
"""
from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.conftest import Cli

DEPTH = 60


def relay(depth: int = DEPTH) -> str:
    """A tuple of the tuple before, twice, and so on."""
    names = ["%x", *(f"%{n}" for n in range(depth))]
    return "def @main(%x: Tensor[(2), float32]) {\n" + "".join(
        f"  {made} = ({held}, {held});\n" for held, made in pairwise(names)) + f"  {names[-1]}\n}}\n"


def relay_calls(depth: int = DEPTH) -> str:
    """The same by functions without declared result types."""
    return "".join(f"def @f{n}(%x) {{\n  (%x, %x)\n}}\n" for n in range(depth)) + "def @main(%x: Tensor[(2), float32]) {\n" + "".join(
        f"  %{n} = @f{n}({f'%{n - 1}' if n else '%x'});\n" for n in range(depth)) + f"  %{depth - 1}\n}}\n"


def torchscript(depth: int = DEPTH) -> str:
    """Tuples of tuples, whose declared types do not say so."""
    return "graph(%0 : Float(2, strides=[1])):\n" + "".join(
        f"  %{n} : (Tensor, Tensor) = prim::TupleConstruct(%{n - 1}, %{n - 1})\n" for n in range(1, depth)) + f"  return (%{depth - 1})\n"


def torchscript_lists(depth: int = DEPTH) -> str:
    return torchscript(depth).replace("(Tensor, Tensor)", "Tensor[]").replace("TupleConstruct", "ListConstruct")


def hlo(depth: int = DEPTH) -> str:
    """A computation that calls the one before twice, and so on."""
    return "HloModule m\nf0 {\n p0 = f32[] parameter(0)\n ROOT c0 = f32[] negate(p0)\n}\n" + "".join(
        f"f{n} {{\n p{n} = f32[] parameter(0)\n a{n} = f32[] call(p{n}), to_apply=f{n - 1}\n ROOT c{n} = f32[] call(a{n}), to_apply=f{n - 1}\n}}\n"
        for n in range(1, depth)) + f"ENTRY main {{\n p = f32[] parameter(0)\n ROOT c = f32[] call(p), to_apply=f{depth - 1}\n}}\n"


def hlo_fusions(depth: int = DEPTH) -> str:
    return hlo(depth).replace("call(", "fusion(").replace("to_apply=", "kind=kLoop, calls=")


TEXTS = [relay, relay_calls, torchscript, torchscript_lists, hlo, hlo_fusions]
COMMANDS = [
    ("show",), ("show", "-o", "{}/o.html"), ("show", "-o", "{}/o.svg"), ("lint",), ("stats",),
    ("opt", "--passes", "fold-constants,share-equal,simplify-algebra"), ("lint", "--why-not-fused"), ("compile-and-run", "--check"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("text", TEXTS)
def test_every_command_answers_in_time(cli: Cli, tmp_path: Path, text: Callable[[], str], words: tuple[str, ...]) -> None:
    path = tmp_path / "m"
    path.write_text(text())
    done = cli(words[0], path, *(word.format(tmp_path) for word in words[1:]), "--limit-time", "20")
    assert done.exit_code in (0, 1, 2), done.stderr
    assert "processor time" not in done.stdout + done.stderr


def test_two_of_them_are_compared(cli: Cli, tmp_path: Path) -> None:
    for text in TEXTS:
        (tmp_path / "a").write_text(text())
        (tmp_path / "b").write_text(text(DEPTH - 1))
        done = cli("diff", tmp_path / "a", tmp_path / "b", "--limit-time", "20")
        assert done.exit_code in (0, 1, 2), done.stderr
        assert "processor time" not in done.stdout + done.stderr


def test_what_cannot_run_is_refused_by_name(cli: Cli, tmp_path: Path) -> None:
    for text, said in ((hlo, "inlining the calls of f16 makes more than 200,000 nodes"), (torchscript, "a value has more than 131,072 parts"),
                       (relay, "a value has more than 131,072 parts")):
        (tmp_path / "m").write_text(text())
        done = cli("compile-and-run", tmp_path / "m")
        assert done.exit_code == 2 and said in done.stderr, done.stderr


def test_the_reference_ends_by_its_limit(cli: Cli, tmp_path: Path) -> None:
    """It calls what is called, one after the other: that is what it is for."""
    for text in TEXTS:
        (tmp_path / "m").write_text(text())
        done = cli("compile-and-run", tmp_path / "m", "--engine", "reference", "--limit-time", "0.2")
        assert done.exit_code == 2, done.stderr
        assert "processor time" in done.stderr or "has more than 131,072 parts" in done.stderr


def test_what_is_small_enough_runs(cli: Cli, tmp_path: Path) -> None:
    for text in TEXTS:
        (tmp_path / "m").write_text(text(6))
        done = cli("compile-and-run", tmp_path / "m", "--check")
        assert done.exit_code == 0, done.stderr
