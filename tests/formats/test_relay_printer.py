"""What is printed reads back as the same graph: Relay in its own style, and any other graph as primitives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irscope.expand import expand
from irscope.formats.hlo import read as read_hlo
from irscope.formats.relay import print_module, read
from irscope.graph import DTYPES, Builder, Graph, Node, TensorType
from irscope.ops import get, lookup
from irscope.ops.attrs import Literal
from irscope.source import SourceText

SAMPLES = Path(__file__).resolve().parent.parent.parent / "samples"
TEXTS = [
    "def @main(%x: float32, %y: float32) { let %f = fn (%a: float32) { add(%a, %y) }; %f(%f(%x)) }",
    "def @main(%n: int32) -> int32 { let %f = fn (%i: int32) -> int32 { if (equal(%i, 0)) { 0 } else { %f(subtract(%i, 1)) } }; %f(%n) }",
    "def @main(%c: bool, %x: float32) { %0 = add(%x, 1f); if (%c) { %1 = add(%0, 2f); multiply(%1, %1) } else { %0 } }",
    "type List[A] { Cons(A, List[A]), Nil, Lazy(fn () -> A) } def @len[A](%l: List[A]) -> int32 "
    "{ match (%l) { Cons(_, %t) => { add(1, @len(%t)) }, Nil => { 0 }, Lazy(_) => { 1 } } }",
    'def @main(%"onnx::Conv_0": Tensor[(1, 4), float32]) { %0 = split(%"onnx::Conv_0", indices_or_sections=2, axis=1); (%0.0, %0.1, %0.0) }',
    "def @main(%x: Tensor[(2), float16]) { add(%x, 1.5f16), }".replace(", }", " }"),
    "def @main(%x: Tensor[(2), int64]) { let %unused = 3i64; clip(%x, a_min=-1f, a_max=inff) }",
    "def @main(%x: Tensor[(4), float32]) { %1 = fn (%p0: Tensor[(4), float32], Primitive=1) { exp(%p0) }; add(%1(%x), %1(%x)) }",
]


def shape(graph: Graph) -> list[str]:
    """Every node as an expression, in any order: a constant may stand where it is used, a block may take its values in any order."""
    told: dict[Node, str] = {}
    for node in graph.nodes:
        operands = [told[o] for o in node.operands]
        inner = ", ".join(sorted(operands) if node.bodies else operands)
        said = node.attrs["literal"].text if node.op.name == "constant" else node.attrs.get("index", "")
        told[node] = f"{node.op.name}<{node.type}>{said}({inner})" if node.op.name != "parameter" else f"p<{node.type}>"
    return sorted(told.values())


@pytest.mark.parametrize("text", [*TEXTS, *(f.read_text() for f in sorted(SAMPLES.glob("*.relay")))])
@pytest.mark.parametrize("types", [False, True])
def test_relay_reads_back_and_prints_the_same(text: str, types: bool) -> None:
    first = read(SourceText("t.relay", text))
    assert first.ok, [f.render() for f in first.findings]
    printed = print_module(first.module(), types=types)
    second = read(SourceText("printed", printed))
    assert second.ok, (printed, [f.render() for f in second.findings])
    assert print_module(second.module(), types=types) == printed
    assert sorted(map(str, map(shape, first.module().graphs.values()))) == sorted(map(str, map(shape, second.module().graphs.values())))


def test_styles() -> None:
    module = read(SourceText("t", "def @main(%x: float32) { %3 = add(%x, 1f); return %3; }")).module()
    assert print_module(module) == "def @main(%x: float32) {\n  %0 = add(%x, 1f);\n  return %0;\n}\n"
    assert print_module(module, "relay", True) == "#[version = \"0.0.5\"]\ndef @main(%x: float32) {\n  add(%x, 1f) /* ty=float32 */\n}\n"


@pytest.mark.parametrize("name", ["mlp.opt", "transformer.pre", "residual.pre", "newton.opt", "wasteful.pre"])
@pytest.mark.parametrize("expanded", [False, True])
def test_hlo_printed_as_relay_is_the_same_graph(name: str, expanded: bool) -> None:
    module = read_hlo(SourceText(name, (SAMPLES / f"{name}.hlo").read_text())).module()
    written = expand(module) if expanded else module
    again = read(SourceText("printed", print_module(written)))
    assert again.ok, [f.render() for f in again.findings]
    assert operators(expand(again.module()).main()) == operators(expand(module).main())


def operators(graph: Graph) -> list[tuple[str, str]]:
    return sorted((n.op.name, re.sub(r"\{[^}]*\}", "", str(n.type))) for n in graph.nodes if n.op.name not in ("tuple", "get-tuple-element"))


def test_constants_keep_every_bit() -> None:
    text = "ENTRY main { p = bf16[2] parameter(0) c = f32[6] constant({nan, -inf, -0, 3.4028235e38, 1e-45, 1}) s = bf16[] constant(0.1)\n"
    text += "d = f64[] constant(0.1) b = pred[3] constant({1, 0, 1}) ROOT t = (f32[6], bf16[], f64[], pred[3]) tuple(c, s, d, b) }"
    module = read_hlo(SourceText("t.hlo", text)).module()
    again = read(SourceText("printed", print_module(module))).module()
    assert bits(again.main()) == bits(module.main())


def bits(graph: Graph) -> list[tuple[str, bytes]]:
    arrays: list[Any] = [np.asarray(n.attrs["literal"].value()) for n in graph.nodes if n.op.name == "constant"]
    return sorted((str(a.dtype), a.tobytes()) for a in arrays)


TABLE = """#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32]) { add(%x, meta[relay.Constant][0]) }
#[metadata]
{
  "root": 1,
  "nodes": [{"type_key": ""}, {"type_key": "Map", "keys": ["relay.Constant"], "data": [2]}, {"type_key": "Array", "data": [3]},
            {"type_key": "relay.Constant", "attrs": {"data": "0"}}],
  "b64ndarrays": ["P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAQACAAAAAAAAAAgAAAAAAAAAAACAPwAAAEA="]
}
"""


def test_the_table_of_constants_is_printed_again() -> None:
    first = read(SourceText("t", TABLE)).module()
    printed = print_module(first)
    second = read(SourceText("printed", printed)).module()
    assert print_module(second) == printed
    (constant,) = (n for n in second.main().nodes if n.op.name == "constant")
    assert constant.attrs["literal"].value().tolist() == [1, 2]


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "s8", "s64", "u8", "pred"])
def test_arrays_that_a_pass_made_go_into_the_table_where_tvm_is_to_read_them(dtype: str) -> None:
    module = read(SourceText("t", TABLE)).module()
    made = Graph("main")
    builder = Builder(made)
    type = TensorType(DTYPES[dtype], (2, 2))
    value = np.array([[0, 1], [1, 0]]).astype(type.dtype.numpy())
    literal = Literal.of(value, type)
    nodes = [builder.add(get("constant"), (), {"literal": literal}, type) for _ in range(2)]
    add = lookup("add", "relay")
    assert add is not None
    made.root = builder.add(add, nodes, {}, type)
    module.graphs["main"] = made
    printed = print_module(module)
    assert printed.count("b64ndarrays") == 1
    assert "meta[relay.Constant][0]" in printed
    assert "hlo.constant" not in printed
    again = read(SourceText("printed", printed)).module().main()
    constants = [n for n in again.nodes if n.op.name == "constant"]
    assert constants
    assert all(np.array_equal(n.attrs["literal"].value(), value) and n.type == type for n in constants)
