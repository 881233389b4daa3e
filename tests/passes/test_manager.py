"""Passes run in order, are told step by step, and are held to types and numbers."""
from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

import irscope
from irscope.cli.main import group
from irscope.graph import Module
from irscope.passes.base import Pass
from irscope.passes.manager import run_passes
from irscope.passes.own import load_passes
from irscope.source import UserError

TEXT = """HloModule m
ENTRY e {
  p = f32[4,8] parameter(0)
  t = f32[8,4] transpose(p), dimensions={1,0}
  b = f32[4,8] transpose(t), dimensions={1,0}
  x = f32[4,8] exponential(b)
  y = f32[4,8] exponential(b)
  d = f32[4,8] negate(x)
  ROOT r = f32[4,8] add(x, y)
}
"""
OWN = '''
from irscope.graph import Module
from irscope.ops import get
from irscope.passes.base import Pass, rewritten

class ExpToTanh(Pass):
    """Wrong on purpose."""
    name = "exp-to-tanh"

    def run(self, module: Module) -> Module:
        return rewritten(module, lambda b, n, o: b.add(get("tanh"), o) if n.op.name == "exponential" else None)
'''


class WrongType(Pass):
    """Gives the root a type that its operator does not have."""

    name = "wrong-type"

    def run(self, module: Module) -> Module:
        from irscope.graph import rewrite_module, tensor
        made = rewrite_module(module, lambda b, n, o: None)
        made.main().result().type = tensor("f32", 3)
        return made


def invoke(*args: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(group, ["opt", *args])
    return done.exit_code, done.stdout, done.stderr


def test_steps_tell_what_each_pass_left() -> None:
    module = irscope.load(TEXT).module()
    steps = list(run_passes(module, ["share-equal", "simplify-algebra", "remove-dead"]))
    assert [s.name for s in steps] == ["share-equal", "simplify-algebra", "remove-dead"]
    assert steps[0].nodes[0] == 7
    assert all(s.after is t.before for s, t in pairwise(steps))
    assert not any(s.broke for s in steps)
    assert steps[-1].nodes[1] < 7


def test_a_pass_that_breaks_types_is_told() -> None:
    step = next(iter(run_passes(irscope.load(TEXT).module(), [WrongType()])))
    assert step.broke
    assert "f32[3]" in step.broke[0].message


def test_an_unknown_pass_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError) as error:
        list(run_passes(irscope.load(TEXT).module(), ["share-equl"]))
    assert "share-equal" in error.value.help


def test_the_command_prints_in_the_format_it_read_and_verifies(tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    status, out, err = invoke(str(path), "--passes", "share-equal,simplify-algebra,remove-dead", "--verify", "--timing", "--print-before", "remove-dead")
    assert status == 0, err
    assert irscope.load(out).ok
    assert "transpose" not in out
    assert out.count("exponential(") == 1
    assert "verify: mean squared error 0" in err
    assert "Print IR before: remove-dead" in err


def test_a_wrong_pass_of_the_users_own_is_caught_by_numbers(tmp_path: Path) -> None:
    path, own = tmp_path / "m.hlo", tmp_path / "own.py"
    path.write_text(TEXT)
    own.write_text(OWN)
    assert list(load_passes(str(own))) == ["exp-to-tanh"]
    status, out, err = invoke(str(path), "--passes", "exp-to-tanh", "--load", str(own), "--verify")
    assert status == 1
    assert "tanh(" in out
    assert "NOT the same" in err


@pytest.mark.parametrize(("text", "words"), [("x = 1\n", "defines no pass"), ("raise ValueError('no')\n", "fails when it is imported")])
def test_files_without_passes(tmp_path: Path, text: str, words: str) -> None:
    own = tmp_path / "own.py"
    own.write_text(text)
    with pytest.raises(UserError, match=words):
        load_passes(str(own))
    with pytest.raises(UserError, match="no such file"):
        load_passes(str(tmp_path / "missing.py"))
