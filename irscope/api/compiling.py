"""Compilation to native code that Python can call: ``irscope.compile``. The program comes from the cache if it is there."""
from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict, Unpack

from irscope.api.array_files import Files
from irscope.api.options import RunOptions
from irscope.api.stored_programs import ProgramStore
from irscope.backends.loaded_model import Model
from irscope.lazy import Array, LazyModule
from irscope.source.cores import available_threads

if TYPE_CHECKING:
    from irscope.api import compiled_model
    from irscope.api.loading import Source
    from irscope.backends import varying
else:
    compiled_model = LazyModule("irscope.api.compiled_model")
    varying = LazyModule("irscope.backends.varying")


class CompileOptions(TypedDict, total=False):
    """The keywords of :func:`irscope.compile`.

    ``weights`` (by input name or ``argN``) are fixed: they may be packed and folded, and are no longer inputs; a later change of the
    arrays does not change the model. ``shapes`` and ``dtypes`` bind what the text leaves open, ``constants`` are values that it elides.
    ``threads`` is the number of threads (None: the cores that this process may use), ``precision`` is exact, default or fast, ``cpu``
    the processor (empty: this machine's). ``autotune`` measures schedules and keeps the fastest, which takes a while the first time.
    ``cache_weights`` keeps packed weights of up to 256 MiB in the cache (default: 4 MiB).
    """

    weights: Mapping[str, Array] | None
    shapes: Mapping[str, tuple[int, ...]] | None
    dtypes: Mapping[str, str] | None
    constants: Mapping[str, Array] | None
    threads: int | None
    precision: str
    cpu: str
    autotune: bool
    cache_weights: bool


def compile(what: Source, **options: Unpack[CompileOptions]) -> Model:
    """Compile a dump to native code: a callable that takes numpy arrays in the entry's order and returns a list of new arrays.

    The keywords are those of :class:`CompileOptions`. Raises :class:`irscope.UserError` for what cannot be read, bound or compiled.

    >>> import numpy as np
    >>> model = compile('''ENTRY main { p = f32[3] parameter(0)
    ... ROOT n = f32[3] negate(p) }''')
    >>> model(np.arange(3, dtype=np.float32))[0].tolist()
    [-0.0, -1.0, -2.0]
    """
    began = time.perf_counter()
    request = RunOptions(shapes=options.get("shapes") or {}, dtypes=options.get("dtypes") or {}, cpu=options.get("cpu", ""),
                         threads=options.get("threads") or available_threads(), precision=options.get("precision", "default"),
                         autotune=options.get("autotune", False), cache_weights=options.get("cache_weights", False))
    given = Files({}, options.get("weights") or {}, options.get("constants") or {})
    store = ProgramStore.of(what, request, given, "compile")
    found = store.find() if store is not None else None
    if found is None:
        return compiled_model.compiled(what, request, given, store)
    program = found.compiled
    plain = program.loaded(request.threads or 1)
    executable = plain if program.varying is None else varying.executable_of(plain, program.varying)
    return Model(program.program.name, executable, len(program.program.launches()), found.facts.flops, time.perf_counter() - began,
                 lambda: compiled_model.compiled(what, request, given, None).lower(), from_cache=True)
