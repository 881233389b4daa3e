"""The inputs of a program: tensors of given or declared types, numbers, and tuples or lists of them."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from irscope.expand.torchscript.program import TorchProgram
from irscope.formats.export.types import SymbolType
from irscope.formats.torchscript.abstract import ModuleRef, Tensor
from irscope.formats.torchscript.layouts import stated
from irscope.formats.torchscript.strides import Strided, contiguous
from irscope.graph import DynamicDim, NamedType, Node, TensorType, TupleType, Type
from irscope.ops.module_attributes import Prepared
from irscope.source import UserError

_ABSENT: object = object()


def input_values(program: TorchProgram, params: Sequence[Node]) -> list[object]:
    """The abstract values of the inputs of the entry. Symbols of sizes have the values that the given shapes give them."""
    symbols = {**Prepared.of(program.module).symbols, **bound_symbols(params, program.given.inputs)}
    return [_input_value(program, param, symbols) for param in params]


def bound_symbols(params: Sequence[Node], given: Mapping[str, object]) -> dict[str, int]:
    """``{"s77": 32}`` where an input is declared as ``f32[s77, 4]`` and given as ``f32[32, 4]``."""
    found: dict[str, int] = {}
    for param in params:
        value = given.get(param.name)
        if isinstance(value, TensorType) and isinstance(param.type, TensorType) and value.rank == param.type.rank:
            found |= {dim.name: size for dim, size in zip(param.type.shape, value.dims(), strict=True)
                      if isinstance(dim, DynamicDim) and dim.name.isidentifier()}
    return found


def _implied(type: Type, symbols: Mapping[str, int]) -> object:
    """What the sizes of other inputs say of an input: its type, or the number that it is."""
    if isinstance(type, SymbolType):
        return symbols.get(type.expression, _ABSENT)
    if isinstance(type, TensorType):
        shape = [symbols.get(dim.name, dim) if isinstance(dim, DynamicDim) else dim for dim in type.shape]
        if all(isinstance(dim, int) for dim in shape):
            return TensorType(type.dtype, tuple(shape))
    return _ABSENT


def _input_value(program: TorchProgram, param: Node, symbols: Mapping[str, int]) -> object:
    if isinstance(param.type, NamedType) and ("__torch__" in param.type.name or param.type.name == "PyObject"):
        return ModuleRef("", param.type.name)
    value = program.given.inputs.get(param.name, _ABSENT)
    if isinstance(param.type, TupleType) or (isinstance(param.type, NamedType) and param.type.name.endswith("[]")):
        return _structured(program, param)
    if value is _ABSENT:
        value = _implied(param.type, symbols)
    if value is _ABSENT:
        if not isinstance(param.type, TensorType) and str(param.type).rstrip("?") in ("int", "float", "bool"):
            raise UserError(f"the input %{param.name} is a number ({param.type}) that is not given",
                            f"give it by --inputs as {param.name!r}, an array of no dimensions")
        raise UserError(f"the text does not say the shape of input %{param.name} ({param.type})",
                        f"give it by --inputs, or --shape {param.name}=...; torch.jit.trace(...).inlined_graph prints shapes")
    if isinstance(value, TensorType):
        node = program.parameter(value, param)
        return Tensor(node, layout=given_layout(param.type, node))
    return value


def given_layout(declared: Type | None, node: Node) -> Strided:
    """The layout of an input tensor: the strides that the text states for its shape, else contiguous ones."""
    shape = node.type.dims() if isinstance(node.type, TensorType) else ()
    return stated(declared, shape) or contiguous(shape)


def _structured(program: TorchProgram, param: Node) -> object:
    """A tuple or list of tensors: its parts are inputs named ``name.0``, ``name.1``."""
    parts, i = [], 0
    types = param.type.elements if isinstance(param.type, TupleType) else None
    while types is None or i < len(types):
        name = f"{param.name}.{i}"
        value = program.given.inputs.get(name, _ABSENT)
        declared = types[i] if types is not None else None
        if value is _ABSENT and isinstance(declared, TensorType) and declared.is_static:
            value = TensorType(declared.dtype, declared.shape)
        if value is _ABSENT:
            if types is None and i:
                break
            raise UserError(f"part {i} of input %{param.name} ({param.type}) is not given", f"give it by --inputs as {name}")
        if isinstance(value, TensorType):
            node = program.parameter(value, param, name)
            value = Tensor(node, layout=given_layout(declared, node))
        parts.append(value)
        i += 1
    return parts if types is None else tuple(parts)
