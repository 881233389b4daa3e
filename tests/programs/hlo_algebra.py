"""HLO steps: transforms and linear algebra, which round; what they give is a result and goes no further."""
from __future__ import annotations

from dataclasses import replace

from tests.programs.hlo import STEPS, Hlo
from tests.programs.maker import Misfit, exact
from tests.programs.program import Value


@STEPS(0.5, "mixed")
def transform(maker: Hlo) -> None:
    """A Fourier transform of any length."""
    if maker.palette.special:
        raise Misfit  # every result is a sum of all elements, in an order that is nobody's promise
    kind = maker.draws.one(("FFT", "IFFT", "RFFT", "IRFFT"))
    dtype = "f32" if kind == "RFFT" else "c64"
    value = maker.pick(lambda v: v.dtype == dtype and bool(v.shape) and exact(v) and v.shape[-1] > 1)
    n = value.shape[-1]
    length = 2 * (n - 1) if kind == "IRFFT" else n
    out = n // 2 + 1 if kind == "RFFT" else length
    made = Value("", "f32" if kind == "IRFFT" else "c64", (*value.shape[:-1], out), "rough", -1000, 1000)
    maker.add(made, f"fft({value.name}), fft_type={kind}, fft_length={{{length}}}")


def square(maker: Hlo) -> Value:
    """A matrix far from singular: a small one and a multiple of the identity."""
    if maker.palette.special:
        raise Misfit
    n, dtype = maker.draws.one((1, 2, 3, 5, 8, 17)), maker.draws.one(("f32", "f64"))
    batch = maker.draws.one(((), (), (2,)))
    small = maker.input(dtype, (*batch, n, n), -1, 1)
    rows = maker.add(Value("", "s32", (n, n), "exact", 0, n), "iota(), iota_dimension=0")
    columns = maker.add(Value("", "s32", (n, n), "exact", 0, n), "iota(), iota_dimension=1")
    on = maker.add(Value("", "pred", (n, n), high=1), f"compare({rows.name}, {columns.name}), direction=EQ")
    big, none = maker.filled(dtype, (n, n), 2 * n + 1), maker.filled(dtype, (n, n), 0)
    one = maker.add(replace(big, low=0), f"select({on.name}, {big.name}, {none.name})")
    wide = maker.spread(one, small.shape, range(len(batch), len(batch) + 2))
    return maker.add(replace(wide, low=-1, high=2 * n + 2), f"add({small.name}, {wide.name})")


@STEPS(0.4, "mixed")
def solve(maker: Hlo) -> None:
    """A triangular system."""
    matrix = square(maker)
    left = maker.draws.chance(0.5)
    n = matrix.shape[-1]
    right = maker.input(matrix.dtype, (*matrix.shape[:-2], *((n, 3) if left else (3, n))))
    lower, unit = maker.draws.chance(0.5), False
    transposed = maker.draws.one(("NO_TRANSPOSE", "TRANSPOSE"))
    maker.add(replace(right, grade="rough"),
              f"triangular-solve({matrix.name}, {right.name}), left_side={str(left).lower()}, lower={str(lower).lower()}, "
              f"unit_diagonal={str(unit).lower()}, transpose_a={transposed}")


@STEPS(0.4, "mixed")
def cholesky(maker: Hlo) -> None:
    matrix = square(maker)
    rank = len(matrix.shape)
    order = [*range(rank - 2), rank - 1, rank - 2]
    other = maker.add(matrix, f"transpose({matrix.name}), dimensions={{{','.join(map(str, order))}}}")
    both = maker.add(replace(matrix, low=-2, high=2 * matrix.high), f"add({matrix.name}, {other.name})")
    # The half that is not asked for holds anything: it is masked.
    lower = maker.draws.chance(0.5)
    made = maker.add(replace(both, grade="rough"), f"cholesky({both.name}), lower={str(lower).lower()}")
    n = matrix.shape[-1]
    rows = maker.add(Value("", "s32", matrix.shape, "exact", 0, n), f"iota(), iota_dimension={rank - 2}")
    columns = maker.add(Value("", "s32", matrix.shape, "exact", 0, n), f"iota(), iota_dimension={rank - 1}")
    mask = maker.add(Value("", "pred", matrix.shape, high=1), f"compare({rows.name}, {columns.name}), direction={'GE' if lower else 'LE'}")
    zero = maker.filled(matrix.dtype, matrix.shape, 0)
    maker.values.remove(made)
    maker.add(made, f"select({mask.name}, {made.name}, {zero.name})")
