"""Random bits are XLA's, bit for bit: the numbers below are what XLA gave on a CPU."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irscope.graph import Effect
from irscope.ops import TypeFault, get
from tests.ops.running import check, read, typed
from tests.ops.test_contraction import spell

NUMPY = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "s32": np.int32, "s64": np.int64, "f32": np.float32}
TOP = 2 ** 64 - 1
# algorithm, element type, shape, state, next state, elements 0, 1, 2 and the last
RECORDED: list[tuple[str, str, tuple[int, ...], list[int], list[int], list[int]]] = [
    ("three_fry", "u32", (7,), [9610096788621335673, TOP], [9610096788621335673, 3], [1062817263, 1263430367, 4142001621, 4291561000]),
    ("three_fry", "u32", (3, 5), [11824146983464364196, 7384684783971387459], [11824146983464364196, 7384684783971387468],
     [285319863, 2730919094, 2271393785, 482548038]),
    ("three_fry", "u32", (4, 3, 3), [3765601964669837811, 9717558470833325643], [3765601964669837811, 9717558470833325661],
     [4189871233, 3891534915, 534820676, 409408683]),
    ("three_fry", "u64", (7,), [11703317053971237207, TOP], [11703317053971237207, 6],
     [15584850290481344983, 1705553328043494472, 16494727793678423580, 1247229360081134458]),
    ("three_fry", "u16", (3, 5), [9228908537287839282, 9443139558473609505], [9228908537287839282, 9443139558473609514],
     [40549, 25135, 23904, 60753]),
    ("philox", "u32", (7,), [7290265401746820426, TOP], [7290265401746820426, 1], [3110763831, 215757848, 2887395769, 553297074]),
    ("philox", "u32", (7,), [12465624251306612331, TOP, 11404716484137362169], [12465624251306612331, 1, 11404716484137362170],
     [1014725075, 2067074740, 1755577779, 3497620073]),
    ("philox", "u64", (7,), [5855181574461835857, TOP, 6086211340544130231], [5855181574461835857, 3, 6086211340544130232],
     [3333002714092152882, 2531982977271926236, 16429168069484585503, 5349583185546283111]),
    ("philox", "u16", (4, 3, 3), [10922534541754505568, 12775613733486562602], [10922534541754505568, 12775613733486562611],
     [10912, 16226, 47888, 56225]),
    ("default", "u32", (3, 5), [8370735698803416384, 9922028461490343432, 5512713153581494125],
     [8370735698803416384, 9922028461490343436, 5512713153581494125], [3171225496, 4078334188, 3646669093, 3075581196]),
    ("default", "u64", (4, 3, 3), [5860871408735843043, 11120764024188337623], [5860871408735843043, 11120764024188337641],
     [16635284525474057694, 17935586774010589244, 6584872219559356487, 15285897059602744627]),
]


def bits(algorithm: str, dtype: str, shape: tuple[int, ...], state: list[int]) -> list[Any]:
    """The next state and the bits, the same by reference and by machine code."""
    n = len(state)
    return check(f"ENTRY e {{ s = u64[{n}] parameter(0)\n ROOT r = (u64[{n}], {dtype}[{spell(shape)}]) rng-bit-generator(s), "
                 f"algorithm=rng_{algorithm} }}", np.array(state, np.uint64))


@pytest.mark.parametrize(("algorithm", "dtype", "shape", "state", "after", "some"), RECORDED)
def test_as_xla_made_them(algorithm: str, dtype: str, shape: tuple[int, ...], state: list[int], after: list[int], some: list[int]) -> None:
    new, found = bits(algorithm, dtype, shape, state)
    assert [int(i) for i in new] == after
    assert [int(found.reshape(-1)[i]) for i in (0, 1, 2, -1)] == some


@pytest.mark.parametrize("algorithm", ["three_fry", "philox"])
@pytest.mark.parametrize("shape", [(), (1,), (2,), (5, 3), (3, 3, 2)])
@pytest.mark.parametrize("dtype", ["u8", "s32", "s64"])
def test_code_and_reference_agree(algorithm: str, shape: tuple[int, ...], dtype: str) -> None:
    _, found = bits(algorithm, dtype, shape, [3, 5])
    assert found.shape == shape and found.dtype == NUMPY[dtype]


def test_the_state_may_be_left_out_of_the_result() -> None:
    found, = check("ENTRY e { s = u64[2] parameter(0)\n ROOT r = u32[5] rng-bit-generator(s), algorithm=rng_three_fry }", np.array([2, 3], np.uint64))
    assert np.array_equal(found, bits("three_fry", "u32", (5,), [2, 3])[1])


def test_rng_is_known_but_has_no_value() -> None:
    for name in ("rng", "rng-get-and-update-state"):
        op = get(name)
        assert op.effect is Effect.WRITES and op.reference is None and [op.scalar, op.element, op.nest, op.expand] == [None] * 4


@pytest.mark.parametrize(("text", "words"), [
    ("ENTRY e { a = f32[] constant(0)\n b = f16[] constant(1)\n ROOT r = f32[3] rng(a, b), distribution=rng_uniform }", "one element type"),
    ("ENTRY e { a = s32[] constant(0)\n b = s32[] constant(1)\n ROOT r = s32[3] rng(a, b), distribution=rng_normal }", "floating"),
    ("ENTRY e { s = u64[2] parameter(0)\n ROOT r = (u64[3], u32[5]) rng-bit-generator(s), algorithm=rng_three_fry }", "u64[3]"),
    ("ENTRY e { s = u64[2] parameter(0)\n ROOT r = (u64[2], (u32[5])) rng-bit-generator(s), algorithm=rng_three_fry }", "(u64[2], (u32[5]))"),
    ("ENTRY e { s = u64[2] parameter(0)\n ROOT r = c128[5] rng-bit-generator(s), algorithm=rng_three_fry }", "at most 64 bits"),
    *((f"ENTRY e {{ s = {state} parameter(0)\n ROOT r = u32[5] rng-bit-generator(s), algorithm=rng_{how} }}", f"%s is {state}")
      for state in ("u64[1]", "u64[0]", "u64[]", "u32[4]", "f32[2]", "u64[2,2]") for how in ("three_fry", "philox")),
])
def test_what_does_not_fit_is_said(text: str, words: str) -> None:
    with pytest.raises(TypeFault) as fault:
        typed(read(text))
    assert words in fault.value.message
