"""Value numbering under the equalities that CSE, repeats and diffs state."""
from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from irscope.formats.hlo import read
from irscope.formats.relay import read as read_relay
from irscope.formats.torchscript import read as read_torch
from irscope.graph import TOKEN, Effect, FunctionType, Graph, Layout, Module, Node, TensorType, TupleType, tensor
from irscope.graph.dtypes import F32
from irscope.graph.numbering import STEPS, VALUES, Equality, Numbering, by_value, plain
from irscope.ops import hlo
from irscope.ops.attrs import Literal
from irscope.source import SourceText

ACROSS = Equality(type=plain, literal=by_value, elided=True, across=True)


def module_of(body: str, before: str = "") -> Module:
    return read(SourceText("m.hlo", f"HloModule m\n{before}\nENTRY e {{\n{body}\n}}\n")).module()


def classes(graph: Graph, numbers: list[int]) -> list[set[str]]:
    """The names that share a number, where there are two or more."""
    found: dict[int, set[str]] = {}
    for node, number in zip(graph.nodes, numbers, strict=True):
        found.setdefault(number, set()).add(node.name)
    return [names for names in found.values() if len(names) > 1]


def equal(body: str, equality: Equality = VALUES, before: str = "") -> list[set[str]]:
    graph = module_of(body, before).main()
    return classes(graph, Numbering(equality).values(graph, lambda node: False))


def test_equal_values_have_one_number_through_their_operands() -> None:
    assert equal("""
        p = f32[2] parameter(0)
        q = f32[2] parameter(1)
        a = f32[2] negate(p)
        b = f32[2] negate(p)
        c = f32[2] add(a, p)
        d = f32[2] add(b, p)
        e = f32[2] add(a, q)
        ROOT r = (f32[2], f32[2], f32[2]) tuple(c, d, e)""") == [{"a", "b"}, {"c", "d"}]


def test_attributes_types_and_layouts_count() -> None:
    body = """
        p = f32[4,4] parameter(0)
        a = f32[2,4]{1,0} slice(p), slice={[0:2], [0:4]}
        b = f32[2,4]{1,0} slice(p), slice={[2:4], [0:4]}
        c = f32[2,4]{0,1} slice(p), slice={[0:2], [0:4]}
        ROOT r = (f32[2,4], f32[2,4], f32[2,4]) tuple(a, b, c)"""
    assert equal(body) == []
    assert equal(body, replace(VALUES, type=plain)) == [{"a", "c"}]


def test_constants_count_by_their_text_and_elided_ones_stand_alone() -> None:
    body = """
        a = f32[2] constant({1, 2})
        b = f32[2] constant({1, 2})
        c = f32[2] constant({1, 3})
        d = f32[2] constant({...})
        e = f32[2] constant({...})
        ROOT r = (f32[2], f32[2], f32[2], f32[2], f32[2]) tuple(a, b, c, d, e)"""
    assert equal(body) == [{"a", "b"}]
    assert equal(body, STEPS) == [{"a", "b"}, {"d", "e"}]


def test_constants_that_no_text_wrote_count_by_their_elements() -> None:
    scalar = tensor("f32")
    graph = Graph("g")
    for i, value in enumerate((1.0, 1.0, 2.0)):
        graph.add(Node(hlo.constant, f"k{i}", scalar, attrs={"literal": Literal.of(np.asarray(value, np.float32), scalar)}))
    assert classes(graph, Numbering().values(graph, lambda node: False)) == [{"k0", "k1"}]


def test_control_predecessors_say_nothing_of_the_value() -> None:
    assert equal("""
        p = f32[2] parameter(0)
        a = f32[2] negate(p)
        b = f32[2] negate(p), control-predecessors={a}
        ROOT r = (f32[2], f32[2]) tuple(a, b)""") == [{"a", "b"}]


def test_reducers_count_by_what_they_do() -> None:
    reducers = "\n".join(f"{name} {{ x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT z = f32[] {op}(x, y) }}"
                         for name, op in (("f", "add"), ("g", "add"), ("h", "maximum")))
    assert equal("""
        p = f32[2,3] parameter(0)
        k = f32[] constant(0)
        a = f32[2] reduce(p, k), dimensions={1}, to_apply=f
        b = f32[2] reduce(p, k), dimensions={1}, to_apply=g
        c = f32[2] reduce(p, k), dimensions={1}, to_apply=h
        ROOT r = (f32[2], f32[2], f32[2]) tuple(a, b, c)""", before=reducers) == [{"a", "b"}]


def test_what_has_an_effect_equals_itself_alone() -> None:
    graph = module_of("""
        k = f32[] constant(0)
        a = f32[2] rng(k, k), distribution=rng_uniform
        b = f32[2] rng(k, k), distribution=rng_uniform
        c = f32[2] negate(a)
        d = f32[2] negate(b)
        ROOT r = (f32[2], f32[2]) tuple(c, d)""").main()
    assert {"a", "b"} in classes(graph, Numbering().values(graph, lambda node: False))
    assert classes(graph, Numbering().values(graph, lambda node: node.op.effect is not Effect.PURE)) == []


def test_steps_are_equal_whatever_they_read() -> None:
    body = """
        p = f32[2] parameter(0)
        q = f32[2] parameter(1)
        a = f32[2] negate(p)
        b = f32[2] negate(q)
        c = f32[2] exponential(a)
        ROOT r = (f32[2], f32[2]) tuple(b, c)"""
    assert equal(body, STEPS) == [{"p", "q"}, {"a", "b"}]
    assert equal(body) == []


def graphs_equal(one: Module, other: Module, equality: Equality) -> bool:
    numbers = Numbering(equality, [one.main(), other.main()])
    return numbers.graphs[one.main()] == numbers.graphs[other.main()]


def test_across_modules_order_names_dead_nodes_and_layouts_do_not_count() -> None:
    one = module_of("""
        p = f32[2]{0} parameter(0)
        a = f32[2]{0} negate(p)
        b = f32[2]{0} exponential(p)
        ROOT r = f32[2]{0} add(a, b)""")
    other = module_of("""
        in = f32[2] parameter(0)
        y = f32[2] exponential(in)
        x = f32[2] negate(in)
        dead = f32[2] tanh(in)
        ROOT s = f32[2] add(x, y)""")
    assert graphs_equal(one, other, ACROSS)
    assert not graphs_equal(one, other, VALUES)


def test_across_modules_literals_count_by_their_value() -> None:
    texts = ("1.5", "15e-1", "1.25")
    one, same, differs = (module_of(f"ROOT k = f32[] constant({text})") for text in texts)
    assert graphs_equal(one, same, ACROSS) and not graphs_equal(one, differs, ACROSS)


def test_across_modules_elided_literals_are_alike() -> None:
    one, same = module_of("ROOT k = f32[2] constant({...})"), module_of("ROOT c = f32[2] constant({...})")
    assert graphs_equal(one, same, ACROSS)
    assert not graphs_equal(one, module_of("ROOT k = f32[2] constant({1, 2})"), ACROSS)
    assert not graphs_equal(one, module_of("ROOT k = f32[3] constant({...})"), ACROSS)


def test_tensors_of_which_a_text_shows_rounded_digits_go_by_their_text() -> None:
    def constant(value: str) -> Module:
        return read_torch(SourceText("g.txt", f"graph():\n  %k : Tensor = prim::Constant[value={value}]()\n  return (%k)\n")).module()
    assert graphs_equal(constant("{1.5}"), constant("{1.5}"), ACROSS)
    assert not graphs_equal(constant("{1.5}"), constant("{1.50001}"), ACROSS)


def test_types_without_layouts_at_any_depth() -> None:
    """Only the layouts of the arrays are left out."""
    array = TensorType(F32, (2, 3), Layout((0, 1)))
    pair = TupleType((array, TupleType((tensor("s8"), TOKEN))))
    assert [plain(type) for type in (array, TOKEN, TupleType(()), pair, FunctionType((array, pair), array))] == [
        "f32[2,3]", "token[]", "()", "(f32[2,3],(s8[],token[]))", "fn(f32[2,3],(f32[2,3],(s8[],token[])))->f32[2,3]"]


def test_what_an_instruction_does_whatever_it_reads_and_is_called() -> None:
    graph = module_of("""
        p = f32[2] parameter(0)
        a = f32[2] negate(p)
        b = f32[2] negate(a), metadata={op_name="b"}
        c = f32[2] abs(p)
        i = f32[2] iota(), iota_dimension=0
        s = f32[1] slice(p), slice={[0:1]}
        t = f32[1] slice(a), slice={[1:2]}
        u = f32[1] slice(b), slice={[0:1]}
        f = f32[2] call(p), to_apply=f
        g = f32[2] call(a), to_apply=g
        h = f32[2] call(a), to_apply=h
        ROOT r = (f32[2]) tuple(c)""", "\n".join(
            f"{name} {{ q = f32[2] parameter(0)  ROOT z = f32[2] {op}(q) }}" for name, op in (("f", "sine"), ("g", "sine"), ("h", "cosine")))).main()
    numbers = Numbering()
    found: dict[Hashable, list[str]] = {}
    for node in graph.nodes:
        found.setdefault(numbers.shape_of(node), []).append(node.name)
    assert [names for names in found.values() if len(names) > 1] == [["a", "b"], ["s", "u"], ["f", "g"]]


def test_one_and_true_and_a_float_one_differ() -> None:
    graph = read_torch(SourceText("g.txt", """graph(%x : Tensor):
  %a : int = prim::Constant[value=1]()
  %b : int = prim::Constant[value=1]()
  %c : int = prim::Constant[value=1.]()
  return (%x)
""")).module().main()
    assert classes(graph, Numbering().values(graph, lambda node: False)) == [{"a", "b"}]


def test_functions_that_call_each_other_are_like_no_other() -> None:
    module = read_relay(SourceText("m.relay", """
def @even(%x: float32) -> float32 { @odd(%x) }
def @odd(%x: float32) -> float32 { @even(%x) }
def @main(%x: float32) -> float32 { add(@even(%x), @odd(%x)) }
""")).module()
    numbers = Numbering()
    assert numbers.graph(module.graphs["even"]) != numbers.graph(module.graphs["odd"])


def test_a_shared_numbering_remembers_its_graphs() -> None:
    module = module_of("p = f32[2] parameter(0)\nROOT a = f32[2] negate(p)")
    numbers = Numbering(graphs=[module.main()])
    assert numbers.graph(module.main()) == numbers.graphs[module.main()]
    assert len(numbers.nodes[module.main()]) == 2
