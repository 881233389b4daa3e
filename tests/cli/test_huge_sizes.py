"""Sizes whose product is nearly or beyond what irscope takes, and numbers of more digits than Python converts, in every format and command."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Cli

SIZE = (1 << 63) - 1
RANK = 4
"""Four such sizes make nearly 2**256 elements."""


def hlo(rank: int) -> str:
    array = f"f32[{','.join([str(SIZE)] * rank)}]"
    axes = ",".join(map(str, range(rank)))
    window = "x".join(["3"] * (rank - 1) + [str(SIZE)])
    return f"""HloModule huge
sum {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}}
ENTRY main {{
  p = {array} parameter(0)
  q = {array} parameter(1)
  z = f32[] constant(0)
  m = {array} multiply(p, q)
  d = f32[] dot(p, q), lhs_contracting_dims={{{axes}}}, rhs_contracting_dims={{{axes}}}
  r = f32[] reduce(m, z), dimensions={{{axes}}}, to_apply=sum
  w = f32[{','.join([str(SIZE - 2)] * (rank - 1) + ['1'])}] reduce-window(m, z), window={{size={window}}}, to_apply=sum
  ROOT t = (f32[], f32[], {array}) tuple(d, r, m)
}}
"""


def stablehlo(rank: int) -> str:
    array = f"tensor<{'x'.join([str(SIZE)] * rank)}xf32>"
    return f"""module @huge {{
  func.func public @main(%arg0: {array}) -> {array} {{
    %0 = stablehlo.negate %arg0 : {array}
    return %0 : {array}
  }}
}}
"""


COMMANDS = [
    ("show",), ("show", "--ops"), *(("show", "--format", form) for form in ("text", "json", "html", "dot")), ("lint", "--all"),
    *(("lint", "--audit", audit) for audit in ("dtype", "shape", "layout", "memory", "parallel")), ("lint", "--why-not-fused"), ("stats",),
    ("stats", "--format", "json", "--signature"), ("diff",), ("lint", "--why-not-fused", "--policy", "irscope"),
]


@pytest.mark.parametrize("text", [hlo, stablehlo])
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_counts_or_refuses_them(cli: Cli, tmp_path: Path, text: Callable[[int], str], words: tuple[str, ...]) -> None:
    path = tmp_path / "huge.txt"
    path.write_text(text(RANK))
    name, *options = words
    said = cli(name, str(path), *([str(path)] if name == "diff" else []), *options)
    assert said.exit_code in (0, 1), said.stderr
    path.write_text(text(300))
    refused = cli(name, str(path), *([str(path)] if name == "diff" else []), *options)
    assert refused.exit_code == 2 and "an array has more than 2**256 elements" in refused.stdout + refused.stderr
    if "json" in options:
        json.loads(said.stdout)


DIGITS = "9" * 5000
RELAY = '#[version = "0.0.5"]\ndef @main(%y: (Tensor[(2), float32], Tensor[(2), float32])) {{\n  {}\n}}\n'
TORCH = """graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value={0}]() # x.py:{0}:{0}
  %z : Float(2, 2) = aten::add(%x, %x, %1), scope: __module.layer{0} # x.py:{0}:{0}
  return (%z)
"""
LONG = {
    "field.relay": RELAY.format(f"%y.{DIGITS}"), "call.relay": RELAY.format(f"(%y).{DIGITS}"),
    "span.relay": RELAY.format(f"nn.relu(%y.0) /* span=x.py:{DIGITS}:{DIGITS} */"), "constant.ts": TORCH.format(DIGITS),
    "report.txt": f"BufferAssignment:\nallocation 0: size {DIGITS}, parameter 0, shape |f32[2]|:\nallocation 1: size 8, constant:\n",
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("words", [("show",), ("show", "--format", "json"), ("lint", "--all"), ("stats",)], ids=" ".join)
def test_numbers_of_thousands_of_digits(cli: Cli, tmp_path: Path, name: str, words: tuple[str, ...]) -> None:
    (tmp_path / name).write_text(LONG[name])
    command, *options = words
    said = cli(command, str(tmp_path / name), *options)
    assert said.exit_code in (0, 1, 2), said.stderr


@pytest.mark.parametrize("wanted", ["\u00b2", DIGITS])
def test_a_snapshot_whose_number_is_none(cli: Cli, tmp_path: Path, wanted: str) -> None:
    (tmp_path / "x.log").write_text("Print IR after: A\n" + RELAY.format("nn.relu(%y.0)"))
    said = cli("show", str(tmp_path / "x.log"), "--pass", wanted)
    assert said.exit_code == 2 and "there is no snapshot of the pass" in said.stderr
