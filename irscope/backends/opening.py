"""Turns a module into one whose entry takes tensors of known types, as lowering requires.

HLO states all its types; a TorchScript graph is a program, which is run over abstract values with the types of the given arrays. A Relay
module is run in the same way: its functions are inlined, and its operators are expanded.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from irscope.analysis.types import check_types
from irscope.analysis.verify.faults import CODES
from irscope.expand.given import element_type
from irscope.expand.programs import inferred, torchscript
from irscope.expand.symbolic_sizes import check_sizes
from irscope.graph import DTYPES, DType, Graph, Module, NamedType, TensorType, TupleType, Type
from irscope.graph.dialect import Typing
from irscope.graph.dtypes import F32
from irscope.lazy import Array
from irscope.source import Severity, UserError, did_you_mean
from irscope.source.arrays import Joined

Measure = Callable[[Module, Mapping[str, "Array"]], int]
NUMBERS: Mapping[str, type[int | float]] = {"int": int, "float": float, "bool": bool}


def needs_opening(module: Module) -> bool:
    """Whether the entry is a program that must be run over abstract values to get a graph of tensors."""
    return not module.is_primitive


@dataclass(frozen=True, slots=True)
class Bindings:
    """The user's values for the parts that a text leaves open: arrays by input name or ``argN`` (objects are not counted), weights and
    constants by name, shapes and element types of inputs. An array of one element binds to an input that is a number.
    """

    inputs: Mapping[str, Array] = field(default_factory=dict)
    weights: Mapping[str, Array] = field(default_factory=dict)
    constants: Mapping[str, Array] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)

    def arrays(self) -> Mapping[str, Array]:
        """Inputs and weights."""
        return Joined([self.inputs, self.weights])

    def require_inputs(self, names: Collection[str]) -> None:
        """Raise UserError where a shape or element type is given for an input that does not exist."""
        for name in [*self.shapes, *self.dtypes]:
            if name not in names:
                raise UserError(f"there is no input {name!r}", did_you_mean(name, names) or f"the inputs are {', '.join(names)}")

    def dtype(self, name: str, said: Type) -> DType:
        """The element type of an input: as given, else as in the text, else float32."""
        return DTYPES[self.dtypes[name]] if name in self.dtypes else said.dtype if isinstance(said, TensorType) else F32


def opened(module: Module, given: Bindings, measure: Measure | None = None) -> Module:
    """The primitive module of a program for these arrays.

    ``measure`` compiles and runs a module whose result is one integer: sizes that depend on data come from it.
    ``attrs["consumed"]`` of the result names the arrays that became numbers. Raises UserError for values that do not fit.
    """
    if module.dialect.typing is Typing.INFERRED:
        return _opened_inferred(module, given, _measured(module, given, measure))
    params = [p for p in module.main().params if not (isinstance(p.type, NamedType) and "__torch__" in p.type.name)]
    arrays = given.arrays()
    given.require_inputs([p.name for p in params])
    values: dict[str, Any] = {}
    consumed: list[str] = []
    for number, param in enumerate(params):
        key = param.name if param.name in arrays else f"arg{number}"
        text = str(param.type)
        if isinstance(param.type, TupleType) or text.endswith("[]"):
            parts = {name: arrays[name] for name in arrays if name.startswith(param.name + ".")}
            values.update({name: TensorType(element_type(array, f"array {name!r}"), array.shape) for name, array in parts.items()})
        elif key in arrays and text.rstrip("?") in NUMBERS:
            values[param.name] = _number(arrays[key], text.rstrip("?"), key)
            consumed.append(key)
        elif key in arrays:
            values[param.name] = TensorType(element_type(arrays[key], f"array {param.name!r}"), arrays[key].shape)
        elif param.name in given.shapes:
            values[param.name] = TensorType(given.dtype(param.name, param.type), given.shapes[param.name])
        elif text.endswith("?"):
            values[param.name] = None
    check_sizes(module, {name: value.shape for name, value in values.items() if isinstance(value, TensorType)})
    weights = {name: TensorType(element_type(a, f"array {name!r}"), a.shape) for name, a in given.weights.items()}
    measured = _measured(module, given, measure)
    made = torchscript.run_program(module, torchscript.Given(values, weights, given.constants, measured))
    made.attrs.update(primitive=True, consumed=consumed)
    return made


def _measured(module: Module, given: Bindings, measure: Measure | None) -> Callable[[Graph], int] | None:
    """Runs a graph of the module, whose result is one integer, over the given inputs; None where none are given."""
    if measure is None or not given.inputs:
        return None
    arrays = given.arrays()

    def run(graph: Graph) -> int:
        part = module.derived()
        part.attrs.update(primitive=True)
        part.graphs, part.entry = {graph.name: graph}, graph.name
        return measure(part, arrays)
    return run


def require_sound(module: Module) -> None:
    """Raise UserError, with the places, where types of a module do not fit: a module with type errors is not run."""
    errors = [finding for finding in check_types(module) if finding.severity is Severity.ERROR]
    if errors:
        for finding in errors:
            finding.code = CODES["type"]  # as in the linter's rule
        name = module.source.name.rpartition("/")[2]
        raise UserError(f"{name}: {len(errors)} type {'error' if len(errors) == 1 else 'errors'} in the text", findings=errors)


def _opened_inferred(module: Module, given: Bindings, measure: Callable[[Graph], int] | None) -> Module:
    """The same where types are inferred. Given shapes and element types override the text; arrays provide the types that it leaves open."""
    params = module.main().params
    given.require_inputs([p.name for p in params])
    arrays = given.arrays()
    types: dict[str, Type] = {}
    for number, param in enumerate(params):
        array = arrays.get(param.name, arrays.get(f"arg{number}"))
        said = param.type if isinstance(param.type, TensorType) else None
        if param.name in given.shapes or param.name in given.dtypes:
            shape = given.shapes.get(param.name, said.shape if said is not None else ())
            types[param.name] = TensorType(given.dtype(param.name, param.type), shape)
        elif array is not None and not isinstance(param.type, TupleType) and (said is None or not said.is_static):
            types[param.name] = TensorType(said.dtype if said is not None else element_type(array, f"array {param.name!r}"), array.shape)
    programs = inferred(module)
    module = programs.rebound(module, types)
    require_sound(module)
    made = programs.run_program(module, types, given.constants, measure=measure)
    made.attrs.update(primitive=True, weights=programs.parameter_names(module))
    return made


def _number(array: Array, type: str, name: str) -> int | float | bool:
    """The one element of an array. Raises UserError where the array has more or fewer, or where the element does not fit the type."""
    if array.size != 1:
        raise UserError(f"array {name!r} has {array.size} elements, but the input is one number",
                        "pass an array of one element, e.g. np.array(3)")
    value = array.item()
    if isinstance(value, int | float) and (type == "float" or (isfinite(value) and value == int(value))):
        return NUMBERS[type](value)
    raise UserError(f"array {name!r} holds {value!r}, but the input has the type {type}")
