"""Where types do not hold, a copy of the module has opaque nodes; where they do, the module itself is handed on."""
from __future__ import annotations

import pytest

import irscope
from irscope.analysis.soundness import Degree, Use, held_together, require, soundness, unsound
from irscope.source import UserError

SOUND = "ENTRY e {\n  x = f32[2] parameter(0)\n  ROOT s = f32[2] add(x, x)\n}\n"
LOOSE = """
body {
  p = f32[2] parameter(0)
  ROOT n = f32[2] negate(p)
}

ENTRY e {
  x = f32[2] parameter(0)
  s = f32[3] add(x, x)
  h = f32[2] multiply(x, gone)
  k = f32[2] call(x), to_apply=body
  ROOT t = f32[3] tanh(s), metadata={op_name="jit(f)/tanh"}
}
"""


def test_a_module_whose_types_hold_is_handed_on() -> None:
    module = irscope.load(SOUND).module()
    assert held_together(module) is module


def test_what_does_not_hold_is_opaque_and_all_else_stays() -> None:
    module = irscope.load(LOOSE).module()
    assert sorted(n.name for n in unsound(module)) == ["h", "s"]
    held = held_together(module)
    assert [(n.name, n.op.name) for n in held.main().nodes if not n.synthetic] == [
        ("x", "parameter"), ("s", "add?"), ("h", "multiply?"), ("k", "call"), ("t", "tanh")]
    assert unsound(module) and [n.op.name for n in module.main().nodes if n.name == "s"] == ["add"], "the text's own graph is not touched"
    tanh = held.main().result()
    assert held.scope(tanh) == "jit(f)/tanh" and tanh.loc == module.main().result().loc
    assert held.graphs["body"] in held.main().nodes[[n.name for n in held.main().nodes].index("k")].bodies


def degree(text: str, format: str | None = None) -> Degree:
    reading = irscope.load(text, format=format)
    return soundness(reading.module(), reading.ok).degree


@pytest.mark.parametrize(("text", "wanted"), [
    ("ENTRY e\n", Degree.NOTHING),
    ("ENTRY e {\n  x = f32[2] parameter(0)\n  ROOT s = f32[2] add(x\n", Degree.PARTS),
    (LOOSE.replace("  h = f32[2] multiply(x, gone)\n", ""), Degree.WHOLE),
    (SOUND, Degree.TYPED),
    ("graph(%x : Tensor):\n  %y : Tensor = aten::contiguous()\n  return (%y)\n", Degree.WHOLE),
    ("graph(%x : Tensor):\n  %y : Tensor = mine::unheard_of(%x)\n  %z : Tensor = aten::relu(%y)\n  return (%z)\n", Degree.TYPED),
    ("def @main(%x: Tensor[(2), float32], %w) {\n  subtract(%w)\n}\n", Degree.WHOLE),
    ("def @main(%x: Tensor[(2), float32], %w) {\n  my.own(%x, %w)\n}\n", Degree.TYPED),
], ids=["nothing", "parts", "whole", "typed", "torchscript whole", "torchscript typed", "relay whole", "relay typed"])
def test_the_degree_of_a_text(text: str, wanted: Degree) -> None:
    assert degree(text) is wanted


def test_each_use_has_its_degree_and_one_place_refuses() -> None:
    reading = irscope.load(LOOSE.replace("  h = f32[2] multiply(x, gone)\n", ""))
    for use in Use:
        if use.needs <= Degree.WHOLE:
            require(reading, reading.module(), use)
        else:
            with pytest.raises(UserError, match=f"{use.title} did not look at .*: its types are not sound") as refused:
                require(reading, reading.module(), use)
            assert [finding.node for finding in refused.value.findings] == ["s"]
