"""How the rule about implicit broadcasts looks at what is broadcast."""

from __future__ import annotations

import pytest

import irscope
from irscope.graph import Node
from irscope.lint.context import Context
from irscope.lint.rules import implicit_broadcast

STEPS = 200


def test_a_chain_of_broadcast_values_is_followed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step of a chain is broadcast; following the chain from each step takes quadratic time."""
    lines = ["x = f32[4,8] parameter(0)", "v0 = f32[8] parameter(1)"]
    for n in range(STEPS):
        value = f"a{n - 1}" if n else "x"
        lines += [f"v{n + 1} = f32[8] tanh(v{n})", f"b{n} = f32[4,8] broadcast(v{n + 1}), dimensions={{1}}",
                  f"a{n} = f32[4,8] add({value}, b{n})"]
    text = "\n".join(f"  {line}" for line in lines)
    module = irscope.load(f"HloModule m\n\nENTRY e {{\n{text}\n  ROOT r = f32[4,8] negate(a{STEPS - 1})\n}}\n").module()
    looked: list[Node] = []
    is_number = implicit_broadcast._is_number

    def counted(node: Node) -> bool:
        looked.append(node)
        return is_number(node)

    monkeypatch.setattr(implicit_broadcast, "_is_number", counted)
    (found,) = implicit_broadcast.ImplicitBroadcast.found_in(Context(module))
    assert found.message.startswith(f"{STEPS} elementwise operators broadcast")
    assert len(looked) < 3 * STEPS
