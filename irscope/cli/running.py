"""Runs ``compile-and-run``: reads, compiles, runs, times and compares, each in the room that knows how."""
from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from irscope.analysis.soundness import Use, require
from irscope.cli.input import first_module, load_ok
from irscope.cli.interrupt import interruptible
from irscope.cli.progress import Progress
from irscope.cli.run_arrays import Arrays, read_files, results_by_number
from irscope.cli.run_module import bound
from irscope.cli.run_request import Request, check_cpu
from irscope.graph import Module
from irscope.lazy import Array
from irscope.source import UserError

if TYPE_CHECKING:

    from irscope.backends.comparison import Comparison


@dataclass(slots=True)
class Outcome:
    """What happened, before it is told."""

    outputs: list[Array]
    kernels: int
    interpreted_ops: list[str]
    threads: int
    load_s: float
    compile_s: float
    flops: float
    samples_us: list[float] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    devices: int = 1  # whose outputs stand one behind the other

    @property
    def ok(self) -> bool:
        return all(c.fault is None for c in self.comparisons)


def run(request: Request) -> int:
    """Do what was asked; the status is 1 when a comparison failed."""
    began = time.perf_counter()
    with Progress("reading"):
        reading = load_ok(request.file, request.from_)
    check_cpu(request)
    files = read_files(request)
    first = first_module(reading)
    if first.format == "hlo":  # a program's types follow from the arrays that it is given: they are checked when it is opened
        require(reading, first, Use.RUN)
    module = bound(request, first, files)
    arrays = Arrays(request, module, files)
    load_s = time.perf_counter() - began
    if request.emit is not None:
        from irscope.cli.emitting import emit

        return emit(request, module, arrays.weights)
    outcome = _by_reference(request, module, arrays) if request.engine == "reference" else _by_llvm(request, module, arrays)
    outcome.load_s, outcome.devices = load_s, module.attrs.get("partitions", 1)
    _compare(request, module, arrays, outcome)
    if request.save_outputs:
        from irscope.source.arrays import write_arrays

        write_arrays(request.save_outputs, {f"out{i}": a for i, a in enumerate(outcome.outputs)}, _given(request))
    from irscope.cli.run_report import print_json, print_tables

    print_json(outcome) if request.format_ == "json" else print_tables(request, outcome, arrays.drawn_names)
    return 0 if outcome.ok else 1


def _given(request: Request) -> list[str]:
    """The files that are read."""
    return [given for given in (request.file, *request.inputs, *request.weights, request.constants, request.expect) if given is not None]


def _by_llvm(request: Request, module: Module, arrays: Arrays) -> Outcome:
    from irscope.backends.cache import refusal
    from irscope.backends.model import compile_module

    options = request.options()
    reason = None if request.no_cache else refusal()
    if reason:
        print(f"note: {reason}", file=sys.stderr)
    tuner = None
    if request.autotune:
        from irscope.backends.tuning import Tuning

        tuner = Tuning(options.threads, request.cpu, not request.no_cache)
    with interruptible(), Progress("compiling"):
        model = compile_module(module, arrays.weights, options, request.cpu, not request.no_cache, tuner)
    if tuner is not None:
        print(f"note: {tuner.changed} of {tuner.tried} kernels that have several schedules run faster with another than the rules choose",
              file=sys.stderr)
    with interruptible(), Progress("running"):
        bound = model.bind(arrays.inputs())
        bound()
        outputs = [a.copy() for a in bound.outputs]
        samples = _timed(request, bound) if request.bench else []
    return Outcome(outputs, model.kernels, model.interpreted_ops, options.threads, 0.0, model.compile_s, model.flops, samples)


def _timed(request: Request, call: Any) -> list[float]:
    """Microseconds of each sample; runs that are too short for the clock are timed several at once."""
    clock = time.perf_counter
    for _ in range(request.warmup):
        call()
    began = clock()
    call()
    once = max(clock() - began, 1e-7)
    inner = max(1, min(1000, int(2e-5 / once))) if request.runs is None else 1
    samples: list[float] = []
    end = clock() + request.bench_seconds
    while len(samples) < request.runs if request.runs is not None else (clock() < end or not samples):
        began = clock()
        for _ in range(inner):
            call()
        samples.append((clock() - began) / inner * 1e6)
    return samples


def _by_reference(request: Request, module: Module, arrays: Arrays) -> Outcome:
    names = sorted({node.op.name for graph in module.graphs.values() for node in graph.nodes if node.op.name not in ("parameter", "tuple")})
    with Progress("interpreting"):
        outputs = _reference(module, arrays)
        samples = []
        if request.bench:
            samples = _timed(request, lambda: _reference(module, arrays))
    return Outcome(outputs, 0, names, 1, 0.0, 0.0, 0.0, samples)


def _reference(module: Module, arrays: Arrays) -> list[Array]:
    from irscope.backends.varying import reference_results

    return reference_results(module, arrays.all())


def _compare(request: Request, module: Module, arrays: Arrays, outcome: Outcome) -> None:
    from irscope.backends.comparison import compare_all

    if request.check and request.engine != "reference":
        from irscope.analysis.rounding import coarsest_types

        way = coarsest_types(module)
        with Progress("checking against the reference"):
            outcome.comparisons += compare_all(outcome.outputs, _reference(module, arrays), request.rtol, request.atol, way,
                                               module.flushes_denormals)
    if request.expect:
        from irscope.backends.arguments import fitted
        from irscope.backends.model import ports_of
        from irscope.source.arrays import read_arrays

        ports = ports_of(module)[1]
        found = results_by_number(read_arrays(request.expect), len(ports), outcome.devices)
        expected = [fitted(found[p.name], p, f"{request.expect}: {p.name}") if p.name in found else None for p in ports]
        if all(e is None for e in expected):
            names = "outputs are named out0, out1, ..." + (", or out0@1 of device 1" if outcome.devices > 1 else "")
            raise UserError(f"{request.expect} holds none of {', '.join(p.name for p in ports[:4])}", names)
        outcome.comparisons += compare_all(outcome.outputs, expected, request.rtol, request.atol, flushed=module.flushes_denormals)
