"""Time grows with the input and no faster: nested computations, values with many users. The steps of two sizes are compared."""
from __future__ import annotations

from random import Random

import numpy as np
import pytest

import irscope
from irscope.analysis.cost import Known, Traffic
from irscope.analysis.naming import Naming, _Work
from irscope.fusion.canonicalise.computation import HloComputation
from irscope.fusion.canonicalise.sorts import _widen
from irscope.fusion.canonicalise.values import is_non_negative
from irscope.fusion.inductor.ancestors import Ancestors
from irscope.fusion.inductor.kernels import Kernel, fused
from irscope.fusion.inductor.policy import POLICY
from irscope.fusion.views import Chain, Permute
from irscope.graph import Graph, Module, Reading
from irscope.graph.types import tensor
from irscope.lint.fusion import plans
from irscope.passes import pass_named
from tests.effort import calls_in, within


def nested(n: int, op: str = "call", calls: str = "to_apply", more: str = "") -> Module:
    inner = [f"f{i} {{ x = f32[8] parameter(0)\n t = f32[8] tanh(x)\n ROOT r = f32[8] {op}(t), {more}{calls}=f{i - 1} }}" for i in range(1, n)]
    text = "HloModule m\nf0 { x = f32[8] parameter(0)\n ROOT r = f32[8] negate(x) }\n" + "\n".join(inner) + \
        f"\nENTRY e {{ p = f32[8] parameter(0)\n ROOT r = f32[8] {op}(p), {more}{calls}=f{n - 1} }}\n"
    return irscope.load(text, format="hlo").module()


@pytest.mark.parametrize("name", ["remove-dead", "share-equal", "cancel-transposes"])
def test_passes_walk_nested_calls_once(name: str) -> None:
    small, large = (calls_in(pass_named(name).run, nested(n)) for n in (150, 1500))
    assert large < 11 * small


def test_names_of_nested_calls_add_the_work_of_each_level_once() -> None:
    small, large = (calls_in(Naming().work_of, nested(n).main().nodes) for n in (300, 3000))
    assert Naming().work_of(nested(3000).main().nodes) == "tanh"
    assert large < 15 * small


def reference(body: Graph) -> _Work:
    """The work of a body and of all below it, by one walk."""
    work, seen, stack = _Work(), {body}, [body]
    while stack:
        for node in stack.pop().nodes:
            work.add(node)
            new = [inner for inner in node.bodies if inner not in seen]
            seen.update(new)
            stack += new
    return work


def test_a_computation_that_several_call_counts_once() -> None:
    random = Random(3)
    for _ in range(30):
        lines = ["HloModule m"]
        for i in range(12):
            called = [random.randrange(i) for _ in range(random.randrange(3))] if i else []
            calls = [f" c{k} = f32[8] call({f'c{k - 1}' if k else 't'}), to_apply=g{each}\n" for k, each in enumerate(called)]
            lines.append(f"g{i} {{ x = f32[8] parameter(0)\n t = f32[8] tanh(x)\n{''.join(calls)}"
                         f" ROOT r = f32[8] exponential({f'c{len(called) - 1}' if called else 't'}) }}")
        lines.append("ENTRY e { p = f32[8] parameter(0)\n ROOT r = f32[8] call(p), to_apply=g11 }")
        module = irscope.load("\n".join(lines), format="hlo").module()
        graphs = [graph for name, graph in module.graphs.items() if name != "e"]
        random.shuffle(graphs)
        naming = Naming()
        assert [naming._look_into(graph) for graph in graphs] == [reference(graph) for graph in graphs]


def test_thousands_of_nested_fusions_are_judged() -> None:
    module = nested(1200, "fusion", "calls", "kind=kLoop, ")
    assert plans(module, "xla-cpu")


def test_dependences_of_joined_kernels_are_those_of_their_operations() -> None:
    lines = [f" n{i} = f32[8] {'tanh' if i % 3 else 'exponential'}({'v' if i % 4 else f'n{i - 3}' if i > 3 else 'v'})" for i in range(60)]
    text = "HloModule m\nENTRY e { p = f32[8] parameter(0)\n v = f32[8] abs(p)\n" + "\n".join(lines) + \
        f"\n ROOT t = ({', '.join(['f32[8]'] * 60)}) tuple({', '.join(f'n{i}' for i in range(60))}) }}\n"
    kernels = POLICY.prepared(irscope.load(text, format="hlo").module().main()).scheduler.kernels
    ancestors, random = Ancestors(kernels), Random(5)

    def one_by_one(first: Kernel, second: Kernel) -> bool:
        return any(ancestors._walked(ancestors._places[a], ancestors._places[b]) for a in first.names for b in second.names
                   if ancestors._places[a] < ancestors._places[b])
    pool = list(kernels)
    for _ in range(300):
        a, b = random.sample(pool, 2)
        assert ancestors.before(a, b) == one_by_one(a, b)
        if not a.names & b.names:
            pool.append(fused(a, b))


def brackets(n: int, text: str) -> str:
    return "(" * n + text + ")" * n


@pytest.mark.parametrize("text", [
    f"graph():\n  %0 : int[] = prim::Constant[value={'[' * 5_000}1{']' * 5_000}]()\n  return (%0)\n",
    f"graph(%x : {brackets(5_000, 'int')}):\n  return (%x)\n"], ids=["value", "type"])
def test_brackets_of_torchscript_nest_as_deeply_as_they_like(text: str) -> None:
    assert len(irscope.load(text, format="torchscript").module().main().nodes) == 1


@pytest.mark.parametrize("kind", ["TupleConstruct", "ListConstruct"])
def test_values_that_a_program_nests_too_deeply_are_refused(kind: str) -> None:
    """Lists and tuples of the program are Python's, whose comparison and printing recurse."""
    lines = [f"    {branch}:\n" + "".join(f"      %{way}{i + 1} : Any = prim::{kind}(%{way}{i})\n" if i else
                                         f"      %{way}1 : Any = prim::{kind}(%x)\n" for i in range(3000)) + f"      -> (%{way}3000)\n"
             for branch, way in (("block0()", "a"), ("block1()", "b"))]
    text = "graph(%x : Float(2)):\n  %s : Tensor = aten::sum(%x)\n  %c : bool = aten::Bool(%s)\n  %r : Any = prim::If(%c)\n" + "".join(lines) + \
        "  %n : int = aten::len(%r)\n  return (%n)\n"
    with pytest.raises(irscope.UserError, match="prim::If: its values are nested too deeply"):
        irscope.compile(irscope.load(text, format="torchscript"))


@pytest.mark.parametrize("line", ["let %t{n} = (%t{m},);", "let %t{n} = (%t{m}, %x);"])
def test_tuples_of_relay_nest_up_to_a_limit(line: str) -> None:
    def read(levels: int) -> Reading:
        lines = [line.format(n=n, m=n - 1) for n in range(1, levels + 1)]
        return irscope.load("\n".join(["def @main(%x: Tensor[(2), float32]) {", "let %t0 = %x;", *lines, f"%t{levels}", "}"]), format="relay")

    assert read(200).ok
    assert [found.message for found in read(3000).findings] == ["tuples are nested more than 200 deep"]


def test_chains_of_thousands_of_views_are_compared_without_recursion() -> None:
    def chain(last: Permute) -> Chain:
        made = Chain(last)
        for _ in range(5000):
            made = Chain(Permute((1, 0)), made)
        return made

    one = chain(Permute((0, 1)))
    assert one == chain(Permute((0, 1))) and hash(one) == hash(chain(Permute((0, 1))))
    assert one not in (chain(Permute((1, 0))), one.outer, Permute((1, 0)))


def chosen(n: int) -> Graph:
    """Each value is chosen from the one before and its transpose, which doubles the paths; at last a minimum over exponentials."""
    lines = [f" v{i} = f32[4,4] transpose(t{i}), dimensions={{1,0}}\n t{i + 1} = f32[4,4] select(p, t{i}, v{i})" for i in range(n)]
    lines += [f" m{i + 1} = f32[4,4] minimum(m{i}, t{n})" if i else f" m1 = f32[4,4] minimum(t{n}, t{n})" for i in range(n)]
    return irscope.load("HloModule m\nENTRY e {\n x = f32[4,4] parameter(0)\n p = pred[4,4] parameter(1)\n t0 = f32[4,4] abs(x)\n" +
                        "\n".join(lines) + f"\n ROOT r = f32[4,4] maximum(x, m{n})\n}}\n", format="hlo").module().main()


def test_signs_are_found_once_for_each_value() -> None:
    small, large = (calls_in(is_non_negative, HloComputation.of(chosen(n)).root) for n in (200, 2000))
    assert large < 11 * small
    assert is_non_negative(HloComputation.of(chosen(20)).root)


def test_a_comparator_of_many_parameters_is_widened_in_one_pass() -> None:
    def comparator(n: int) -> Graph:
        lines = [f" p{i} = f32[] parameter({i})" for i in range(2 * n)] + [f" q{i} = f32[] negate(p{i % (2 * n)})" for i in range(n)]
        return irscope.load("HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n ROOT r = pred[] compare(p0, p1), direction=LT\n}\n",
                            format="hlo").module().main()

    with within(2):  # a look at all parameters for each instruction takes minutes
        wide = _widen(comparator(20_000))
    assert len(wide.params) == 40_002


def test_the_bytes_of_nested_lists_are_counted_without_recursion() -> None:
    lines = [f"  %l{i + 1} : Any = prim::ListConstruct(%l{i}, %y, %l{i})\n" if i else "  %l1 : Any = prim::ListConstruct(%y)\n" for i in range(2000)]
    text = "graph(%x : Float(2)):\n  %y : Tensor = aten::relu(%x)\n" + "".join(lines) + "  %r : Tensor = aten::cat(%l2000)\n  return (%r)\n"
    nodes = {node.name: node for node in irscope.load(text, format="torchscript").module().main().nodes}
    assert Traffic(Known({}, {nodes["y"]: tensor("f32", 2)})).of(nodes["r"])[0] == 2000 * 8


def test_a_value_that_meets_views_of_itself_again_and_again_is_stored() -> None:
    """A kernel would read the first value in 2 ** 40 orders."""
    lines = [f" v{i} = f32[4,4] transpose(t{i}), dimensions={{1,0}}\n t{i + 1} = f32[4,4] select(p, t{i}, v{i})" for i in range(40)]
    text = "HloModule m\nENTRY e {\n t0 = f32[4,4] parameter(0)\n p = pred[4,4] parameter(1)\n" + "\n".join(lines) + "\n ROOT r = f32[4,4] negate(t40)\n}\n"
    x, p = np.arange(16, dtype=np.float32).reshape(4, 4), np.random.default_rng(0).random((4, 4)) > 0.5
    expected = x
    for _ in range(40):
        expected = np.where(p, expected, expected.T)
    found, = irscope.compile(irscope.load(text, format="hlo"))(x, p)
    assert np.array_equal(found, -expected)


def test_loops_that_nest_too_deeply_are_refused() -> None:
    state = "(s32[], f32[4])"
    lines = []
    for i in range(150):
        inner = "w = f32[4] negate(v)" if not i else f"t = {state} tuple(k, v)\n u = {state} while(t), condition=c, body=b{i - 1}\n " \
                                                     "w = f32[4] get-tuple-element(u), index=1"
        lines.append(f"b{i} {{ p = {state} parameter(0)\n k = s32[] get-tuple-element(p), index=0\n v = f32[4] get-tuple-element(p), index=1\n"
                     f" one = s32[] constant(1)\n h = s32[] add(k, one)\n {inner}\n ROOT r = {state} tuple(h, w) }}")
    text = f"HloModule m\nc {{ p = {state} parameter(0)\n k = s32[] get-tuple-element(p), index=0\n one = s32[] constant(1)\n" \
           " ROOT r = pred[] compare(k, one), direction=LT }\n" + "\n".join(lines) + \
           f"\nENTRY e {{ s = {state} parameter(0)\n ROOT r = {state} while(s), condition=c, body=b149 }}\n"
    with pytest.raises(irscope.UserError, match="%r cannot run") as raised:
        irscope.compile(irscope.load(text, format="hlo"))
    assert "loops and branches are nested more than 100 deep" in raised.value.findings[0].message


@pytest.mark.parametrize("line", ["t{n} = f32[4,4] transpose(t{m}), dimensions={{1,0}}", "t{n} = f32[4,4] slice(t{m}), slice={{[0:4],[0:4]}}",
                                  "t{n} = f32[4,4] add(t{m}, b)"])
def test_the_gpu_cost_model_walks_a_growing_kernel_once(line: str) -> None:
    def chain(n: int) -> Module:
        lines = [line.format(n=i + 1, m=i) for i in range(n)]
        return irscope.load("HloModule m\nENTRY e {\n t0 = f32[4,4] parameter(0)\n z = f32[] constant(1)\n b = f32[4,4] broadcast(z), dimensions={}\n" +
                            "\n".join(lines) + f"\n ROOT r = f32[4,4] tanh(t{n})\n}}\n", format="hlo").module()

    small, large = (calls_in(plans, chain(n), "xla-gpu") for n in (50, 400))
    assert large < 16 * small
