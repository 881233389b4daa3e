"""Where types do not hold, a copy of the module has opaque nodes; where they do, the module itself is handed on."""
from __future__ import annotations

import irscope
from irscope.analysis.soundness import held_together, unsound

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
