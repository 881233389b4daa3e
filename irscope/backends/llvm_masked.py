"""Masked loads, gathers and stores: the only file that emits LLVM's masked intrinsics, in forms that LLVM compiles correctly.

LLVM 22.1 miscompiles one form for AVX-512. Where the value of a masked store is the truncation of a wider vector and the constant mask
has one true lane, its x86 back end folds the truncation into the store and then stores the one lane of the wide vector: bf16 in column
16 of 17 writes 4 bytes instead of 2. LLVM finds truncations across any preceding text, and folds constants, so neither the value's text
nor the mask's is a safe indication. :func:`store` therefore follows two rules for integer elements, which floats of 16 and 8 bits are in
memory:

- The mask of the intrinsic is a constant of whole aligned pairs of lanes; a lane without its neighbour gets a scalar store. However LLVM
  splits such a vector into registers, no part of two lanes or more has one true lane.
- Under a computed mask, every lane is a scalar store behind a branch. No kernel of irscope needs it to be fast: tails of rows
  have constant masks.

It miscompiles another form for AVX2: for a masked load of more than one register whose mask is a shuffle of constants instead of a
constant, a register without a true lane is read as if all lanes were true (a masked load of 16 floats with 2 true lanes reads 16).
Constant masks are therefore emitted as constants (:func:`constant`), also where they are derived from others.

``benchmarks/masked_memory.py`` runs all forms between guard pages, at every CPU level, and reports which of LLVM's own are wrong.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from irscope.backends.llvm_code import Code
from irscope.backends.llvm_types import suffix, vector

SIZES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "float": 4, "double": 8}


def constant(held: Sequence[bool]) -> str:
    """A mask whose lanes are known."""
    return "<" + ", ".join(f"i1 {'true' if lane else 'false'}" for lane in held) + ">"


@dataclass(frozen=True, slots=True)
class LaneRun:
    """Consecutive elements in memory, ``lanes`` of them, the first at ``pointer``."""

    element: str
    lanes: int
    pointer: str
    alignment: int

    @property
    def kind(self) -> str:
        return vector(self.element, self.lanes)

    @property
    def address(self) -> str:
        """The operand of an intrinsic."""
        return f"ptr align {min(self.alignment, 64)} {self.pointer}"


def load(code: Code, run: LaneRun, mask: str) -> str:
    """Consecutive elements; lanes whose mask is false are 0 and read nothing. One lane is a branch around a load."""
    if run.lanes == 1:
        return _load_when(code, run, mask)
    kind, short = run.kind, suffix(run.element, run.lanes)
    code.declarations.add(f"declare {kind} @llvm.masked.load.{short}.p0(ptr, <{run.lanes} x i1>, {kind})")
    return code.result(f"call {kind} @llvm.masked.load.{short}.p0({run.address}, <{run.lanes} x i1> {mask}, {kind} zeroinitializer)")


def gather(code: Code, element: str, lanes: int, pointers: str, mask: str) -> str:
    """One element a lane, each from its own pointer; lanes whose mask is false are 0 and read nothing."""
    kind, short = vector(element, lanes), suffix(element, lanes)
    name = f"@llvm.masked.gather.{short}.v{lanes}p0"
    code.declarations.add(f"declare {kind} {name}(<{lanes} x ptr>, <{lanes} x i1>, {kind})")
    return code.result(f"call {kind} {name}(<{lanes} x ptr> align {SIZES[element]} {pointers}, <{lanes} x i1> {mask}, "
                       f"{kind} zeroinitializer)")


def store(code: Code, run: LaneRun, value: str, mask: str, held: Sequence[bool] | None) -> None:
    """Write consecutive elements; lanes whose mask is false write nothing. ``held`` has the lanes of a constant mask (None: any other)."""
    if run.lanes == 1:
        _store_when(code, f"store {run.element} {value}, ptr {run.pointer}, align {min(run.alignment, 64)}", mask)
    elif run.element in ("float", "double"):
        _store_vector(code, run, value, mask)
    elif held is None:
        for lane in range(run.lanes):
            taken = code.pure(f"extractelement <{run.lanes} x i1> {mask}, i64 {lane}", mask)
            _store_when(code, _lane_store(code, run, value, lane), taken)
    else:
        paired = [lane ^ 1 < run.lanes and held[lane] and held[lane ^ 1] for lane in range(run.lanes)]
        if any(paired):
            _store_vector(code, run, value, constant(paired))
        for lane in range(run.lanes):
            if held[lane] and not paired[lane]:
                code.effect(_lane_store(code, run, value, lane))


def _store_vector(code: Code, run: LaneRun, value: str, mask: str) -> None:
    kind, short = run.kind, suffix(run.element, run.lanes)
    code.declarations.add(f"declare void @llvm.masked.store.{short}.p0({kind}, ptr, <{run.lanes} x i1>)")
    code.effect(f"call void @llvm.masked.store.{short}.p0({kind} {value}, {run.address}, <{run.lanes} x i1> {mask})")


def _lane_store(code: Code, run: LaneRun, value: str, lane: int) -> str:
    """The line that stores one lane of a vector to its address."""
    one = code.pure(f"extractelement {run.kind} {value}, i64 {lane}", value)
    at = code.pure(f"getelementptr {run.element}, ptr {run.pointer}, i64 {lane}", run.pointer) if lane else run.pointer
    return f"store {run.element} {one}, ptr {at}, align {math.gcd(min(run.alignment, 64), lane * SIZES[run.element])}"


def _load_when(code: Code, run: LaneRun, mask: str) -> str:
    """A one-lane load under a condition; 0 where it does not hold."""
    before = code.regions[-1].place.label
    with _when(code, mask) as take:
        read = code.result(f"load {run.element}, ptr {run.pointer}, align {min(run.alignment, 64)}")
    return code.result(f"phi {run.element} [ {'0.0' if run.element in ('float', 'double') else '0'}, %{before} ], [ {read}, %{take} ]")


def _store_when(code: Code, line: str, mask: str) -> None:
    """A one-lane store under a condition. The operands of ``line`` are computed before the branch."""
    with _when(code, mask):
        code.effect(line)


@contextmanager
def _when(code: Code, mask: str) -> Iterator[str]:
    """Emit the lines of the ``with`` block into a basic block that runs only where ``mask`` is true; yields its label."""
    take, join, place = code.label(), code.label(), code.regions[-1].place
    code.effect(f"br i1 {mask}, label %{take}, label %{join}")
    place.lines.append(f"{take}:")
    yield take
    code.effect(f"br label %{join}")
    place.lines.append(f"{join}:")
    place.label = join
