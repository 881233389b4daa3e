"""What broadcasts cost that kernels write to memory."""

from __future__ import annotations

import irscope
from irscope.lint.context import Context
from irscope.lint.rule import find_rule
from irscope.lint.settings import Settings

SHARED = """HloModule m

ENTRY e {
  x = f32[64,128] parameter(0)
  s = f32[128] parameter(1)
  b = f32[64,128] broadcast(s), dimensions={1}
  a = f32[64,128] add(x, b)
  m = f32[64,128] multiply(x, b)
  ROOT r = (f32[64,128], f32[64,128], f32[64,128]) tuple(a, m, b)
}
"""


def test_a_broadcast_with_several_users_is_written_once() -> None:
    (found,) = find_rule("BRD007").found_in(Context(irscope.load(SHARED).module(), Settings("irscope")))
    assert found.message.endswith("2 elementwise operators broadcast a smaller tensor to the shape of the other operand, "
                                  "32 KiB of it written to memory")
    assert found.saves is not None and (found.saves["bytes"], found.saves["kernels"]) == (2 * 64 * 128 * 4, 1)
