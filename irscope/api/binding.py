"""Binds the shapes, element types and constants that the text leaves open, for the module that a run compiles."""
from __future__ import annotations

from collections.abc import Mapping

from irscope.api.array_files import Files
from irscope.api.options import RunOptions
from irscope.api.targeting import host_cpu
from irscope.api.watching import Watcher
from irscope.backends.arguments import draw, fitted
from irscope.backends.executable import Port
from irscope.backends.model import compile_module, ports_of
from irscope.backends.opening import Bindings, needs_opening, opened
from irscope.expand import bind_constants, bind_types, manual
from irscope.expand.bind import elided_constants
from irscope.expand.partitions import partitioned
from irscope.expand.specialise import has_open_sizes, specialised
from irscope.graph import Module, Node, TensorType, callees_first
from irscope.lazy import Array
from irscope.lower.faults import cannot_run
from irscope.lower.options import Options
from irscope.ops import hlo
from irscope.ops.faults import TypeFault
from irscope.ops.module_attributes import HloModule
from irscope.source import Finding, Severity, UserError, did_you_mean
from irscope.source.cores import available_threads

FIRST_CONSTANT = 1_000_000
"""Inputs are drawn by their number; constants by numbers from here on."""

MAX_RANK = 60
"""numpy has 64 dimensions, and references add up to two."""

COMMUNICATION = hlo.named("all-reduce all-reduce-start all-gather all-gather-start reduce-scatter all-to-all collective-permute "
                          "collective-permute-start collective-broadcast")
"""Operators that read what other devices computed."""


def lowering_options(options: RunOptions) -> Options:
    """The compiler's options."""
    return Options(threads=options.threads or available_threads(), precision=options.precision)


def bound(options: RunOptions, module: Module, files: Files, watch: Watcher) -> Module:
    """The module for these arrays: a program is run over abstract values, a graph gets its types; then constants get values."""
    made = _opened(options, module, files, watch) if needs_opening(module) else _typed(options, module, files)
    _refuse_ranks(made)
    made = _filled(options, made, files)
    if options.partitions > 1:
        return partitioned(made, options.partitions)
    _refuse_shards(made)
    _note_partitions(made, watch)
    return made


def _refuse_ranks(module: Module) -> None:
    """Raise UserError for arrays of more dimensions than numpy has, which holds inputs, constants and results."""
    for graph in callees_first(module, module.main()):
        for node in graph.nodes:
            if any(isinstance(t, TensorType) and t.rank > MAX_RANK for t in node.type.leaves()):
                raise cannot_run(module, node, f"arrays have at most {MAX_RANK} dimensions here")


def _refuse_shards(module: Module) -> None:
    """Raise UserError if a text shards arrays over several devices."""
    node = manual.boundary(callees_first(module, module.main())) if module.is_primitive else None
    if node is not None:
        devices = manual.devices_of(module, node)
        raise cannot_run(module, node, f"it {'cuts arrays into' if manual.cuts(node) else 'joins'} the shards of "
                                       f"{devices} devices", f"--partitions {devices} runs the program on {devices} simulated devices")


def _note_partitions(module: Module, watch: Watcher) -> None:
    """Report that a program for several devices runs as if it were alone, if it communicates with the others."""
    devices = HloModule.of(module).num_partitions
    if module.is_primitive and isinstance(devices, int) and devices > 1 and any(
            node.op in COMMUNICATION for graph in callees_first(module, module.main()) for node in graph.nodes):
        watch.note(f"this is the program of one of {devices} devices, and runs as if it were alone; --partitions {devices} runs all")


def _opened(options: RunOptions, module: Module, files: Files, watch: Watcher) -> Module:
    """The primitive graph of a program."""
    places = {param.name: number for number, param in enumerate(module.main().params)}

    measured: list[str] = []

    def measure(part: Module, arrays: Mapping[str, Array]) -> int:
        measured.append(part.name)
        model = compile_module(part, {}, lowering_options(options), host_cpu(options), not options.no_cache)
        source = " and ".join(options.inputs) or "inputs"
        return int(model(*[_array_of(arrays, places, port, source) for port in ports_of(part)[0]])[0])

    with watch.stage("expanding"):
        made = opened(module, Bindings(files.inputs, files.weights, files.constants, options.shapes, options.dtypes), measure)
    made.attrs.update(measured=bool(measured))
    return made


def _array_of(arrays: Mapping[str, Array], places: Mapping[str, int], port: Port, source: str) -> Array:
    """The array of an input, by its name or its place.

    Raises TypeFault where it is not given: what is computed from it is not known. Raises UserError where it does not fit the input.
    """
    for key in (port.name, f"arg{places.get(port.name)}"):
        if key in arrays:
            return fitted(arrays[key], port, f"{source}: {key}")
    raise TypeFault(f"it depends on data of the input {port.name}, which is not given", f"give {port.name} in --inputs")


def _typed(options: RunOptions, module: Module, files: Files) -> Module:
    """The module with shapes and element types bound."""
    made = bind_types(module, {**_given_shapes(module, files), **options.shapes}, options.dtypes)
    return specialised(made, {}) if has_open_sizes(made) else made


def _given_shapes(module: Module, files: Files) -> dict[str, tuple[int, ...]]:
    """The shapes of given arrays, for inputs whose shape the text leaves open; a bounded one is padded at each run."""
    opens = {f"arg{i}": p.name for i, p in enumerate(module.main().params)
             if isinstance(p.type, TensorType) and any(not isinstance(d, int) and d.bound is None for d in p.type.shape)}
    opens |= {name: name for name in opens.values()}
    return {opens[name]: arrays[name].shape for arrays in (files.inputs, files.weights) for name in arrays if name in opens}


def _filled(options: RunOptions, module: Module, files: Files) -> Module:
    """The module with values for the constants that the text elides."""
    elided = elided_constants(module)
    if not elided:
        return module
    values: dict[str, Array] = {}
    for number, node in enumerate(elided):
        type = node.type
        if not isinstance(type, TensorType):
            raise UserError(f"the text elides %{node.name}, a tuple: its values cannot be given")
        port = Port(node.name, type.dtype, type.dims())
        if node.name in files.constants:
            values[node.name] = fitted(files.constants[node.name], port, f"{options.constants}: {node.name}")
        elif options.fill_elided:
            values[node.name] = draw(port, options.seed, FIRST_CONSTANT + number)
        else:
            whole_text = f"; {module.dialect.whole_text}" if module.dialect.whole_text else ""
            near = did_you_mean(node.name, files.constants)
            more = f" (and {len(elided) - 1} more)" if len(elided) > 1 else ""
            raise _elided(module, node, f"the text elides the value of the constant %{node.name}, {type}{more}",
                          near or f"--constants C.npz gives it by name, --fill-elided draws it{whole_text}")
    return bind_constants(module, values)


def _elided(module: Module, node: Node, message: str, help: str) -> UserError:
    """The error for a constant without a value, with its place in the text and the user's own line."""
    if node.loc < 0 or not module.source.text:
        return UserError(message, help)
    stack = module.call_stack(node)
    finding = Finding("KRN001", "cannot-run", Severity.ERROR, message, module.source, node.loc, len(node.name), node=node.name,
                      graph=module.entry, help=help, source_line=str(stack[0]) if stack else "")
    return UserError(f"the constant %{node.name} has no value", findings=[finding])
