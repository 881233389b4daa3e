"""The numbers by which early HLO is rewritten: each, changed by one, changes what some small program is rewritten to."""
from __future__ import annotations

from collections.abc import Callable

import pytest

from irscope.api import load
from irscope.fusion import EdgeVerdict
from irscope.fusion.canonicalise import attribution, canonicalise, fold, reductions, ynnpack
from irscope.ops import hlo

ADD = "add { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT s = f32[] add(p, q) }\n"


def rewritten(arguments: str, result: str, lines: str) -> list[str]:
    """The operators that XLA makes of a program, those inside of library calls too."""
    text = f"HloModule m, entry_computation_layout={{({arguments})->{result}}}\n\n{ADD}\nENTRY e {{\n{lines}\n}}\n"
    made = canonicalise(load(text).module()).module.main().nodes
    return [node.op.name for graph in (made, *(node.bodies[0].nodes for node in made if node.op is hlo.fusion)) for node in graph]


def summed(count: int) -> list[str]:
    """A sum of rows: in two steps when they are long."""
    return rewritten(f"f32[4,{count}]", "f32[4]", f"x = f32[4,{count}] parameter(0)\n z = f32[] constant(0)\n"
                     "ROOT r = f32[4] reduce(x, z), dimensions={1}, to_apply=add")


def convolved(channels: int) -> list[str]:
    """A convolution: a library call when it has many features."""
    return rewritten(f"f32[1,16,16,{channels}], f32[3,3,{channels},8]", "f32[1,16,16,8]",
                     f"x = f32[1,16,16,{channels}] parameter(0)\n w = f32[3,3,{channels},8] parameter(1)\n"
                     "ROOT r = f32[1,16,16,8] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f")


def multiplied(size: int) -> list[str]:
    """A product with one dimension of ``size`` and shorter ones: a library call when it is long enough."""
    return rewritten(f"f32[7,{size}], f32[{size},7]", "f32[7,7]",
                     f"x = f32[7,{size}] parameter(0)\n w = f32[{size},7] parameter(1)\n"
                     "ROOT r = f32[7,7] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}")


def padded(size: int) -> list[str]:
    """A constant that is padded: computed when it is small."""
    return rewritten("", f"f32[{size}]", f"c = f32[2] constant({{1, 2}})\n z = f32[] constant(0)\n"
                     f"ROOT r = f32[{size}] pad(c, z), padding=0_{size - 2}")


def large(elements: int) -> list[str]:
    """A sum of a vector: a library call when it is long."""
    return rewritten(f"f32[{elements}]", "f32[]", f"x = f32[{elements}] parameter(0)\n z = f32[] constant(0)\n"
                     "ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add")


def behind(steps: int) -> list[str]:
    """A sum of large rows behind so many steps, of which a library call takes in as many as it holds."""
    lines = [f"a{i} = f32[128,128] {'negate' if i % 2 else 'tanh'}({f'a{i - 1}' if i else 'x'})" for i in range(steps)]
    return rewritten("f32[128,128]", "f32[128]", "\n".join(["x = f32[128,128] parameter(0)", *lines, "z = f32[] constant(0)",
                     f"ROOT r = f32[128] reduce(a{steps - 1}, z), dimensions={{1}}, to_apply=add"]))


NUMBERS: list[tuple[object, str, Callable[[int], list[str]], int]] = [
    (reductions, "TREE_WINDOW", summed, 33), (ynnpack, "MIN_CHANNELS", convolved, 17), (ynnpack, "MIN_ELEMENTS", large, 4096),
    (ynnpack, "MIN_DOT", multiplied, 8),
    (fold, "MAX_FOLDED", padded, (1 << 16) + 1),
]


@pytest.mark.parametrize("place, name, program, first", NUMBERS, ids=[n[1] for n in NUMBERS])
def test_every_number_matters(place: object, name: str, program: Callable[[int], list[str]], first: int,
                              monkeypatch: pytest.MonkeyPatch) -> None:
    """``first`` is the first size on the other side."""
    below, above = sorted(set(program(first - 1))), sorted(set(program(first)))
    assert below != above
    value: int = getattr(place, name)
    monkeypatch.setattr(place, name, value + 1)
    assert sorted(set(program(first))) == below
    monkeypatch.setattr(place, name, value - 1)
    assert sorted(set(program(first - 1))) == above


def test_a_library_call_takes_so_many_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ynnpack.MAX_MEMBERS == 64
    for limit in (64, 65, 63):
        monkeypatch.setattr(ynnpack, "MAX_MEMBERS", limit)
        names = behind(100)
        body = names[names.index("parameter", 1):]  # the second parameter is that of the library call
        assert len([name for name in body if name != "parameter"]) == limit


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_rewritten_edge_is_searched_over_so_many_nodes(beyond: int) -> None:
    count = attribution.MAX_STEPS + beyond
    lines = [f"a{i} = f32[4] {'cosine' if i % 2 else 'tanh'}({f'a{i - 1}' if i else 'x'})" for i in range(count)]
    graph = load("HloModule m\nENTRY e {\nx = f32[4] parameter(0)\n" + "\n".join(lines) + f"\nROOT r = f32[4] abs(a{count - 1})\n}}\n").module().main()
    source, target = graph.nodes[1], graph.nodes[-1]
    verdicts = {(o, node): EdgeVerdict(graph, o, node, "all", None, "", "") for node in graph.nodes for o in node.operands}
    path = attribution._path(source, target, verdicts)
    assert [edge[0].name for edge in path] == ([] if beyond else [f"a{i}" for i in range(count)])
    assert attribution._path(source, graph.nodes[2], verdicts) == [(source, graph.nodes[2])] and attribution._path(target, source, verdicts) == []
