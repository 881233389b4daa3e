"""Compilation to native code that Python can call: ``irscope.compile``, and the kernels that are not vectorised."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict, Unpack

from irscope.api.loading import Source, read_source
from irscope.backends.model import Model, compile_named, primitive
from irscope.backends.opening import Bindings
from irscope.backends.pool import available_threads
from irscope.backends.tuning import Tuning
from irscope.expand.specialise import has_open_sizes
from irscope.graph import Module
from irscope.lazy import Array
from irscope.lower.lowering import lower
from irscope.lower.options import Options
from irscope.lower.scalar_loops import scalar_loops as found_in
from irscope.source import UserError


class CompileOptions(TypedDict, total=False):
    """The keywords of :func:`irscope.compile`.

    ``weights`` (by input name or ``argN``) are fixed: they may be packed and folded, and are no longer inputs. ``shapes`` and
    ``dtypes`` bind what the text leaves open, ``constants`` are values that it elides. ``threads`` is the number of threads (None:
    the cores that this process may use), ``precision`` is exact, default or fast, ``cpu`` the processor (empty: this machine's).
    ``autotune`` measures schedules and keeps the fastest, which takes a while the first time.
    """

    weights: Mapping[str, Array] | None
    shapes: Mapping[str, tuple[int, ...]] | None
    dtypes: Mapping[str, str] | None
    constants: Mapping[str, Array] | None
    threads: int | None
    precision: str
    cpu: str
    autotune: bool


def compile(what: Source, **options: Unpack[CompileOptions]) -> Model:
    """Compile a dump to native code: a callable that takes numpy arrays in the entry's order and returns a list of new arrays.

    The keywords are those of :class:`CompileOptions`. Raises :class:`irscope.UserError` for what cannot be read, bound or compiled.

    >>> import numpy as np
    >>> model = compile('''ENTRY main { p = f32[3] parameter(0)
    ... ROOT n = f32[3] negate(p) }''')
    >>> model(np.arange(3, dtype=np.float32))[0].tolist()
    [-0.0, -1.0, -2.0]
    """
    lowering = Options(threads=options.get("threads") or available_threads(), precision=options.get("precision", "default"))
    cpu = options.get("cpu", "")
    tuner = Tuning(lowering.threads, cpu) if options.get("autotune") else None
    given = Bindings(weights=options.get("weights") or {}, constants=options.get("constants") or {}, shapes=options.get("shapes") or {},
                     dtypes=options.get("dtypes") or {})
    return compile_named(read_source(what), given, lowering, cpu, tuner)


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
