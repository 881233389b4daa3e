"""A run whose program is not in the cache: reads, compiles or interprets, stores the program, and compares the results."""
from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence

from irscope.analysis.rounding import coarsest_types
from irscope.api.array_files import Files
from irscope.api.arrays import MOST_NAMED, results_by_number
from irscope.api.binding import lowering_options
from irscope.api.expecting import Ran, compare_with_dump
from irscope.api.loading import Source
from irscope.api.options import RunOptions
from irscope.api.preparing import Preparation, prepared
from irscope.api.profiling import profile_of
from irscope.api.run_result import RunResult
from irscope.api.stored_programs import InputPort, NoteRecorder, ProgramStore, RunFacts, StoredProgram
from irscope.api.timing import timed
from irscope.api.watching import Watcher
from irscope.backends.arguments import fitted
from irscope.backends.cache import LARGEST_ENTRY, refusal
from irscope.backends.comparison import ResultComparison, compare_all
from irscope.backends.executable import Port
from irscope.backends.loaded_model import Model
from irscope.backends.model import compile_module, compiled_program, ports_of
from irscope.backends.tuning import Tuning
from irscope.backends.varying import reference_results
from irscope.graph import Reading
from irscope.lazy import Array, np
from irscope.ops import hlo
from irscope.ops.module_attributes import Interface, Prepared
from irscope.render.units import bytes_, some
from irscope.source import UserError
from irscope.source.arrays import read_arrays

NOT_WORK = hlo.named("parameter tuple")
OUTPUT = re.compile(r"out\d+(?:@\d+)?", re.ASCII)
"""The names of outputs in files."""


def run(what: Source, options: RunOptions, given: Files, store: ProgramStore | None, watch: Watcher) -> RunResult:
    """Read, compile, run and compare a dump, and store its program. Raises UserError as :func:`irscope.run` does."""
    began = time.perf_counter()
    noting = NoteRecorder(watch)
    ready = prepared(what, options, given, noting)
    load_s = time.perf_counter() - began
    result = _once(options, ready, store, noting)
    result.paths = _result_paths(ready, len(result.outputs))
    result.load_s, result.devices, result.drawn = load_s, Prepared.of(ready.module).partitions, ready.arrays.drawn_names
    if options.check and options.engine != "reference":
        with watch.stage("checking against the reference"):
            result.comparisons += _compared_with_reference(options, ready, result)
    if options.expect is not None:
        result.comparisons += compared_with_file(options, ports_of(ready.module)[1], result, ready.module.flushes_denormals, watch)
    if options.expect_from is not None:

        def ran(other: Reading, own: RunOptions, shared: Mapping[str, Array]) -> Ran:
            theirs = prepared(other, own, Files(shared, given.weights, given.constants, given.opened), watch)
            return Ran(theirs.module, theirs.arrays, _once(own, theirs, None, NoteRecorder(watch)).outputs)
        result.comparisons += compare_with_dump(options, Ran(ready.module, ready.arrays, result.outputs), ran, watch)
    return result


def _once(options: RunOptions, ready: Preparation, store: ProgramStore | None, watch: NoteRecorder) -> RunResult:
    """Run a module by the engine of the options."""
    return _by_reference(options, ready, watch) if options.engine == "reference" else _by_llvm(options, ready, store, watch)


def _by_llvm(options: RunOptions, ready: Preparation, store: ProgramStore | None, watch: NoteRecorder) -> RunResult:
    lowering, use_cache = lowering_options(options), not options.no_cache
    reason = refusal() if use_cache else None
    if reason:
        watch.note(reason)
    tuner = Tuning(lowering.threads, options.cpu, use_cache) if options.autotune else None
    with watch.stage("compiling"):
        model = compile_module(ready.module, ready.arrays.weights, lowering, options.cpu, use_cache, tuner)
    if tuner is not None:
        watch.note(f"{tuner.changed} of {tuner.tried} kernels that have several schedules run faster with another than the rules choose")
    if store is not None and not ready.has_own_data:
        _store(options, ready, model, store, watch)
    with watch.stage("running"):
        call = model.bind(ready.arrays.inputs())
        call()
        outputs = [a.copy() for a in call.outputs] if options.bench else list(call.outputs)
        samples = timed(options, call) if options.bench else []
    result = RunResult(outputs, model.kernels, model.interpreted_ops, lowering.threads, model.compile_s, model.flops, samples)
    if options.profile:
        with watch.stage("running"):
            result.profile = profile_of(model, ready.arrays.inputs(), options, lowering.threads)
        if not result.profile.peak.is_measured:
            watch.note(f"the peak of this machine is not measured, but taken from the {result.profile.peak.source}")
    return result


def _store(options: RunOptions, ready: Preparation, model: Model, store: ProgramStore, watch: NoteRecorder) -> None:
    """Store a program for later runs. A note reports that its weights are too large where it is requested to store them."""
    module, arrays, prepared_as = ready.module, ready.arrays, Prepared.of(ready.module)
    ports, outputs = ports_of(module)
    inputs = [InputPort(ports[n], n, arrays.given_names.get(n), ports[n].name in prepared_as.weights) for n in arrays.input_numbers()]
    facts = RunFacts(inputs, outputs, ready.renamed, _result_paths(ready, len(model.outputs)), watch.notes, store.files, model.flops,
                     module.flushes_denormals)
    numbers = [name for name in ready.read if prepared_as.measured or (prepared_as.consumed and np.asarray(store.inputs[name]).size == 1)]
    compiled = compiled_program(model)
    store.keep(StoredProgram(compiled, facts), ready.read, numbers, options.cache_weights)
    if options.cache_weights and compiled.constant_bytes > LARGEST_ENTRY:
        watch.note(f"the program is not in the cache: its weights take {bytes_(compiled.constant_bytes)}, and an entry has at most "
                   f"{bytes_(LARGEST_ENTRY)}")


def _result_paths(ready: Preparation, count: int) -> tuple[str, ...]:
    """The places of the results in what the user's function returns, where the dump has all of them."""
    paths = tuple(Interface.of(ready.module).result_paths)
    return paths if len(paths) == count else ()


def _by_reference(options: RunOptions, ready: Preparation, watch: Watcher) -> RunResult:
    module, arrays = ready.module, ready.arrays
    names = sorted({node.op.name for graph in module.graphs.values() for node in graph.nodes if node.op not in NOT_WORK})
    flush = lowering_options(options).flushes_denormals(module)
    with watch.stage("interpreting"):
        outputs = reference_results(module, arrays.all(), flush)
        samples = timed(options, lambda: reference_results(module, arrays.all(), flush)) if options.bench else []
    return RunResult(outputs, 0, names, 1, samples_us=samples)


def _compared_with_reference(options: RunOptions, ready: Preparation, result: RunResult) -> list[ResultComparison]:
    flush = lowering_options(options).flushes_denormals(ready.module)
    return compare_all(result.outputs, reference_results(ready.module, ready.arrays.all(), flush), options.rtol, options.atol,
                       coarsest_types(ready.module), flush)


def compared_with_file(options: RunOptions, ports: Sequence[Port], result: RunResult, flushed: bool,
                       watch: Watcher) -> list[ResultComparison]:
    """The outputs compared with those of the file ``options.expect``; notes report the outputs that only one side has. Raises UserError
    where the file holds none of them."""
    assert options.expect is not None
    found = results_by_number(read_arrays(options.expect), len(ports), result.devices)
    expected = [fitted(found[p.name], p, f"{options.expect}: {p.name}") if p.name in found else None for p in ports]
    if all(e is None for e in expected):
        names = "outputs are named out0, out1, ..." + (", or out0@1 of device 1" if result.devices > 1 else "")
        raise UserError(f"{options.expect} holds none of {', '.join(p.name for p in ports[:4])}", names)
    if absent := [p.name for p, e in zip(ports, expected, strict=True) if e is None]:
        watch.note(f"{options.expect} does not hold {some(absent, MOST_NAMED)}: not compared")
    known = {p.name for p in ports}
    if others := [name for name in found if OUTPUT.fullmatch(name) and name not in known]:
        watch.note(f"{options.expect} holds {some(others, MOST_NAMED)}, which the program does not give")
    return compare_all(result.outputs, expected, options.rtol, options.atol, flushed=flushed)
