"""Recorded calls of torch's operators, run by irscope and held against what torch gave."""
from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from irscope.analysis.reference import evaluate, flatten
from irscope.api import load
from irscope.backends.model import ports_of
from irscope.backends.opening import Bindings, opened
from irscope.graph import Module
from tests.lower.whole import reference

Array = np.ndarray[Any, Any]

TOLERANCES = {"float64": (1e-6, 1e-8), "float32": (2e-5, 2e-5), "float16": (4e-3, 4e-3), "bfloat16": (2e-2, 2e-2), "complex64": (2e-5, 2e-5),
              "complex128": (1e-6, 1e-8)}
"""Relative and absolute, by element type. float64 results often go through float32 constants of the text."""


@dataclass(frozen=True, slots=True)
class Case:
    """One call: the text as torch prints it, inputs and outputs in order."""

    name: str
    text: str
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]

    def operators(self) -> set[str]:
        """The operators in the text, plumbing left out."""
        found = set()
        for line in self.text.splitlines():
            head = line.partition(" = ")[2].partition("(")[0].partition("[")[0]
            if head.startswith(("aten::", "quantized::")):
                found.add(head)
        return found


def read_cases(path: str | Path) -> Iterator[Case]:
    """The cases of a file."""
    with np.load(path) as file:
        arrays = dict(file)
    for number, entry in enumerate(json.loads(arrays["cases"].tobytes())):
        def arrays_of(kind: str, entry: dict[str, Any] = entry, number: int = number) -> tuple[Array, ...]:
            out = []
            for i in range(entry[kind]):
                array = arrays[f"{number}.{kind}{i}"]
                dtype = entry.get("dtypes", {}).get(f"{kind}{i}")
                out.append(array.view(getattr(ml_dtypes, dtype)) if dtype else array)
            return tuple(out)
        yield Case(entry["name"], entry["text"], arrays_of("in"), arrays_of("out"))


def write_cases(path: str | Path, cases: list[Case]) -> None:
    """The inverse of :func:`read_cases`."""
    table, arrays = [], {}
    for number, case in enumerate(cases):
        entry: dict[str, Any] = {"name": case.name, "text": case.text}
        for kind, values in (("in", case.inputs), ("out", case.outputs)):
            for i, array in enumerate(values):
                if array.dtype == ml_dtypes.bfloat16:
                    entry.setdefault("dtypes", {})[f"{kind}{i}"] = "bfloat16"
                    array = array.view(np.uint16)
                arrays[f"{number}.{kind}{i}"] = array
            entry[kind] = len(values)
        table.append(entry)
    np.savez_compressed(path, cases=np.frombuffer(json.dumps(table).encode(), np.uint8), **arrays)  # type: ignore[arg-type]


def measure(part: Module, given: Any) -> int:
    """A size that depends on data."""
    return int(reference(part, [given[p.name] for p in ports_of(part)[0]])[0])


def program_of(case: Case) -> tuple[Module, list[Array]]:
    """The primitive module of a case, and the arrays of its ports."""
    reading = load(case.text, format="torchscript")
    assert reading.ok, [f.render() for f in reading.findings]
    module = reading.module()
    names = [p.name for p in module.main().params]
    if names and "__torch__" in str(module.main().params[0].type):
        names = names[1:]
    arrays = dict(zip(names, case.inputs, strict=True))
    made = opened(module, Bindings(arrays), measure)
    return made, [arrays[port.name] for port in ports_of(made)[0]]


def by_reference(case: Case) -> list[Array]:
    """What the reference gives."""
    made, given = program_of(case)
    return [np.asarray(a) for a in flatten(evaluate(made.main(), given))]


def differences(got: list[Array], wanted: tuple[Array, ...]) -> str:
    """Empty, or how the outputs differ."""
    if len(got) != len(wanted):
        return f"{len(got)} outputs instead of {len(wanted)}"
    for i, (g, w) in enumerate(zip(got, wanted, strict=True)):
        if g.dtype != w.dtype or g.shape != w.shape:
            return f"out{i} is {g.dtype}{list(g.shape)}, torch gives {w.dtype}{list(w.shape)}"
        if w.dtype.name not in TOLERANCES:
            if not np.array_equal(g, w):
                return f"out{i}: {_first(g, w, g != w)}"
            continue
        relative, absolute = TOLERANCES[w.dtype.name]
        if w.dtype.itemsize < 4 and w.size:
            # What is left of large numbers that cancel has few digits: the largest is the measure.
            with np.errstate(all="ignore"):
                largest = np.abs(w.astype(np.float64))
            absolute = max(absolute, relative * float(np.max(largest[np.isfinite(largest)], initial=0)))
        kind = np.complex128 if w.dtype.kind == "c" else np.float64
        with np.errstate(all="ignore"):
            wrong = ~np.isclose(g.astype(kind), w.astype(kind), relative, absolute, equal_nan=True)
        if wrong.any():
            return f"out{i}: {_first(g, w, wrong)}"
    return ""


def _first(g: Array, w: Array, wrong: Array) -> str:
    place = tuple(int(k) for k in np.argwhere(wrong)[0])
    return f"{g[place]!r} instead of {w[place]!r} at {list(place)}, {int(wrong.sum())} of {w.size} differ"
