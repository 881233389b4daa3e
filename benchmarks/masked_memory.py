"""Runs every form of masked load and store between canaries and guard pages, at every CPU level that this machine runs.

    python benchmarks/masked_memory.py                       # irscope's own forms; exit 1 where one is wrong (about half an hour of CPU)
    python benchmarks/masked_memory.py --lanes 1:64          # every number of lanes
    python benchmarks/masked_memory.py --intrinsics          # LLVM's masked.store as it is: which forms LLVM gets wrong

A form is a kernel that loads a vector of one element type, converts it to another and stores it, with a mask on the store, the load or
a gather. Masks are constants (the first n lanes, one lane, random lanes) and computed ones. What is right is kept in ``--progress`` by the
hash of the LLVM text, so that a run goes on where it was stopped, and does again only what has changed.
"""
from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import mmap
import os
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from irscope.backends import llvm_compile, llvm_masked
from irscope.backends.compile import renamed
from irscope.backends.llvm_code import Code
from irscope.backends.llvm_compile import LoadedCode
from irscope.backends.llvm_kernel import kernel_text
from irscope.backends.llvm_types import suffix
from irscope.backends.targets import Machine
from irscope.graph import DTYPES, DType
from irscope.graph.dtypes import PRED, S64
from irscope.lower.build import KernelBuilder
from irscope.lower.tile import Kernel

Array = np.ndarray[Any, Any]
CPUS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "haswell", "skylake-avx512", "znver4", "native")
TYPES = [DTYPES[n] for n in ("pred", "s8", "s16", "s32", "s64", "f8e4m3fn", "bf16", "f16", "f32", "f64")]
ALONE = [DTYPES[n] for n in ("s4", "u4", "u8", "f8e5m2", "c64", "c128")]  # loaded and stored without a conversion
PAGE = mmap.PAGESIZE
ROOM = 4 * PAGE


@dataclass(frozen=True, slots=True)
class Form:
    """``where`` the mask is (``store``, ``load``, ``gather``), the element type read and the one written, and the lanes."""

    where: str
    source: DType
    to: DType
    lanes: int

    def __str__(self) -> str:
        return f"{self.where} {self.source}->{self.to} x{self.lanes}"


Mask = tuple[str, tuple[bool, ...]]
"""The name and the lanes of a mask; a name that begins with ``computed`` is given to the kernel as data."""


def forms(lanes: Sequence[int]) -> Iterator[Form]:
    """All that are tried."""
    for n in lanes:
        for where in ("store", "load", "gather"):
            for source in TYPES:
                for to in TYPES:
                    if where != "gather" or source is to or to.storage > source.storage:
                        yield Form(where, source, to, n)
            for alone in ALONE:
                yield Form(where, alone, alone, n)


def masks(lanes: int) -> list[Mask]:
    """The first 1 to ``lanes`` lanes, one lane, random ones; as constants, and a few as data."""
    draw = random.Random(lanes)
    first = [(f"first {n}", tuple(i < n for i in range(lanes))) for n in range(1, lanes + 1)]
    one = [(f"only {n}", tuple(i == n for i in range(lanes))) for n in range(1, lanes)]
    some = [(f"random {n}", tuple(draw.random() < 0.5 for _ in range(lanes))) for n in range(4)]
    return [*first, *one, *some, *((f"computed {name}", held) for name, held in [*first, *one[-1:], *some])]


def kernel(form: Form, mask: Mask) -> Kernel:
    """y = convert(x) where the mask holds; a masked store leaves the rest of y, a masked load makes it the conversion of 0."""
    name, held = mask
    k = KernelBuilder("masked", form.lanes)
    x = k.buffer("x", form.source, (form.lanes,), "in")
    m = k.buffer("m", PRED, (form.lanes,), "in")
    y = k.buffer("y", form.to, (form.lanes,), "out")
    if name.startswith("computed"):
        where = k.load(m, 0, form.lanes)
    else:
        where = k.vector(list(held), PRED) if form.lanes > 1 else k.const(held[0], PRED)
    if form.where == "store":
        k.store(y, 0, _converted(k, k.load(x, 0, form.lanes), form), where)
    elif form.where == "load":
        k.store(y, 0, _converted(k, k.load(x, 0, form.lanes, where), form))
    else:
        indices = k.vector(list(range(form.lanes)), S64) if form.lanes > 1 else k.index(0)
        k.store(y, 0, _converted(k, k.gather(x, indices, where), form))
    return k.finish()


def _converted(k: KernelBuilder, value: Any, form: Form) -> Any:
    return k.convert(value, form.to) if form.source is not form.to else value


def texts(form: Form, machine: Machine, tried: Sequence[Mask] | None = None) -> dict[str, tuple[str, list[Mask]]]:
    """The modules of a form by the symbol that they define, each with the masks that it is run with: those ``tried``, or all."""
    found: dict[str, tuple[str, list[Mask]]] = {}
    for mask in masks(form.lanes) if tried is None else tried:
        shown = kernel_text(kernel(form, mask), machine.target, [form.source.storage, 1, form.to.storage]).text
        symbol = "k_" + hashlib.sha256(shown.encode()).hexdigest()[:20]
        found.setdefault(symbol, (renamed(shown, symbol), []))[1].append(mask)
    return found


# ---- running


class Guarded:
    """Memory that ends at a page that nobody may touch, and begins behind one."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, ROOM + 2 * PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        protect = ctypes.CDLL(None).mprotect
        for page in (start, start + PAGE + ROOM):
            if protect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), 0):
                raise OSError("mprotect failed")
        self.bytes: Array = np.frombuffer(self._map, np.uint8)[PAGE:PAGE + ROOM]
        self.address = start + PAGE


def data(form: Form, seed: int) -> Array:
    """Values whose conversion is defined: wide integers and random floats among their own kind, small integers else."""
    rng = np.random.default_rng(seed)
    count, dtype = form.lanes, form.source.numpy()
    if form.source.is_complex:
        return (rng.standard_normal(count) + 1j * rng.standard_normal(count)).astype(dtype)
    if form.source.is_float and form.to.is_float:
        return np.asarray((rng.standard_normal(count) * 4).astype(np.float32).astype(dtype))
    if form.source.is_integer and form.to.is_integer and form.source.bits >= 8:
        return np.frombuffer(rng.bytes(count * form.source.storage), dtype).copy()
    return np.asarray(rng.integers(0, 2 if form.source is PRED else 8, count).astype(np.int32).astype(dtype))


def is_wrong(address: int, form: Form, mask: Mask, at_guard: bool, x: Guarded, m: Guarded, y: Guarded) -> bool:
    """Run a kernel once: whether it writes anything but what it should. ``at_guard`` puts the last lane of the mask in front of a page
    that must not be touched; else 2 KB of canaries lie on both sides."""
    held = np.array(mask[1], bool)
    values = data(form, form.lanes)
    taken = np.where(held, values, np.zeros(1, values.dtype))
    with np.errstate(all="ignore"):
        wanted = (values if form.where == "store" else taken).astype(form.to.numpy())
    lanes_used = int(np.flatnonzero(held)[-1]) + 1 if held.any() else 0

    def begin(storage: int, masked: bool) -> int:
        used = lanes_used if masked else form.lanes
        return ROOM - used * storage if at_guard else 2048 // storage * storage

    read, written = begin(form.source.storage, form.where != "store"), begin(form.to.storage, form.where == "store")
    x.bytes[:] = 0x5A
    y.bytes[:] = 0xA5
    source, after = values.view(np.uint8).reshape(form.lanes, -1), wanted.view(np.uint8).reshape(form.lanes, -1)
    expected = y.bytes.copy()
    for lane in range(form.lanes):
        if form.where == "store" or held[lane]:
            x.bytes[read + lane * form.source.storage:][:form.source.storage] = source[lane]
        if form.where != "store" or held[lane]:
            expected[written + lane * form.to.storage:][:form.to.storage] = after[lane]
    m.bytes[ROOM - form.lanes:] = held
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(address)
    run(x.address + read, m.address + ROOM - form.lanes, y.address + written, 0, 1, None)
    return not np.array_equal(y.bytes, expected)


def wrong_masks(form: Form, machine: Machine, modules: dict[str, tuple[str, list[Mask]]], guards: Sequence[bool] = (False,),
                begin: Callable[[int], None] = lambda number: None) -> list[str]:
    """The names of the masks with which a form is wrong here. ``begin`` hears the number of each run before it."""
    loaded = LoadedCode([llvm_compile.object_code(text, machine) for text, _ in modules.values()], list(modules))
    x, m, y = Guarded(), Guarded(), Guarded()
    found, number = [], 0
    for symbol, (_, given) in modules.items():
        for mask in given:
            for at_guard in guards:
                begin(number)
                number += 1
                if is_wrong(loaded.addresses[symbol], form, mask, at_guard, x, m, y) and mask[0] not in found:
                    found.append(mask[0])
    return found


def in_a_child(form: Form, machine: Machine, modules: dict[str, tuple[str, list[Mask]]], guards: Sequence[bool]) -> str:
    """:func:`wrong_masks` in a process of its own: the names, or at which mask it was killed."""
    shared = mmap.mmap(-1, PAGE)
    ends = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            found = wrong_masks(form, machine, modules, guards, lambda n: shared.__setitem__(slice(0, 4), n.to_bytes(4, "little")))
            os.write(ends[1], ", ".join(found).encode()[:60000])
            os._exit(0)
        finally:
            os._exit(1)
    os.close(ends[1])
    with os.fdopen(ends[0]) as pipe:
        answer = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 0:
        return answer
    runs = [mask[0] for _, given in modules.values() for mask in given for _ in guards]
    return f"signal {-status} at {runs[int.from_bytes(shared[:4], 'little')]}" if status < 0 else "failed"


def runnable(cpu: str) -> bool:
    """Whether this machine runs code for a CPU."""
    wanted = {f for f in llvm_compile.host(cpu).features.split(",") if f.startswith("+")}
    return wanted <= set(llvm_compile.host().features.split(","))


def intrinsic(code: Code, run: llvm_masked.LaneRun, value: str, mask: str, held: Sequence[bool] | None) -> None:
    """The masked store as LLVM has it, in place of irscope's."""
    short = suffix(run.element, run.lanes)
    code.declarations.add(f"declare void @llvm.masked.store.{short}.p0({run.kind}, ptr, <{run.lanes} x i1>)")
    code.effect(f"call void @llvm.masked.store.{short}.p0({run.kind} {value}, {run.address}, <{run.lanes} x i1> {mask})")


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", action="append", help="a CPU level (default: all that run here); may be repeated")
    parser.add_argument("--lanes", default="1,2,4,8,16,17,32,64", help="numbers of lanes, A:B for a range")
    parser.add_argument("--only", default="", help="only forms whose name has this in it, e.g. 'store f32->bf16'")
    parser.add_argument("--intrinsics", action="store_true", help="LLVM's masked.store as it is")
    parser.add_argument("--progress", type=Path, default=Path("out/masked_memory.jsonl"))
    options = parser.parse_args()
    if options.intrinsics:
        llvm_masked.store = intrinsic
    lanes: list[int] = []
    for part in options.lanes.split(","):
        low, _, high = part.partition(":")
        lanes += range(int(low), int(high or low) + 1)
    options.progress.parent.mkdir(parents=True, exist_ok=True)
    known = {json.loads(line)["key"] for line in options.progress.read_text().splitlines()} if options.progress.exists() else set()
    cpus = [c for c in options.cpu or CPUS if runnable(c)]
    tried, wrong = 0, 0
    with options.progress.open("a") as progress:
        for cpu in cpus:
            machine = llvm_compile.host(cpu)
            for form in forms(lanes):
                if options.only not in str(form):
                    continue
                modules = texts(form, machine)
                tried += sum(len(given) for _, given in modules.values())
                identity = " ".join([llvm_compile.version(), cpu, machine.features, str(form), *modules])
                key = hashlib.sha256(identity.encode()).hexdigest()[:24]
                if key in known:
                    continue
                answer = in_a_child(form, machine, modules, (False,) if options.intrinsics else (False, True))
                if answer:
                    wrong += 1
                    print(f"{cpu} {form}: {answer}", flush=True)
                else:
                    progress.write(json.dumps({"key": key, "form": str(form), "cpu": cpu}) + "\n")
                    progress.flush()
    print(f"{tried} masked forms on {', '.join(cpus)}: {wrong} of them wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
