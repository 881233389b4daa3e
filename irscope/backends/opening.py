"""From a module as written to one whose entry takes tensors of known types: what a program of TorchScript needs before it can be lowered.

HLO says all its types; a TorchScript graph is a program, which is run over abstract values with the types of the arrays that are given.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from irscope.expand.torchscript import Given, run_program
from irscope.graph import DTYPES, Graph, Module, NamedType, TensorType, TupleType, dtype_of
from irscope.graph.dtypes import F32
from irscope.source import UserError, did_you_mean

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

Measure = Callable[[Module, Mapping[str, "Array"]], int]
NUMBERS = {"int": int, "float": float, "bool": bool}


def needs_opening(module: Module) -> bool:
    """Whether the entry is a program that has to be run before it is a graph of tensors."""
    return module.format == "torchscript" and not module.attrs.get("primitive")


def opened(module: Module, inputs: Mapping[str, Array], weights: Mapping[str, Array], constants: Mapping[str, Array],
           shapes: Mapping[str, tuple[int, ...]], dtypes: Mapping[str, str], measure: Measure | None) -> Module:
    """The primitive module of a program for these arrays.

    ``inputs`` are by input name or ``argN`` (objects not counted); a 0-dimensional one binds to an input that is a number.
    ``measure`` compiles and runs a module whose result is one integer: sizes that depend on data come from it.
    ``attrs["consumed"]`` of the result names the arrays that became numbers. Raises UserError for what does not fit.
    """
    params = [p for p in module.main().params if not (isinstance(p.type, NamedType) and "__torch__" in p.type.name)]
    arrays = {**weights, **inputs}
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
            given.update({name: TensorType(dtype_of(a.dtype), a.shape) for name, a in arrays.items() if name.startswith(param.name + ".")})
        elif key in arrays and text.rstrip("?") in NUMBERS:
            given[param.name] = NUMBERS[text.rstrip("?")](arrays[key].item())
            consumed.append(key)
        elif key in arrays:
            given[param.name] = TensorType(_dtype(arrays[key], param.name), arrays[key].shape)
        elif param.name in shapes:
            given[param.name] = TensorType(DTYPES[dtypes[param.name]] if param.name in dtypes else F32, shapes[param.name])
        elif text.endswith("?"):
            given[param.name] = None
    known = {name: TensorType(_dtype(a, name), a.shape) for name, a in weights.items()}

    def run(graph: Graph) -> int:
        part = module.derived()
        part.attrs["primitive"] = True
        part.graphs, part.entry = {graph.name: graph}, graph.name
        assert measure is not None
        return measure(part, arrays)

    made = run_program(module, Given(given, known, constants, run if inputs and measure is not None else None))
    made.attrs["primitive"] = True
    made.attrs["consumed"] = consumed
    return made


def _dtype(array: Array, name: str) -> Any:
    try:
        return dtype_of(array.dtype)
    except KeyError:
        raise UserError(f"array {name!r} has the type {array.dtype}, which no tensor has", "convert it to float32 or int64") from None
