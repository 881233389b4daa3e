"""Printed modules are read to the same graphs, and keep what the text said about the user's program."""
from __future__ import annotations

import pytest

from irscope.formats.hlo import read as read_hlo
from irscope.formats.stablehlo import print_module, read
from irscope.graph import Graph, Module
from irscope.source import SourceText, UserError
from tests.formats.stablehlo_texts import ALIASES, DATA, PLAIN, body

HLO = """\
HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  p = f32[4,3] parameter(0)
  zero = f32[] constant(0)
  r = f32[4] reduce(p, zero), dimensions={1}, to_apply=add
  b = f32[4,3] broadcast(r), dimensions={0}
  c = pred[4,3] compare(p, b), direction=GT
  s = f32[4,3] select(c, p, b)
  ROOT t = (f32[4,3], f32[4]) tuple(s, r)
}
"""


def module_of(text: str) -> Module:
    """The module of a text that must be read without a fault."""
    reading = read(SourceText("x.mlir", text))
    assert reading.ok, [finding.render() for finding in reading.findings]
    return reading.module()


def shape_of(graph: Graph) -> list[object]:
    """The nodes that the result needs, without names."""
    found, todo, seen = [], [graph.root], set()
    while todo:
        node = todo.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        todo += node.operands
        attrs = {name: str(value) for name, value in node.attrs.items() if name != "literal"}
        found.append((node.op.name, str(node.type), sorted(attrs.items()), [shape_of(inner) for inner in node.bodies]))
    return sorted(found, key=str)


@pytest.mark.parametrize("name", ["block", "several", "several.debug", "block.local", "several.generic"])
def test_programs_of_jax(name: str) -> None:
    module = module_of((DATA / f"{name}.mlir").read_text())
    printed = print_module(module)
    again = module_of(printed)
    assert shape_of(again.main()) == shape_of(module.main())
    assert print_module(again) == printed


def test_attributes_of_the_module_and_private_functions() -> None:
    printed = print_module(module_of(ALIASES.replace("my.note", "mhlo.num_replicas = 2 : i32, my.note")))
    assert printed.startswith('module @"a module" attributes {mhlo.num_replicas = 2 : i32, my.note = "x"} {\n  func.func public @main(')
    assert "func.func private @square(" in printed


def test_locations_are_kept() -> None:
    text = (DATA / "several.debug.mlir").read_text()
    module = module_of(text)
    again = module_of(print_module(module))

    def locations(module: Module) -> set[str]:
        return {f"{node.op.name} {module.scope(node)} {module.call_stack(node)}" for graph in module.graphs.values() for node in graph.nodes
                if not node.synthetic}
    assert locations(module) <= locations(again)
    assert any("several" in line for line in locations(module))


def test_hlo_becomes_stablehlo() -> None:
    module = read_hlo(SourceText("x.hlo", HLO)).module()
    module.graphs["main"].nodes[-1].synthetic = True  # several results of a function are no tuple in StableHLO
    again = module_of(print_module(module))
    assert [node.op.name for node in again.main().shown()] == ["constant", "reduce", "broadcast", "compare", "select"]


def test_what_stablehlo_does_not_have_is_refused_by_name() -> None:
    reading = read(SourceText("x", body('%0 = "other.thing"(%x) : (tensor<4xf32>) -> tensor<4xf32>', "return %0 : tensor<4xf32>")))
    with pytest.raises(UserError, match=r"%0 \(other.thing\) cannot be written as StableHLO"):
        print_module(reading.module())


def test_shardings_and_their_meshes() -> None:
    text = PLAIN.replace("  func.func", '  sdy.mesh @mesh = <["x"=2]>\n  func.func').replace(
        "%arg0: tensor<2x3xf32>", '%arg0: tensor<2x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}')
    printed = print_module(module_of(text))
    assert '  sdy.mesh @mesh = <["x"=2]>\n' in printed and '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}' in printed


ACCURACY = """\
module {
  func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %0 = "stablehlo.exponential"(%arg0) <{result_accuracy = #stablehlo.result_accuracy<atol = 1.2345678910000000e-05, ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>}> : (tensor<2xf32>) -> tensor<2xf32>
    %1 = "stablehlo.tanh"(%0) <{result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>}> : (tensor<2xf32>) -> tensor<2xf32>
    return %1 : tensor<2xf32>
  }
}
"""


def test_the_accuracy_of_results_is_kept() -> None:
    assert print_module(module_of(ACCURACY)) == ACCURACY
    hlo = read_hlo(SourceText("x.hlo", "ENTRY main {\n  x = f32[2] parameter(0)\n"
                              "  e = f32[2] exponential(x), result_accuracy={tolerance={atol=1.23457e-05,rtol=0,ulps=2}}\n"
                              "  ROOT t = f32[2] tanh(e), result_accuracy={mode=highest}\n}\n")).module()
    assert shape_of(hlo.main()) == shape_of(module_of(ACCURACY).main())
    assert shape_of(module_of(print_module(hlo)).main()) == shape_of(hlo.main())
