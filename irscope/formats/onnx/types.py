"""Types of ONNX values: TypeProto to the types of a graph, and the numbers of element types."""
from __future__ import annotations

from irscope.formats.onnx.package import Proto
from irscope.graph import DTYPES, UNKNOWN, DType, DynamicDim, NamedType, TensorType, Type
from irscope.graph.types import Dim

STRING = 8
"""The number of the element type string, which no tensor of a graph has."""
NUMBERS: dict[int, DType] = {number: DTYPES[name] for number, name in enumerate(
    "- f32 u8 s8 u16 s16 s32 s64 - pred f16 f64 u32 u64 c64 c128 bf16 f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz u4 s4 f4e2m1fn f8e8m0fnu u2 s2 "
    "f6e2m3fn f6e3m2fn".split()) if name != "-"}
"""TensorProto.DataType (onnx.proto)."""
NUMBER_OF = {dtype: number for number, dtype in NUMBERS.items()}
WORDS = {"f32": "float", "f64": "double", "pred": "bool", "bf16": "bfloat16", "f16": "float16", "c64": "complex64", "c128": "complex128",
         **{f"s{n}": f"int{n}" for n in (2, 4, 8, 16, 32, 64)}, **{f"u{n}": f"uint{n}" for n in (2, 4, 8, 16, 32, 64)}}
"""ONNX's words for element types, as in its text form."""
ABSENT = NamedType("absent")
"""The type of an optional input that a node leaves out."""


def word_of(dtype: DType) -> str:
    """``float`` of f32."""
    return WORDS.get(dtype.name, dtype.name.replace("f8", "float8").replace("f4", "float4").replace("f6", "float6"))


def type_of(proto: Proto) -> Type:
    """The type that a TypeProto says; UNKNOWN where it leaves the rank or the element type open.

    Sequences, optionals, maps, sparse tensors and tensors of strings are named types: ``seq(f32[2,?])``, ``string[3]``.
    """
    wrappers: list[str] = []
    while True:
        kind = proto.WhichOneof("value")
        if kind == "tensor_type":
            break
        if kind not in ("sequence_type", "optional_type"):
            wrappers.append((kind or "?").removesuffix("_type"))
            return NamedType(_wrapped(wrappers, "")) if kind else UNKNOWN
        wrappers.append("seq" if kind == "sequence_type" else "optional")
        proto = getattr(proto, kind).elem_type
    inner = tensor_type(proto.tensor_type)
    if not wrappers:
        return inner
    return NamedType(_wrapped(wrappers, str(inner)))


def _wrapped(wrappers: list[str], inner: str) -> str:
    for word in reversed(wrappers):
        inner = f"{word}({inner})"
    return inner


def tensor_type(proto: Proto) -> Type:
    """The type of a TypeProto.Tensor."""
    shape = [_dim(d) for d in proto.shape.dim] if proto.HasField("shape") else None
    if proto.elem_type == STRING:
        return NamedType(f"string[{','.join(map(str, shape or []))}]")
    dtype = NUMBERS.get(proto.elem_type)
    return UNKNOWN if shape is None or dtype is None else TensorType(dtype, tuple(shape))


def _dim(proto: Proto) -> Dim:
    kind = proto.WhichOneof("value")
    if kind == "dim_value" and proto.dim_value >= 0:
        return int(proto.dim_value)
    return DynamicDim(str(proto.dim_param) if kind == "dim_param" else "")
