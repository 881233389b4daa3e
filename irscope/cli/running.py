"""Hands what ``compile-and-run`` was asked for to the rooms that know, and tells what came of it."""
from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from irscope.cli.input import load_ok
from irscope.cli.interrupt import interruptible
from irscope.cli.progress import Progress
from irscope.graph import Module
from irscope.source import UserError

if TYPE_CHECKING:
    import numpy as np

    from irscope.backends.arguments import Given
    from irscope.backends.comparison import Comparison
    from irscope.backends.executable import Port

    Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """The command line."""

    file: str
    inputs: tuple[str, ...]
    weights: tuple[str, ...]
    constants: str | None
    fill_elided: bool
    seed: int
    save_outputs: str | None
    expect: str | None
    check: bool
    rtol: float | None
    atol: float | None
    engine: str
    threads: int | None
    cpu: str
    precision: str
    autotune: bool
    no_cache: bool
    partitions: int
    bench: bool
    bench_seconds: float
    warmup: int
    runs: int | None
    emit: str | None
    target: str
    output: str
    format_: str
    from_: str | None
    shapes: dict[str, tuple[int, ...]]
    dtypes: dict[str, str]


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

    @property
    def ok(self) -> bool:
        return all(c.fault is None for c in self.comparisons)


def run(request: Request) -> int:
    """Do what was asked; the status is 1 when a comparison failed."""
    began = time.perf_counter()
    with Progress("reading"):
        reading = load_ok(request.file, request.from_)
    module = reading.module()
    if len(reading.modules) > 1:
        others = ", ".join(other.name for other in reading.modules[1:4]) + (", ..." if len(reading.modules) > 4 else "")
        print(f"note: the text holds {len(reading.modules)} modules; the first, {module.name}, is taken, and not {others}", file=sys.stderr)
    from irscope.backends.opening import needs_opening

    _check_cpu(request)
    if request.autotune:
        print("note: --autotune changes nothing yet: schedules are chosen by rule", file=sys.stderr)
    module = _filled(request, _opened(request, module)) if needs_opening(module) else _bound(request, module)
    if request.partitions > 1:
        from irscope.expand.partitions import partitioned

        module = partitioned(module, request.partitions)
    arrays = _Arrays(request, module)
    load_s = time.perf_counter() - began
    if request.emit is not None:
        from irscope.cli.emitting import emit

        return emit(request, module, arrays.weights)
    outcome = _by_reference(request, module, arrays) if request.engine == "reference" else _by_llvm(request, module, arrays)
    outcome.load_s = load_s
    _compare(request, module, arrays, outcome)
    if request.save_outputs:
        from irscope.source.arrays import write_arrays

        write_arrays(request.save_outputs, {f"out{i}": a for i, a in enumerate(outcome.outputs)})
    if request.format_ == "json":
        print(json.dumps(_as_json(request, outcome)))
    else:
        from irscope.cli.run_report import report

        report(request, outcome, arrays.drawn_names)
    return 0 if outcome.ok else 1


def _check_cpu(request: Request) -> None:
    """LLVM ends the whole process on some names of processors; they are found out before."""
    if request.cpu in ("", "native"):
        return
    from irscope.backends import llvm_compile
    from irscope.source import did_you_mean

    if llvm_compile.accepts(request.cpu, request.target):
        return
    known = [name for name in llvm_compile.cpus(request.target) if name != request.cpu]
    raise UserError(f"LLVM makes no code for {request.target or 'this machine'} under the name {request.cpu!r}",
                    did_you_mean(request.cpu, known) or "--cpu native is the processor here; others are x86-64-v3, znver4, ...")


def options_of(request: Request, reference: bool = False) -> Any:
    """The compiler's options."""
    from irscope.backends.pool import available_threads
    from irscope.lower.options import Options

    threads = 1 if reference else request.threads or available_threads()
    return Options(threads=threads, precision=request.precision)


def _opened(request: Request, module: Module) -> Module:
    """The primitive graph of a program, for the arrays that are given."""
    from irscope.backends.opening import opened
    from irscope.source.arrays import read_arrays

    inputs, weights = {}, {}
    for path in request.inputs:
        inputs.update(read_arrays(path))
    for path in request.weights:
        weights.update(read_arrays(path))
    constants = read_arrays(request.constants) if request.constants else {}

    def measure(part: Module, arrays: Any) -> int:
        from irscope.backends.model import compile_module, ports_of

        model = compile_module(part, {}, options_of(request), request.cpu, not request.no_cache)
        return int(model(*[arrays[p.name] for p in ports_of(part)[0]])[0])

    with Progress("expanding"):
        return opened(module, inputs, weights, constants, request.shapes, request.dtypes, measure)


def _bound(request: Request, module: Module) -> Module:
    """The module with shapes, element types and elided constants bound."""
    from irscope.expand import bind_types

    return _filled(request, bind_types(module, {**_given_shapes(request, module), **request.shapes}, request.dtypes))


def _filled(request: Request, module: Module) -> Module:
    """The module with values for the constants that the text elides."""
    from irscope.expand import bind_constants
    from irscope.expand.bind import elided_constants

    elided = elided_constants(module)
    if not elided:
        return module
    from irscope.backends.arguments import draw, fitted
    from irscope.backends.executable import Port
    from irscope.graph import TensorType
    from irscope.source import did_you_mean
    from irscope.source.arrays import read_arrays

    given = read_arrays(request.constants) if request.constants else {}
    values: dict[str, Array] = {}
    for number, node in enumerate(elided):
        type = node.type
        if not isinstance(type, TensorType):
            raise UserError(f"the text elides %{node.name}, a tuple: its values cannot be given")
        port = Port(node.name, type.dtype, type.dims())
        if node.name in given:
            values[node.name] = fitted(given[node.name], port, f"{request.constants}: {node.name}")
        elif request.fill_elided:
            values[node.name] = draw(port, request.seed, 1_000_000 + number)
        else:
            near = did_you_mean(node.name, given)
            raise UserError(f"the text elides the value of the constant %{node.name}, {type}" + (f" (and {len(elided) - 1} more)"
                            if len(elided) > 1 else ""),
                            near or "--constants C.npz gives it by name, --fill-elided draws it; XLA prints large constants with "
                            "--xla_dump_large_constants=true, jax with print_large_constants")
    return bind_constants(module, values)


def _given_shapes(request: Request, module: Module) -> dict[str, tuple[int, ...]]:
    """The shapes of given arrays, for inputs whose shape the text leaves open."""
    from irscope.graph import TensorType
    from irscope.source.arrays import read_arrays

    opens = {f"arg{i}": p.name for i, p in enumerate(module.main().params) if isinstance(p.type, TensorType) and not p.type.is_static}
    opens |= {name: name for name in opens.values()}
    if not opens:
        return {}
    arrays = {name: array for path in (*request.inputs, *request.weights) for name, array in read_arrays(path).items()}
    return {opens[name]: array.shape for name, array in arrays.items() if name in opens}


class _Arrays:
    """The arrays of one run: inputs in order, weights by number of parameter."""

    def __init__(self, request: Request, module: Module) -> None:
        from irscope.backends.arguments import by_name, drawn, missing_near
        from irscope.backends.model import ports_of
        from irscope.source.arrays import read_arrays

        self.module = module
        self.ports = ports_of(module)[0]
        inputs, weights = {}, {}
        for path in request.inputs:
            inputs.update(read_arrays(path))
        for path in request.weights:
            weights.update(read_arrays(path))
        if "partitions" in module.attrs:
            inputs, weights = _for_all(inputs, self.ports), _for_all(weights, self.ports)
        fixed = by_name(weights, self.ports, " and ".join(request.weights))
        given = by_name(inputs, self.ports, " and ".join(request.inputs))
        both = sorted(fixed.arrays.keys() & given.arrays.keys())
        if both:
            raise UserError(f"{self.ports[both[0]].name} is given as an input and as a weight", "give it once")
        _ignored(module, fixed, self.ports, request.weights, weights)
        seen = by_name({}, self.ports, "")
        seen.arrays = {**fixed.arrays, **given.arrays}
        seen.unknown = given.unknown
        missing_near(seen, self.ports, inputs)
        _ignored(module, given, self.ports, request.inputs, inputs)
        absent = [n for n in range(len(self.ports)) if n not in seen.arrays]
        self.drawn_names = [self.ports[n].name for n in absent]
        self.given = {**seen.arrays, **drawn(self.ports, absent, request.seed, module.attrs.get("weights", ()))}
        self.weights = _whole_parameters(module, fixed.arrays)

    def inputs(self) -> list[Array]:
        """The arrays of the ports that are no weights."""
        numbers = _numbers_of(self.module)
        return [self.given[n] for n, parameter in enumerate(numbers) if parameter not in self.weights]

    def all(self) -> list[Array]:
        """The arrays of all ports."""
        return [self.given[n] for n in range(len(self.ports))]


def _for_all(arrays: dict[str, Array], ports: list[Port]) -> dict[str, Array]:
    """Arrays for every device: ``x`` is given to all, ``x@1`` to one; ``argN`` counts the inputs of one device."""
    bases = list(dict.fromkeys(port.name.rpartition("@")[0] for port in ports))
    plain = {f"arg{i}": base for i, base in enumerate(bases)} | {base: base for base in bases}
    spread = {port.name: array for name, array in arrays.items() if name in plain for port in ports
              if port.name.rpartition("@")[0] == plain[name]}
    alone = {f"{plain[base]}@{device}": array for name, array in arrays.items() for base, at, device in [name.rpartition("@")]
             if at and base in plain}
    rest = {name: array for name, array in arrays.items() if name not in plain and name.rpartition("@")[0] not in plain}
    return {**rest, **spread, **alone}


def _ignored(module: Module, given: Given, ports: list[Port], files: tuple[str, ...], arrays: dict[str, Array]) -> None:
    """Say once which names of a file the graph does not have."""
    consumed = module.attrs.get("consumed", ())
    given.unknown = [name for name in given.unknown if name not in consumed]
    if given.unknown:
        shown = ", ".join(given.unknown[:6]) + (f" and {len(given.unknown) - 6} more" if len(given.unknown) > 6 else "")
        print(f"note: not inputs of the graph, and ignored: {shown}", file=sys.stderr)


def _numbers_of(module: Module) -> list[int]:
    """For each port the number of the parameter that it is part of."""
    from irscope.lower.values import leaf_paths

    return [number for number, param in enumerate(module.main().params) for _ in leaf_paths(param.type)]


def _whole_parameters(module: Module, arrays: dict[int, Array]) -> dict[int, Array]:
    """Weights by the number of their parameter; a parameter that is a tuple cannot be fixed in part."""
    from irscope.graph import TupleType

    numbers = _numbers_of(module)
    found: dict[int, Array] = {}
    for port, array in arrays.items():
        param = module.main().params[numbers[port]]
        if isinstance(param.type, TupleType):
            raise UserError(f"%{param.name} is a tuple, which cannot be a weight", "give it with --inputs")
        found[numbers[port]] = array
    return found


def _by_llvm(request: Request, module: Module, arrays: _Arrays) -> Outcome:
    from irscope.backends.model import compile_module

    with interruptible(), Progress("compiling"):
        options = options_of(request)
        model = compile_module(module, arrays.weights, options, request.cpu, not request.no_cache)
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


def _by_reference(request: Request, module: Module, arrays: _Arrays) -> Outcome:
    names = sorted({node.op.name for graph in module.graphs.values() for node in graph.nodes if node.op.name not in ("parameter", "tuple")})
    with Progress("interpreting"):
        outputs = _reference(module, arrays)
        samples = []
        if request.bench:
            samples = _timed(request, lambda: _reference(module, arrays))
    return Outcome(outputs, 0, names, 1, 0.0, 0.0, 0.0, samples)


def _reference(module: Module, arrays: _Arrays) -> list[Array]:
    import numpy as np

    from irscope.analysis.reference import evaluate, flatten

    values = iter(arrays.all())
    return [np.asarray(a) for a in flatten(evaluate(module.main(), [_nested(p.type, values) for p in module.main().params]))]


def _nested(type: Any, values: Any) -> Any:
    from irscope.graph import TensorType, TupleType

    if isinstance(type, TupleType):
        return tuple(_nested(element, values) for element in type.elements)
    return next(values) if isinstance(type, TensorType) else None


def _compare(request: Request, module: Module, arrays: _Arrays, outcome: Outcome) -> None:
    from irscope.backends.comparison import compare_all

    if request.check and request.engine != "reference":
        with Progress("checking against the reference"):
            outcome.comparisons += compare_all(outcome.outputs, _reference(module, arrays), request.rtol, request.atol)
    if request.expect:
        from irscope.backends.arguments import fitted
        from irscope.backends.model import ports_of
        from irscope.source.arrays import read_arrays

        ports, found = ports_of(module)[1], read_arrays(request.expect)
        expected = [fitted(found[p.name], p, f"{request.expect}: {p.name}") if p.name in found else None for p in ports]
        if all(e is None for e in expected):
            raise UserError(f"{request.expect} holds none of {', '.join(p.name for p in ports[:4])}", "outputs are named out0, out1, ...")
        outcome.comparisons += compare_all(outcome.outputs, expected, request.rtol, request.atol)


def _as_json(request: Request, outcome: Outcome) -> dict[str, Any]:
    from irscope import __version__
    from irscope.graph import dtype_of

    told: dict[str, Any] = {
        "ok": outcome.ok,
        "outputs": [{"name": f"out{i}", "dtype": dtype_of(a.dtype).name, "shape": list(a.shape)} for i, a in enumerate(outcome.outputs)],
        "kernels": outcome.kernels,
        "interpreted_ops": outcome.interpreted_ops,
        "threads": outcome.threads,
        "load_s": round(outcome.load_s, 6),
        "compile_s": round(outcome.compile_s, 6),
        "flops": outcome.flops,
        "peak_rss_mb": peak_rss_mb(),
        "version": __version__,
    }
    if outcome.samples_us:
        told["samples_us"] = [round(s, 3) for s in outcome.samples_us]
        told["median_us"], told["min_us"] = round(median(outcome.samples_us), 3), round(min(outcome.samples_us), 3)
    if outcome.comparisons:
        told["max_abs_error"] = max(c.max_abs for c in outcome.comparisons)
        told["max_rel_error"] = max(c.max_rel for c in outcome.comparisons)
        told["faults"] = [f"{c.name}: {c.fault}" for c in outcome.comparisons if c.fault]
    return told


def median(samples: list[float]) -> float:
    """The middle one."""
    ordered = sorted(samples)
    n = len(ordered)
    return ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2


def peak_rss_mb() -> float:
    """The most memory that this process has held, in MB."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1024 if sys.platform != "darwin" else 1024 * 1024), 1)
