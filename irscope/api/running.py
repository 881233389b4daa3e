"""``irscope.run``: reads, compiles, runs, times and compares a dump, or runs its program from the cache.

This file imports neither readers nor the compiler: a program that is in the cache needs none (:mod:`irscope.api.stored_programs`).
"""
from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from irscope.api.array_files import Files
from irscope.api.options import RunOptions
from irscope.api.run_result import RunResult
from irscope.api.stored_programs import ProgramStore, StoredProgram
from irscope.api.timing import timed
from irscope.api.watching import SILENT, Watcher
from irscope.lazy import Array, LazyModule
from irscope.source import UserError
from irscope.source.arrays import write_arrays
from irscope.source.budget import concerning
from irscope.source.cores import available_threads
from irscope.source.files import path_or_empty

if TYPE_CHECKING:
    from irscope.api import compiled_run
    from irscope.api.loading import Source
    from irscope.backends import varying
else:
    compiled_run = LazyModule("irscope.api.compiled_run")
    varying = LazyModule("irscope.backends.varying")


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
    if options.kernel:
        raise UserError("--kernel selects what --emit writes", f"--emit asm --kernel {options.kernel} prints its machine code")
    if options.profile and options.engine != "llvm":
        raise UserError("--profile times compiled code, and the reference engine has none", "leave out --engine reference, or --profile")
    given = Files(inputs or {}, weights or {}, constants or {})
    began = time.perf_counter()
    store = ProgramStore.of(what, options, given)
    found = store.find() if store is not None and not (options.check or options.expect_from is not None or options.profile) else None
    if store is not None and store.fault:
        watch.note(f"the program in the cache is not used, because it {store.fault}; it is compiled again")
    if store is not None and found is not None:
        if path := path_or_empty(what):
            concerning(path)  # the reader does this otherwise; nothing is read here
        result = _from_cache(options, store, found, began, watch)
    else:
        given = Files(given.inputs, given.weights, given.constants, store.opened if store is not None else {})
        result = compiled_run.run(what, options, given, store, watch)
    if options.save_outputs is not None:
        write_arrays(options.save_outputs, {f"out{i}": a for i, a in enumerate(result.outputs)}, [path_or_empty(what), *options.files])
    return result


def _from_cache(options: RunOptions, store: ProgramStore, found: StoredProgram, began: float, watch: Watcher) -> RunResult:
    """Run a stored program."""
    facts, compiled = found.facts, found.compiled
    for note in facts.notes:
        watch.note(note)
    arrays = facts.arrays(store.inputs, options)
    read = time.perf_counter()
    threads = options.threads or available_threads()
    with watch.stage("running"):
        executable = compiled.loaded(threads)
        call = (executable if compiled.varying is None else varying.executable_of(executable, compiled.varying)).bind(arrays)
        loaded = time.perf_counter()
        call()
        outputs = [a.copy() for a in call.outputs] if options.bench else list(call.outputs)
        samples = timed(options, call) if options.bench else []
    result = RunResult(outputs, len(compiled.program.launches()), [], threads, loaded - read, facts.flops, samples, load_s=read - began,
                       drawn=[i.port.name for i in facts.inputs if i.given is None], paths=facts.paths, from_cache=True)
    if options.expect is not None:
        result.comparisons += compiled_run.compared_with_file(options, facts.outputs, result, facts.flushes_denormals, watch)
    return result
