"""Random numbers from an explicit key: Threefry, with TVM's counters and splits.

A key is ten words: four of the cipher's key, two of the path (which splits led here), two of the counter, two that mark the next bit of
the path. (J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011; N. Ferguson et al., "The Skein hash function family",
2010; K. Claessen, M. Palka, "Splittable pseudorandom number generators using cryptographic hashing", 2013.)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, prod
from typing import Any

from irscope.formats.relay.algebra import Relay, word_of
from irscope.formats.relay.operators import Attributes, operator
from irscope.graph import Node
from irscope.graph.dtypes import F32, F64, S32, U32, U64
from irscope.lazy import np
from irscope.ops.faults import TypeFault

ROTATIONS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))
"""Bits by which the words of a pair are turned, round by round (Skein 1.3, table 4, four words)."""
PERMUTATION = (0, 3, 2, 1)
"""Where each word goes after a round (Skein 1.3, table 3)."""
PARITY = 0x1BD11BDAA9FC1A22
"""The constant that the fifth key word is made of (Skein 1.3, section 3.3.2)."""
ROUNDS = 20


def words(t: Relay, x: Node) -> list[Node]:
    """The words of a vector, as scalars."""
    return [t.reshape(t.slice_dim(x, 0, i, i + 1), ()) for i in range(t.shape(x)[0])]


def vector(t: Relay, scalars: Sequence[Node]) -> Node:
    """A vector of scalars."""
    return t.concat([t.reshape(s, (1,)) for s in scalars], 0)


def _word(t: Relay, value: int) -> Node:
    return t.array(np.uint64(value), U64)


def scrambled(t: Relay, key: Sequence[Node], counter: Sequence[Node], count: int) -> Node:
    """The numbers of ``count`` blocks of four words each; block ``i`` encrypts the counter with ``i`` added to each word."""
    fifth = _word(t, PARITY)
    for word in key:
        fifth = t.binary("xor", fifth, word)
    whole = [*key, fifth]
    steps = t.iota((count,), 0, U64)
    x = [t.add(t.broadcast_to(word, (count,)), steps) for word in counter]
    for group in range(ROUNDS // 4):
        for j in range(4):
            add = whole[(group + j) % 5]
            if j == 3:
                add = t.add(add, _word(t, group))
            x[j] = t.add(x[j], t.broadcast_to(add, (count,)))
        for k in range(4):
            for pair in (0, 1):
                a, b = x[2 * pair], x[2 * pair + 1]
                a = t.add(a, b)
                x[2 * pair : 2 * pair + 2] = [a, t.binary("xor", a, _turned(t, b, ROTATIONS[(4 * group + k) % 8][pair]))]
            x = [x[place] for place in PERMUTATION]
    return t.reshape(t.concat([t.reshape(word, (count, 1)) for word in x], 1), (4 * count,))


def _turned(t: Relay, x: Node, bits: int) -> Node:
    high = t.binary("shift-left", x, t.like(x, bits))
    return t.binary("or", high, t.binary("shift-right-logical", x, t.like(x, 64 - bits)))


def _next_bit(t: Relay, high: Node, low: Node) -> tuple[Node, Node]:
    """The marker moved by one bit; the two words are one number of 128 bits with a single bit set."""
    one = _word(t, 1)
    crosses = t.compare("EQ", high, one)
    moved = t.select(crosses, _word(t, 1 << 63), t.binary("shift-right-logical", low, one))
    return t.binary("shift-right-logical", high, one), t.select(t.compare("GT", high, one), _word(t, 0), moved)


def _used_up(t: Relay, high: Node, low: Node) -> Node:
    """Whether the path has no room for a further bit."""
    zero = _word(t, 0)
    return t.binary("and", t.compare("EQ", high, zero), t.compare("EQ", low, zero))


def generated(t: Relay, key: Node, count: int) -> tuple[Node, Node]:
    """The key after ``count`` numbers, and the numbers."""
    if t.shape(key) != (10,) or t.dtype(key) is not U64:
        raise TypeFault(f"a key is Tensor[(10), uint64], got {t.type(key)}")
    if not 1 <= count < 1 << 63:
        raise TypeFault(f"from 1 to 2^63 - 1 random numbers are drawn at once, not {count}")
    old, zero = words(t, key), _word(t, 0)
    # Where the counter would overflow, the path grows by a bit; where that is full too, the cipher derives a new key.
    room = t.compare("LT", old[7], _word(t, (1 << 64) - 1 - count))
    ones = [_word(t, (1 << 64) - 1)] * 4
    fresh = [*words(t, scrambled(t, old[:4], ones, 1)), zero, zero, zero, zero, _word(t, 1 << 63), zero]
    longer = [*old[:4], t.binary("or", old[4], old[8]), t.binary("or", old[5], old[9]), zero, zero, *_next_bit(t, old[8], old[9])]
    other = t.select(_used_up(t, old[8], old[9]), vector(t, fresh), vector(t, longer))
    now = words(t, t.select(room, key, other))
    whole, rest = count // 4, count % 4
    parts = [scrambled(t, now[:4], now[4:8], whole)] if whole else []
    counter, used = now[7], count
    if rest:
        counter, used = t.add(counter, _word(t, 4 * whole)), 4
        parts.append(t.slice_dim(scrambled(t, now[:4], [*now[4:7], counter], 1), 0, 0, rest))
    after = [*now[:6], zero, t.add(counter, _word(t, used)), now[8], now[9]]
    return vector(t, after), t.concat(parts, 0) if len(parts) > 1 else parts[0]


@operator("random.threefry_generate(key; out_shape!)")
def threefry_generate(t: Relay, a: Attributes, key: Node) -> list[Node]:
    """64 random bits for each element, and the next key."""
    shape = tuple(int(n) for n in a.out_shape)
    after, bits = generated(t, key, prod(shape))
    return [after, t.reshape(bits, shape)]


@operator("random.threefry_split(key)")
def threefry_split(t: Relay, a: Attributes, key: Node) -> list[Node]:
    """Two keys with independent numbers."""
    if t.shape(key) != (10,) or t.dtype(key) is not U64:
        raise TypeFault(f"a key is Tensor[(10), uint64], got {t.type(key)}")
    old, zero = words(t, key), _word(t, 0)
    hashed = words(t, scrambled(t, old[:4], old[4:8], 1))
    mark = [_word(t, 1 << 62), zero]
    moved = _next_bit(t, old[8], old[9])
    left = [*hashed, zero, zero, zero, zero, *mark], [*old[:8], *moved]
    path = [t.binary("or", old[4], old[8]), t.binary("or", old[5], old[9])]
    right = [*hashed, _word(t, 1 << 63), zero, zero, zero, *mark], [*old[:4], *path, *old[6:8], *moved]
    full = _used_up(t, old[8], old[9])
    return [t.select(full, vector(t, new), vector(t, grown)) for new, grown in (left, right)]


def fractions(t: Relay, key: Node, shape: tuple[int, ...], dtype: Any) -> tuple[Node, Node]:
    """Numbers from 0 (included) to 1: random bits as the fraction of a float between 1 and 2."""
    after, bits = generated(t, key, prod(shape))
    if dtype is F32:
        mantissa = t.binary("shift-right-logical", t.convert(bits, U32), t.array(9, U32))
        made = t.bitcast_convert(t.binary("or", mantissa, t.array(127 << 23, U32)), F32)
    elif dtype is F64:
        mantissa = t.binary("shift-right-logical", bits, _word(t, 12))
        made = t.bitcast_convert(t.binary("or", mantissa, _word(t, 1023 << 52)), F64)
    else:
        raise TypeFault(f"random numbers are float32 or float64, not {word_of(dtype)}")
    return after, t.reshape(t.plus(made, -1), shape)


@operator("random.uniform(key, low, high; out_shape!, out_dtype=None)")
def uniform(t: Relay, a: Attributes, key: Node, low: Node, high: Node) -> list[Node]:
    """Uniform numbers between two bounds, and the next key."""
    after, part = fractions(t, key, tuple(int(n) for n in a.out_shape), t.dtype_word(a.out_dtype, t.dtype(low)))
    return [after, t.add(t.mul(part, t.sub(high, low)), low)]


@operator("random.normal(key, mean, scale; out_shape!, out_dtype=None)")
def normal(t: Relay, a: Attributes, key: Node, mean: Node, scale: Node) -> list[Node]:
    """Normal numbers by the Box-Muller transform, and the next key."""
    shape = tuple(int(n) for n in a.out_shape)
    after, part = fractions(t, key, (2, *shape), t.dtype_word(a.out_dtype, t.dtype(mean)))
    first, second = (t.reshape(t.slice_dim(part, 0, i, i + 1), shape) for i in (0, 1))
    radius = t.unary("sqrt", t.scale(t.unary("log", t.sub(t.like(first, 1), first)), -2))
    drawn = t.mul(radius, t.unary("sine", t.scale(second, 2 * pi)))
    return [after, t.add(t.mul(drawn, scale), mean)]


@operator("random.multinomial(key, probs; num_samples=1)")
def multinomial(t: Relay, a: Attributes, key: Node, probs: Node) -> list[Node]:
    """Indices along the last axis, sampled by their share of the sum, and the next key."""
    p = t.convert(probs, F32)
    p = t.maximum(p, t.like(p, 0))
    last = t.rank(p) - 1
    p = t.div(p, t.sum(p, [last], True))
    shares = t.cumulative("add", p, last, 0)
    *lead, n = t.shape(p)
    samples = int(a.num_samples)
    after, part = fractions(t, key, (*lead, samples), F32)
    away = t.sub(t.reshape(shares, (*lead, n, 1)), t.reshape(part, (*lead, 1, samples)))
    near = t.select(t.compare("GT", away, t.like(away, 0)), away, t.like(away, 1))
    _, place = t.arg_extreme(near, last, False, S32)
    return [after, place]
