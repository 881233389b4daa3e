"""The names of computations that regions become, and the attributes of modules."""
from __future__ import annotations

from collections.abc import Mapping

from irscope.formats.stablehlo.attributes import Array, Attribute, Record, Text
from irscope.formats.stablehlo.operations import Operation
from irscope.graph import Node

LABELS = {"while": ("cond", "body"), "if": ("true", "false"), "select_and_scatter": ("select", "scatter"), "sort": ("comparator",),
          "reduce": ("reducer",), "scatter": ("update",), "reduce_window": ("reducer",), "all_reduce": ("reducer",)}


def region_name(function: str, operation: Operation, number: int) -> str:
    """The name of the computation of a region: ``main.3.body``."""
    kind = operation.name.rpartition(".")[2]
    return _labelled(function, operation.results[0].name.partition("#")[0] if operation.results else kind, kind, number)


def body_name(function: str, node: Node) -> str:
    """The name of the computation of a reduction that is a node already."""
    return _labelled(function, node.name, node.op.name, 0)


def _labelled(function: str, owner: str, kind: str, number: int) -> str:
    labels = LABELS.get(kind, ())
    numbered = f"{'branch' if kind == 'case' else 'region'}{number}"
    return f"{function}.{owner}.{labels[number] if number < len(labels) else numbered}"


def module_attributes(attributes: Mapping[str, Attribute]) -> dict[str, object]:
    """The attributes of an HLO module that MLIR's stand for, and the others under their own names."""
    made: dict[str, object] = {}
    for name, value in attributes.items():
        number = getattr(value, "value", None)
        if name == "mhlo.num_partitions" and isinstance(number, int):
            made["num_partitions"] = number
        elif name == "mhlo.num_replicas" and isinstance(number, int):
            made["replica_count"] = number
        elif isinstance(value, str | bool | Text | Record | Array):
            made[name] = value
    return made
