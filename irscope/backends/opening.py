"""From a module as written to one whose entry takes tensors of known types: what a program needs before it can be lowered.

HLO says all its types; a TorchScript graph is a program, which is run over abstract values with the types of the arrays that are given,
and so is a Relay module: its functions are inlined, its operators expanded.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from irscope.analysis.types import check_types
from irscope.analysis.verify.faults import CODES
from irscope.expand.programs import relay, torchscript
from irscope.graph import DTYPES, Graph, Module, NamedType, TensorType, TupleType, dtype_of
from irscope.graph.dialect import Typing
from irscope.graph.dtypes import F32
from irscope.lazy import Array
from irscope.source import Severity, UserError, did_you_mean
from irscope.source.arrays import Joined

Measure = Callable[[Module, Mapping[str, "Array"]], int]
NUMBERS = {"int": int, "float": float, "bool": bool}


def needs_opening(module: Module) -> bool:
    """Whether the entry is a program that has to be run before it is a graph of tensors."""
    return not module.is_primitive


def opened(module: Module, inputs: Mapping[str, Array], weights: Mapping[str, Array], constants: Mapping[str, Array],
           shapes: Mapping[str, tuple[int, ...]], dtypes: Mapping[str, str], measure: Measure | None) -> Module:
    """The primitive module of a program for these arrays.

    ``inputs`` are by input name or ``argN`` (objects not counted); a 0-dimensional one binds to an input that is a number.
    ``measure`` compiles and runs a module whose result is one integer: sizes that depend on data come from it.
    ``attrs["consumed"]`` of the result names the arrays that became numbers. Raises UserError for what does not fit.
    """
    if module.dialect.typing is Typing.INFERRED:
        return _opened_inferred(module, inputs, weights, constants, shapes, dtypes)
    params = [p for p in module.main().params if not (isinstance(p.type, NamedType) and "__torch__" in p.type.name)]
    arrays = Joined([inputs, weights])
    names = [p.name for p in params]
    for name in [*shapes, *dtypes]:
        if name not in names:
            raise UserError(f"there is no input {name!r}", did_you_mean(name, names) or f"the inputs are {', '.join(names)}")
    given: dict[str, Any] = {}
    consumed: list[str] = []
    for number, param in enumerate(params):
        key = param.name if param.name in arrays else f"arg{number}"
        text = str(param.type)
        if isinstance(param.type, TupleType) or text.endswith("[]"):
            parts = {name: arrays[name] for name in arrays if name.startswith(param.name + ".")}
            given.update({name: TensorType(dtype_of(array.dtype), array.shape) for name, array in parts.items()})
        elif key in arrays and text.rstrip("?") in NUMBERS:
            given[param.name] = NUMBERS[text.rstrip("?")](arrays[key].item())
            consumed.append(key)
        elif key in arrays:
            given[param.name] = TensorType(_dtype(arrays[key], param.name), arrays[key].shape)
        elif param.name in shapes:
            own = param.type.dtype if isinstance(param.type, TensorType) else F32
            given[param.name] = TensorType(DTYPES[dtypes[param.name]] if param.name in dtypes else own, shapes[param.name])
        elif text.endswith("?"):
            given[param.name] = None
    known = {name: TensorType(_dtype(a, name), a.shape) for name, a in weights.items()}

    def run(graph: Graph) -> int:
        part = module.derived()
        part.attrs.update(primitive=True)
        part.graphs, part.entry = {graph.name: graph}, graph.name
        assert measure is not None
        return measure(part, arrays)

    made = torchscript.run_program(module, torchscript.Given(given, known, constants, run if inputs and measure is not None else None))
    made.attrs.update(primitive=True, consumed=consumed)
    return made


def require_sound(module: Module) -> None:
    """Raise UserError, with the places, where types of a module do not fit: what a linter calls an error is not run."""
    errors = [finding for finding in check_types(module) if finding.severity is Severity.ERROR]
    if errors:
        for finding in errors:
            finding.code = CODES["type"]  # as the linter's rule has it
        name = module.source.name.rpartition("/")[2]
        raise UserError(f"{name}: {len(errors)} type {'error' if len(errors) == 1 else 'errors'} in the text", findings=errors)


def _opened_inferred(module: Module, inputs: Mapping[str, Array], weights: Mapping[str, Array], constants: Mapping[str, Array],
                     shapes: Mapping[str, tuple[int, ...]], dtypes: Mapping[str, str]) -> Module:
    """The same where types are inferred. Types in the text hold; what it leaves open comes from arrays and ``--shape``."""
    params = module.main().params
    names = [p.name for p in params]
    for name in [*shapes, *dtypes]:
        if name not in names:
            raise UserError(f"there is no input {name!r}", did_you_mean(name, names) or f"the inputs are {', '.join(names)}")
    arrays = Joined([inputs, weights])
    given: dict[str, Any] = {}
    for number, param in enumerate(params):
        array = arrays.get(param.name, arrays.get(f"arg{number}"))
        said = param.type if isinstance(param.type, TensorType) else None
        if param.name in shapes or param.name in dtypes:
            dtype = DTYPES[dtypes[param.name]] if param.name in dtypes else said.dtype if said is not None else F32
            given[param.name] = TensorType(dtype, shapes.get(param.name, said.shape if said is not None else ()))
        elif array is not None and not isinstance(param.type, TupleType) and (said is None or not said.is_static):
            given[param.name] = TensorType(said.dtype if said is not None else _dtype(array, param.name), array.shape)
    module = relay.rebound(module, given)
    require_sound(module)
    made = relay.run_program(module, given, constants)
    made.attrs.update(primitive=True, weights=relay.parameter_names(module))
    return made


def _dtype(array: Array, name: str) -> Any:
    try:
        return dtype_of(array.dtype)
    except KeyError:
        raise UserError(f"array {name!r} has the type {array.dtype}, which no tensor has", "convert it to float32 or int64") from None
