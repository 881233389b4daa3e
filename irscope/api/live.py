"""Objects of a framework in the running program: what ``irscope.load`` asks of them, by what they can do, and never by an import.

    lowered = jax.jit(f).lower(x)             ->    its HLO, as lowered.as_text(dialect="hlo") prints it
    exported = export.export(jax.jit(f))(x)   ->    its StableHLO, as exported.mlir_module() prints it; with args, the HLO for them
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

from irscope.source import UserError

ELIDED = "constant({...})"
"""What XLA prints in place of a large constant; the proto of the module has its value."""
JIT = "give what was compiled: irscope.load(jax.jit(f), args=(x, y)), or jax.jit(f).lower(x, y)"


@runtime_checkable
class Lowered(Protocol):
    """``jax.jit(f).lower(x)``: a program before XLA has compiled it."""

    def as_text(self, dialect: str | None = None) -> str: ...
    def compile(self) -> object: ...
    def compiler_ir(self, dialect: str | None = None) -> object: ...


@runtime_checkable
class Compiled(Protocol):
    """``jax.jit(f).lower(x).compile()``: what XLA made of it."""

    def as_text(self) -> str | None: ...
    def runtime_executable(self) -> object: ...


@runtime_checkable
class Traced(Protocol):
    """``jax.jit(f).trace(x)``."""

    @property
    def jaxpr(self) -> object: ...
    def lower(self) -> object: ...


@runtime_checkable
class Jitted(Protocol):
    """``jax.jit(f)``, and what else can be lowered for arguments."""

    def __call__(self, *args: object, **kwargs: object) -> object: ...
    def lower(self, *args: object, **kwargs: object) -> object: ...


@runtime_checkable
class Exported(Protocol):
    """``jax.export.export(jax.jit(f))(x)``."""

    @property
    def in_avals(self) -> Sequence[object]: ...
    @property
    def in_tree(self) -> object: ...
    def mlir_module(self) -> str: ...
    def call(self, *args: object, **kwargs: object) -> object: ...


@runtime_checkable
class KerasModel(Protocol):
    """A Keras model, whose weights become inputs of the program."""

    @property
    def trainable_variables(self) -> Sequence[object]: ...
    @property
    def non_trainable_variables(self) -> Sequence[object]: ...
    def stateless_call(self, trainable: object, others: object, *args: object, **kwargs: object) -> tuple[object, object]: ...


Live = Lowered | Compiled | Traced | Jitted | Exported | KerasModel


class _Jax(Protocol):
    """What is asked of the jax that the user's program has imported."""

    @property
    def jit(self) -> Callable[[Callable[..., object]], Jitted]: ...
    @property
    def ShapeDtypeStruct(self) -> Callable[[tuple[int, ...], str], object]: ...


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a function is lowered for: arrays, or objects with a shape and a dtype."""

    args: Sequence[object] = ()
    kwargs: Mapping[str, object] | None = None


def dump_of(what: object, arguments: Arguments) -> str | bytes:
    """The HLO of an object: its text, or its proto where the text elides constants; of an exported program without arguments the
    StableHLO, which has the sizes that it leaves open. Raises UserError for other objects, and for functions without arguments; errors of
    the framework while it lowers a function are the caller's."""
    if isinstance(what, Exported) and not arguments.args and not arguments.kwargs:
        return what.mlir_module()
    lowered = _lowered(what, arguments)
    if isinstance(lowered, Lowered):
        return _text_or_proto(_hlo_text(lowered), lambda: lowered.compiler_ir("hlo"))
    if isinstance(lowered, Compiled):
        return _text_or_proto(lowered.as_text(), lambda: _first_module(lowered.runtime_executable()))
    raise UserError(f"an object of type {_name(what)} is no program that irscope can read", JIT)


def _lowered(what: object, arguments: Arguments) -> object:
    """The lowered or compiled program of an object; the object itself where it is one, or unknown."""
    args, kwargs = arguments.args, arguments.kwargs or {}
    if isinstance(what, Lowered | Compiled):
        return what
    if isinstance(what, Traced):
        return what.lower()
    if isinstance(what, Exported):
        return _jax(what).jit(what.call).lower(*args, **kwargs)
    if isinstance(what, KerasModel):
        return _lower_keras(what, args)
    if isinstance(what, Jitted):
        if not args and not kwargs and not _takes_nothing(what):
            raise UserError(f"{_name(what)} is a function: what it computes depends on its arguments", JIT)
        return what.lower(*args, **kwargs)
    if callable(what):
        raise UserError(f"{_name(what)} is a Python function, which nothing has compiled", JIT)
    return what


def _lower_keras(model: KerasModel, args: Sequence[object]) -> object:
    """The program of a model's call, with its variables as the first inputs; sizes that the model leaves open are 1."""
    backend = getattr(sys.modules.get("keras"), "backend", None)
    name = backend.backend() if backend is not None else "jax"
    if name != "jax":
        raise UserError(f"this Keras model runs on {name}, not on jax", "set KERAS_BACKEND=jax before keras is imported")
    jax = _jax(model)
    inputs = args or [jax.ShapeDtypeStruct(tuple(size or 1 for size in tensor.shape), str(tensor.dtype))
                      for tensor in getattr(model, "inputs", ())]
    if not inputs:
        raise UserError("this Keras model has not been built: its inputs are unknown", "irscope.load(model, args=(x,))")
    one_list = not args and len(inputs) > 1

    def call(trainable: object, others: object, *given: object) -> object:
        return model.stateless_call(trainable, others, *([list(given)] if one_list else given))[0]
    trainable, others = ([getattr(v, "value", v) for v in variables]
                         for variables in (model.trainable_variables, model.non_trainable_variables))
    return jax.jit(call).lower(trainable, others, *inputs)


def _hlo_text(lowered: Lowered) -> str | None:
    try:
        return lowered.as_text(dialect="hlo")
    except (TypeError, ValueError):  # releases without the argument
        printed = getattr(lowered.compiler_ir("hlo"), "as_hlo_text", None)
        return str(printed()) if printed is not None else None


def _text_or_proto(text: str | None, module: Callable[[], object]) -> str | bytes:
    if not text:
        raise UserError("the program has no text: this backend gives none for it", "lower it for the CPU: JAX_PLATFORMS=cpu")
    if ELIDED in text:
        serialized = getattr(module(), "as_serialized_hlo_module_proto", None)
        if serialized is not None:
            return bytes(serialized())
    return text


def _first_module(executable: object) -> object:
    modules = getattr(executable, "hlo_modules", None)
    return next(iter(modules()), None) if modules is not None else None


def _takes_nothing(function: object) -> bool:
    code = getattr(getattr(function, "__wrapped__", None), "__code__", None)
    return code is not None and not code.co_argcount and not code.co_kwonlyargcount


def _jax(what: object) -> _Jax:
    """The jax that the program has imported."""
    module = sys.modules.get("jax")
    if module is None:
        raise UserError(f"an object of type {_name(what)} needs jax to become a program, and this program has not imported it", JIT)
    return cast(_Jax, module)


def _name(what: object) -> str:
    kind = type(what)
    return f"{kind.__module__.partition('.')[0]}'s {kind.__qualname__}" if kind.__module__ != "builtins" else kind.__qualname__
