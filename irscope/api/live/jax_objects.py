"""Programs of jax, and Keras models on jax: the HLO that they lower to.

    lowered = jax.jit(f).lower(x)             ->    its HLO, as lowered.as_text(dialect="hlo") prints it
    exported = export.export(jax.jit(f))(x)   ->    its StableHLO, as exported.mlir_module() prints it; with args, the HLO for them
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Protocol, cast, runtime_checkable

from irscope.api.live.door import Arguments, Door, Dump, name_of
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


JaxObject = Lowered | Compiled | Traced | Jitted | Exported | KerasModel


class _Jax(Protocol):
    """The parts that are used of the jax that the user's program has imported."""

    jit: Callable[[Callable[..., object]], Jitted]
    ShapeDtypeStruct: Callable[[tuple[int, ...], str], object]


def _lowered(lowered: Lowered, _: Arguments) -> Dump:
    return _text_or_proto(_hlo_text(lowered), lambda: lowered.compiler_ir("hlo"))


def _compiled(compiled: Compiled, _: Arguments) -> Dump:
    return _text_or_proto(compiled.as_text(), lambda: _first_module(compiled.runtime_executable()))


def _traced(traced: Traced, arguments: Arguments) -> Dump:
    return _made(traced.lower(), arguments)


def _exported(exported: Exported, arguments: Arguments) -> Dump:
    """The StableHLO, which has the sizes that an exported program leaves open; with arguments, the HLO for them."""
    if not arguments:
        return Dump(exported.mlir_module())
    return _made(_jax(exported).jit(exported.call).lower(*arguments.args, **arguments.kwargs), arguments)


def _keras(model: KerasModel, arguments: Arguments) -> Dump:
    return _made(_lower_keras(model, arguments.args), arguments)


def _jitted(function: Jitted, arguments: Arguments) -> Dump:
    if not arguments and not _takes_nothing(function):
        raise UserError(f"{name_of(function)} is a function: what it computes depends on its arguments", JIT)
    return _made(function.lower(*arguments.args, **arguments.kwargs), arguments)


DOORS = (Door(Lowered, _lowered), Door(Compiled, _compiled), Door(Traced, _traced), Door(Exported, _exported), Door(KerasModel, _keras),
         Door(Jitted, _jitted))


def _made(lowered: object, arguments: Arguments) -> Dump:
    """The dump of what a program was lowered to."""
    if not isinstance(lowered, Lowered):
        raise UserError(f"an object of type {name_of(lowered)} is no program that irscope can read", JIT)
    return _lowered(lowered, arguments)


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


def _text_or_proto(text: str | None, module: Callable[[], object]) -> Dump:
    if not text:
        raise UserError("the program has no text: this backend gives none for it", "lower it for the CPU: JAX_PLATFORMS=cpu")
    if ELIDED in text:
        serialized = getattr(module(), "as_serialized_hlo_module_proto", None)
        if serialized is not None:
            return Dump(bytes(serialized()))
    return Dump(text)


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
        raise UserError(f"an object of type {name_of(what)} needs jax to become a program, and this program has not imported it", JIT)
    return cast(_Jax, module)
