"""One random program, judged: the reference, one thread and two threads must agree.

The comparison is the project's own (``irscope.backends.comparison``, as ``--check`` has it): integers exactly, floats by their type.
One and two threads must agree in every bit, and so must a second run. Kernels are shared among threads however small they are, so that
programs of a few thousand elements test what large ones do.
"""
from __future__ import annotations

import re
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from irscope.analysis.reference import results
from irscope.analysis.rounding import coarsest_types
from irscope.api import load
from irscope.backends import llvm_main
from irscope.backends.comparison import compare_all
from irscope.backends.loaded_model import Model
from irscope.backends.model import compile_module, ports_of
from irscope.backends.opening import Bindings, needs_opening, opened
from irscope.graph import Module
from irscope.lower.options import Options
from irscope.source import Severity, UserError
from tests.programs.arrays import arrays_of
from tests.programs.program import Program, Value
from tests.programs.verdict import Verdict

Array = np.ndarray[Any, Any]

SMALLEST_CHUNK_US = 1e-6
"""What a thread's share of a kernel must take at least while programs are judged."""


class Refused(Exception):
    """irscope says, in words, that a program does not run."""


def judge(program: Program, seed: int = 0) -> Verdict:
    """Run a program on arrays of a seed, every way, and compare."""
    began = time.process_time()
    try:
        with shared_among_threads(), np.errstate(all="ignore"):
            verdict = _judged(program, seed)
    except (UserError, Refused) as refused:
        message = str(refused).split("\n")[0][:300]
        verdict = Verdict("refused", message, re.sub(r"[\d%].*", "", message.rpartition(": ")[2]))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = where.filename.rpartition("/irscope/")[2] or where.filename
        key = f"{type(error).__name__} {place}:{where.name}"
        verdict = Verdict("raised", f"{key}:{where.lineno} {error}"[:400], key)
    return Verdict(verdict.kind, verdict.detail, verdict.key, time.process_time() - began)


@contextmanager
def shared_among_threads() -> Iterator[None]:
    """Kernels are shared among threads however small they are."""
    before = llvm_main.SMALLEST_CHUNK_US
    llvm_main.SMALLEST_CHUNK_US = SMALLEST_CHUNK_US
    try:
        yield
    finally:
        llvm_main.SMALLEST_CHUNK_US = before


def _judged(program: Program, seed: int) -> Verdict:
    arrays = arrays_of(program, seed)
    module, given = primitive(program, arrays)
    expected = results(module, given)
    one = compiled(module, 1)
    single = one(*given)
    way = coarsest_types(module)
    faults = [c.fault for c in compare_all(single, expected, way=way, flushed=module.flushes_denormals) if c.fault is not None]
    if faults or len(single) != len(expected):
        return Verdict("differs", faults[0] if faults else f"{len(single)} results instead of {len(expected)}")
    beyond = next(filter(None, map(beyond_range, program.outputs, expected)), None) if not program.special else None
    if beyond:
        return Verdict("range", beyond)
    if not same_bits(single, one(*given)):
        return Verdict("again", "a second run gives other bits")
    double = compiled(module, 2)(*given)
    if not same_bits(single, double):
        return Verdict("threads", "one and two threads give different bits")
    return Verdict("same")


def beyond_range(value: Value, array: Array) -> str | None:
    """What is wrong with an exact result that leaves the range in which the generator knows it to be."""
    if value.grade != "exact" or value.shape != array.shape or array.dtype.kind not in "fV" or not array.size:
        return None
    low, high = float(array.min()), float(array.max())
    return None if value.low <= low and high <= value.high else f"{value.name} is from {low} to {high}, not from {value.low} to {value.high}"


def primitive(program: Program, arrays: list[Array]) -> tuple[Module, list[Array]]:
    """The module of a program as it is compiled and run, and the arrays in its order. Raises UserError or Refused."""
    reading = load(program.text(), format=program.format)
    faults = [f for f in reading.findings if f.severity is Severity.ERROR]
    if faults or not reading.ok:
        raise Refused("the reader: " + "; ".join(f.headline() for f in faults or reading.findings))
    module = reading.module()
    if not needs_opening(module):
        return module, arrays
    names = [p.name for p in module.main().params]
    by_name = dict(zip(names, arrays, strict=True))

    def measure(part: Module, given: Mapping[str, Array]) -> int:
        return int(results(part, [given[p.name] for p in ports_of(part)[0]])[0])
    made = opened(module, Bindings(by_name), measure)
    return made, [by_name[port.name] for port in ports_of(made)[0]]


def compiled(module: Module, threads: int) -> Model:
    return compile_module(module, {}, Options(threads=threads))


def same_bits(left: list[Array], right: list[Array]) -> bool:
    """Whether arrays agree in every bit; NaN is NaN whatever its payload."""
    for a, b in zip(left, right, strict=True):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.tobytes() != b.tobytes():
            kind = a.dtype.kind
            if kind not in "fcV":
                return False
            wide = np.complex128 if kind == "c" else np.float64
            x, y = a.astype(wide), b.astype(wide)
            if not (np.array_equal(x, y, equal_nan=True) and np.array_equal(np.signbit(x.real)[~np.isnan(x)], np.signbit(y.real)[~np.isnan(y)])):
                return False
    return True
