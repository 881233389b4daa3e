"""The common graph that every dump becomes: nodes, types, building, walking, rewriting."""
from irscope.graph.allocations import Allocation, BufferAssignment
from irscope.graph.builder import Builder
from irscope.graph.dialect import Dialect, Typing
from irscope.graph.dtypes import DTYPES, DType, dtype_of
from irscope.graph.dump import dump, dump_node
from irscope.graph.effects import kept, pure
from irscope.graph.module import Cut, Module, Reading
from irscope.graph.node import NO_ATTRS, Effect, Graph, Kind, Node, Op, unknown_op
from irscope.graph.provenance import NoProvenance, Provenance, SourceLine
from irscope.graph.rewrite import copy_node, rewrite, rewrite_module, see_through
from irscope.graph.types import (
    OPAQUE,
    TOKEN,
    UNKNOWN,
    Dim,
    DynamicDim,
    FunctionType,
    Layout,
    NamedType,
    TensorType,
    TupleType,
    Type,
    bytes_of,
    same_type,
    tensor,
    without_array,
)
from irscope.graph.walk import bodies_of, callees_first, live, reachable

__all__ = [
    "DTYPES", "NO_ATTRS", "OPAQUE", "TOKEN", "UNKNOWN", "Allocation", "BufferAssignment", "Builder", "Cut", "DType", "Dialect", "Dim",
    "DynamicDim", "Effect", "FunctionType", "Graph", "Kind", "Layout", "Module", "NamedType", "NoProvenance", "Node", "Op", "Provenance",
    "Reading", "SourceLine", "TensorType", "TupleType", "Type", "Typing", "bodies_of", "bytes_of", "callees_first", "copy_node", "dtype_of",
    "dump", "dump_node", "kept", "live", "pure", "reachable", "rewrite", "rewrite_module", "same_type", "see_through", "tensor",
    "unknown_op", "without_array",
]
