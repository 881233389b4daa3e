"""The fast path against the cursor: the same trees and the same findings, of texts with and without faults."""
from __future__ import annotations

import random

import pytest

from irscope.formats.stablehlo.operations import Operation
from tests.formats.stablehlo_texts import ALIASES, DATA, PLAIN, body, cursor_alone, described, operations, parsed, walk

TEXTS = {path.stem: path.read_text() for path in sorted(DATA.rglob("*.mlir"))} | {"plain": PLAIN, "aliases": ALIASES}
SPLICES = ("%", "#", "{", "}", "(", ")", ":", " ", "\n", ", ", "->", "f32", "x", "0", "loc(", "<", ">", "%0", "//", "\t")
LINES = {
    "a line that goes on": ("%0 = stablehlo.add %x, %y : tensor<4xf32>\n loc(#a)", "return %0 : tensor<4xf32>"),
    "a list of types that goes on": ("%0:2 = stablehlo.optimization_barrier %x, %y : tensor<4xf32>\n, tensor<4xf32>", "return %0#1 : tensor<4xf32>"),
    "an arrow on the next line": ("%0 = chlo.erf %x : tensor<4xf32>\n -> tensor<4xf32>", "return %0 : tensor<4xf32>"),
    "two words in one": ("%c = stablehlo.constant dense<0.0> : tensor<f32>",
                         "%0 = stablehlo.reduce(%x init: %c) applies stablehlo.add acrossdimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>"),
    "a name without letters": ("%0 = stablehlo.add %, %y : tensor<4xf32>",),
    "a name with a letter behind its digits": ("%0 = stablehlo.negate %x : tensor<4xf32>", "%0f = stablehlo.negate %x : tensor<4xf32>"),
    "a result with a number": ("%0:2 = stablehlo.optimization_barrier %x, %y : tensor<4xf32>, tensor<4xf32>",
                               "%1 = stablehlo.negate %x : tensor<4xf32>", "%0#1 = stablehlo.negate %x : tensor<4xf32>"),
    "another type than the value's": ("%0 = stablehlo.negate %x : tensor<5xf32>", "%1 = stablehlo.negate %y : tensor<5xf32>"),
    "a percent sign in a string": ('%0 = stablehlo.custom_call @f(%x) {a = "%x", b = "100% loc(x)"} : (tensor<4xf32>) -> tensor<4xf32>',
                                   'return %0 : tensor<4xf32>'),
    "two results for one name": ("%0 = stablehlo.optimization_barrier %x, %y : tensor<4xf32>, tensor<4xf32>",),
    "blanks at the end": ("%0 = stablehlo.negate %x : tensor<4xf32>  ", "%1 = stablehlo.negate %0 : tensor<4xf32> \t", "return %1 : tensor<4xf32>"),
    "a comment at the end": ("%0 = stablehlo.negate %x : tensor<4xf32> // why", "return %0 : tensor<4xf32> // so"),
    "an unknown alias of a location": ("%0 = stablehlo.negate %x : tensor<4xf32> loc(#nowhere)", "return %0 : tensor<4xf32>"),
    "an open location": ("%0 = stablehlo.negate %x : tensor<4xf32> loc(callsite(\"a\" at \"b\")", "return %0 : tensor<4xf32>"),
    "a word that does not exist": ("%0 = stablehlo.compare LESS, %x, %y, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>",),
    "an attribute that is given twice": ("%0 = stablehlo.negate %x {a = 1 : i32, a = 1 : i32} : tensor<4xf32>",),
    "a literal of another size": ("%0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<4xf32>", "return %0 : tensor<4xf32>"),
    "a value that is defined later": ("%0 = stablehlo.negate %1 : tensor<4xf32>", "%1 = stablehlo.negate %x : tensor<4xf32>",
                                      "%2 = stablehlo.negate %0 : tensor<4xf32>", "return %2 : tensor<4xf32>"),
}


def everything(operation: Operation) -> object:
    """All of an operation, with names and places."""
    return (described(operation), operation.begin, operation.at, operation.end, operation.location,
            [value.name for value in operation.operands], [value.name for value in operation.results])


def read_all(text: str) -> tuple[object, ...]:
    """Whether a text is accepted, the findings of the parser, and its trees."""
    modules, findings, ok = parsed(text)
    told = [(each.code, each.message, each.offset, each.length, each.help, each.notes) for each in findings]
    return ok, told, [everything(operation) for module in modules for operation in walk(module.operations)]


@pytest.mark.parametrize("name", TEXTS)
def test_the_fast_path_reads_what_the_cursor_reads(name: str) -> None:
    fast = read_all(TEXTS[name])
    with cursor_alone():
        assert read_all(TEXTS[name]) == fast


@pytest.mark.parametrize("name", LINES)
def test_unusual_lines_are_read_as_by_the_cursor(name: str) -> None:
    text = body(*LINES[name])
    fast = read_all(text)
    with cursor_alone():
        assert read_all(text) == fast


@pytest.mark.parametrize("seed", range(60))
def test_damaged_texts_are_read_as_by_the_cursor(seed: int) -> None:
    pick = random.Random(seed)
    text = TEXTS[pick.choice(("block", "block.generic", "block.local", "several", "several.debug", "plain"))]
    for _ in range(pick.randint(1, 3)):
        at, splice = pick.randrange(len(text)), pick.choice(SPLICES)
        text = text[:at] + splice + text[at + pick.randint(0, 3):]
    fast = read_all(text)
    with cursor_alone():
        assert read_all(text) == fast


def test_lines_of_one_text_share_attributes_and_types() -> None:
    slices = "%{} = stablehlo.slice %x [0:2] : (tensor<4xf32>) -> tensor<2xf32>"
    text = body(slices.format("a"), slices.format("b"), "return %x : tensor<4xf32>")
    first, second = [each for each in operations(text) if each.name == "stablehlo.slice"]
    assert first.template is second.template and first.template is not None
    assert first.attributes is second.attributes and first.results[0].type is second.results[0].type
