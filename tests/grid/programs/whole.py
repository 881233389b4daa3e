"""Operators that bring a loop nest of their own: transforms, factors, random bits, recurrences."""
from __future__ import annotations

from tests.grid.sizes import COMPLEX, EDGES, LANES, NUMBERS, WIDE, along, each
from tests.grid.template import Maker, template
from tests.grid.text import Value

SQUARES = [(n,) for n in (1, 2, 3, *LANES, LANES[-1] + 1)]


@template("generic", each(along((3,), [n for n in EDGES if n]), [(2, 60)]), COMPLEX)
def fft(m: Maker) -> Value:
    return m.like("fft", m.operand(m.size), attrs=f"fft_type=FFT, fft_length={{{m.size[1]}}}")


@template("generic", along((2,), [n for n in EDGES if n]), ("f32", "f64"))
def fft_of_reals(m: Maker) -> Value:
    rows, n = m.size
    kind = {"f32": "c64", "f64": "c128"}[m.dtype]
    return m.op("fft", kind, (rows, n // 2 + 1), m.operand(m.size), attrs=f"fft_type=RFFT, fft_length={{{n}}}")


@template("cholesky", SQUARES, WIDE)
def cholesky(m: Maker) -> Value:
    (n,) = m.size
    x = m.parameter(m.dtype, (2, n, n), square=True)
    return m.like("cholesky", x, attrs="lower=true")


@template("triangular", each([(n, 3) for (n,) in SQUARES], [(5, n) for n in EDGES if n]), WIDE)
def triangular_solve(m: Maker) -> Value:
    n, columns = m.size
    a, b = m.parameter(m.dtype, (n, n), square=True), m.operand((n, columns))
    return m.op("triangular-solve", m.dtype, b.shape, a, b, attrs="left_side=true, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE")


@template("generic", each(along((), EDGES), along((3,), EDGES)), ("u32", "u64", "u8", "u16"))
def random_bits(m: Maker) -> list[Value]:
    state = m.parameter("u64", (2,), 1, 99)
    return m.several("rng-bit-generator", [("u64", (2,)), (m.dtype, m.size)], state, attrs="algorithm=rng_three_fry")[::-1]


@template("generic", along((), EDGES), NUMBERS)
def scan(m: Maker) -> list[Value]:
    (n,) = m.size
    t = m.dtype
    step = m.body(f"step_{t}", f"  x = {t}[] parameter(0)\n  c = {t}[] parameter(1)\n  s = {t}[] add(x, c)\n  ROOT r = ({t}[], {t}[]) tuple(s, s)")
    return m.several("scan", [(t, (n,)), (t, ())], m.operand((n,)), m.constant(t), attrs=f"dimensions={{0}}, num_carries=1, is_reverse=false, to_apply={step}")
