"""Fixes that are proven: for each candidate a program in which it works, and one in which the compiler's rewriting undoes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import irscope
from irscope.fusion import EdgeVerdict
from irscope.lint.context import Context
from irscope.lint.proven import Answer, Outcome
from irscope.lint.proven.words import answer_lines, sentence
from irscope.lint.settings import Settings
from irscope.lint.verdicts import answer
from tests.conftest import Cli

REDUCERS = """
sum { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
"""


def hlo(layout: str, body: str) -> str:
    """A module that XLA printed before its optimisation, with this layout of the entry."""
    lines = "\n".join("  " + line.strip() for line in body.strip().splitlines())
    return f"HloModule m, entry_computation_layout={{{layout}}}\n{REDUCERS}\nENTRY main {{\n{lines}\n}}\n"


M = "f32[64,64]{1,0}"
TWICE = hlo(f"({M}, {M})->({M}, {M})", """
  x = f32[64,64]{1,0} parameter(0)
  y = f32[64,64]{1,0} parameter(1)
  t = f32[64,64]{1,0} tanh(x), metadata={op_name="jit(f)/mlp/tanh" source_file="net.py" source_line=7}
  a = f32[64,64]{1,0} multiply(t, y), metadata={op_name="jit(f)/mlp/mul" source_file="net.py" source_line=8}
  s = f32[64,64]{1,0} transpose(t), dimensions={1,0}
  b = f32[64,64]{1,0} add(s, y)
  ROOT r = (f32[64,64]{1,0}, f32[64,64]{1,0}) tuple(a, b)
""")
FENCED = hlo(f"({M})->{M}", """
  x = f32[64,64]{1,0} parameter(0)
  t = f32[64,64]{1,0} negate(x)
  f = f32[64,64]{1,0} opt-barrier(t)
  ROOT a = f32[64,64]{1,0} multiply(f, x)
""")


def refused(text: str, ends: str, policy: str) -> tuple[EdgeVerdict, Answer]:
    """The verdict on an edge of a text, which is not fused, and what would have it fused."""
    module = irscope.load(text).module()
    context = Context(module, Settings(policy))
    (verdict, *_), _ = answer(context, (ends.split()[0], ends.split()[1]))
    assert verdict.fused != "all"
    assert context.costs.engine is not None
    return verdict, context.costs.engine.answer(verdict)


WORKS = [
    ("duplicate-behind-barrier", TWICE, "t a", "xla-cpu"),
    ("remove-barrier", FENCED, "t f", "xla-cpu"),
]
UNDONE = [
    ("duplicate", TWICE, "t s", "xla-cpu"),
]


@pytest.mark.parametrize("key, text, ends, policy", WORKS, ids=lambda x: x if len(x) < 40 else "")
def test_the_fix_fuses_the_edge_and_lowers_the_costs(key: str, text: str, ends: str, policy: str) -> None:
    _, found = refused(text, ends, policy)
    assert found.fix is not None and found.fix.key == key
    assert found.fix.saves.kernels > 0 or found.fix.saves.bytes > 0
    assert found.fix.before and found.fix.after and found.fix.is_whole
    assert any(line.startswith("fix: ") for line in answer_lines(found))


@pytest.mark.parametrize("key, text, ends, policy", UNDONE, ids=lambda x: x if len(x) < 40 else "")
def test_a_change_that_the_compiler_undoes_is_no_fix(key: str, text: str, ends: str, policy: str) -> None:
    _, found = refused(text, ends, policy)
    assert (key, Outcome.UNDONE) in [(attempt.key, attempt.outcome) for attempt in found.attempts]
    assert found.fix is None or found.fix.key != key


def test_the_fix_names_the_lines_of_the_program() -> None:
    _, found = refused(TWICE, "t a", "xla-cpu")
    assert "tanh %t at net.py:7" in sentence(found) and "multiply %a at net.py:8" in sentence(found)
    assert found.fix is not None and found.fix.places == ("net.py:7", "net.py:8")
    assert found.fix.gained == (("t", "s"),)


def test_the_json_has_the_fix_as_data(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "twice.hlo"
    path.write_text(TWICE)
    ran = cli("lint", path, "--why-not-fused", "t", "a", "--policy", "xla-cpu", "--format", "json", "--isolated")
    (edge,) = json.loads(ran.stdout)["files"][0]["edges"]
    assert edge["fix"]["proven"] and edge["fix"]["candidate"] == "duplicate-behind-barrier"
    assert edge["fix"]["saves"]["kernels"] == 1 and edge["counterfactual"] == edge["fix"]["text"]
