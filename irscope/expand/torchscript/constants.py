"""Constants of the text as values of the run: numbers and strings directly, tensors from the text or the user."""
from __future__ import annotations

from itertools import count, takewhile

from irscope.expand.torchscript.program import TorchProgram
from irscope.expand.torchscript.weights import flat_weights, weight
from irscope.formats.torchscript.abstract import FunctionRef, ModuleRef, Tensor
from irscope.formats.torchscript.attributes import Constant
from irscope.formats.torchscript.layouts import stated
from irscope.formats.torchscript.strides import contiguous
from irscope.formats.torchscript.values import List, TensorText
from irscope.graph import Module, Node, TensorType, Type, dtype_of
from irscope.graph.dtypes import C128, F64, PRED, S64
from irscope.lazy import Array, np
from irscope.ops.sets import torchscript
from irscope.source import UserError

CONSTANT = torchscript("prim::Constant")


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
        return float(value)
    return _with_tensors(program, node, thaw(value))


def _with_tensors(program: TorchProgram, node: Node, value: object) -> object:
    """A constant list whose items are tensors."""
    if isinstance(value, list):
        return [_with_tensors(program, node, v) for v in value]
    if isinstance(value, TensorText):
        return _tensor_constant(program, node, value)
    return value


def _tensor_constant(program: TorchProgram, node: Node, text: TensorText) -> object:
    listed = text.text == "[<Tensors>]"
    if listed and f"{node.name}.0" in program.given.constants:
        return _listed(program, node)
    given = program.given.constants.get(node.name)
    if given is not None and not listed:
        return known(program, np.asarray(given), node.type)
    path = node.name.removeprefix("self.")
    if path != node.name and path in program.given.weights:
        return weight(program, path, node)  # the text has five or six of its digits, or none
    if listed and path != node.name:
        return flat_weights(program, path.rpartition(".")[0], node)
    if text.elided:
        if isinstance(node.type, TensorType) and node.type.is_static \
                and (program.given.outline or node.name in program.given.weights):
            return weight(program, node.name, node)
        raise UserError(f"the text elides the value of constant %{node.name} ({node.type}){program.where(node)}",
                        f"give it by --constants FILE.npz as {_names(node, listed)}, or print traced.inlined_graph and give --weights")
    array = text.array()
    declared = node.type
    if isinstance(declared, TensorType):
        shape = declared.dims() if declared.is_static else array.shape
        made = known(program, array.reshape(shape) if array.size == 1 else array, declared)
        return _as_number(program, made) if made.known is not None and declared.dtype in (F64, S64, PRED, C128) else made
    # The type was lost (frozen graphs): integers print without a dot or exponent.
    integral = all(c in "-0123456789 {}[]," for c in text.text.split("[ CPU")[0]) and not np.iscomplexobj(array)
    if "Type{" in text.text:
        integral = "Long" in text.text or "Int" in text.text
    return _as_number(program, known(program, array, TensorType(S64 if integral else F64, array.shape)))


def _names(node: Node, listed: bool) -> str:
    """The names under which a file stores a constant: the tensors of a list by their indices."""
    return f"{node.name + '.0'!r}, {node.name + '.1'!r} and so on" if listed else repr(node.name)


def _listed(program: TorchProgram, node: Node) -> list[Tensor]:
    """The tensors of a list that the text elides, by its name and their indices, as far as they are given."""
    given = (program.given.constants.get(f"{node.name}.{place}") for place in count())
    arrays = [np.asarray(array) for array in takewhile(lambda array: array is not None, given)]
    return [known(program, array, TensorType(dtype_of(array.dtype), array.shape)) for array in arrays]


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


def thaw(value: object) -> object:
    """An attribute as a mutable value: its lists become Python lists."""
    if isinstance(value, List):
        return [thaw(v) for v in value]
    if isinstance(value, tuple):
        return tuple(thaw(v) for v in value)
    if isinstance(value, dict):
        return {thaw(k): thaw(v) for k, v in value.items()}
    return value
