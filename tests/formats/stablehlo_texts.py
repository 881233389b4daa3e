"""StableHLO texts for the tests: programs printed by jax 0.10.2 (tests/data/stablehlo), and small ones written by hand."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from irscope.formats.faults import Faults
from irscope.formats.stablehlo.attributes import Record
from irscope.formats.stablehlo.lines import Lines
from irscope.formats.stablehlo.operations import Operation, ParsedModule
from irscope.formats.stablehlo.reader import parse
from irscope.graph import Node
from irscope.ops.attrs import Literal
from irscope.source import Finding, SourceText

DATA = Path(__file__).parents[1] / "data" / "stablehlo"
"""``block`` is a layer with a softmax; ``several`` has loops, branches, sorts, scatters, windows, FFT, random bits. ``.generic`` is the
generic form of the same program, ``.debug`` has locations as aliases, ``.local`` in full."""

PLAIN = """\
module @jit_f attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) -> (tensor<2x3xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<2x3xf32>
    %1 = stablehlo.multiply %0, %arg1 : tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
}
"""
ALIASES = """\
#loc1 = loc("model.py":3:4)
#numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>
!row = tensor<2xf32>
module @"a module" attributes {my.note = "x"} {
  func.func private @square(%arg0: !row) -> !row attributes {my.attr = 3 : i64} {
    %0 = stablehlo.multiply %arg0, %arg0 : !row loc(#loc1)
    func.return %0 : !row
  }
  // a comment
  func.func public @main(%arg0: tensor<5x2xf32> {jax.buffer_donor = true}, %arg1: tensor<3x1xi32> loc("indices")) -> tensor<3x2xf32> {
    %0 = "stablehlo.gather"(%arg0, %arg1) {dimension_numbers = #numbers, slice_sizes = array<i64: 1, 2>} : (tensor<5x2xf32>, tensor<3x1xi32>) -> tensor<3x2xf32>
    %1 = stablehlo.slice %0 [0:1, 0:2] : (tensor<3x2xf32>) -> tensor<1x2xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x2xf32>) -> !row
    %3 = call @square(%2) : (!row) -> !row
    %4 = stablehlo.broadcast_in_dim %3, dims = [1] : (!row) -> tensor<3x2xf32>
    %5 = stablehlo.add %0, %4 : tensor<3x2xf32> loc("block/add"("f"("model.py":9:1 to 10:2)))
    return %5 : tensor<3x2xf32> loc(callsite("f" at fused<"meta">["a", "b"]))
  } loc(unknown)
} loc(#loc1)
"""


def body(*lines: str, arguments: str = "%x: tensor<4xf32>, %y: tensor<4xf32>", result: str = "tensor<4xf32>") -> str:
    """A module whose ``main`` has these lines."""
    inside = "".join(f"    {line}\n" for line in lines)
    return f"module @m {{\n  func.func public @main({arguments}) -> {result} {{\n{inside}  }}\n}}\n"


@contextmanager
def cursor_alone() -> Iterator[None]:
    """Texts are read without the fast path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lines, "read", lambda lines, scope, at, found: at)
        yield


def parsed(text: str) -> tuple[list[ParsedModule], list[Finding], bool]:
    """The operation trees of a text, the findings of the parser, and whether it accepts the text."""
    source = SourceText("test.mlir", text)
    faults = Faults(source)
    modules = parse(source, faults)
    return modules, faults.close(), faults.ok


def operations(text: str) -> list[Operation]:
    """All operations of a text that must be read without a fault."""
    modules, findings, ok = parsed(text)
    assert ok, [finding.render() for finding in findings]
    return [operation for module in modules for operation in walk(module.operations)]


def walk(operations: Sequence[Operation | Node]) -> Iterator[Operation]:
    """The operations and those in their regions, in the order of the text, but for those that are nodes already."""
    stack = [iter(operations)]
    while stack:
        operation = next(stack[-1], None)
        if operation is None:
            stack.pop()
        elif isinstance(operation, Operation):
            yield operation
            for region in reversed(operation.regions):
                stack.extend(iter(block.operations) for block in reversed(region.blocks))


def one(line: str, arguments: str = "%x: tensor<4xf32>, %y: tensor<4xf32>") -> Operation:
    """The operation that a line of ``main`` is."""
    text = f"module {{\n  func.func @main({arguments}) {{\n    {line}\n    return\n  }}\n}}\n"
    return operations(text)[1]


NOTES = ("arg_attrs", "res_attrs")
"""The generic form writes them also where all are empty."""


def described(operation: Operation) -> object:
    """All of an operation that its spelling does not change."""
    return (operation.name, [str(value.type) for value in operation.operands], [str(value.type) for value in operation.results],
            {name: _plain(value) for name, value in sorted(operation.attributes.items()) if name not in NOTES or (isinstance(value, list | tuple) and any(value))},
            [[len(block.operations) for block in region.blocks] for region in operation.regions])


def _plain(value: object) -> object:
    if isinstance(value, Literal):
        return str(value.type), str(np.asarray(value.value()).tolist())
    if isinstance(value, Record):
        return value.name, {name: _plain(field) for name, field in value.fields.items()}
    if isinstance(value, Mapping):
        return {name: _plain(field) for name, field in value.items()}
    return str(value)
