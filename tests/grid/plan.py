"""Which cases there are: all combinations of template, size and element type, the circumstances pairwise within each template."""
from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from tests.grid.case import Case, factors
from tests.grid.covering import covering
from tests.grid.template import TEMPLATES


def cases(seed: int, names: Sequence[str] = ()) -> list[Case]:
    """The cases of one round: those of the templates that are named, or of all."""
    found = []
    for name in names or TEMPLATES:
        template = TEMPLATES[name]
        given = [{"size": size, "dtype": dtype} for size in template.sizes for dtype in template.dtypes]
        found += [Case(name, **row) for row in covering(given, factors(), seed ^ crc32(name.encode()))]
    return found


SAMPLE_SEED = 2026
KNOWN = (
    "conv_residual/16x8/f32/1/native/plain/plain/residual/padded/end",
    "conv_residual/16x8/f32/2/native/plain/plain/residual/haloed/end",
    "conv_residual/5x5/f32/4/x86-64-v3/framed/plain/residual/joined/end",
    "dot/33x33x33/bf16/2/native/plain/plain/unchanged/alone/end",
    "dot/33x33x33/s8/2/x86-64-v4/plain/plain/unchanged/alone/end",
    "dot/5x7x33/f8e4m3fn/1/native/plain/plain/unchanged/joined/begin",
    "dot/5x7x17/s16/1/native/plain/plain/unchanged/read/end",
    "conv_same_type/4/f32/1/native/plain/aliased/unchanged/alone/end",
    "dot/5x7x16/f8e5m2fnuz/2/x86-64-v2/framed/fixed/unchanged/joined_behind/begin",
    "conv_depthwise/17x15/f4e2m1fn/1/x86-64-v3/plain/fixed/biased/haloed/end",
    "conv_winograd/16x16x7/bf16/4/x86-64/backwards/strided/unchanged/padded/begin",
    "conv_channels_first/17x17x6/f8e4m3b11fnuz/1/x86-64-v2/stored/fixed/biased/joined_behind/begin",
    "conv_gradient/17x5/f32/2/native/plain/plain/unchanged/turned/end",
    "convert_f32_s4/3x17/s16/1/native/plain/plain/unchanged/alone/end",
    "convert_f32_s8/3x17/u8/2/x86-64/plain/plain/unchanged/alone/end",
    "conv_same_type/33/f32/2/x86-64-v3/plain/aliased/unchanged/alone/end",
    "transpose/33x1/c64/4/x86-64-v3/plain/stored/residual/joined_behind/end",
    "two_results/33x3/c64/1/x86-64-v3/plain/stored/residual/read/end",
    "divide/5/f32/1/x86-64-v2/strided/strided/biased/read/end",
    "argmax/3x0/u1/1/x86-64-v3/repeated/strided/residual/joined_behind/begin",
)
"""Cases that once were wrong, which every sample holds."""


def sample(count: int, names: Sequence[str] = ()) -> list[Case]:
    """Cases that once were wrong, and as many others of a fixed round, the same share of every template."""
    every = cases(SAMPLE_SEED, names)
    step = max(1, len(every) // max(1, count))
    known = [case for case in map(Case.of, KNOWN) if not names or case.template in names]
    return list(dict.fromkeys([*known, *every[::step]]))
