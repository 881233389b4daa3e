"""Runs the operator tests that the package ``onnx`` has for backends, and reports what passes, by operator.

    python -m tests.onnx_backend [--engine llvm|reference] [--match TEXT] [--operators]

Tests of strings, images, random numbers, training and operators outside the standard are left out: irscope refuses these by name. The status
is 1 when a test fails.
"""
from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import irscope
from irscope.api.options import RunOptions
from irscope.api.running import run

LEFT_OUT = re.compile(
    "string|strnorm|regex|image_decoder|bernoulli|training_dropout|adagrad|adam|momentum|flexattention|ai_onnx_ml|_expanded"
    "|if_opt|loop16_seq_none|loop13_seq|scan_sum$|sequence_map|sequence_insert|identity_(opt|sequence)|optional_(get|has)_element_(opt|seq|empty_opt)")
"""Tests that are not run: of what irscope refuses by name, and of inputs that are no tensors."""


@dataclass(frozen=True, slots=True)
class Case:
    """A model with inputs by name, the expected results, and the tolerance."""

    name: str
    operators: tuple[str, ...]
    model: bytes
    inputs: dict[str, Any]
    expected: list[Any]
    rtol: float
    atol: float


def cases(match: str = "") -> Iterator[Case]:
    """The tests whose names contain a text."""
    from onnx.backend.test.case import node

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = node.collect_testcases(None)
    for test in found:
        if match in test.name and not LEFT_OUT.search(test.name) and test.model is not None:
            model = test.model.SerializeToString()
            names = [value.name for value in test.model.graph.input]
            operators = tuple(sorted({inner.op_type for inner in test.model.graph.node}))
            for inputs, outputs in test.data_sets or ():
                given = {name: plain(value) for name, value in zip(names, inputs, strict=False)}
                results: list[Any] = list(outputs)
                expected = [plain(part) for value in results for part in (value if isinstance(value, list) else [value])]
                yield Case(test.name, operators, model, given, expected, test.rtol, test.atol)


def plain(value: Any) -> Any:
    """A value of a test as an array."""
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def fault(case: Case, engine: str) -> str:
    """What is wrong with irscope's results; empty where nothing is."""
    try:
        made = run(case.model, RunOptions(engine=engine), inputs=case.inputs).outputs
    except irscope.UserError as error:
        return str(error)
    if len(made) != len(case.expected):
        return f"{len(made)} results, not {len(case.expected)}"
    for got, want in zip(made, case.expected, strict=True):
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"{got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
        if not same(got, want, case):
            return f"{got.reshape(-1)[:4]}, not {want.reshape(-1)[:4]}"
    return ""


def same(got: Any, want: Any, case: Case) -> bool:
    """Whether two arrays are equal, floats within the tolerance of the test and of the element type."""
    if got.dtype.kind in "biu" or got.dtype.name.startswith(("int", "uint")):
        return bool(np.array_equal(got, want))
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    scale = max(1.0, float(np.nanmax(np.abs(want.astype(wide)), initial=0, where=np.isfinite(want))))
    steps = {"bfloat16": 2**-7, "float16": 2**-9}.get(got.dtype.name, 0.0)
    return bool(np.allclose(got.astype(wide), want.astype(wide), max(case.rtol, steps), max(case.atol, 1e-6, steps / 4) * scale, equal_nan=True))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--engine", default="llvm", choices=("llvm", "reference"))
    parser.add_argument("--match", default="")
    parser.add_argument("--operators", action="store_true", help="list every operator, not only those with failures")
    options = parser.parse_args(arguments)
    counts: dict[str, list[int]] = {}
    bad = total = 0
    for case in cases(options.match):
        wrong = fault(case, options.engine)
        total += 1
        bad += bool(wrong)
        for name in case.operators:
            count = counts.setdefault(name, [0, 0])
            count[0] += not wrong
            count[1] += 1
        if wrong:
            print(f"{case.name}: {wrong[:200]}", flush=True)
    for name, (good, all_) in sorted(counts.items()):
        if options.operators or good < all_:
            print(f"{name}: {good} of {all_}")
    print(f"{total - bad} of {total} tests of {len(counts)} operators")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
