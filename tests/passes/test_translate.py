"""The pass translate against jaxlib: identities, constants, movement and what nothing uses, function by function."""
from __future__ import annotations

from pathlib import Path

import pytest

from irscope.api import load
from irscope.passes.translate import Translate
from tests.canonical_text import canonical

DATA = Path(__file__).parent.parent / "data" / "jaxlib_translations.txt"
ROWS = {row[0]: row[1:] for row in (line.split(" | ") for line in DATA.read_text().splitlines() if not line.startswith("//"))}


def function(params: str, lines: str, result: str) -> str:
    """A function whose last operation is named ``%r``."""
    given = ", ".join(f"%{name}: {type}" for name, type in (param.split(":") for param in params.split()))
    body = "".join(f"  {line}\n" for line in lines.split(" ;; "))
    return f"func.func @main({given}) -> {result} {{\n{body}  return %r : {result}\n}}\n"


@pytest.mark.parametrize("name", ROWS)
def test_a_function_is_translated_as_by_jaxlib(name: str) -> None:
    params, lines, result, form = ROWS[name]
    reading = load(function(params, lines, result))
    assert reading.ok, [finding.message for finding in reading.findings]
    assert canonical(Translate().run(reading.module())) == form


CALLS = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = func.call @used(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %b = func.call @unused(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %a : tensor<2xf32>
}
func.func private @used(%x: tensor<2xf32>) -> tensor<2xf32> {
  %r = stablehlo.negate %x : tensor<2xf32>
  return %r : tensor<2xf32>
}
func.func private @unused(%x: tensor<2xf32>) -> tensor<2xf32> {
  %r = stablehlo.abs %x : tensor<2xf32>
  return %r : tensor<2xf32>
}
"""


def test_calls_stay_though_nothing_uses_their_results() -> None:
    made = Translate().run(load(CALLS).module())
    assert [node.op.name for node in made.main().nodes] == ["parameter", "call", "call"]
    assert [node.index for node in made.main().nodes] == [0, 1, 2]


def test_modules_that_no_compiler_translates_stay() -> None:
    module = load("HloModule m\nENTRY e {\n x = f32[2] parameter(0)\n ROOT n = f32[2] reshape(x)\n}\n").module()
    assert Translate().run(module) is module
