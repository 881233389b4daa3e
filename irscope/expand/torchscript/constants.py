"""Constants of the text as values of the run: numbers and strings directly, tensors from the text or the user."""
from __future__ import annotations

import re
from collections.abc import Container, Iterator
from itertools import count, takewhile
from math import prod

from irscope.expand.given import given_constant
from irscope.expand.torchscript.plain_sizes import require_int
from irscope.expand.torchscript.program import TorchProgram
from irscope.expand.torchscript.weights import flat_weights, recurrent_names, weight
from irscope.formats.torchscript.abstract import FunctionRef, ModuleRef, Tensor
from irscope.formats.torchscript.attributes import Constant
from irscope.formats.torchscript.layouts import stated
from irscope.formats.torchscript.strides import contiguous
from irscope.formats.torchscript.types import SCALARS
from irscope.formats.torchscript.values import List, TensorText
from irscope.graph import DTYPES, UNKNOWN, Module, Node, TensorType, Type, dtype_of
from irscope.graph.dtypes import C128, F64, PRED, S64
from irscope.lazy import Array, np
from irscope.ops.faults import TypeFault
from irscope.ops.sets import torchscript
from irscope.source import UserError

CONSTANT = torchscript("prim::Constant")
NUMBERS = (F64, S64, PRED, C128)
"""The element types that numbers of Python have as tensors."""
SHOWN = re.compile(r"\[ \w{0,40}(?:CPU|CUDA|Meta|XPU|HPU|MPS)(\w{1,40})Type\{")
"""The element type of a tensor that torch prints: ``1.5  2 [ CPUFloatType{2} ]``."""


def elided_constants(module: Module) -> list[Node]:
    """The tensors whose values the text elides."""
    constants = (node for graph in module.graphs.values() for node in graph.nodes if node.op in CONSTANT)
    return [node for node in constants if isinstance(value := Constant.of(node).value, TensorText) and value.elided]


def constant(program: TorchProgram, node: Node) -> object:
    """``prim::Constant``; the declared type decides what an int or a string means."""
    value, name = Constant.of(node).value, Constant.of(node).name
    if value is None:
        return None if name is None else FunctionRef(str(name))
    declared = str(node.type)
    if "__torch__.torch.classes." in declared:
        return ModuleRef(node.name.removeprefix("self."), declared)
    if isinstance(value, TensorText):
        return _tensor_constant(program, node, value)
    if isinstance(value, int) and declared == "bool":
        return bool(value)
    if isinstance(value, int) and not isinstance(value, bool) and declared == "float":
        return float(require_int(value))
    require_ints(value)
    return _with_tensors(program, node, thaw(value))


def _with_tensors(program: TorchProgram, node: Node, value: object) -> object:
    """A constant list whose items are tensors."""
    if isinstance(value, list):
        return [_with_tensors(program, node, v) for v in value]
    if isinstance(value, TensorText):
        return _tensor_constant(program, node, value)
    return value


def _tensor_constant(program: TorchProgram, node: Node, text: TensorText) -> object:
    if text.text == "[<Tensors>]":
        return _listed(program, node)
    if node.name in program.given.constants:
        return known(program, given_constant(program.given.constants, node.name, node.type), node.type)
    path = node.name.removeprefix("self.")
    for name in (path, node.name):
        if path != node.name and name in program.given.weights:
            return weight(program, name, node)  # the text has five or six of its digits, or none
    if text.elided:
        if isinstance(node.type, TensorType) and node.type.is_static \
                and (program.given.outline or node.name in program.given.weights):
            return weight(program, node.name, node)
        raise _elided(program, node, repr(node.name))
    array = text.array()
    declared = node.type
    if isinstance(declared, TensorType):
        shape = declared.dims() if declared.is_static else array.shape
        if array.size == 1 != prod(shape):
            raise TypeFault(f"the text shows one element, but declares {declared}")
        made = known(program, array.reshape(shape) if array.size == 1 else array, declared)
        return _as_number(program, made) if made.known is not None and declared.dtype in NUMBERS else made
    # The declared type was lost (frozen graphs): a tensor is printed with its own.
    shown = SHOWN.search(text.text)
    if shown is not None and shown[1] in SCALARS:
        dtype = DTYPES[SCALARS[shown[1]]]
        made = known(program, array, TensorType(dtype, array.shape))
        return _as_number(program, made) if made.known is not None and dtype in NUMBERS else made
    # Numbers alone: integers are printed without a dot or exponent.
    integral = array.dtype.kind == "i"
    return _as_number(program, known(program, array, TensorType(S64 if integral else F64, array.shape)))


def _elided(program: TorchProgram, node: Node, names: str) -> UserError:
    """The error for a constant without a value, with the names that it has in a file."""
    return UserError(f"the text elides the value of constant %{node.name} ({node.type}){program.where(node)}",
                     f"give it by --constants FILE.npz as {names}, or print traced.inlined_graph and give --weights")


def _listed(program: TorchProgram, node: Node) -> list[Tensor]:
    """The tensors of a list that the text elides: given by the name of the list and their places, else the parameters of the recurrent
    module that the list belongs to, from the state dict."""
    given = program.given
    if f"{node.name}.0" in given.constants:
        arrays = [given_constant(given.constants, name, UNKNOWN) for name in _places(node, given.constants)]
        return [known(program, array, TensorType(dtype_of(array.dtype), array.shape)) for array in arrays]
    if f"{node.name}.0" in given.weights:
        return [weight(program, name, node) for name in _places(node, given.weights)]
    path = node.name.removeprefix("self.")
    if path != node.name:
        return flat_weights(program, path.rpartition(".")[0], node)
    owner = program.recurrent_module(node)
    if owner is None or not recurrent_names(owner, given.weights):
        raise _elided(program, node, f"{node.name + '.0'!r}, {node.name + '.1'!r} and so on")
    return flat_weights(program, owner, node)


def _places(node: Node, given: Container[str]) -> Iterator[str]:
    """The names of the given tensors of a list: its own name with 0, 1 and so on, up to the first that is not given."""
    return takewhile(given.__contains__, (f"{node.name}.{place}" for place in count()))


def _as_number(program: TorchProgram, tensor: Tensor) -> Tensor:
    """The tensor, marked as one that a trace wrote for a Python number: type promotion treats it as a number."""
    if tensor.known is None:
        return tensor
    tensor.number = True
    make = tensor.storage.make
    if make is None or tensor.built:
        program.t.numbers.add(tensor.get())
        return tensor

    def remembered() -> Node:
        node = make()
        program.t.numbers.add(node)
        return node
    tensor.storage.make = remembered
    return tensor


def number_tensor(program: TorchProgram, value: float) -> Tensor:
    """A tensor that stands for a Python number: its type matters by its kind only."""
    type = PRED if isinstance(value, bool) else S64 if isinstance(value, int) else F64
    return _as_number(program, known(program, np.asarray(value), TensorType(type, ())))


def known(program: TorchProgram, array: Array, declared: Type) -> Tensor:
    """An array that the program contains, in the declared element type; within a branch or loop it is built at once."""
    dtype = declared.dtype if isinstance(declared, TensorType) else dtype_of(array.dtype)
    if np.iscomplexobj(array) and not dtype.is_complex:
        raise TypeFault(f"the text shows complex numbers, but declares {declared}")
    with np.errstate(all="ignore"):
        value = np.asarray(array).astype(dtype.numpy())
    frame = program.t.frame

    def make() -> Node:
        with program.t.again(frame):  # its first use may be in a branch, and a later one outside
            return program.t.array(value, dtype)
    layout = stated(declared, value.shape) or contiguous(value.shape)
    made = Tensor(make=make, known=value if value.ndim == 0 else None, layout=layout)
    if program.t.frame.outer is not None:
        made.get()
    return made


def require_ints(value: object) -> None:
    """Raise TypeFault where a constant has an int beyond torch's 64 bits. (Readers nest few levels of a value.)"""
    require_int(value)
    parts = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    for part in parts:
        require_ints(part)


def _key(value: object) -> object:
    """The key of a dict. Raises TypeFault for a value that changes, or one that has such a part."""
    if isinstance(value, list | dict):
        raise TypeFault(f"a {type(value).__name__} is no key of a dict")
    for part in value if isinstance(value, tuple) else ():
        _key(part)
    return value


def thaw(value: object) -> object:
    """An attribute as a mutable value: its lists become Python lists."""
    if isinstance(value, List):
        return [thaw(v) for v in value]
    if isinstance(value, tuple):
        return tuple(thaw(v) for v in value)
    if isinstance(value, dict):
        return {_key(thaw(k)): thaw(v) for k, v in value.items()}
    return value
