"""Operations with other operands, results, regions, attributes and types than they take end in findings, never in an exception."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from random import Random
from typing import TypeVar

import pytest

from irscope.formats.faults import Faults
from irscope.formats.stablehlo.attributes import Attribute
from irscope.formats.stablehlo.building.module import build_module
from irscope.formats.stablehlo.building.work import BUILDERS
from irscope.formats.stablehlo.operations import Block, Defined, Function, Operation, ParsedModule, Region, Value, nested
from irscope.formats.stablehlo.reader import parse, read
from irscope.graph import DTYPES, UNKNOWN, TensorType, TupleType, Type
from irscope.source import SourceText
from tests.formats.stablehlo_texts import DATA, body

T = TypeVar("T")
DTYPE_NAMES = ("f32", "s32", "s64", "pred", "bf16", "c64", "u8", "token")
SHAPES = ((), (1,), (4,), (2, 3), (2, 3, 4), (1, 1, 1, 1), (0,))
TYPES = [*(TensorType(DTYPES[name], shape) for name in DTYPE_NAMES for shape in SHAPES), TupleType(()), UNKNOWN]
STOP = Region([Block((), [Operation("stablehlo.return", (), (), {}, (), 0, 0, 0)])])


def examples() -> dict[str, list[Operation]]:
    """Operations of printed programs, by name; those that none has are tried in the form of an addition."""
    found: dict[str, list[Operation]] = defaultdict(list)
    for path in sorted(DATA.glob("*.mlir")):
        source = SourceText(path.name, path.read_text())
        for module in parse(source, Faults(source)):
            for function in module.functions.values():
                for operations in nested(function.body.operations if function.body is not None else ()):
                    for operation in operations:
                        found[operation.name].append(operation)
    known = {name: found[name] for name in BUILDERS if name in found}
    return {name: known.get(name) or known.get("stablehlo." + name.partition(".")[2]) or found["stablehlo.add"] for name in BUILDERS}


class Mutation:
    """Draws variations of an operation."""

    def __init__(self, rng: Random, attributes: list[tuple[str, Attribute]]) -> None:
        self.rng, self.attributes = rng, attributes

    def type(self, type: Type) -> Type:
        return type if self.rng.random() < 0.7 else self.rng.choice(TYPES)

    def several(self, items: Iterable[T], another: Callable[[], T]) -> tuple[T, ...]:
        """The items, one fewer, one more, none, or all of them twice."""
        drawn, how = list(items), self.rng.random()
        if 0.5 < how < 0.7 and drawn:
            del drawn[self.rng.randrange(len(drawn))]
        elif 0.7 < how < 0.9:
            drawn.insert(self.rng.randrange(len(drawn) + 1), another())
        elif how > 0.9:
            drawn = drawn * 2 if how > 0.95 else []
        return tuple(drawn)

    def values(self, like: Iterable[Defined], prefix: str) -> tuple[Value, ...]:
        given = [Value(f"{prefix}{number}", self.type(value.type)) for number, value in enumerate(like)]
        return self.several(given, lambda: Value(f"{prefix}.new", self.rng.choice(TYPES)))

    def region(self, region: Region) -> Region:
        """A region with other arguments, which returns other values; one that reads values from outside returns nothing."""
        block = region.blocks[0]
        arguments = tuple(Value(value.name, self.type(value.type)) for value in block.arguments)
        names: dict[Defined, Value] = dict(zip(block.arguments, arguments, strict=True))
        operations: list[Operation] = []
        for operation in block.operations:
            if not isinstance(operation, Operation) or operation.regions or not all(operand in names for operand in operation.operands):
                return STOP
            operands = tuple(names[operand] for operand in operation.operands)
            if operation.name.endswith(".return") and operands:
                operands = self.several(operands, partial(self.rng.choice, operands))
            results = tuple(Value(value.name, value.type) for value in operation.results)
            names.update(zip(operation.results, results, strict=True))
            operations.append(Operation(operation.name, operands, results, operation.attributes, (), 0, 0, 0))
        return Region([Block(self.several(arguments, lambda: Value("more", self.rng.choice(TYPES))), [*operations])])

    def other_attributes(self, given: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
        drawn = dict(given)
        if drawn and self.rng.random() < 0.3:
            drawn.pop(self.rng.choice(sorted(drawn)))
        if drawn and self.rng.random() < 0.3:
            drawn[self.rng.choice(sorted(drawn))] = self.rng.choice(self.attributes)[1]
        return drawn

    def operation(self, name: str, like: Operation) -> Operation:
        regions = self.several(map(self.region, like.regions), lambda: STOP)
        return Operation(name, self.values(like.operands, "a"), self.values(like.results, "r"), self.other_attributes(like.attributes), regions, 0, 0, 0)


def build(operation: Operation) -> Faults:
    """The faults of a function that consists of one operation."""
    source = SourceText("m.mlir", "module {}\n")
    arguments = tuple(value for value in operation.operands if isinstance(value, Value))
    last = Operation("func.return", (), (), {}, (), 0, 0, 0)
    function = Function("main", "public", arguments, (), Block(arguments, [operation, last]), Operation("func.func", (), (), {}, (), 0, 0, 0))
    faults = Faults(source)
    build_module(ParsedModule("m", {}, [], {"main": function}), source, faults)
    return faults


@pytest.mark.parametrize("seed", range(4))
def test_a_mutated_operation_is_built_or_refused(seed: int) -> None:
    rng, found = Random(seed), examples()
    attributes = sorted({name: value for operations in found.values() for each in operations for name, value in each.attributes.items()}.items())
    mutation, refused = Mutation(rng, attributes), 0
    for name, operations in found.items():
        for _ in range(3):
            refused += not build(mutation.operation(name, rng.choice(operations))).ok
    assert refused > len(found)


@pytest.mark.parametrize(("operation", "message"), [
    ('"stablehlo.add"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> ()',
     "'stablehlo.add' op requires the same type for all operands and results, but %x is f32[4] and the result ()"),
    ('%0:2 = "stablehlo.optimization_barrier"(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)',
     "'stablehlo.optimization_barrier' op has 1 result, but 2 are declared"),
    ('%0 = "stablehlo.optimization_barrier"(%x) : (tensor<4xf32>) -> tensor<5xf32>',
     "'stablehlo.optimization_barrier' op requires the same type for all operands and results, but %x is f32[4] and the result f32[5]"),
    ('"stablehlo.recv"(%x) : (tensor<4xf32>) -> ()', "'stablehlo.recv' op needs a token as its last result"),
    ('"stablehlo.infeed"(%x) : (tensor<4xf32>) -> ()', "'stablehlo.infeed' op needs a token as its last result"),
    ('%0 = "stablehlo.dynamic_conv"(%x, %x, %y) <{dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, '
     'feature_group_count = 1 : i64, batch_group_count = 1 : i64}> : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>',
     "dimension_numbers of 'stablehlo.dynamic_conv' do not fit the kernel f32[4]"),
    ('%0 = "stablehlo.dynamic_broadcast_in_dim"(%x, %y) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>',
     "broadcast_dimensions size (2) of 'stablehlo.dynamic_broadcast_in_dim' does not match operand rank (1)"),
])
def test_what_does_not_fit_is_said(operation: str, message: str) -> None:
    reading = read(SourceText("m.mlir", body(operation, "return %x : tensor<4xf32>")))
    assert [finding.message for finding in reading.findings] == [message] and not reading.ok
