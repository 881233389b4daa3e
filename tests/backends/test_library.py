"""A program as a library for C: it depends on nothing of irscope, and takes arrays at any address."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irscope
from irscope.backends import llvm_compile
from irscope.backends.llvm_compile import LoadedCode
from irscope.backends.model import compile_module, lowered
from irscope.backends.standalone import ENTRY, EXPORTS, LARGE, SIZE, CompiledLibrary
from irscope.lower.memory import address
from irscope.lower.options import Options
from irscope.lower.program import Program

Array = np.ndarray[Any, Any]

NET = """ENTRY main {
  x = f32[1,6,6,4] parameter(0)
  z = c128[5] parameter(1)
  w = f32[3,3,4,67] parameter(2)
  v = f32[3,3,67,67] parameter(3)
  c = f32[1,6,6,67] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  t = f32[1,6,6,67] tanh(c)
  d = f32[1,6,6,67] convolution(t, v), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  p = c128[5] multiply(z, z)
  ROOT r = (f32[1,6,6,67], c128[5]) tuple(d, p)
}"""


class Loaded:
    """The entry point of a library that is loaded into this process."""

    def __init__(self, program: Program, folder: Path) -> None:
        library = CompiledLibrary.of(program, llvm_compile.host(), folder)
        self.code = LoadedCode([library.object_code()], list(EXPORTS))
        self.arena_bytes = ctypes.c_int64.from_address(self.code.addresses[SIZE]).value
        assert self.arena_bytes == library.arena_bytes
        self._run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(self.code.addresses[ENTRY])

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array], arena: Array) -> None:
        pointers = [(ctypes.c_void_p * len(arrays))(*map(address, arrays)) for arrays in (inputs, outputs)]
        self._run(ctypes.addressof(pointers[0]), ctypes.addressof(pointers[1]), address(arena))


def memory_at(offset: int, data: bytes) -> Array:
    """Bytes that begin ``offset`` behind a multiple of 64, between others that a stray store would change."""
    memory = np.full(len(data) + 256, 0xA5, np.uint8)
    begin = -address(memory) % 64 + 64 + offset
    memory[begin:begin + len(data)] = np.frombuffer(data, np.uint8)
    return memory[begin:begin + len(data)]


def surroundings(array: Array) -> bytes:
    """The bytes before and after those of :func:`memory_at`."""
    memory = array.base
    assert isinstance(memory, np.ndarray)
    begin = address(array) - address(memory)
    return memory[:begin].tobytes() + memory[begin + array.nbytes:].tobytes()


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> tuple[Loaded, list[Array], list[Array]]:
    """A net with constants and with images that have borders of zeros, its inputs and its outputs."""
    rng = np.random.default_rng(0)
    x, w, v = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 6, 6, 4), (3, 3, 4, 67), (3, 3, 67, 67)))
    z = rng.standard_normal(5) + 1j * rng.standard_normal(5)
    module = irscope.load(NET).module()
    program = lowered(module, {2: w, 3: v}, Options(), use_cache=False).program
    assert any(slot.zeroed for slot in program.temps) and any(slot.bytes >= LARGE for slot in program.constants)
    wanted = compile_module(module, {2: w, 3: v}, use_cache=False)(x, z)
    folder = tmp_path_factory.mktemp("library")
    loaded = Loaded(program, folder)
    assert len(list(folder.iterdir())) == sum(slot.bytes >= LARGE for slot in program.constants)
    return loaded, [x, z], wanted


@pytest.mark.parametrize("offset", [0, 32, 16, 8, 4, 1])
def test_arrays_and_arena_may_begin_anywhere(offset: int, net: tuple[Loaded, list[Array], list[Array]]) -> None:
    library, inputs, wanted = net
    given = [memory_at(offset, array.tobytes()) for array in inputs]
    outputs = [memory_at(offset, bytes(array.nbytes)) for array in wanted]
    arena = memory_at(offset, b"\xff" * library.arena_bytes)
    for _ in range(2):  # the second run finds the arena as the first left it
        library(given, outputs, arena)
        for got, want in zip(outputs, wanted, strict=True):
            np.testing.assert_array_equal(np.frombuffer(got.tobytes(), want.dtype), want.reshape(-1))
    assert {byte for array in (*given, *outputs, arena) for byte in surroundings(array)} == {0xA5}


def test_complex_inputs_need_the_alignment_of_their_parts() -> None:
    module = irscope.load("ENTRY main { z = c128[33] parameter(0)\n ROOT n = c128[33] negate(z) }").module()
    program = compile_module(module, cpu="x86-64" if llvm_compile.host().triple.startswith("x86_64") else "", use_cache=False)
    z = memory_at(8, np.arange(66.0).tobytes()).view(np.complex128)
    assert program(z)[0].tolist() == (-z).tolist()
