"""scan: the loop that it stands for, on single values as one kernel, on arrays as a while."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.expand import expand
from irscope.ops import TypeFault
from tests.ops.running import check, read, reference, typed

TWO = """step { x1 = f32[] parameter(0)
  x2 = f32[] parameter(1)
  c1 = f32[] parameter(2)
  c2 = f32[] parameter(3)
  s = f32[] add(x1, c1)
  p = f32[] multiply(x2, c2)
  ROOT t = (f32[], f32[], f32[], f32[]) tuple(s, p, s, p) }
"""


@pytest.mark.parametrize("reverse", [False, True])
def test_single_values(reverse: bool) -> None:
    x, y = np.arange(1, 5, dtype=np.float32), np.array([1, 2, 3, 4], np.float32)
    results = check(f"{TWO}ENTRY e {{ x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n a = f32[] constant(10)\n b = f32[] constant(1)\n "
                    f"ROOT r = (f32[4], f32[4], f32[], f32[]) scan(x, y, a, b), dimensions={{0}}, num_carries=2, "
                    f"is_reverse={str(reverse).lower()}, to_apply=step }}", x, y)
    turn = slice(None, None, -1 if reverse else 1)
    sums, products = 10 + np.cumsum(x[turn])[turn], np.cumprod(y[turn])[turn]
    end = 0 if reverse else -1
    for got, want in zip(results, (sums, products, sums[end], products[end]), strict=True):
        assert np.array_equal(got, want)


ROWS = """sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
step { x = f32[2] parameter(0)
  c = f32[2,2] parameter(1)
  w = f32[2,2] broadcast(x), dimensions={1}
  n = f32[2,2] add(w, c)
  z = f32[] constant(0)
  o = f32[2] reduce(n, z), dimensions={0}, to_apply=sum
  ROOT t = (f32[2], f32[2,2]) tuple(o, n) }
"""


@pytest.mark.parametrize(("rows", "counter"), [((1 << 31) - 1, "s32"), (1 << 31, "s64")])
def test_the_counter_of_a_loop_holds_any_length(rows: int, counter: str) -> None:
    loop = expand(typed(read(f"HloModule m\n{ROWS}ENTRY e {{ x = f32[{rows},2] parameter(0)\n i = f32[2,2] parameter(1)\n "
                             f"ROOT r = (f32[{rows},2], f32[2,2]) scan(x, i), dimensions={{0}}, num_carries=1, is_reverse=true, to_apply=step }}")))
    typed(loop)
    whole, = (node for node in loop.main().nodes if node.op.name == "while")
    assert str(whole.operands[0].operands[0].type) == f"{counter}[]"


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("d", [0, 1])
def test_arrays_become_a_loop(reverse: bool, d: int) -> None:
    x = np.random.default_rng(0).normal(size=(3, 2) if d == 0 else (2, 3)).astype(np.float32)
    shape = "3,2" if d == 0 else "2,3"
    module = typed(read(f"HloModule m\n{ROWS}ENTRY e {{ x = f32[{shape}] parameter(0)\n i = f32[2,2] constant({{ {{0, 1}}, {{2, 3}} }})\n "
                        f"ROOT r = (f32[{shape}], f32[2,2]) scan(x, i), dimensions={{{d}}}, num_carries=1, is_reverse={str(reverse).lower()}, "
                        f"to_apply=step }}"))
    loop = expand(module)
    assert "while" in {n.op.name for n in loop.main().nodes} and not any(n.op.name == "scan" for g in loop.graphs.values() for n in g.nodes)
    typed(loop)
    carry = np.array([[0, 1], [2, 3]], np.float32)
    want = np.zeros_like(x)
    for i in (range(3), reversed(range(3)))[reverse]:
        carry = carry + np.take(x, i, d)
        want[(slice(None),) * d + (i,)] = carry.sum(0)
    for results in (reference(module, x), reference(loop, x)):
        assert np.allclose(results[0], want, rtol=1e-6) and np.allclose(results[1], carry, rtol=1e-6)


def test_no_output_but_the_carry() -> None:
    found, = check("step { x = f32[] parameter(0)\n c = f32[] parameter(1)\n ROOT r = f32[] maximum(x, c) }\nENTRY e { x = f32[3] parameter(0)\n "
                   "i = f32[] constant(0)\n ROOT r = f32[] scan(x, i), dimensions={0}, num_carries=1, to_apply=step }", np.array([-1, 5, 2], np.float32))
    assert found == 5


@pytest.mark.parametrize(("step", "carries", "words"), [
    ("s = f32[] add(x, c)\n ROOT r = (f32[], f32[]) tuple(s, s)", 2, "at least one operand"),
    ("s = s32[] convert(c)\n ROOT r = (f32[], s32[]) tuple(x, s)", 1, "carry 0"),
])
def test_what_does_not_fit_is_said(step: str, carries: int, words: str) -> None:
    with pytest.raises(TypeFault) as fault:
        typed(read(f"step {{ x = f32[] parameter(0)\n c = f32[] parameter(1)\n {step} }}\nENTRY e {{ x = f32[3] parameter(0)\n i = f32[] constant(0)\n "
                   f"ROOT r = (f32[3], f32[]) scan(x, i), dimensions={{0}}, num_carries={carries}, to_apply=step }}"))
    assert words in fault.value.message
