"""Regions: phases, layers and repeats of optimised graphs whose text is out of order and hardly named."""
from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from irscope.analysis.clustering import clustered
from irscope.analysis.naming import Naming
from irscope.analysis.outline import Section
from irscope.analysis.regions import MAX_PARTS, MAX_STEPS
from irscope.graph import Graph
from tests.analysis.texts import survey

LAYERS = 9


def training_step(scoped: bool = True) -> str:
    """A forward, a backward and an update of ``LAYERS`` layers; weights of all layers are prepared before the first layer runs."""
    def scope(text: str) -> str:
        head, *names = text.split("/")
        path = text if scoped else "/".join([head.replace("net", ""), names[-1]] if names else [head])
        return f', metadata={{op_name="jit(step)/{path}"}}'

    lines = ["  x0 = f32[8,16] parameter(0)", "  rate = f32[] constant(0.1)", "  rates = f32[16,16] broadcast(rate), dimensions={}"]
    for i in range(LAYERS):
        lines.append(f"  w{i} = f32[16,16] parameter({i + 1})")
    for i in range(LAYERS):
        lines.append(f"  t{i} = f32[16,16] transpose(w{i}), dimensions={{1,0}}" + scope(f"jvp(net)/layer_{i}/transpose"))
    for i in range(LAYERS):
        lines.append(f"  d{i} = f32[8,16] dot(x{i}, t{i}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}" + scope(f"jvp(net)/layer_{i}/dot"))
        lines.append(f"  x{i + 1} = f32[8,16] tanh(d{i})" + scope(f"jvp(net)/layer_{i}/tanh"))
    lines.append(f"  g{LAYERS} = f32[8,16] negate(x{LAYERS})" + scope("transpose(jvp(net))/neg"))
    for i in reversed(range(LAYERS)):
        lines.append(f"  h{i} = f32[8,16] multiply(g{i + 1}, x{i + 1})" + scope(f"transpose(jvp(net))/layer_{i}/mul"))
        lines.append(f"  g{i} = f32[8,16] dot(h{i}, w{i}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
                     + scope(f"transpose(jvp(net))/layer_{i}/dot"))
        lines.append(f"  dw{i} = f32[16,16] dot(x{i}, h{i}), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}"
                     + scope(f"transpose(jvp(net))/layer_{i}/dot"))
    for i in range(LAYERS):
        lines.append(f"  m{i} = f32[16,16] multiply(dw{i}, rates)" + scope("mul"))
        lines.append(f"  n{i} = f32[16,16] subtract(w{i}, m{i})" + scope("sub"))
    results = ", ".join(f"n{i}" for i in range(LAYERS))
    lines.append(f"  ROOT out = ({', '.join(['f32[16,16]'] * LAYERS)}) tuple({results})")
    return "\n".join(["HloModule jit_step", "ENTRY main {", *lines, "}"])


def outline(text: str) -> Section:
    facts = survey(text)
    return facts.outline_of(facts.module.main())


def test_a_training_step_is_forward_backward_and_update() -> None:
    root = outline(training_step())
    assert [child.title for child in root.children] == ["forward", "backward", "update"]
    forward, backward, _ = root.children
    assert [(child.title, child.times) for child in forward.children] == [("layer_0..8", LAYERS)]
    assert ("layer_0..8", LAYERS) in [(child.title, child.times) for child in backward.children]


def test_layers_without_names_of_their_own_repeat() -> None:
    root = outline(training_step(scoped=False))
    assert [child.title for child in root.children] == ["forward", "backward", "update"]
    assert any(section.times >= LAYERS - 1 for section in root.children[1].walk())


def test_a_name_of_the_other_pass_moves_no_other_node() -> None:
    named = 'rhs_contracting_dims={0}, metadata={op_name="jit(step)/'
    text = training_step(scoped=False)
    text = text.replace(f"dot(x1, t1), lhs_contracting_dims={{1}}, {named}jvp()",
                        f"dot(x1, t1), lhs_contracting_dims={{1}}, {named}transpose(jvp())")
    assert text.count("transpose(jvp()") == training_step(scoped=False).count("transpose(jvp()") + 1
    forward, backward, update = outline(text).children
    assert (forward.title, backward.title, update.title) == ("forward", "backward", "update")
    assert {"d0", "d1", "x2", "d7"} <= {node.name for node in forward.all_nodes()}
    assert {node.name for node in update.all_nodes() if node.name[0] in "dgh"} == set()


def test_named_layers_that_are_fused_differently_are_copies() -> None:
    text = training_step()
    for i in range(0, LAYERS, 2):  # every other layer has one step more in its backward pass
        text = text.replace(f"  h{i} = f32[8,16] multiply(g{i + 1},", f"  k{i} = f32[8,16] sine(g{i + 1}), metadata={{op_name=\"jit(step)/transpose("
                            f"jvp(net))/layer_{i}/sin\"}}\n  h{i} = f32[8,16] multiply(k{i},")
    facts = survey(text)
    root = facts.outline_of(facts.module.main())
    assert ("layer_0..8", LAYERS) in [(child.title, child.times) for child in root.children[1].children]
    assert sorted(node.index for node in root.all_nodes()) == list(range(len(facts.module.main().nodes)))


def test_what_no_pass_needs_is_of_the_update() -> None:
    text = training_step().replace("  m0 =", "  count = s32[] constant(1)\n  one = s32[] add(count, count)\n  m0 =")
    text = text.replace("ROOT out = (", "ROOT out = (s32[], ").replace("tuple(", "tuple(one, ")
    assert "one" in {node.name for node in outline(text).children[2].all_nodes()}


def test_layers_that_are_fused_differently_repeat_by_their_contractions() -> None:
    lines = ["  x0 = f32[8,16] parameter(0)", "  w = f32[16,32] parameter(1)", "  v = f32[32,16] parameter(2)"]
    for i in range(LAYERS):
        lines.append(f"  a{i} = f32[8,32] dot(x{i}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")
        odd = ["abs", "negate", "floor", "ceil", "sign", "cosine", "sine", "sqrt", "tanh"][i]  # no two layers are alike
        lines += [f"  b{i} = f32[8,32] {odd}(a{i})", *([f"  b{i}.2 = f32[8,32] tanh(b{i})"] if i % 3 == 1 else [])]
        lines.append(f"  c{i} = f32[8,16] dot(b{i}{'.2' if i % 3 == 1 else ''}, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")
        lines.append(f"  x{i + 1} = f32[8,16] {'exponential' if i % 2 else 'log'}(c{i})")
    facts = survey("\n".join(["HloModule m", "ENTRY main {", *lines, f"  ROOT r = f32[8,16] negate(x{LAYERS})", "}"]))
    root = facts.outline_of(facts.module.main())
    assert LAYERS in [section.times for section in root.walk()]
    assert sorted(node.index for node in root.all_nodes()) == list(range(len(facts.module.main().nodes)))


@pytest.mark.parametrize(("steps", "name"), [
    ("m = f32[8] reduce(x, z), dimensions={1}, to_apply=add\n b = f32[8,4] broadcast(m), dimensions={0}\n s = f32[8,4] subtract(x, b)\n"
     " e = f32[8,4] exponential(s)\n ROOT d = f32[8,4] divide(e, b)", "softmax"),
    ("m = f32[8] reduce(x, z), dimensions={1}, to_apply=add\n r = f32[8] rsqrt(m)\n b = f32[8,4] broadcast(r), dimensions={0}\n"
     " ROOT d = f32[8,4] multiply(x, b)", "norm"),
    ("c = f32[] constant(0.044715)\n b = f32[8,4] broadcast(c), dimensions={}\n s = f32[8,4] multiply(x, b)\n ROOT t = f32[8,4] tanh(s)",
     "gelu"),
    ("ROOT t = f32[8,4] tanh(x)", "tanh"),
])
def test_composites_have_their_names(steps: str, name: str) -> None:
    add = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
    facts = survey(f"HloModule m\n{add}ENTRY main {{ x = f32[8,4] parameter(0)\n z = f32[] constant(0)\n {steps} }}")
    assert Naming().work_of(facts.module.main().nodes) == name


@pytest.mark.parametrize("scoped", [True, False])
def test_sums_of_sections_are_those_of_the_graph(scoped: bool) -> None:
    facts = survey(training_step(scoped))
    graph = facts.module.main()
    root = facts.outline_of(graph)
    assert sorted(node.index for node in root.all_nodes()) == list(range(len(graph.nodes)))
    assert root.n_nodes == len(graph.nodes)
    assert root.flops == pytest.approx(sum(facts.costs.flops(node, graph) for node in graph.nodes))
    for section in root.walk():
        assert section.n_nodes == sum(child.n_nodes for child in section.children) + len(section.nodes) if section.times == 1 else True


def test_no_section_has_more_parts_than_fit_a_screen() -> None:
    # 900 steps of which no two are alike
    lines = ["HloModule m", "ENTRY main {", "  v0 = f32[1] parameter(0)"]
    lines += [f"  v{i} = f32[{i + 1}] concatenate(v{i - 1}, v0), dimensions={{0}}" for i in range(1, 900)]
    sections = list(outline("\n".join([*lines, "}"])).walk())
    assert all(len(section.children) <= MAX_PARTS for section in sections)
    assert all(len(section.nodes) <= 2 * MAX_STEPS for section in sections)


def places(graph: Graph, keys: list[int]) -> Iterator[tuple[int, int]]:
    order = clustered(graph, [0] * len(graph.nodes), keys)
    place = {node: i for i, node in enumerate(order)}
    assert len(place) == len(graph.nodes)
    for node in graph.nodes:
        for operand in node.operands:
            yield place[operand], place[node]


@pytest.mark.parametrize("seed", range(20))
def test_the_clustered_order_is_topological(seed: int) -> None:
    draw = Random(seed)
    lines = ["HloModule m", "ENTRY main {", "  v0 = f32[4] parameter(0)"]
    lines += [f"  v{i} = f32[4] add(v{draw.randrange(i)}, v{draw.randrange(i)})" for i in range(1, 60)]
    graph = survey("\n".join([*lines, "}"])).module.main()
    assert all(before < after for before, after in places(graph, [draw.randrange(4) for _ in graph.nodes]))


def test_a_weight_is_prepared_where_it_is_used() -> None:
    facts = survey(training_step())
    graph = facts.module.main()
    order = [node.name for node in clustered(graph, [0] * len(graph.nodes), ["" for _ in graph.nodes])]
    assert all(0 < order.index(f"d{i}") - order.index(f"t{i}") <= 3 for i in range(LAYERS))


def test_work_is_named_by_its_contractions_first() -> None:
    graph = survey(training_step()).module.main()
    assert Naming().work_of(graph.nodes).startswith("matmul 16x16 x18 + ")
    assert Naming().work_of([node for node in graph.nodes if node.name == "n0"]) == "subtract"
