"""Random bits: three-fry and Philox bit for bit as XLA computes them; rng and the hidden state have only types.

Both generators turn a counter into a few words with only 32-bit sums, products, exclusive or and rotations. They are written once,
for words that are numpy arrays and for words that are values of an emitter. :class:`WordArithmetic` has what their operators lack.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Protocol, TypeVar

from irscope.graph import DType, Effect, Node, Op, TensorType, TupleType, Type, tensor
from irscope.graph.dtypes import U32, U64
from irscope.graph.node import ArrayView, Emitter, Run, Value
from irscope.lazy import Array, np
from irscope.ops import infer
from irscope.ops.attributes import Random
from irscope.ops.costs import result_elements
from irscope.ops.faults import TypeFault
from irscope.ops.formula import FormulaTerm
from irscope.ops.nests import below, guard, independent, split
from irscope.ops.registry import declare
from irscope.ops.shapes import fits, size

W = TypeVar("W", Array, FormulaTerm)


class WordArithmetic(Protocol[W]):
    """Constants as u32 words, and the product of a word and a factor as two words (upper, lower)."""

    def const(self, value: int) -> W: ...
    def product(self, x: W, factor: int) -> tuple[W, W]: ...


class ArrayWords:
    """Words as arrays of numpy."""

    def const(self, value: int) -> Array:
        return np.asarray(np.uint32(value))

    def product(self, x: Array, factor: int) -> tuple[Array, Array]:
        whole = np.asarray(x, np.uint64) * np.uint64(factor)
        return (whole >> np.uint64(32)).astype(np.uint32), whole.astype(np.uint32)


class CodeWords:
    """Words as values of an emitter."""

    def __init__(self, k: Emitter) -> None:
        self.k = k

    def const(self, value: int) -> FormulaTerm:
        return FormulaTerm(self.k, self.k.const(value, U32))

    def product(self, x: FormulaTerm, factor: int) -> tuple[FormulaTerm, FormulaTerm]:
        low, high = _code_pair(self.k, self.k.binary("mul", self.k.convert(x.value, U64), self.k.const(factor, U64)))
        return high, low


def _rotation(w: WordArithmetic[W], x: W, distance: int) -> W:
    return x << w.const(distance) | x >> w.const(32 - distance)


def three_fry(w: WordArithmetic[W], counter: tuple[W, W], key: tuple[W, W]) -> tuple[W, W]:
    """Threefry2x32 with 20 rounds (Salmon et al. 2011)."""
    keys: list[W] = [key[0], key[1], w.const(0x1BD11BDA) ^ key[0] ^ key[1]]
    x, y = counter[0] + keys[0], counter[1] + keys[1]
    for block in range(5):
        for rotation in ((13, 15, 26, 6), (17, 29, 16, 24))[block % 2]:
            x = x + y
            y = x ^ _rotation(w, y, rotation)
        x = x + keys[(block + 1) % 3]
        y = y + keys[(block + 2) % 3] + w.const(block + 1)
    return x, y


def philox(w: WordArithmetic[W], counter: Sequence[W], key: tuple[W, W]) -> list[W]:
    """Philox4x32 with 10 rounds (Salmon et al. 2011)."""
    a, b, c, d = counter
    low, high = key
    for _ in range(10):
        first, second = w.product(a, 0xD2511F53), w.product(c, 0xCD9E8D57)
        a, b, c, d = second[0] ^ b ^ low, second[1], first[0] ^ d ^ high, first[1]
        low, high = low + w.const(0x9E3779B9), high + w.const(0xBB67AE85)
    return [a, b, c, d]


# ---------------------------------------------------------------- rng-bit-generator

_THREE_FRY = "rng_three_fry"


def _rng_bit_generator_type(node: Node) -> Type:
    infer.arity(node, 1)
    state = infer.array(node, 0, "the state")
    if state.dtype is not U64 or state.rank != 1 or ((length := size(state.shape[0])) is not None and length < 2):
        raise TypeFault(f"the state of rng-bit-generator is a key and a counter, u64[2] or u64[3], but %{node.operands[0].name} is "
                        f"{infer.plain(state)}", "bitcast-convert it to u64")
    if isinstance(node.type, TupleType):
        if len(node.type.elements) != 2 or not fits(node.type.elements[0], state) or not isinstance(node.type.elements[1], TensorType):
            raise TypeFault(f"rng-bit-generator gives the new state and the bits, but is declared {infer.plain(node.type)} "
                            f"over the state {infer.plain(state)}")
    elif not isinstance(node.type, TensorType):
        raise TypeFault(f"the result of rng-bit-generator must be declared, but is {node.type}")
    bits = _bits_type(node)
    if bits.dtype.bits > 64:
        raise TypeFault(f"rng-bit-generator gives elements of at most 64 bits, but is declared {infer.plain(bits)}")
    return infer.plain(node.type)


def _bits_type(node: Node) -> TensorType:
    t = node.type.elements[1] if isinstance(node.type, TupleType) else node.type
    assert isinstance(t, TensorType)
    return t


def _is_three_fry(node: Node) -> bool:
    """rng_default is Philox, as on XLA's CPU."""
    return bool(Random.of(node).algorithm == _THREE_FRY)


def _halves(shape: Sequence[int]) -> tuple[int, tuple[int, ...]]:
    """The dimension of three-fry's pairs of words, and the shape that counts the pairs."""
    if not shape:
        return 0, (1,)
    even = [d for d, n in enumerate(shape) if n % 2 == 0]
    chosen = even[0] if even else max(range(len(shape)), key=lambda d: (shape[d], -d))
    return chosen, tuple((n + 1) // 2 if d == chosen else n for d, n in enumerate(shape))


def _blocks(node: Node) -> int:
    """The increment of the counter."""
    t = _bits_type(node)
    if _is_three_fry(node):
        return t.elements if t.dtype.bits == 64 else prod(_halves(t.dims())[1])
    return -(-t.elements * (2 if t.dtype.bits == 64 else 1) // 4)


def _as_bits(word: Array, dtype: DType) -> Array:
    """The element that a word becomes: a reinterpreted word, or its low bits."""
    if dtype.storage < word.dtype.itemsize:
        return word.astype(f"u{dtype.storage}").view(dtype.numpy())
    return word.view(dtype.numpy())


def _rng_bit_generator_reference(run: Run, node: Node, state: Array) -> Any:
    t = _bits_type(node)
    bits = _three_fry_array(t, state) if _is_three_fry(node) else _philox_array(t, state)
    if not isinstance(node.type, TupleType):
        return bits
    after = state.copy()
    grown = _blocks(node)
    with np.errstate(over="ignore"):
        if _is_three_fry(node) or len(state) < 3:
            after[1] += np.uint64(grown)
        else:
            after[1] += np.uint64(grown)
            after[2] += np.uint64(after[1] < np.uint64(grown))
    return after, bits


def _pair(word: Array) -> tuple[Array, Array]:
    word = np.asarray(word, np.uint64)
    return word.astype(np.uint32), (word >> np.uint64(32)).astype(np.uint32)


def _three_fry_array(t: TensorType, state: Array) -> Array:
    shape, words = t.dims(), ArrayWords()
    wide = t.dtype.bits == 64
    chosen, half = (0, shape) if wide else _halves(shape)
    with np.errstate(over="ignore"):
        counter = state[1] + np.arange(prod(half), dtype=np.uint64)
        x, y = three_fry(words, _pair(counter), _pair(state[0]))
    if wide:
        return _as_bits((x.astype(np.uint64) | (y.astype(np.uint64) << np.uint64(32))).reshape(shape), t.dtype)
    both = np.stack([x.reshape(half), y.reshape(half)], chosen + 1)
    if not shape:
        return _as_bits(both.reshape(-1)[:1], t.dtype).reshape(())
    both = both.reshape([2 * n if d == chosen else n for d, n in enumerate(half)])
    return _as_bits(np.ascontiguousarray(np.take(both, np.arange(shape[chosen]), chosen)), t.dtype)


def _philox_array(t: TensorType, state: Array) -> Array:
    count = t.elements * (2 if t.dtype.bits == 64 else 1)
    blocks = np.arange(-(-count // 4), dtype=np.uint64)
    start, upper = (state[1], state[2]) if len(state) >= 3 else (state[1], state[0])
    with np.errstate(over="ignore"):
        low = start + blocks
        high = upper + (low < start).astype(np.uint64)
        drawn: list[Array] = philox(ArrayWords(), (*_pair(low), *_pair(high)), _pair(state[0]))
    words = np.stack(drawn, -1).reshape(-1)
    if t.dtype.bits == 64:
        words = words[0::2].astype(np.uint64) | (words[1::2].astype(np.uint64) << np.uint64(32))
    return _as_bits(words[:t.elements], t.dtype).reshape(t.dims())


def _rng_bit_generator_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    state = ins[0]
    words = [state.load([k.index(i)]) for i in range(min(state.shape[0], 3))]
    if not prod(outs[-1].shape):
        pass  # no bits are needed, but the next state is
    elif _is_three_fry(node):
        _three_fry_nest(k, words, outs[-1])
    else:
        _philox_nest(k, words, outs[-1])
    if len(outs) == 1:
        return
    grown = k.const(_blocks(node), U64)
    after = list(words)
    after[1] = k.binary("add", words[1], grown)
    if not _is_three_fry(node) and len(words) >= 3:
        after[2] = k.binary("add", words[2], k.convert(k.compare("LT", after[1], grown), U64))
    for i, word in enumerate(after):
        outs[0].store([k.index(i)], word)
    if state.shape[0] > len(after):  # a longer state, which XLA refuses only when it compiles
        with k.loop(len(after), state.shape[0]) as at:
            outs[0].store([at], state.load([at]))


def _code_pair(k: Emitter, word: Value) -> tuple[FormulaTerm, FormulaTerm]:
    high = k.binary("shr_logical", word, k.const(32, U64))
    return FormulaTerm(k, k.convert(word, U32)), FormulaTerm(k, k.convert(high, U32))


def _joined(k: Emitter, low: FormulaTerm, high: FormulaTerm) -> FormulaTerm:
    return FormulaTerm(k, k.convert(low.value, U64)) | FormulaTerm(k, k.convert(high.value, U64)) << 32


def _store_bits(k: Emitter, out: ArrayView, at: Sequence[Value], word: FormulaTerm) -> None:
    """Store the element that a word becomes: a reinterpreted word, or its low bits."""
    unsigned = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}[out.dtype.storage]
    narrow = k.convert(word.value, tensor(unsigned).dtype)
    out.store(at, narrow if narrow.dtype is out.dtype else k.bitcast(narrow, out.dtype))


def _three_fry_nest(k: Emitter, state: Sequence[Value], out: ArrayView) -> None:
    shape, w, key = out.shape, CodeWords(k), _code_pair(k, state[0])
    wide = out.dtype.bits == 64
    chosen, half = (0, shape) if wide else _halves(shape)
    with independent(k, [prod(half)]) as [block]:
        counter = k.binary("add", state[1], k.convert(block, U64))
        x, y = three_fry(w, _code_pair(k, counter), key)
        at = split(block, half)
        if wide:
            _store_bits(k, out, at, _joined(k, x, y))
            return
        if not shape:
            _store_bits(k, out, (), x)
            return
        for number, word in enumerate((x, y)):
            place = at[chosen] * 2 + number
            with guard(k, below(k, place, shape[chosen]) if number and shape[chosen] % 2 else None):
                _store_bits(k, out, [*at[:chosen], place, *at[chosen + 1:]], word)


def _philox_nest(k: Emitter, state: Sequence[Value], out: ArrayView) -> None:
    w, key = CodeWords(k), _code_pair(k, state[0])
    wide, count = out.dtype.bits == 64, prod(out.shape)
    each = 2 if wide else 4
    start, upper = (state[1], state[2]) if len(state) >= 3 else (state[1], state[0])
    with independent(k, [-(-count // each)]) as [block]:
        low = k.binary("add", start, k.convert(block, U64))
        high = k.binary("add", upper, k.convert(k.compare("LT", low, start), U64))
        words = philox(w, (*_code_pair(k, low), *_code_pair(k, high)), key)
        if wide:
            words = [_joined(k, words[0], words[1]), _joined(k, words[2], words[3])]
        for number, word in enumerate(words):
            place = block * each + number
            with guard(k, below(k, place, count) if number and count % each else None):
                _store_bits(k, out, split(place, out.shape), word)


rng_bit_generator = declare(Op(
    "rng-bit-generator", work="elementwise", infer=_rng_bit_generator_type, reference=_rng_bit_generator_reference,
    nest=_rng_bit_generator_nest, cost=result_elements,
    doc="Random bits and the next state, from a state: three-fry, or Philox (which rng_default is)."))


# ---------------------------------------------------------------- rng, and its state

def _rng_type(node: Node) -> Type:
    result = infer.declared_array(node)
    if len(node.operands) < 2:
        infer.arity(node, 2)
    a, b = infer.scalar(node, 0, "the first bound"), infer.scalar(node, 1, "the second bound")
    if a.dtype is not b.dtype or a.dtype is not result.dtype:
        raise TypeFault(f"rng needs one element type, but its operands are {a.dtype}[] and {b.dtype}[], its result {infer.plain(result)}",
                        "convert the operands to the type of the result")
    kinds = ("float",) if infer.attr(node, Random.distribution) == "rng_normal" else ("float", "int", "uint", "pred")
    infer.kind_of(node, result, kinds, "type")
    return TensorType(result.dtype, result.shape)


rng = declare(Op(
    "rng", work="elementwise", effect=Effect.WRITES, infer=_rng_type, cost=result_elements,
    doc="Random numbers of a hidden state. They cannot be reproduced, so they have types but no value: irscope does not run them."))

rng_get_and_update_state = declare(Op(
    "rng-get-and-update-state", effect=Effect.WRITES, infer=lambda node: infer.plain(infer.declared_array(node)), cost=lambda node: 0.0,
    doc="The hidden state of the random numbers, which grows by delta. It outlives a run, so irscope does not run it."))
