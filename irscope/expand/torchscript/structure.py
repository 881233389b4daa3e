"""Lists, tuples, dicts and objects of the program: plain Python values, built and taken apart as the program runs."""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from irscope.expand.torchscript import python_values
from irscope.expand.torchscript.constants import constant, known
from irscope.expand.torchscript.program import Handler, Handlers, TorchProgram
from irscope.expand.torchscript.weights import flat_weights, weight
from irscope.expand.values import fold
from irscope.formats.torchscript.abstract import UNINITIALIZED, FunctionRef, Maybe, ModuleRef, Scalar, Tensor, tensor
from irscope.formats.torchscript.attributes import CallMethod, ConstantChunk, GetAttr, IsInstance, Subgraph, TupleSlice
from irscope.formats.torchscript.torch import NUMBERS
from irscope.graph import NamedType, Node, TensorType
from irscope.graph.dtypes import F64, PRED, S64
from irscope.graph.walk import leaves_of
from irscope.lazy import np
from irscope.ops.checked import Items
from irscope.ops.faults import TypeFault
from irscope.ops.sets import torchscript
from irscope.source import UserError
from irscope.source.budget import require_nodes


def flatten(value: object) -> list[Any]:
    """The leaves of nested lists, tuples, dicts and Optionals, in order, without None."""
    return leaves_of(value, parts_in)


def parts_in(value: object) -> Sequence[object] | None:
    """The parts of a value: for an Optional, its presence and its value; for None, nothing."""
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, Maybe):
        return value.present, value.value
    return () if value is None else None


def with_parts(whole: object, parts: list[Any]) -> object:
    """A value of the kind of ``whole`` with other parts, in the order of :func:`parts_in`."""
    if isinstance(whole, list | tuple):
        return type(whole)(parts)
    if isinstance(whole, dict):
        return dict(zip(whole, parts, strict=True))
    return None if whole is None else Maybe(*parts)


def rebuild(value: object, leaves: Sequence[object]) -> object:
    """``value`` with other leaves (the inverse of :func:`flatten`)."""
    remaining = iter(leaves)
    return fold(value, parts_in, lambda _: next(remaining), with_parts)


def has_tensor(value: object) -> bool:
    """Whether a tensor, or a number that depends on one, is anywhere in a value."""
    return any(isinstance(leaf, Tensor | Scalar) for leaf in flatten(value))


def has_optional(value: object) -> bool:
    """Whether some part of a value is None depending on data."""
    stack, seen = [value], set()  # tuples may contain the same tuple many times, and nest
    while stack:
        top = stack.pop()
        if isinstance(top, Maybe):
            return True
        if id(top) not in seen:
            seen.add(id(top))
            stack.extend(top if isinstance(top, list | tuple) else top.values() if isinstance(top, dict) else ())
    return False


def node_of(value: object) -> Any:
    """The argument of an expansion: nodes for tensors and for numbers that depend on data, in lists too."""
    if isinstance(value, Tensor):
        return value.get()
    if isinstance(value, list):
        return Items(node_of(v) for v in value)
    return value


def wrap(program: TorchProgram, value: object) -> Any:
    """The result of an expansion: handles for nodes, as memory of the body under construction; several results stay a list."""
    if isinstance(value, Node):
        return Tensor(program.t.here(value))
    if isinstance(value, tuple | list):
        return [wrap(program, v) for v in value]
    return value


SHOWN_LEVELS = 3
"""The levels of nested lists that a message shows: they may contain the same list many times."""


def describe(value: object, levels: int = SHOWN_LEVELS) -> str:
    """A value in a message."""
    if isinstance(value, Tensor):
        return str(value.get().type)
    if isinstance(value, list | tuple | dict) and not levels:
        return "..."
    inner = partial(describe, levels=levels - 1)
    if isinstance(value, list):
        return "[" + ", ".join(map(inner, value[:4])) + (", ..." if len(value) > 4 else "") + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {inner(v)}" for k, v in list(value.items())[:4]) + (", ..." if len(value) > 4 else "") + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(inner, value[:4])) + (", ...)" if len(value) > 4 else ")")
    if isinstance(value, Maybe):
        return f"{inner(value.value)} or None, which depends on data"
    if isinstance(value, FunctionRef):
        return f"the attribute {value.name!r}, which the text does not have"
    return value.kind if isinstance(value, Scalar) else repr(value) if not isinstance(value, ModuleRef) else f"object {value.path}"


IS_NOT, SCALAR_TENSOR = torchscript("__isnot__"), torchscript("scalar_tensor")
NODES = Handlers()


@NODES.taking("prim::GetAttr", kinds="any")
def _get_attr(program: TorchProgram, node: Node, values: list[object]) -> object:
    """An object, a weight, or a value that a SetAttr stored."""
    owner, name = values[0], str(GetAttr.of(node).name)
    if not isinstance(owner, ModuleRef):
        raise program.fault(node, f"GetAttr of {describe(owner)}")
    child = owner.child(name, str(node.type))
    if child.path in program.attributes:
        return program.attributes[child.path]
    if isinstance(node.type, NamedType) and "__torch__" in node.type.name:
        return child
    declared, is_given = str(node.type), child.path in program.given.weights
    if name == "training" and not is_given:
        return False
    if declared == "NoneType" or (declared.endswith("?") and not is_given):
        return None
    if declared in ("int", "float", "bool", "str") and not is_given:
        raise UserError(f"the text does not contain the value of attribute {child.path!r} ({declared}), %{node.name}{program.where(node)}",
                        "print torch.jit.freeze(module).graph, which contains it")
    value = flat_weights(program, owner.path, node) if declared == "Tensor[]" else weight(program, child.path, node)
    program.attributes[child.path] = value
    return value


@NODES.taking("fx::get_attr")
def _module_attribute(program: TorchProgram, node: Node, values: list[object]) -> object:
    """A subgraph, or a tensor of the module by its name."""
    attribute = Subgraph.of(node)
    if not isinstance(attribute.name, str) or not isinstance(attribute.callee, str):
        raise TypeFault("its attributes name and callee are texts")
    if attribute.callee:
        return FunctionRef(attribute.callee)
    if attribute.name not in program.given.weights and not isinstance(node.type, TensorType):
        return FunctionRef(attribute.name)  # what it is shows where it is used
    return weight(program, attribute.name, node)


@NODES.taking("prim::SetAttr", kinds="any any")
def _set_attr(program: TorchProgram, node: Node, values: list[Any]) -> object:
    owner = values[0]
    if not isinstance(owner, ModuleRef):
        raise program.fault(node, f"SetAttr of {describe(owner)}")
    path = owner.child(str(GetAttr.of(node).name), "").path
    program.attributes[path] = values[1]
    program.assigned.add(path)
    return None


NODES.taking("prim::Constant", "prim::ConstantMKLDNNTensor")(lambda program, node, values: constant(program, node))
NODES.taking("prim::ListConstruct")(lambda program, node, values: list(values))
NODES.taking("prim::TupleConstruct")(lambda program, node, values: tuple(values))
NODES.taking("prim::CreateObject")(lambda program, node, values: ModuleRef(f"%{node.name}", str(node.type)))
NODES.taking("prim::RequiresGradCheck", "prim::TypeCheck")(lambda program, node, values: [*values, True])
NODES.taking("prim::Load", "prim::AutogradZero", "prim::profile", "prim::profile_ivalue", "aten::wait", "prim::awaitable_wait")(
    lambda program, node, values: values[0] if values else None)
NODES.taking("prim::data")(lambda program, node, values: program.operator(node, "aten::detach", values))
NODES.taking("prim::shape", kinds="tensor")(lambda program, node, values: list(program.t.shape(tensor(values[0]).get())))


@NODES.taking("prim::dtype", kinds="tensor")
def _dtype(program: TorchProgram, node: Node, values: list[Any]) -> int:
    dtype = program.t.dtype(values[0].get())
    if dtype.name not in NUMBERS:
        raise TypeFault(f"torch has no number for the element type {dtype}")
    return NUMBERS[dtype.name]


@NODES.taking("prim::rangelist", kinds="int")
def _range_list(program: TorchProgram, node: Node, values: list[Any]) -> list[int]:
    require_nodes(values[0], "a list of numbers", of="elements")
    return list(range(values[0]))


@NODES.taking("prim::DictConstruct")
def _dict(program: TorchProgram, node: Node, values: list[Any]) -> dict[Any, Any]:
    keys = values[::2]
    if len(values) % 2 or not all(isinstance(key, Tensor | str | bool | int | float | complex) for key in keys):
        raise TypeFault("it takes pairs of a key, which is a number, a text or a tensor, and a value")
    return dict(zip(keys, values[1::2], strict=True))


@NODES.taking("prim::TupleSlice", kinds="tuple|list")
def _tuple_slice(program: TorchProgram, node: Node, values: list[Any]) -> tuple[object, ...]:
    begin, end = TupleSlice.of(node).beg, TupleSlice.of(node).end
    if not isinstance(begin, int) or not isinstance(end, int | None):
        raise TypeFault("its attributes beg and end are integers")
    return tuple(values[0][begin:end])


@NODES.taking("prim::TupleIndex", kinds="tuple|list int")
def _tuple_index(program: TorchProgram, node: Node, values: list[Any]) -> object:
    parts, at = values
    if not -len(parts) <= at < len(parts):
        raise TypeFault(f"the tuple has no element {at}: it has {len(parts)}")
    return parts[at]


@NODES.taking("prim::ListUnpack", "prim::TupleUnpack", kinds="tuple|list")
def _unpack(program: TorchProgram, node: Node, values: list[Any]) -> object:
    parts = list(values[0])
    names = node.name.startswith("(")
    if not names and not parts:
        raise TypeFault("it takes the only value of an empty list or tuple")
    return parts if names else parts[0]


@NODES.taking("aten::_unwrap_optional", kinds="any")
def _unwrapped_surely(program: TorchProgram, node: Node, values: list[object]) -> object:
    if values[0] is None:
        raise TypeFault("it unwraps None")
    return _unwrapped(program, node, values)


@NODES.taking("prim::unchecked_cast", "prim::unchecked_unwrap_optional", kinds="any any*")
def _unwrapped(program: TorchProgram, node: Node, values: list[object]) -> object:
    """The value of an Optional; where data decides whether it is None, the value of the other case."""
    return values[0].value if isinstance(values[0], Maybe) else values[0]


@NODES.taking("aten::__is__", "aten::__isnot__", kinds="any any")
def _identity(program: TorchProgram, node: Node, values: list[object]) -> object:
    """Whether a value is None, or the same as another."""
    a, b = values if not isinstance(values[1], Maybe) else (values[1], values[0])
    if isinstance(a, Maybe) and b is None:
        if node.op in IS_NOT or not isinstance(a.present, Scalar):
            return a.present if node.op in IS_NOT else not a.present
        return Scalar(program.t.unary("not", a.present.node), "bool")
    return _computed(node, values)


@NODES.taking("prim::isinstance", kinds="any any*")
def _isinstance(program: TorchProgram, node: Node, values: list[object]) -> object:
    words = str(IsInstance.of(node).types)
    value = values[0]
    kinds = {"Tensor": Tensor, "int": int, "float": float, "bool": bool, "str": str, "List": list, "Tuple": tuple, "Dict": dict}
    return any(word in words and isinstance(value, kind) for word, kind in kinds.items())


ALWAYS: tuple[tuple[object, str], ...] = (
    (UNINITIALIZED, "prim::Uninitialized"),
    ("cpu", "prim::device"),
    (0, "prim::layout aten::layout"),
    (True, "prim::is_cpu"),
    (False, "prim::is_cuda prim::requires_grad prim::is_quantized prim::is_sparse prim::is_mkldnn prim::is_meta prim::is_mps prim::is_xpu "
            "prim::is_nested aten::is_grad_enabled aten::is_autocast_enabled aten::is_autocast_cpu_enabled aten::is_scripting_fake"),
    (None, "prim::Print aten::warn prim::Guard aten::_assert_async prim::EnterScope aten::manual_seed"),
)
"""The results of nodes that do not depend on their operands."""
for _value, _names in ALWAYS:
    NODES.taking(*_names.split())(lambda program, node, values, always=_value: always)  # type: ignore[misc]


@NODES.taking("prim::NumToTensor", "aten::scalar_tensor", "prim::TupleToTensor",
              kinds="number|scalar|tensor int|none? any*")
def _num_to_tensor(program: TorchProgram, node: Node, values: list[Any]) -> object:
    value = values[0]
    if isinstance(value, Scalar):
        return Tensor(program.t.here(value.node))
    if isinstance(value, Tensor):
        return value
    own = program.t.result_type(value) if node.op in SCALAR_TENSOR or not isinstance(value, float) else F64
    dtype = program.t.dtype_number(values[1] if len(values) > 1 else None, own)
    return known(program, np.asarray(value), TensorType(dtype, ()))


def _computed(node: Node, values: list[object]) -> object:
    """The result of an operator of Python's on plain values. Raises TypeFault where it takes no such values."""
    known = python_values.compute(node.op.name, values)
    if known is python_values.UNKNOWN:
        raise TypeFault(f"{node.op.name} does not take ({', '.join(map(describe, values))})")
    return known


def _number(kind: str) -> Handler:
    def read(program: TorchProgram, node: Node, values: list[object]) -> Any:
        """A number out of a tensor: known now, or one that depends on data."""
        value = values[0]
        known = python_values.fold_known(node.op.name, values)
        if known is not None:
            return known
        if isinstance(value, Scalar):
            return Scalar(program.t.convert(value.node, DTYPE_OF[kind]), kind) if kind else value
        if not isinstance(value, Tensor):
            return _computed(node, values)
        x = program.t.reshape(value.get(), ())
        dtype = program.t.dtype(x)
        found = kind or ("bool" if dtype is PRED else "int" if dtype.is_integer else "float")
        if found == "bool" and dtype is not PRED:
            return Scalar(program.t.compare("NE", x, program.t.like(x, 0)), "bool")
        return Scalar(program.t.convert(x, DTYPE_OF[found]), found)
    return read


DTYPE_OF = {"int": S64, "float": F64, "bool": PRED}
for _number_names, _kind in ((("aten::Int", "aten::IntImplicit"), "int"), (("aten::Float", "aten::FloatImplicit"), "float"),
                      (("aten::Bool", "aten::is_nonzero"), "bool"),
                      (("aten::item", "aten::ScalarImplicit", "aten::_local_scalar_dense"), "")):
    NODES.taking(*_number_names, kinds="any any*")(_number(_kind))


MOST_ITEMS = 4096
"""Tensors with more elements are not taken apart into numbers."""


@NODES.taking("prim::tolist", kinds="tensor any*")
def _to_list(program: TorchProgram, node: Node, values: list[Any]) -> object:
    """A tensor as nested lists of numbers that depend on data."""
    t, x = program.t, tensor(values[0]).get()
    count = math.prod(t.shape(x))
    if count > MOST_ITEMS:
        raise TypeFault(f"tolist of {count} elements is not supported (up to {MOST_ITEMS})")
    dtype = t.dtype(x)
    kind = "bool" if dtype is PRED else "int" if dtype.is_integer else "float"
    flat = t.convert(t.reshape(x, (count,)), DTYPE_OF[kind])
    level: list[object] = [Scalar(t.reshape(t.slice_dim(flat, 0, i, i + 1), ()), kind) for i in range(count)]
    for d in reversed(range(1, t.rank(x))):
        size = t.shape(x)[d]
        level = [level[i * size:(i + 1) * size] for i in range(math.prod(t.shape(x)[:d]))]
    return level if t.shape(x) else level[0]


@NODES.taking("prim::PythonOp", "prim::CallFunction")
def _python(program: TorchProgram, node: Node, values: list[object]) -> object:
    name = getattr(values[0], "name", "") if values else ""
    target = program.module.graphs.get(name)
    if target is not None:
        got = program.call(target, values[1:])
        return got[0] if len(got) == 1 else got
    raise UserError(f"%{node.name} calls the Python function {name or node.op.name}, whose body is not in the text{program.where(node)}",
                    "print traced.inlined_graph, or script the function so that its graph is printed")


@NODES.taking("prim::CallMethod", kinds="any any*")
def _call_method(program: TorchProgram, node: Node, values: list[object]) -> object:
    owner, method = values[0], str(CallMethod.of(node).name)
    if not isinstance(owner, ModuleRef):
        raise UserError(f"%{node.name} calls {method} on a value that is not a module of the text{program.where(node)}")
    names = [f"{owner.path}.{method}" if owner.path else f"<top>.{method}", method]
    for name in names:
        if name in program.module.graphs:
            got = program.call(program.module.graphs[name], values)
            return got[0] if len(got) == 1 else got
    raise UserError(f"%{node.name} calls {names[0]}, whose graph is not in the text{program.where(node)}",
                    "print traced.inlined_graph, or all graphs under '# method NAME' lines")


@NODES.taking("prim::DifferentiableGraph", "prim::TensorExprGroup", "prim::FunctionalGraph", "prim::FusionGroup", "prim::CudaFusionGroup",
      "prim::FallbackGraph", "prim::StaticSubgraph", "prim::LlgaFusionGroup", "prim::oneDNNFusionGroup", "prim::fork")
def _group(program: TorchProgram, node: Node, values: list[object]) -> object:
    if not node.bodies:
        raise UserError(f"%{node.name} is a group whose graph is not in the text", "print the whole text, with its 'with ... = graph('")
    got = program.call(node.bodies[0], values)
    if not got and not node.name.startswith("("):
        raise TypeFault("its graph returns nothing")
    return got if node.name.startswith("(") else got[0]


@NODES.taking("prim::ConstantChunk", kinds="any")
def _constant_chunk(program: TorchProgram, node: Node, values: list[object]) -> object:
    chunks, dim = ConstantChunk.chunks.given(node), ConstantChunk.dim.given(node)
    if chunks is None or dim is None:
        raise TypeFault("it takes the attributes chunks and dim")
    return program.operator(node, "aten::chunk", [values[0], chunks, dim])
