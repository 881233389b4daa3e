"""The code of small programs of every kind, as text: the chosen template and schedule, memory, loops, and what each loop does.

Lines that differ in numbers alone, as an unrolled loop has them, are shown by the first ones, how often they occur, and the last ones.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from irscope.api import load
from irscope.expand import bind_inputs, expand
from irscope.lower.lowering import lower
from irscope.lower.options import Options
from irscope.lower.printer import print_program
from irscope.lower.schedule import AVX2, AVX512
from tests.lower.running import drawn, entry
from tests.lower.test_templates_attention import attention
from tests.lower.test_templates_contraction import product
from tests.lower.test_templates_interpreted import CASES
from tests.lower.whole import ADD, MAX, module_of

Golden = Callable[[str, str], None]

MORE: dict[str, tuple[str, tuple[int, ...]]] = {
    "map": (entry("""
      x = f32[5,40] parameter(0)
      b = f32[40] parameter(1)
      w = f32[5,40] broadcast(b), dimensions={1}
      s = f32[5,40] add(x, w)
      ROOT t = f32[5,40] tanh(s)"""), ()),
    "map over a view": (entry("""
      x = f32[40,6] parameter(0)
      t = f32[6,40] transpose(x), dimensions={1,0}
      n = f32[6,40] negate(t)
      ROOT s = f32[6,20] slice(n), slice={[0:6], [0:40:2]}"""), ()),
    "transposition": (entry("x = f32[37,41] parameter(0)\n ROOT t = f32[41,37] transpose(x), dimensions={1,0}"), ()),
    "rows": (entry("""
      x = f32[6,37] parameter(0)
      l = f32[] constant(-inf)
      m = f32[6] reduce(x, l), dimensions={1}, to_apply=most
      w = f32[6,37] broadcast(m), dimensions={0}
      d = f32[6,37] subtract(x, w)
      e = f32[6,37] exponential(d)
      z = f32[] constant(0)
      s = f32[6] reduce(e, z), dimensions={1}, to_apply=sum
      v = f32[6,37] broadcast(s), dimensions={0}
      ROOT r = f32[6,37] divide(e, v)""", ADD + MAX), ()),
    "columns": (entry("x = f32[70,37] parameter(0)\n z = f32[] constant(0)\n ROOT s = f32[37] reduce(x, z), dimensions={0}, to_apply=sum", ADD), ()),
    "a long sum": (entry("x = f32[70000] parameter(0)\n z = f32[] constant(0)\n ROOT s = f32[] reduce(x, z), dimensions={0}, to_apply=sum", ADD), ()),
    "few long rows": (entry("x = f32[2,70000] parameter(0)\n z = f32[] constant(0)\n ROOT s = f32[2] reduce(x, z), dimensions={1}, to_apply=sum", ADD), ()),
    "concatenation": (entry("""
      x = f32[4,10] parameter(0)
      y = f32[4,7] parameter(1)
      e = f32[4,10] exponential(x)
      ROOT c = f32[4,17] concatenate(e, y), dimensions={1}"""), ()),
    "padding": (entry("x = bf16[4,10] parameter(0)\n z = bf16[] constant(0)\n ROOT p = bf16[6,13] pad(x, z), padding=1_1x0_3"), ()),
    "update": (entry("""
      x = f32[8,20] parameter(0)
      y = f32[1,20] parameter(1)
      i = s32[] parameter(2)
      z = s32[] constant(0)
      n = f32[8,20] negate(x)
      ROOT u = f32[8,20] dynamic-update-slice(n, y, i, z)"""), ()),
    "gather": (entry("""
      x = f32[9,20] parameter(0)
      i = s32[5] parameter(1)
      g = f32[5,20] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,20}
      ROOT n = f32[5,20] negate(g)"""), ()),
    "running sum": (entry("""
      x = f32[3,50] parameter(0)
      z = f32[] constant(0)
      ROOT c = f32[3,50] reduce-window(x, z), window={size=1x50 pad=0_0x49_0}, to_apply=sum""", ADD), ()),
    "loop": (entry("""
      x = f32[20] parameter(0)
      n = s32[] constant(0)
      t = (s32[], f32[20]) tuple(n, x)
      w = (s32[], f32[20]) while(t), condition=c, body=b
      ROOT r = f32[20] get-tuple-element(w), index=1""", """c { p = (s32[], f32[20]) parameter(0)
        i = s32[] get-tuple-element(p), index=0
        k = s32[] constant(5)
        ROOT r = pred[] compare(i, k), direction=LT }
      b { p = (s32[], f32[20]) parameter(0)
        i = s32[] get-tuple-element(p), index=0
        x = f32[20] get-tuple-element(p), index=1
        o = s32[] constant(1)
        j = s32[] add(i, o)
        y = f32[20] cosine(x)
        ROOT t = (s32[], f32[20]) tuple(j, y) }
      """), ()),
    "branch": (entry("""
      p = pred[] parameter(0)
      x = f32[20] parameter(1)
      ROOT c = f32[20] conditional(p, x, x), true_computation=up, false_computation=down""", """up { x = f32[20] parameter(0)
        ROOT r = f32[20] exponential(x) }
      down { x = f32[20] parameter(0)
        ROOT r = f32[20] negate(x) }
      """), ()),
    "cholesky": (entry("x = f32[2,20,20] parameter(0)\n ROOT c = f32[2,20,20] cholesky(x), lower=true"), ()),
    "triangular": (entry("""
      a = f32[18,18] parameter(0)
      b = f32[18,20] parameter(1)
      ROOT s = f32[18,20] triangular-solve(a, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE"""), ()),
    "complex": (entry("x = c64[20] parameter(0)\n y = c64[20] parameter(1)\n m = c64[20] multiply(x, y)\n ROOT a = f32[20] abs(m)"), ()),
    "steps that share memory": (entry("""
      x = f32[30,20] parameter(0)
      y = f32[20,30] parameter(1)
      d = f32[30,30] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      e = f32[30,30] dot(d, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      f = f32[30,30] dot(e, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      z = f32[] constant(0)
      s = f32[30] reduce(f, z), dimensions={0}, to_apply=sum
      ROOT t = (f32[30], f32[30,30]) tuple(s, f)""", ADD), ()),
    "readers in two orders": (entry("""
      x = f32[12,20] parameter(0)
      y = f32[20,7] parameter(1)
      d = f32[12,7] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      t = f32[7,12] transpose(d), dimensions={1,0}
      a = f32[7,12] tanh(t)
      b = f32[12,7] cosine(d)
      ROOT r = (f32[7,12], f32[12,7]) tuple(a, b)"""), ()),
    "a reader in another order": (entry("""
      x = f32[12,20] parameter(0)
      z = f32[] constant(0)
      n = f32[12,20] exponential(x)
      s = f32[12] reduce(n, z), dimensions={1}, to_apply=sum
      w = f32[12,20] broadcast(s), dimensions={0}
      d = f32[12,20] divide(n, w)
      t = f32[20,12] transpose(d), dimensions={1,0}
      ROOT r = f32[20] reduce(t, z), dimensions={1}, to_apply=sum""", ADD), ()),
    "vector by matrix": (product(1, 100, 70, "mk", "kn"), (1,)),
    "matrix by vector": (product(100, 1, 70, "mk", "kn"), ()),
    "outer product": (product(12, 40, 1, "mk", "kn"), ()),
    "sums in blocks": (product(40, 96, 3000, "mk", "kn"), (1,)),
    "bytes": (product(7, 37, 20, "mk", "kn", "s8", "s32"), ()),
    "narrow floats": (product(7, 37, 20, "mk", "nk", "bf16", "bf16"), (1,)),
    "many products": (entry("""
      x = f32[6,5,9] parameter(0)
      y = f32[6,9,20] parameter(1)
      ROOT d = f32[6,5,20] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"""), ()),
    "attention over many keys": (attention(20, 300), ()),
}


def collapsed(lines: list[str]) -> Iterator[str]:
    shapes = [re.sub(r"\d+", "#", line) for line in lines]
    at = 0
    while at < len(lines):
        period, times = max(((p, repeated(shapes, at, p)) for p in range(1, 7)), key=lambda found: (found[1] > 2, found[0] * found[1], -found[0]))
        if times < 3:
            yield lines[at]
            at += 1
            continue
        end = at + period * times
        yield from lines[at:at + period]
        yield f"{' ' * (len(lines[at]) - len(lines[at].lstrip()))}... {times} times"
        yield from lines[end - period:end]
        at = end


def repeated(shapes: list[str], at: int, period: int) -> int:
    """How often the lines of a period occur one after the other."""
    end = at + period
    while shapes[end:end + period] == shapes[at:at + period] and len(shapes[at:end]) % period == 0:
        end += period
    return (min(end, len(shapes)) - at) // period


@pytest.mark.parametrize("name", [*CASES, *MORE])
def test_code(name: str, golden: Golden) -> None:
    text, fixed = (CASES | MORE)[name]
    module = load(text).module()
    arrays = drawn(module)
    found = []
    for machine, threads in ((AVX512, 4), (AVX2, 1)):
        program = lower(expand(bind_inputs(module, {i: arrays[i] for i in fixed})), Options(machine=machine, threads=threads))
        lines = print_program(program, lambda kernel: [str(kernel.schedule)]).splitlines()
        found += [f"== {machine.vector_bytes} bytes, {threads} threads", *(line[:220] for line in collapsed(lines))]
    golden(f"code/{name.replace(' ', '-')}.txt", "\n".join(found) + "\n")


SEVERAL_KEPT = entry("""
    x = f32[4,4096] parameter(0)
    zero = f32[] constant(0)
    e = f32[4,4096] exponential(x)
    t = f32[4,4096] tanh(x)
    l = f32[4,4096] logistic(x)
    es = f32[4] reduce(e, zero), dimensions={1}, to_apply=sum
    eb = f32[4,4096] broadcast(es), dimensions={0}
    ts = f32[4] reduce(t, zero), dimensions={1}, to_apply=sum
    tb = f32[4,4096] broadcast(ts), dimensions={0}
    ls = f32[4] reduce(l, zero), dimensions={1}, to_apply=sum
    lb = f32[4,4096] broadcast(ls), dimensions={0}
    a = f32[4,4096] divide(e, eb)
    b = f32[4,4096] divide(t, tb)
    c = f32[4,4096] divide(l, lb)
    d = f32[4,4096] add(a, b)
    ROOT r = f32[4,4096] add(d, c)""", ADD)
"""A kernel over rows that keeps three of its values from one pass to the next."""


def test_the_same_program_has_the_same_code() -> None:
    """Wherever its objects lie in memory: the cache of kernels knows them by their code."""
    texts, garbage = set(), []
    for number in range(12):
        garbage.append([object() for _ in range(7 * number % 13)])
        texts.add(print_program(lower(expand(module_of(SEVERAL_KEPT)), Options())))
    assert len(texts) == 1
