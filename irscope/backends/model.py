"""Compiles a module: expands, folds, lowers and compiles it; nodes that depend only on constants are computed once, here."""
from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from irscope.analysis.soundness import Use, require
from irscope.analysis.types import check_graph
from irscope.analysis.verify.faults import finding
from irscope.backends import llvm_compile
from irscope.backends.arguments import by_name
from irscope.backends.executable import Executable, Port, aligned_empty
from irscope.backends.loaded_model import LoweredModel, Model
from irscope.backends.opening import Bindings, needs_opening, opened
from irscope.backends.program_file import CompiledProgram
from irscope.backends.varying import Padded, VaryingExecutable
from irscope.expand import bind_constants, bind_inputs, bind_types, expand
from irscope.expand.dynamic import pad_dynamic
from irscope.graph import Kind, Module, Node, Reading, TensorType, without_array
from irscope.lazy import Array, np
from irscope.lower.faults import cannot_run
from irscope.lower.kernels import Tuner, flops_of_node
from irscope.lower.lowering import lower
from irscope.lower.options import Options
from irscope.lower.program import Program
from irscope.lower.values import leaf_paths
from irscope.ops import hlo
from irscope.ops.infer import plain
from irscope.passes import pass_named
from irscope.passes.split_constants import split_constants
from irscope.source import Severity, UserError, did_you_mean

PASSES = ("simplify-algebra", "share-equal", "simplify-algebra", "fold-scale", "remove-dead")
"""The passes that every graph goes through before lowering."""


def primitive(module: Module, weights: Mapping[int, Array] | None = None) -> Module:
    """The primitive graph of a module, simplified, with the parameters of these numbers fixed."""
    try:
        made = expand(module)
    except UserError:
        require_sound(module)  # reports the place, with both types
        raise
    require_sound(made)
    if weights:
        made = bind_inputs(made, weights)
    made = pad_dynamic(made)
    for name in PASSES:
        made = pass_named(name).run(made)
    return made


def require_sound(module: Module) -> None:
    """Raise UserError where a type in a primitive module is not its operator's result type: compiled code would read out of bounds."""
    found = [(graph, fault) for graph in module.graphs.values() for fault in check_graph(graph)]
    faults = [finding(module, graph, fault) for graph, fault in found if fault.severity is Severity.ERROR]
    if faults:
        raise UserError(f"{faults[0].source.name if faults[0].source else module.name}: the types in the text do not fit, so it cannot run",
                        findings=faults[:10])
    for graph in module.graphs.values():
        for node in graph.nodes:
            why = without_array(node.type)
            if why:
                raise cannot_run(module, node, f"it is {plain(node.type)}, which {why}", "give the program smaller shapes")
    for _, fault in found:
        if fault.node is not None and not _converts(fault.node):
            operands = ", ".join(str(plain(operand.type)) for operand in fault.node.operands)
            raise cannot_run(module, fault.node, f"it gives {plain(fault.node.type)} of {operands}",
                             "let it give the precision of its operands, and convert that")


CONVERTING = hlo.named("dot convolution reduce concatenate")
"""Operators, besides elementwise ones, whose result may have another precision than their operands."""


def _converts(node: Node) -> bool:
    return node.op in CONVERTING or (node.op.kind is Kind.ELEMENTWISE and node.op not in (hlo.select, hlo.map))


def compile_module(module: Module, weights: Mapping[int, Array] | None = None, options: Options | None = None, cpu: str = "",
                   use_cache: bool = True, tuner: Tuner | None = None) -> Model:
    """Compile a module whose shapes are known; a ``tuner`` chooses schedules. Raises UserError where an operator cannot run here."""
    began = time.perf_counter()
    options = options or Options()
    made = lowered(module, weights, options, cpu, use_cache, tuner)
    _copy_shared(made.program, weights or {})
    plain = _executable(made.module, made.program, options, cpu, use_cache)
    varying = Padded.of(made.module).varying
    executable = VaryingExecutable(plain, varying) if varying is not None else plain
    return Model(made.module.name, executable, len(made.program.launches()), made.flops, time.perf_counter() - began, lambda: made)


def _copy_shared(program: Program, weights: Mapping[int, Array]) -> None:
    """Copy the constants that are memory of the caller's weights and that the caller could change later."""
    owners = {id(_owner(array)) for array in weights.values()}
    for slot in program.constants:
        if isinstance(slot.data, np.ndarray) and slot.data.flags.writeable and id(_owner(slot.data)) in owners:
            copy = aligned_empty(slot.data.dtype, slot.data.shape)
            copy[...] = slot.data
            slot.data = copy


def _owner(array: Array) -> Array:
    """The array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def compiled_program(model: Model) -> CompiledProgram:
    """The program of a model with its code, to be stored."""
    executable = model.executable
    if isinstance(executable, Executable):
        return CompiledProgram(model.program, executable.inputs, executable.outputs, executable.compiled)
    plain, varying = executable.executable, executable.varying
    return CompiledProgram(model.program, plain.inputs, plain.outputs, plain.compiled, (varying.inputs, varying.outputs))


def lowered(module: Module, weights: Mapping[int, Array] | None, options: Options, cpu: str = "", use_cache: bool = True,
            tuner: Tuner | None = None) -> LoweredModel:
    """Lower a module to a program. Nodes that depend only on constants are compiled and run first."""
    if options.machine is None:
        options = replace(options, machine=llvm_compile.host(cpu).vectors)
    made = primitive(module, weights)
    flops = sum(flops_of_node(node) for node in made.main().nodes)
    split = split_constants(made)
    if split.early is not None:
        first = _executable(split.early, lower(split.early, options), options, cpu, use_cache)
        made = split.with_values(first())
        for name in ("simplify-algebra", "remove-dead"):
            made = pass_named(name).run(made)
    else:
        made = split.module
    return LoweredModel(made, lower(made, options, tuner), flops)


def compile_named(reading: Reading, given: Bindings, options: Options, cpu: str = "", tuner: Tuner | None = None) -> Model:
    """Compile the first module of a reading, with arrays by name. Raises UserError for names and arrays that do not match."""
    if not reading.ok or not reading.modules:
        errors = [f for f in reading.findings if f.severity is Severity.ERROR]
        raise UserError(f"{reading.source.name} cannot be compiled: the text has errors", findings=errors)
    given = replace(given, constants={name: np.array(given.constants[name]) for name in given.constants})  # the caller may change them
    module = reading.module()
    if module.is_primitive:
        require(reading, module, Use.RUN)
    if needs_opening(module):
        module = opened(module, given)
    else:
        module = bind_types(module, given.shapes, given.dtypes)
        module = bind_constants(module, given.constants) if given.constants else module
    weights = by_name(given.weights, ports_of(module)[0], "weights")
    if weights.unknown:
        known = [p.name for p in module.main().params]
        raise UserError(f"there is no input {weights.unknown[0]!r} to fix", did_you_mean(weights.unknown[0], known))
    return compile_module(module, weights.arrays, options, cpu, tuner=tuner)


def ports_of(module: Module) -> tuple[list[Port], list[Port]]:
    """The input and output tensors of a module's entry, in order, with names. Raises UserError where a shape is open."""
    main = module.main()
    leaves = [(param, ".".join((param.name, *map(str, path))), type) for param in main.params for path, type in leaf_paths(param.type)]
    for param, name, type in leaves:
        if any(not isinstance(d, int) and d.bound is None for d in type.shape):
            sizes = ",".join(str(d) if isinstance(d, int) else "8" for d in type.shape)
            raise UserError(f"the text leaves the shape of {name} open: {type}",
                            f"--shape {param.name}={sizes} binds it, or an array of that name in --inputs")
    results = [type for _, type in leaf_paths(main.result().type)]
    for i, type in enumerate(results):
        if not all(isinstance(d, int) or d.bound is not None for d in type.shape):
            raise UserError(f"the text leaves the shape of the result out{i} open: {type}", "state its sizes in the text")
    return [_port(name, type) for _, name, type in leaves], [_port(f"out{i}", type) for i, type in enumerate(results)]


def _port(name: str, type: TensorType) -> Port:
    why = without_array(type)
    if why:
        raise UserError(f"%{name} is {plain(type)}, which {why}", "give the program smaller shapes")
    return Port(name, type.dtype, type.dims(), tuple(d for d, n in enumerate(type.shape) if not isinstance(n, int)))


def _executable(module: Module, program: Program, options: Options, cpu: str, use_cache: bool) -> Executable:
    inputs, outputs = ports_of(module)
    return Executable.of(program, inputs, outputs, options.threads, cpu, use_cache)
