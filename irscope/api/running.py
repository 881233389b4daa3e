"""``irscope.run``: reads, compiles, runs, times and compares a dump."""
from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

from irscope.analysis.rounding import coarsest_types
from irscope.analysis.soundness import Use, require
from irscope.api.arrays import Arrays, Files, by_graph_names, read_files, results_by_number, with_arguments
from irscope.api.binding import bound, lowering_options
from irscope.api.expecting import Ran, compare_with_dump
from irscope.api.loading import Source, first_module, name_of, whole
from irscope.api.options import RunOptions
from irscope.api.targeting import check_cpu
from irscope.api.watching import SILENT, Watcher
from irscope.backends.arguments import fitted
from irscope.backends.cache import refusal
from irscope.backends.comparison import ResultComparison, compare_all
from irscope.backends.model import compile_module, ports_of
from irscope.backends.tuning import Tuning
from irscope.backends.varying import reference_results
from irscope.graph import Module, dtype_of
from irscope.lazy import Array, np
from irscope.ops import hlo
from irscope.ops.module_attributes import Interface, Prepared
from irscope.source import UserError
from irscope.source.arrays import Joined, read_arrays, write_arrays
from irscope.version import __version__

if sys.platform != "win32":
    import resource

NOT_WORK = hlo.named("parameter tuple")


class OutputJson(TypedDict):
    """One output: ``shape`` counts elements, ``path`` is its place in what the user's function returns, where the dump tells."""

    name: str
    dtype: str
    shape: list[int]
    path: NotRequired[str]


@dataclass(slots=True)
class RunResult:
    """The result of a run. Times are in seconds, ``samples_us`` in microseconds; ``flops`` count one run.

    ``outputs`` are numpy arrays in the order of the entry's results; with several ``devices``, all of device 0 first. With the reference
    engine ``kernels`` is 0 and ``interpreted_ops`` names all operators. ``comparisons`` has one entry per output and requested comparison.
    ``drawn`` names the inputs whose values were drawn at random. ``paths`` are the places of the outputs in what the user's function
    returns (``['y'][0]``), where the dump tells.
    """

    outputs: list[Array]
    kernels: int
    interpreted_ops: list[str]
    threads: int
    compile_s: float = 0.0
    flops: float = 0.0
    samples_us: list[float] = field(default_factory=list)
    comparisons: list[ResultComparison] = field(default_factory=list)
    load_s: float = 0.0
    devices: int = 1
    drawn: list[str] = field(default_factory=list)
    paths: Sequence[str] = ()

    def __repr__(self) -> str:
        shapes = ", ".join(f"{array.dtype}{list(array.shape)}" for array in self.outputs[:8]) + (", ..." if len(self.outputs) > 8 else "")
        return f"<result of a run: {shapes or 'no outputs'}{'' if self.ok else ', which differs from what was expected'}>"

    @property
    def ok(self) -> bool:
        """Whether no comparison failed."""
        return all(c.fault is None for c in self.comparisons)

    @property
    def median_us(self) -> float:
        """The median of the samples, in microseconds; NaN if nothing was timed."""
        return float(np.median(self.samples_us))

    @property
    def max_abs_error(self) -> float:
        """The largest error of all comparisons."""
        return max(c.max_abs for c in self.comparisons)

    @property
    def max_rel_error(self) -> float:
        """The largest error of all comparisons, relative to the largest value of its output."""
        return max(c.max_rel for c in self.comparisons)

    def _output(self, number: int, array: Array) -> OutputJson:
        made = OutputJson(name=f"out{number}", dtype=dtype_of(array.dtype).name, shape=list(array.shape))
        if self.paths:
            made["path"] = self.paths[number]
        return made

    def label(self, number: int) -> str:
        """The name of an output; of several devices also which result of which device it is."""
        if self.devices == 1:
            return f"out{number} {self.paths[number]}".rstrip() if self.paths else f"out{number}"
        device, own = divmod(number, len(self.outputs) // self.devices)
        return f"out{number} (out{own}@{device})"

    def as_json(self) -> dict[str, object]:
        """The object that ``--format json`` prints: ``irscope/schemas/compile-and-run.json``."""
        record: dict[str, object] = {
            "ok": self.ok,
            "outputs": [self._output(i, array) for i, array in enumerate(self.outputs)],
            "kernels": self.kernels,
            "interpreted_ops": self.interpreted_ops,
            "threads": self.threads,
            "load_s": round(self.load_s, 6),
            "compile_s": round(self.compile_s, 6),
            "flops": self.flops,
            "peak_rss_mb": peak_rss_mb(),
            "version": __version__,
        }
        if self.samples_us:
            record["samples_us"] = [round(s, 3) for s in self.samples_us]
            record["median_us"], record["min_us"] = round(self.median_us, 3), round(min(self.samples_us), 3)
        if self.comparisons:
            record["max_abs_error"], record["max_rel_error"] = _json_number(self.max_abs_error), _json_number(self.max_rel_error)
            record["faults"] = [f"{c.name}: {c.fault}" for c in self.comparisons if c.fault]
        return record


def run(what: Source, options: RunOptions | None = None, *, inputs: Mapping[str, Array] | None = None,
        weights: Mapping[str, Array] | None = None, constants: Mapping[str, Array] | None = None, watch: Watcher = SILENT) -> RunResult:
    """Compile a dump, run it once, and compare and time it as the options specify.

    ``inputs``, ``weights`` and ``constants`` are arrays by the names of inputs (or ``arg0``, ``arg1``, ... in the entry's order), with the
    shapes that the dump states; they take precedence over the files of the options. Inputs that are not given are drawn from
    ``options.seed``. Raises :class:`irscope.UserError` for what cannot be read, bound, compiled or compared. Different results do not
    raise: ``result.ok`` is False.

    >>> import numpy as np
    >>> result = run("ENTRY main { p = f32[3] parameter(0)\\n ROOT n = f32[3] negate(p) }", RunOptions(check=True),
    ...              inputs={"p": np.arange(3, dtype=np.float32)})
    >>> result.outputs[0].tolist(), result.ok
    ([-0.0, -1.0, -2.0], True)
    """
    options = options or RunOptions()
    if options.target:
        raise UserError(f"code for {options.target} is not run here", "--emit asm, obj or so writes it")
    began = time.perf_counter()
    given = Files(inputs or {}, weights or {}, constants or {})
    module, arrays = prepared(what, options, given, watch)
    load_s = time.perf_counter() - began
    result = _once(options, module, arrays, watch)
    paths = Interface.of(module).result_paths
    result.paths = paths if len(paths) == len(result.outputs) else ()
    result.load_s, result.devices, result.drawn = load_s, Prepared.of(module).partitions, arrays.drawn_names
    _compare(options, module, arrays, result, watch)
    if options.expect_from:
        other = options.expect_from

        def ran(own: RunOptions, shared: Mapping[str, Array]) -> Ran:
            module, arrays = prepared(other, own, Files(shared, given.weights, given.constants), watch)
            return Ran(module, arrays, _once(own, module, arrays, watch).outputs)
        result.comparisons += compare_with_dump(options, Ran(module, arrays, result.outputs), ran, watch)
    if options.save_outputs:
        outputs = {f"out{i}": a for i, a in enumerate(result.outputs)}
        write_arrays(options.save_outputs, outputs, [name_of(what), *options.files])
    return result


def prepared(what: Source, options: RunOptions, given: Files, watch: Watcher) -> tuple[Module, Arrays]:
    """The module with everything bound, and its arrays. Raises UserError for what cannot run."""
    with watch.stage("reading"):
        reading = whole(what, options.source_format)
    check_cpu(options)
    first = first_module(reading, watch)
    files = with_arguments(by_graph_names(read_files(options, given, watch), first), first, reading.arguments, watch)
    if first.is_primitive:  # a program's types follow from the arrays that it is given: they are checked when it is opened
        require(reading, first, Use.RUN)
    if first.stored:
        files = Files(files.inputs, Joined([files.weights, first.stored]), files.constants)
    module = bound(options, first, files, watch)
    return module, Arrays(options, module, files, watch)


def _once(options: RunOptions, module: Module, arrays: Arrays, watch: Watcher) -> RunResult:
    """Run a module by the engine of the options."""
    return _by_reference(options, module, arrays, watch) if options.engine == "reference" else _by_llvm(options, module, arrays, watch)


def _by_llvm(options: RunOptions, module: Module, arrays: Arrays, watch: Watcher) -> RunResult:
    lowering, use_cache = lowering_options(options), not options.no_cache
    reason = refusal() if use_cache else None
    if reason:
        watch.note(reason)
    tuner = Tuning(lowering.threads, options.cpu, use_cache) if options.autotune else None
    with watch.stage("compiling"):
        model = compile_module(module, arrays.weights, lowering, options.cpu, use_cache, tuner)
    if tuner is not None:
        watch.note(f"{tuner.changed} of {tuner.tried} kernels that have several schedules run faster with another than the rules choose")
    with watch.stage("running"):
        call = model.bind(arrays.inputs())
        call()
        outputs = [a.copy() for a in call.outputs] if options.bench else list(call.outputs)
        samples = _timed(options, call) if options.bench else []
    return RunResult(outputs, model.kernels, model.interpreted_ops, lowering.threads, model.compile_s, model.flops, samples)


def _timed(options: RunOptions, call: Callable[[], object]) -> list[float]:
    """Microseconds of each sample; runs that are too short for the clock are timed several at once."""
    clock = time.perf_counter
    for _ in range(options.warmup):
        call()
    began = clock()
    call()
    once = max(clock() - began, 1e-7)
    inner = max(1, min(1000, int(2e-5 / once))) if options.runs is None else 1
    samples: list[float] = []
    end = clock() + options.bench_seconds
    while len(samples) < options.runs if options.runs is not None else (clock() < end or not samples):
        began = clock()
        for _ in range(inner):
            call()
        samples.append((clock() - began) / inner * 1e6)
    return samples


def _by_reference(options: RunOptions, module: Module, arrays: Arrays, watch: Watcher) -> RunResult:
    names = sorted({node.op.name for graph in module.graphs.values() for node in graph.nodes if node.op not in NOT_WORK})
    flush = lowering_options(options).flushes_denormals(module)
    with watch.stage("interpreting"):
        outputs = reference_results(module, arrays.all(), flush)
        samples = _timed(options, lambda: reference_results(module, arrays.all(), flush)) if options.bench else []
    return RunResult(outputs, 0, names, 1, samples_us=samples)


def _compare(options: RunOptions, module: Module, arrays: Arrays, result: RunResult, watch: Watcher) -> None:
    if options.check and options.engine != "reference":
        flush = lowering_options(options).flushes_denormals(module)
        with watch.stage("checking against the reference"):
            result.comparisons += compare_all(result.outputs, reference_results(module, arrays.all(), flush), options.rtol, options.atol,
                                              coarsest_types(module), flush)
    if options.expect:
        ports = ports_of(module)[1]
        found = results_by_number(read_arrays(options.expect), len(ports), result.devices)
        expected = [fitted(found[p.name], p, f"{options.expect}: {p.name}") if p.name in found else None for p in ports]
        if all(e is None for e in expected):
            names = "outputs are named out0, out1, ..." + (", or out0@1 of device 1" if result.devices > 1 else "")
            raise UserError(f"{options.expect} holds none of {', '.join(p.name for p in ports[:4])}", names)
        result.comparisons += compare_all(result.outputs, expected, options.rtol, options.atol, flushed=module.flushes_denormals)


def _json_number(value: float) -> float | None:
    """The value; None for NaN and infinities, which JSON does not have."""
    return value if math.isfinite(value) else None


def peak_rss_mb() -> float:
    """The peak memory of this process, in MB; 0 if the system does not report it.

    Linux keeps ``ru_maxrss`` over fork and exec: a process that a large one starts would report its parent's size. ``VmHWM`` is its own.
    """
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return round(int(line.split()[1]) / 1024, 1)  # in kB
    except OSError:  # no /proc
        pass
    if sys.platform == "win32":
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1024 if sys.platform != "darwin" else 1024 * 1024), 1)
