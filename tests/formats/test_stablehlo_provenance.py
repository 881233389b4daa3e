"""Locations: scopes and call stacks of operations and arguments."""
from __future__ import annotations

import pytest

from irscope.formats.stablehlo import read
from irscope.graph import SourceLine
from irscope.source import SourceText
from tests.formats.stablehlo_texts import ALIASES, DATA, body

CASES: dict[str, tuple[str, tuple[SourceLine, ...]]] = {
    'loc("model.py":3:4)': ("", (SourceLine("model.py", 3, 4),)),
    'loc("model.py":3:4 to :9)': ("", (SourceLine("model.py", 3, 4),)),
    'loc("jit(f)/add"("model.py":3:4))': ("jit(f)/add", (SourceLine("model.py", 3, 4),)),
    'loc("add"("layer"("model.py":3:4 to 5:6)))': ("add", (SourceLine("model.py", 3, 4, "layer"),)),
    'loc("f/add"(callsite("layer"("m.py":3:4) at callsite("net"("m.py":9:1) at "<module>"("t.py":2:2)))))':
        ("f/add", (SourceLine("m.py", 3, 4, "layer"), SourceLine("m.py", 9, 1, "net"), SourceLine("t.py", 2, 2, "<module>"))),
    'loc("add:"("f/add"("m.py":3:4)))': ("f/add", (SourceLine("m.py", 3, 4, "f/add"),)),
    'loc(fused<"x">[unknown, "a", "m.py":3:4])': ("a", (SourceLine("m.py", 3, 4),)),
    "loc(unknown)": ("", ()), 'loc("a (b) \\22c\\22")': ('a (b) "c"', ()),
}


@pytest.mark.parametrize("text", CASES)
def test_locations(text: str) -> None:
    reading = read(SourceText("x", body(f"%0 = stablehlo.add %x, %y : tensor<4xf32> {text}", "return %0 : tensor<4xf32>")))
    assert reading.ok
    module = reading.module()
    node = module.main().result()
    assert (module.scope(node), module.call_stack(node)) == CASES[text]


def test_locations_of_arguments_and_regions() -> None:
    module = read(SourceText("x", ALIASES)).module()
    _, indices = module.main().params
    assert module.scope(indices) == "indices"
    module = read(SourceText("x", (DATA / "several.debug.mlir").read_text())).module()
    loop = next(node for graph in module.graphs.values() for node in graph.nodes if node.op.name == "while")
    assert module.scope(loop).endswith("while") and module.call_stack(loop)[0].file == "model.py"


def test_an_alias_that_names_itself_ends() -> None:
    reading = read(SourceText("x", body("%0 = stablehlo.add %x, %y : tensor<4xf32> loc(#loc1)", "return %0 : tensor<4xf32>")
                              + "#loc1 = loc(callsite(#loc2 at #loc1))\n#loc2 = loc(\"a\"(#loc2))\n"))
    module = reading.module()
    assert module.call_stack(module.main().result()) == ()


def test_call_sites_that_double_are_cut() -> None:
    aliases = "".join(f"#loc{i} = loc(callsite(#loc{i + 1} at #loc{i + 1}))\n" for i in range(40))
    line = body("%0 = stablehlo.add %x, %y : tensor<4xf32> loc(#loc0)", "return %0 : tensor<4xf32>")
    module = read(SourceText("x", f'{aliases}#loc40 = loc("m.py":3:4)\n{line}')).module()
    assert module.call_stack(module.main().result()) == (SourceLine("m.py", 3, 4),) * 200


def test_names_around_a_place_are_cut() -> None:
    """Each alias is read before the one that refers to it, so that none of them is nested deeply."""
    aliases = "".join(f'#loc{i} = loc("n{i}"(#loc{i - 1}))\n' for i in range(1, 400))
    lines = [f"%{i} = stablehlo.add %x, %y : tensor<4xf32> loc(#loc{i})" for i in range(0, 400, 50)]
    module = read(SourceText("x", f'#loc0 = loc("n0")\n{aliases}{body(*lines, "return %350 : tensor<4xf32>")}')).module()
    assert [module.scope(node) for node in module.main().nodes if node.op.name == "add"] == [f"n{i}" for i in range(0, 400, 50)]
