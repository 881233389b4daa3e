"""Which values are known before the program runs, and which of them are cheap enough to compute then."""
from __future__ import annotations

import pytest

import irscope
from irscope.analysis.constant import MOST_EARLY, computed_early, known_early

LOOP = """HloModule m
cond {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(COUNT)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(STEP)
  j = s32[] add(i, one)
  v = f32[8] get-tuple-element(p), index=1
  w = f32[8] multiply(v, v)
  ROOT t = (s32[], f32[8]) tuple(j, w)
}
ENTRY e {
  zero = s32[] constant(0)
  v = f32[8] constant({1, 2, 3, 4, 5, 6, 7, 8})
  t = (s32[], f32[8]) tuple(zero, v)
  ROOT w = (s32[], f32[8]) while(t), condition=cond, body=body
}
"""


def early(text: str) -> dict[str, tuple[bool, bool]]:
    """Of each instruction of the entry, whether it is known early and whether it is computed early."""
    module = irscope.load(text, format="hlo").module()
    graph = module.main()
    return {n.name: (k, c) for n, k, c in zip(graph.nodes, known_early(graph), computed_early(module, graph), strict=True)}


@pytest.mark.parametrize(("count", "step", "cheap"), [
    ("10", "1", True),
    (str(MOST_EARLY >> 16), "1", True),  # about 30 operations a trip
    ("2000000000", "1", False),  # the same, 2e9 times
    ("10", "0", False),  # never ends
], ids=["short", "longer", "too long", "endless"])
def test_a_loop_is_computed_early_by_all_its_trips(count: str, step: str, cheap: bool) -> None:
    found = early(LOOP.replace("COUNT", count).replace("STEP", step))
    assert found["t"] == (True, True) and found["w"] == (True, cheap)


CALLED = """HloModule m
f {
  p = f32[1024,1024] parameter(0)
  ROOT d = f32[1024,1024] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
g {
  p = f32[1024,1024] parameter(0)
  a = f32[1024,1024] call(p), to_apply=f
  b = f32[1024,1024] call(a), to_apply=f
  ROOT c = f32[1024,1024] call(b), to_apply=f
}
sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  i = f32[1024,1024] iota(), iota_dimension=0
  zero = f32[] constant(0)
  total = f32[] reduce(i, zero), dimensions={0,1}, to_apply=sum
  once = f32[1024,1024] call(i), to_apply=f
  thrice = f32[1024,1024] call(i), to_apply=g
  fifteen = f32[1024,1024] call(i), to_apply=h
  ROOT after = f32[1024,1024] negate(fifteen)
}
"""


def test_calls_count_what_they_call_and_what_follows_a_dear_value_is_left_to_the_run() -> None:
    # A product of two squares of 1,024 is 2 ** 31 operations: three of them are within 2 ** 33, fifteen are not.
    calls = "\n".join(f"  c{n} = f32[1024,1024] call({'p' if n == 0 else f'c{n - 1}'}), to_apply=g" for n in range(5))
    text = CALLED.replace("ENTRY", f"h {{\n  p = f32[1024,1024] parameter(0)\n{calls}\n  ROOT c = f32[1024,1024] copy(c4)\n}}\nENTRY")
    found = early(text)
    assert {name for name, (known, _) in found.items() if not known} == set()
    assert {name for name, (_, cheap) in found.items() if not cheap} == {"fifteen", "after"}


def test_only_pure_operators_of_constants_are_known() -> None:
    found = early("""HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  c = f32[8] constant({1, 2, 3, 4, 5, 6, 7, 8})
  gone = f32[8] constant({...})
  a = f32[8] add(c, c)
  b = f32[8] add(a, x)
  d = f32[8] add(a, gone)
  zero = f32[] constant(0)
  r = f32[8] rng(zero, zero), distribution=rng_uniform
  ROOT t = (f32[8], f32[8], f32[8], f32[8]) tuple(a, b, d, r)
}
""")
    assert {name for name, (known, _) in found.items() if known} == {"c", "a", "zero"}
    assert {name for name, (_, cheap) in found.items() if cheap} == {"c", "a", "zero"}
