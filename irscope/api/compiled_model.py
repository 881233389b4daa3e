"""Compilation of a dump whose program is not in the cache, and the kernels that are not vectorised."""
from __future__ import annotations

from irscope.api.array_files import Files
from irscope.api.binding import lowering_options
from irscope.api.loading import Source, read_source
from irscope.api.options import RunOptions
from irscope.api.stored_programs import ProgramStore, RunFacts, StoredProgram
from irscope.api.targeting import check_cpu
from irscope.backends.loaded_model import Model
from irscope.backends.model import compile_named, compiled_program, primitive
from irscope.backends.opening import Bindings
from irscope.backends.tuning import Tuning
from irscope.expand.specialise import has_open_sizes
from irscope.graph import Module
from irscope.lower.lowering import lower
from irscope.lower.options import Options
from irscope.lower.scalar_loops import scalar_loops as found_in
from irscope.source import UserError


def compiled(what: Source, options: RunOptions, given: Files, store: ProgramStore | None) -> Model:
    """Compile a dump, and store its program. Raises UserError as :func:`irscope.compile` does."""
    check_cpu(options)
    tuner = Tuning(options.threads or 1, options.cpu) if options.autotune else None
    bindings = Bindings(weights=given.weights, constants=given.constants, shapes=options.shapes, dtypes=options.dtypes)
    reading = read_source(what)
    model = compile_named(reading, bindings, lowering_options(options), options.cpu, tuner)
    if store is not None and not reading.has_other_files:  # no key covers those
        facts = RunFacts([], [], {}, (), [], [], model.flops, model.module.flushes_denormals)
        store.keep(StoredProgram(compiled_program(model), facts), (), (), options.cache_weights)
    return model


def scalar_loops(module: Module) -> list[tuple[str, tuple[str, ...], int, bool]]:
    """The kernels that are compiled to scalar code: name, the user's nodes, steps, and whether the trip count depends on data.

    Empty if the module cannot be compiled (open shapes, operators that do not run here): ``compile-and-run`` says why.
    """
    if has_open_sizes(module):
        return []
    try:
        program = lower(primitive(module), Options())
    except UserError:
        return []
    return [(loop.kernel, loop.nodes, loop.steps, loop.waits) for loop in found_in(program)]
