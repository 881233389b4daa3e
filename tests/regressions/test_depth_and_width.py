"""Time grows with the input and no faster: nested computations, values with many users. The steps of two sizes are compared."""
from __future__ import annotations

from random import Random

import pytest

import irscope
from irscope.analysis.naming import Naming, _Work
from irscope.fusion.inductor.ancestors import Ancestors
from irscope.fusion.inductor.kernels import Kernel, fused
from irscope.fusion.inductor.policy import POLICY
from irscope.graph import Graph, Module
from irscope.lint.fusion import plans
from irscope.passes import pass_named
from tests.effort import calls_in


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
