"""One case: compiled twice, run between guard pages, compared with the reference and with itself."""
from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from irscope.analysis.rounding import coarsest_types
from irscope.api import load
from irscope.backends.comparison import compare_all
from irscope.backends.executable import Executable
from irscope.backends.loaded_model import Model
from irscope.backends.model import compile_module
from irscope.backends.varying import reference_results
from irscope.graph import Module
from irscope.lower.options import Options
from irscope.lower.verify import verify_program
from irscope.source import UserError
from tests.grid.case import Case
from tests.grid.guards import ALIGNED, POISON, Arena, Placed, Regions

Array = np.ndarray[Any, Any]
APART = 256
"""Bytes between the slots of an arena: the widest vector four times."""


@dataclass(slots=True)
class Outcome:
    """``said`` is ``right``, ``refused`` (irscope says that it cannot run it), ``differs``, ``strays``, ``unequal``, ``unsound``, ``raised`` or
    ``broken`` (the text is not what it should be); the runner adds ``crashed`` and ``endless``. ``why`` says where. ``families`` are those that built its kernels."""

    said: str
    why: str = ""
    families: list[str] = field(default_factory=list)


_regions = Regions()


def run_case(case: Case) -> Outcome:
    """Compile a case and hold it against the reference, the memory around it, and itself on other threads. What raises is an outcome too."""
    try:
        return _run(case)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome("raised", f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})")


def _run(case: Case) -> Outcome:
    text, parameters = case.program()
    reading = load(text)
    if not reading.ok or any(f.severity.name == "ERROR" for f in reading.findings):
        return Outcome("broken", f"the text is faulty: {reading.findings[0].message}")
    module = reading.module()
    fixed = [n for n, p in enumerate(parameters) if p.fixed]
    arrays = [case.arrays(parameters, run) for run in (0, 1)]
    weights = {n: arrays[0][n] for n in fixed}
    try:
        apart = compile_module(module, weights, Options(apart=APART), case.cpu)
        model = compile_module(module, weights, Options(threads=case.threads), case.cpu)
    except UserError as refused:
        return Outcome("refused", refused.message)
    outcome = _checked(case, module, apart, model, arrays, fixed)
    outcome.families = sorted({str(k.schedule.get("template", "copies")) for k in model.program.kernels()})
    return outcome


def _checked(case: Case, module: Module, apart: Model, model: Model, arrays: list[list[Array]], fixed: list[int]) -> Outcome:
    expected = reference_results(module, arrays[0])
    given = [[a for n, a in enumerate(run) if n not in fixed] for run in arrays]
    got, strays = _between_guards(case, apart, given[0], True)
    if strays:
        return Outcome("strays", strays)
    fault = next((c.fault for c in compare_all(got, expected, way=coarsest_types(module), flushed=module.flushes_denormals) if c.fault), None)
    if fault:
        return Outcome("differs", fault)
    for run in (1, 0, 0):
        again, strays = _between_guards(case, model, given[run], False)
        if strays:
            return Outcome("strays", f"{case.threads} threads: {strays}")
        if run == 0:
            fault = next((told for a, b in zip(got, again) if (told := _unequal(a, b))), "")
            if fault:
                return Outcome("unequal", f"{case.threads} threads, the arena as it is, against one thread: {fault}")
    unsound = verify_program(apart.program)
    return Outcome("unsound", str(unsound[0])) if unsound else Outcome("right")


def _between_guards(case: Case, model: Model, arrays: Sequence[Array], apart: bool) -> tuple[list[Array], str]:
    """A run whose arrays lie between guard pages: copies of the results, and what was changed that is not theirs."""
    executable = model.executable
    assert isinstance(executable, Executable)
    at_end = case.place == "end"
    ins = _regions.arrays([(a.dtype, a.shape) for a in arrays], at_end, 0)
    for placed, array in zip(ins, arrays):
        placed.array[...] = array
    outs = _regions.arrays([(p.dtype.numpy(), p.shape) for p in model.outputs], at_end, ALIGNED, len(ins))
    call = executable.bind([p.array for p in ins], [p.array for p in outs])
    executable._scratch[:] = POISON
    arena = Arena(model.program, executable._arena, apart)
    arena.fill()
    call()
    strays = _strays(ins, arrays, outs) or arena.strays()
    return [p.array.copy() for p in outs], strays


def _strays(ins: Sequence[Placed], arrays: Sequence[Array], outs: Sequence[Placed]) -> str:
    for what, placed in (("input", ins), ("output", outs)):
        for number, one in enumerate(placed):
            told = one.strays()
            if told:
                return f"{what} {number}: {told}"
    changed = next((n for n, (one, array) in enumerate(zip(ins, arrays)) if _unequal(one.array, array)), None)
    return "" if changed is None else f"input {changed} was written to"


def _unequal(one: Array, other: Array) -> str:
    """Where two arrays differ in a bit; empty where nowhere."""
    if not one.size:
        return ""
    a, b = (np.ascontiguousarray(x).reshape(-1).view(np.uint8).reshape(x.size, -1) for x in (one, other))
    differ = np.flatnonzero((a != b).any(1))
    if not differ.size:
        return ""
    at = int(differ[0])
    return f"{differ.size} of {one.size} values differ, the first at {at}: {other.flat[at]} instead of {one.flat[at]}"
