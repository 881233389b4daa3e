"""What a written graph becomes: calls and sugar gone, names and places kept, meaning the same."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.expand import bind_constants, bind_inputs, bind_types, expand
from irscope.expand.bind import elided_constants
from irscope.graph import Module, Node
from irscope.source import UserError
from tests.lower.whole import ADD, entry, inputs_of, module_of, reference


def expanded(text: str) -> Module:
    """The primitive module, which must mean what the text says."""
    module = module_of(text)
    made = expand(module)
    arrays = inputs_of(module)
    for got, wanted in zip(reference(made, arrays), reference(module, arrays), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4)
    return made


def names(module: Module) -> list[str]:
    return [node.op.name for node in module.main().nodes if node.op.name != "parameter"]


NEGATE = "neg { p = f32[3] parameter(0)\n ROOT n = f32[3] negate(p), metadata={op_name=\"inner\"} }\n"


def test_calls_and_fusions_are_inlined_wherever_they_stand() -> None:
    made = expanded(entry("""
        x = f32[3] parameter(0)
        a = f32[3] call(x), to_apply=twice
        b = f32[3] fusion(a), kind=kLoop, calls=neg
        ROOT r = f32[3] add(b, x)""", NEGATE + """
        twice { p = f32[3] parameter(0)
          a = f32[3] call(p), to_apply=neg
          ROOT b = f32[3] call(a), to_apply=neg }
        """))
    assert names(made) == ["negate", "negate", "negate", "add"]
    assert list(made.graphs) == ["main"]


def test_what_was_inlined_still_says_where_it_comes_from() -> None:
    module = module_of(entry("x = f32[3] parameter(0)\nROOT a = f32[3] call(x), to_apply=neg", NEGATE))
    node = expand(module).main().result()
    assert node.name == "n"
    assert node.origin == (module.graphs["neg"].result(),)
    assert module.scope(node) == "inner"


def test_copies_barriers_and_parts_of_tuples_are_gone() -> None:
    made = expanded(entry("""
        x = f32[3] parameter(0)
        c = f32[3] copy(x)
        t = (f32[3], f32[3]) tuple(c, x)
        b = (f32[3], f32[3]) opt-barrier(t)
        g = f32[3] get-tuple-element(b), index=0
        dead = f32[3] exponential(g)
        ROOT r = f32[3] negate(g)"""))
    assert names(made) == ["negate"]


def test_asynchronous_pairs_are_plain_operators() -> None:
    made = expanded(entry("""
        x = f32[3] parameter(0)
        s = (f32[3], f32[3], u32[]) copy-start(x)
        d = f32[3] copy-done(s)
        a = ((f32[3]), f32[3], u32[]) async-start(d), calls=neg
        u = ((f32[3]), f32[3], u32[]) async-update(a)
        ROOT r = f32[3] async-done(u)""", NEGATE))
    assert names(made) == ["negate"]


def test_operands_that_are_bound_after_the_start_reach_the_body_in_the_order_of_binding() -> None:
    made = expanded(entry("""
        x = f32[3] parameter(0)
        y = f32[3] parameter(1)
        s = ((), (), s32[]) async-start(), calls=sub
        u = ((f32[3]), (), s32[]) async-update(s, y)
        v = ((f32[3], f32[3]), f32[3], s32[]) async-update(u, x)
        ROOT r = f32[3] async-done(v)""", """
        sub {
          a = f32[3] parameter(0)
          b = f32[3] parameter(1)
          ROOT c = f32[3] subtract(a, b)
        }"""))
    root = made.main().result()
    assert root.op.name == "subtract" and [o.name for o in root.operands] == ["y", "x"]


def test_a_call_with_too_few_operands_is_refused_by_name() -> None:
    with pytest.raises(UserError, match="sum takes 2 operands and is called with 1"):
        expanded(entry("""
            x = f32[] parameter(0)
            ROOT r = f32[] call(x), to_apply=sum""", ADD))


@pytest.mark.parametrize(("before", "after", "operators"), [
    ("f32[2,3]{1,0}", "f32[6]{0}", ["reshape"]),
    ("f32[2,3]{0,1}", "f32[3,2]{1,0}", ["transpose"]),
    ("f32[2,3]{1,0}", "f32[2,3]{0,1}", ["reshape", "transpose"]),
    ("f32[2,3,4]{2,1,0}", "f32[4,6]{0,1}", ["reshape", "transpose"]),
])
def test_a_bitcast_is_the_movement_that_its_layouts_say(before: str, after: str, operators: list[str]) -> None:
    assert names(expanded(entry(f"x = {before} parameter(0)\nROOT b = {after} bitcast(x)"))) == operators


def test_bodies_of_reductions_and_loops_stay_and_are_expanded() -> None:
    made = expanded(entry("""
        x = f32[3] parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=outer""", ADD + """
        outer { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT c = f32[] call(a, b), to_apply=sum }
        """))
    assert list(made.graphs) == ["outer", "main"]
    assert [n.op.name for n in made.graphs["outer"].nodes] == ["parameter", "parameter", "add"]


def test_composites_become_what_they_stand_for() -> None:
    made = expanded(entry("""
        x = f32[2,4] parameter(0)
        s = f32[4] parameter(1)
        o = f32[4] parameter(2)
        m = f32[4] parameter(3)
        v = f32[4] constant({1, 2, 3, 4})
        ROOT r = f32[2,4] batch-norm-inference(x, s, o, m, v), epsilon=0.001, feature_index=1"""))
    assert "batch-norm-inference" not in names(made) and "subtract" in names(made)


def test_several_results_are_parts_that_nobody_wrote() -> None:
    made = expanded(entry("""
        x = f32[3] parameter(0)
        ROOT s = (f32[3], f32[3]) sort(x, x), dimensions={0}, to_apply=less""",
        "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = f32[] parameter(2)\n d = f32[] parameter(3)\n "
        "ROOT r = pred[] compare(a, b), direction=LT }\n"))
    parts: list[Node] = [n for n in made.main().nodes if n.op.name == "get-tuple-element"]
    assert len(parts) == 2 and all(n.synthetic for n in parts)


def test_thousands_of_calls_deep_needs_no_recursion() -> None:
    chain = [NEGATE] + [f"go{i} {{ p = f32[3] parameter(0)\n ROOT r = f32[3] call(p), to_apply={'neg' if i == 0 else f'go{i - 1}'} }}\n"
                        for i in range(2000)]
    made = expand(module_of(entry("x = f32[3] parameter(0)\nROOT r = f32[3] call(x), to_apply=go1999", "".join(chain))))
    assert names(made) == ["negate"]


def test_a_bomb_of_calls_is_refused() -> None:
    doubled = [NEGATE] + [f"go{i} {{ p = f32[3] parameter(0)\n a = f32[3] call(p), to_apply={'neg' if i == 0 else f'go{i - 1}'}\n"
                          f" ROOT b = f32[3] call(a), to_apply={'neg' if i == 0 else f'go{i - 1}'} }}\n" for i in range(40)]
    with pytest.raises(UserError, match=r"inlining the calls of go1\d makes more than 200,000 nodes"):
        expand(module_of(entry("x = f32[3] parameter(0)\nROOT r = f32[3] call(x), to_apply=go39", "".join(doubled))))


def test_weights_become_constants_and_the_other_inputs_keep_their_order() -> None:
    module = expand(module_of(entry("""
        x = f32[3] parameter(0)
        w = f32[3] parameter(1)
        y = f32[3] parameter(2)
        a = f32[3] multiply(x, w)
        ROOT r = f32[3] add(a, y)""")))
    w = np.array([1, 2, 3], np.float32)
    made = bind_inputs(module, {1: w})
    assert [p.name for p in made.main().params] == ["x", "y"]
    x, y = np.ones(3, np.float32), np.full(3, 5, np.float32)
    np.testing.assert_array_equal(reference(made, [x, y])[0], x * w + y)


def test_shapes_are_bound_and_types_follow() -> None:
    module = module_of(entry("""
        x = f32[?,4] parameter(0)
        e = f32[?,4] exponential(x)
        z = f32[] constant(0)
        ROOT r = f32[4] reduce(e, z), dimensions={0}, to_apply=sum""", ADD))
    made = bind_types(module, {"x": (7, 4)})
    assert str(made.main().nodes[1].type) == "f32[7,4]"
    with pytest.raises(UserError, match="no input"):
        bind_types(module, {"y": (7, 4)})


def test_elided_constants_are_found_and_given() -> None:
    module = module_of(entry("x = f32[3] parameter(0)\nc = f32[3] constant({...})\nROOT r = f32[3] add(x, c)"))
    assert [n.name for n in elided_constants(module)] == ["c"]
    bound = bind_constants(module, {"c": np.array([1, 2, 3], np.float32)})
    assert elided_constants(bound) == []
    np.testing.assert_array_equal(reference(bound, [np.zeros(3, np.float32)])[0], [1, 2, 3])
