"""irscope's own policy: what becomes one kernel, what does not, and the reason that is given."""
from __future__ import annotations

import pytest

from irscope.expand import expand
from irscope.fusion import Plan, origin_of, policy_named
from irscope.fusion.across import uncompared
from irscope.fusion.fits import leading
from irscope.fusion.inductor import policy as inductor
from irscope.fusion.inductor.policy import POLICY as INDUCTOR
from irscope.fusion.origin import PolicyOrigin
from irscope.fusion.plan import Group
from irscope.fusion.policy import AsWritten, compiler_of, releases_of
from irscope.fusion.views import Strides, before
from irscope.source import UserError
from tests.fusion.xla_texts import BOTH
from tests.lower.whole import ADD, MAX, entry, module_of

LESS = "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=LT }\n"


def plan(instructions: str, header: str = "") -> Plan:
    return policy_named("irscope").plan(expand(module_of(entry(instructions, header))).main())


def kinds(made: Plan) -> list[str]:
    return [group.kind for group in made.groups]


def why(made: Plan, producer: str, consumer: str) -> str:
    """The rule that keeps two nodes apart; "fused" when none does."""
    found = [v for v in made.verdicts if v.names == (producer, consumer)]
    assert len(found) == 1
    assert (found[0].fused == "none") == bool(found[0].cause)
    return found[0].rule if found[0].fused == "none" else "fused"


def test_a_pointwise_chain_is_one_kernel() -> None:
    made = plan("""
        x = f32[4] parameter(0)
        a = f32[4] exponential(x)
        b = f32[4] negate(a)
        ROOT r = f32[4] add(a, b)""")
    assert kinds(made) == ["map"]
    assert {v.fused for v in made.verdicts} == {"all"}


def test_an_epilogue_is_finished_in_registers() -> None:
    made = plan("""
        x = f32[4,8] parameter(0)
        w = f32[8,16] parameter(1)
        b = f32[16] parameter(2)
        d = f32[4,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        bb = f32[4,16] broadcast(b), dimensions={1}
        a = f32[4,16] add(d, bb)
        ROOT t = f32[4,16] tanh(a)""")
    assert kinds(made) == ["contraction"] and why(made, "d", "a") == "fused"


def test_a_contraction_reads_its_operands_from_memory() -> None:
    made = plan("""
        x = f32[4,8] parameter(0)
        w = f32[8,16] parameter(1)
        e = f32[4,8] exponential(x)
        ROOT d = f32[4,16] dot(e, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}""")
    assert kinds(made) == ["map", "contraction"] and why(made, "e", "d") == "reads-whole"


def test_one_kernel_holds_one_contraction() -> None:
    made = plan("""
        x = f32[4,8] parameter(0)
        w = f32[8,16] parameter(1)
        v = f32[8,16] parameter(2)
        d = f32[4,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        e = f32[4,16] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT r = f32[4,16] add(d, e)""")
    assert kinds(made) == ["contraction", "contraction"]
    assert sorted([why(made, "d", "r"), why(made, "e", "r")]) == ["fused", "one-anchor"]


def test_a_value_that_several_kernels_read_is_stored_by_one_of_them() -> None:
    made = plan("""
        x = f32[4,8] parameter(0)
        w = f32[8,8] parameter(1)
        e = f32[4,8] exponential(x)
        n = f32[4,8] negate(e)
        d = f32[4,8] dot(e, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT r = (f32[4,8], f32[4,8]) tuple(n, d)""")
    assert kinds(made) == ["map", "contraction"]
    assert why(made, "e", "n") == "fused" and why(made, "e", "d") == "reads-whole"


def test_kernels_never_wait_for_each_other() -> None:
    made = plan("""
        x = f32[9] parameter(0)
        e = f32[9] exponential(x)
        s = f32[9] sort(e), dimensions={0}, to_apply=less
        ROOT r = f32[9] add(e, s)""", LESS)
    assert kinds(made) == ["map", "whole", "map"] and why(made, "e", "r") == "cycle"


def test_costly_work_is_not_repeated() -> None:
    made = plan("""
        x = f32[8] parameter(0)
        y = f32[100,8] parameter(1)
        e = f32[8] exponential(x)
        b = f32[100,8] broadcast(e), dimensions={1}
        ROOT r = f32[100,8] add(y, b)""")
    assert len(made.groups) == 2 and why(made, "e", "b") == "repeated-work"


def test_costly_work_that_moves_out_of_the_inner_loop_is_fused() -> None:
    made = plan("""
        x = f32[100] parameter(0)
        y = f32[100,8] parameter(1)
        e = f32[100] exponential(x)
        b = f32[100,8] broadcast(e), dimensions={0}
        ROOT r = f32[100,8] add(y, b)""")
    assert len(made.groups) == 1


def test_a_little_work_may_be_repeated() -> None:
    made = plan("""
        x = f32[8] parameter(0)
        z = f32[8] parameter(1)
        y = f32[100,8] parameter(2)
        e = f32[8] add(x, z)
        b = f32[100,8] broadcast(e), dimensions={1}
        ROOT r = f32[100,8] add(y, b)""")
    assert len(made.groups) == 1


def test_rows_hold_several_reductions() -> None:
    made = plan("""
        x = f32[5,40] parameter(0)
        low = f32[] constant(-inf)
        zero = f32[] constant(0)
        m = f32[5] reduce(x, low), dimensions={1}, to_apply=most
        mb = f32[5,40] broadcast(m), dimensions={0}
        d = f32[5,40] subtract(x, mb)
        e = f32[5,40] exponential(d)
        s = f32[5] reduce(e, zero), dimensions={1}, to_apply=sum
        l = f32[5] log(s)
        lb = f32[5,40] broadcast(l), dimensions={0}
        ROOT r = f32[5,40] subtract(d, lb)""", ADD + MAX)
    assert kinds(made) == ["rows"] and {v.fused for v in made.verdicts} == {"all"}


def test_rows_that_leave_the_caches_are_kernels_of_their_own() -> None:
    made = plan("""
        x = f32[2,100000] parameter(0)
        zero = f32[] constant(0)
        s = f32[2] reduce(x, zero), dimensions={1}, to_apply=sum
        b = f32[2,100000] broadcast(s), dimensions={0}
        ROOT r = f32[2,100000] divide(x, b)""", ADD)
    assert len(made.groups) == 2 and why(made, "s", "b") == "long-row"


def test_sorts_stand_alone() -> None:
    made = plan("""
        x = f32[9] parameter(0)
        e = f32[9] exponential(x)
        s = f32[9] sort(e), dimensions={0}, to_apply=less
        ROOT r = f32[9] negate(s)""", LESS)
    assert kinds(made) == ["map", "whole", "map"]
    assert why(made, "e", "s") == "reads-whole" and why(made, "s", "r") == "stands-alone"


def test_every_edge_gets_a_verdict_with_a_sentence() -> None:
    made = plan("""
        x = f32[6,8] parameter(0)
        w = f32[8,4] parameter(1)
        e = f32[6,8] exponential(x)
        d = f32[6,4] dot(e, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        t = f32[4,6] transpose(d), dimensions={1,0}
        ROOT r = f32[4,6] negate(t)""")
    edges = {v.names for v in made.verdicts}
    assert edges == {("e", "d"), ("d", "t"), ("t", "r")}
    assert all("%" in v.cause for v in made.unfused())


def test_policies_are_found_by_name() -> None:
    with pytest.raises(UserError, match="no fusion policy"):
        policy_named("irscop")


def test_kernels_do_not_wait_for_each_other_through_a_token() -> None:
    made = plan("""
        p = f32[64] parameter(0)
        q = f32[64] parameter(1)
        a = f32[64] add(p, q)
        t = token[] after-all(a)
        c = f32[64] custom-call(q, t), custom_call_target="x", custom_call_has_side_effect=true
        n = f32[64] negate(c)
        ROOT m = f32[64] multiply(a, n)""")
    assert [[n.name for n in group.nodes] for group in made.groups] == [["a"], ["t"], ["c"], ["n", "m"]]


def test_kernels_do_not_wait_in_a_circle_that_leads_behind_them() -> None:
    """``mul`` is stored by the kernel of ``more``, which waits for ``padded``, which waits for ``twice``."""
    made = plan("""
        p = f32[32,32,32] parameter(0)
        q = f32[64,64,64] parameter(1)
        zero = f32[] constant(0)
        twice = f32[32,32,32] add(p, p)
        mul = f32[64,64,64] multiply(q, q)
        part = f32[32,32,32] slice(mul), slice={[0:32], [0:32], [0:32]}
        both = f32[32,32,32] add(twice, part)
        some = f32[32,32] reduce(both, zero), dimensions={2}, to_apply=sum
        padded = f32[64,64,64] pad(twice, zero), padding=16_16x16_16x16_16
        product = f32[64,64,64] multiply(padded, mul)
        more = f32[64,64] reduce(product, zero), dimensions={2}, to_apply=sum
        ROOT r = (f32[32,32,32], f32[32,32], f32[64,64], f32[64,64,64]) tuple(twice, some, more, mul)""", ADD)
    before: set[str] = set()
    for group in made.groups:
        assert not {n.name for n in group.inputs} & {n.name for other in made.groups for n in other.outputs} - before
        before |= {node.name for node in group.outputs}
    assert len({node for group in made.groups for node in group.nodes if node.name in ("twice", "mul")}) == 2


def test_edges_through_memory_are_told_alike_whoever_asks_first() -> None:
    text = """
        x = f32[16,64] parameter(0)
        w = f32[64,64] parameter(1)
        a = f32[16,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        b = f32[16,64] tanh(a)
        c = f32[16,64] dot(b, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT r = f32[16,64] add(c, b)"""
    first = plan(text)
    second = policy_named("irscope").plan(first.graph)
    apart = list(first.unfused())
    assert apart and apart == [v for v in second.verdicts if v.fused == "none"] == list(second.unfused())
    assert first.verdicts == second.verdicts and len(first.verdicts) > len(apart)


def test_rows_read_from_memory_what_no_strides_describe() -> None:
    made = plan("""
        x = f32[64,16] parameter(0)
        a = f32[4,2,8,16] reshape(x)
        t = f32[4,8,2,16] transpose(a), dimensions={0,2,1,3}
        m = f32[32,32] reshape(t)
        z = f32[] constant(0)
        s = f32[32] reduce(m, z), dimensions={1}, to_apply=sum
        b = f32[32,32] broadcast(s), dimensions={0}
        ROOT r = f32[32,32] subtract(m, b)""", ADD)
    assert kinds(made) == ["map", "rows"] and [o.name for o in made.groups[0].outputs] == ["t"]
    assert why(made, "t", "m") == "reordered" and why(made, "a", "t") == "fused"


def test_pointwise_work_moves_elements_that_no_strides_describe() -> None:
    made = plan("""
        x = f32[64,16] parameter(0)
        a = f32[4,2,8,16] reshape(x)
        t = f32[4,8,2,16] transpose(a), dimensions={0,2,1,3}
        m = f32[32,32] reshape(t)
        ROOT r = f32[32,32] tanh(m)""")
    assert kinds(made) == ["map"]


def test_a_sum_goes_over_the_axes_of_a_slice() -> None:
    made = plan("""
        x = f32[8,9,10] parameter(0)
        s = f32[8,4,5] slice(x), slice={[0:8], [1:9:2], [0:5]}
        z = f32[] constant(0)
        ROOT r = f32[8] reduce(s, z), dimensions={1,2}, to_apply=sum""", ADD)
    assert kinds(made) == ["rows"] and (made.groups[0].space, made.groups[0].rows) == ((8, 4, 5), 1)


def test_views_of_views_of_views_are_stored_once_where_they_are_many() -> None:
    views = "\n".join(f"t{n} = f32[4,4] transpose({f't{n - 1}' if n else 'x'}), dimensions={{1,0}}" for n in range(3000))
    made = plan(f"""
        x = f32[4,4] parameter(0)
        {views}
        z = f32[] constant(0)
        s = f32[4] reduce(t2999, z), dimensions={{1}}, to_apply=sum
        b = f32[4,4] broadcast(s), dimensions={{0}}
        ROOT r = f32[4,4] subtract(t2999, b)""", ADD)
    assert kinds(made) == ["map", "rows"]


def test_an_unknown_policy_is_answered_with_the_nearest_name_or_all_of_them() -> None:
    for asked, hint in (("irscop", "did you mean irscope?"), ("xla-cp@0.4.38", "did you mean xla-cpu?"),
                        ("nothing at all", "the policies are: inductor, irscope, tvm, xla-cpu, xla-gpu")):
        with pytest.raises(UserError, match=f"there is no fusion policy '{asked}'") as caught:
            policy_named(asked)
        assert caught.value.help == hint


def test_a_sum_that_is_cut_at_a_computed_place_is_stored_first() -> None:
    made = plan("""
        x = f32[8,4] parameter(0)
        i = s32[] parameter(1)
        z = f32[] constant(0)
        s = f32[8] reduce(x, z), dimensions={1}, to_apply=sum
        d = f32[4] dynamic-slice(s, i), dynamic_slice_sizes={4}
        ROOT r = f32[4] exponential(d)""", ADD)
    assert kinds(made) == ["rows", "map"] and why(made, "s", "d") == "reads-whole" and why(made, "d", "r") == "fused"


def test_numbers_that_bound_or_choose_arrays_are_computed_where_they_are_used() -> None:
    bounds = plan("""
        x = f32[8,4] parameter(0)
        l = f32[] parameter(1)
        h = f32[] parameter(2)
        e = f32[] exponential(l)
        n = f32[] negate(h)
        c = f32[8,4] clamp(e, x, n)
        ROOT r = f32[8,4] exponential(c)""")
    choice = plan("""
        x = f32[8,4] parameter(0)
        y = f32[8,4] parameter(1)
        l = f32[] parameter(2)
        p = pred[] compare(l, l), direction=LT
        ROOT c = f32[8,4] select(p, x, y)""")
    assert kinds(bounds) == kinds(choice) == ["map"]


def test_rows_take_300_operations() -> None:
    def summed(count: int) -> Plan:
        lines = [f"a{i} = f32[4] negate({f'a{i - 1}' if i else 's'})" for i in range(count)]
        return plan("\n".join(["x = f32[4,8] parameter(0)", "z = f32[] constant(0)",
                               "s = f32[4] reduce(x, z), dimensions={1}, to_apply=sum", *lines[:-1], "ROOT " + lines[-1]]), ADD)

    assert kinds(summed(299)) == ["rows"]
    assert kinds(summed(300)) == ["rows", "map"] and why(summed(300), "s", "a0") == "too-large"


def test_a_reduction_of_several_results_is_a_kernel_of_its_own() -> None:
    made = plan("""
        x = f32[8,4] parameter(0)
        y = f32[8,4] parameter(1)
        z = f32[] constant(0)
        e = f32[8,4] exponential(x)
        s = (f32[8], f32[8]) reduce(e, y, z, z), dimensions={1}, to_apply=both
        a = f32[8] get-tuple-element(s), index=0
        b = f32[8] get-tuple-element(s), index=1
        ROOT r = f32[8] add(a, b)""", BOTH)
    assert kinds(made) == ["reduction", "map"] and why(made, "e", "s") == "fused"
    assert len(made.groups[0].outputs) == 2


def test_how_many_leading_axes_make_up_the_rows() -> None:
    assert [leading((2, 3, 4), rows) for rows in (1, 2, 6, 24)] == [0, 1, 2, 3]
    assert leading((2, 1, 3), 2) == 2, "an axis of one element goes with the rows"
    assert leading((4, 3), 6) == -1 and leading((4, 3), 3) == -1
    assert leading((), 1) == 0


@pytest.mark.parametrize("line", ["reshape(x)", "transpose(x), dimensions={1,0}"])
def test_a_view_lies_in_memory_as_asked_if_its_operand_does(line: str) -> None:
    text = f"x = f32[6,4] parameter(0)\nROOT v = f32[4,6] {line}"
    node = module_of(entry(text)).main().result()
    for wanted in (Strides.plain((4, 6)), Strides((4, 6), (12, 2), 5)):
        given = before(node, wanted)
        assert given is not None and given.shape == (6, 4) and given.through(node) == wanted


def test_a_view_that_leaves_elements_out_says_nothing_about_its_operand() -> None:
    node = module_of(entry("x = f32[6,4] parameter(0)\nROOT v = f32[2,4] slice(x), slice={[0:2], [0:4]}")).main().result()
    assert before(node, Strides.plain((2, 4))) is None


def test_the_kernel_of_a_node_is_the_one_that_stores_it() -> None:
    made = plan("""
        x = f32[4,8] parameter(0)
        w = f32[8,8] parameter(1)
        e = f32[4,8] exponential(x)
        n = f32[4,8] negate(e)
        d = f32[4,8] dot(n, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        a = f32[4,8] add(d, n)
        ROOT r = (f32[4,8], f32[4,8]) tuple(a, n)""")
    nodes = {node.name: node for node in made.graph.nodes}
    first, last = made.groups
    assert [made.group_of(nodes[name]) for name in ("e", "n", "d", "a")] == [first, first, last, last]
    assert made.group_of(nodes["x"]) is None and made.group_of(made.graph.result()) is None
    assert repr(first) == "<map group of 2: %n>" and repr(last) == "<contraction group of 2: %a>"


def test_the_kernel_that_stores_a_node_comes_before_one_that_computes_it_again() -> None:
    graph = module_of(entry("x = f32[4] parameter(0)\nn = f32[4] negate(x)\na = f32[4] abs(n)\nROOT r = f32[4] add(n, a)")).main()
    _, n, a, r = graph.nodes
    again, stored, later = Group("map", [n, a], [a], []), Group("map", [n], [n], []), Group("map", [n, r], [r], [])
    made = Plan(graph, [again, stored, later])
    assert made.group_of(n) is stored
    assert Plan(graph, [again, later]).group_of(n) is again


def test_releases_are_compared_on_texts_of_moderate_size(monkeypatch: pytest.MonkeyPatch) -> None:
    module = module_of(entry("x = f32[4] parameter(0)\nROOT n = f32[4] negate(x)"))
    assert uncompared(INDUCTOR, module) == uncompared(policy_named("irscope"), module) == []
    monkeypatch.setattr(inductor, "MAX_COMPARED", 2)
    assert uncompared(INDUCTOR, module) == []
    monkeypatch.setattr(inductor, "MAX_COMPARED", 1)
    [told] = uncompared(INDUCTOR, module)
    assert told.startswith("the text is too large to compare what the releases of inductor make of it: --policy inductor@RELEASE")


def test_the_policy_is_that_of_the_compiler_of_the_text() -> None:
    module = module_of(entry("x = f32[4] parameter(0)\nROOT n = f32[4] negate(x)"))
    assert origin_of(module) == PolicyOrigin("xla-cpu", "an HLO module, and nothing in it shows a GPU")
    assert origin_of(module, "a100") == PolicyOrigin("xla-gpu", "an HLO module of a GPU (--device a100)")


def heads(weights: str = "", pair: str = "dot(p, v)", axes: tuple[int, int] = (2, 1), queries: int = 16, values: int = 8,
          most: str = "mb = f32[S] broadcast(mr), dimensions={0,1}") -> list[str]:
    """The kernels of an attention of 16 heads and keys; ``weights`` makes ``p``, the weights, of ``e`` and their sums ``tb``, ``most``
    repeats the largest scores ``mr``."""
    first, second = axes
    shape = f"{queries},{values}" if pair == "dot(p, v)" else f"{values},{queries}"
    text = f"""
        q = f32[16,{queries},8] parameter(0)
        k = f32[16,16,8] parameter(1)
        v = f32[16,16,{values}] parameter(2)
        m = f32[R] parameter(3)
        low = f32[] constant(-inf)
        z = f32[] constant(0)
        zs = f32[S] broadcast(z), dimensions={{}}
        s = f32[S] dot(q, k), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}
        mr = f32[R] reduce(s, low), dimensions={{2}}, to_apply=most
        {most}
        d = f32[S] subtract(s, mb)
        e = f32[S] exponential(d)
        t = f32[R] reduce(e, z), dimensions={{2}}, to_apply=sum
        tb = f32[S] broadcast(t), dimensions={{0,1}}
        {weights or "p = f32[S] divide(e, tb)"}
        ROOT o = f32[16,{shape}] {pair}, lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{{first}}},
            rhs_contracting_dims={{{second}}}"""
    return kinds(plan(text.replace("[S]", f"[16,{queries},16]").replace("[R]", f"[16,{queries}]"), ADD + MAX))


MASKED = """mz = f32[R] broadcast(z), dimensions={}
    c = pred[R] compare(m, mz), direction=GT
    cb = pred[S] broadcast(c), dimensions={AXES}
    w = f32[S] divide(e, tb)
    p = f32[S] select(cb, zs, w)"""
APART = ["contraction", "rows", "contraction"]


def test_attention_is_one_kernel_on_whichever_side_its_values_are() -> None:
    assert heads() == ["attention"]
    assert heads(pair="dot(v, p)", axes=(1, 2)) == ["attention"]
    assert heads(queries=1) == heads(pair="dot(v, p)", axes=(1, 2), queries=1) == ["attention"]
    assert len(heads(values=1)) == len(heads(pair="dot(v, p)", axes=(1, 2), values=1)) == 3, "one column is no product of matrices"


def test_attention_takes_from_each_score_the_largest_of_its_row() -> None:
    assert "attention" not in heads(most="mt = f32[R] transpose(mr), dimensions={1,0}\nmb = f32[S] broadcast(mt), dimensions={0,1}")
    assert "attention" not in heads(most="mb = f32[S] broadcast(m), dimensions={0,1}")


def test_attention_whose_rows_may_be_empty_is_one_kernel() -> None:
    assert heads(MASKED.replace("AXES", "0,1")) == ["attention"]
    assert heads(MASKED.replace("AXES", "0,2")) == APART, "it leaves out keys, not whole rows"
    assert heads(MASKED.replace("AXES", "0,1").replace("zs, w", "tb, w")) == APART, "the weights of empty rows are not zeros"
    assert heads(MASKED.replace("AXES", "0,1").replace("zs, w", "w, zs")) == APART
    assert heads("c = pred[S] compare(s, zs), direction=GT\nw = f32[S] divide(e, tb)\n"
                 "p = f32[S] select(c, zs, w)") == APART, "it chooses for each weight"


def test_attention_that_is_left_out_as_a_whole_is_three_kernels() -> None:
    number = "h = f32[1] reshape(z)\nf = f32[] reshape(h)\nc = pred[] compare(f, z), direction=GT\n"
    assert heads(number + "w = f32[S] divide(e, tb)\np = f32[S] select(c, zs, w)") == APART


def test_a_policy_of_a_release_is_named_with_or_without_its_package() -> None:
    releases = releases_of("xla-cpu")
    one = policy_named("xla-cpu@jaxlib-0.10.2")
    assert one is policy_named("xla-cpu@0.10.2") is releases["jaxlib-0.10.2"]
    assert isinstance(one, AsWritten) and one.version == "xla-cpu@jaxlib-0.10.2"
    assert policy_named("xla-cpu") not in releases.values() and compiler_of("xla-cpu@0.10.2") == compiler_of("xla-cpu") == "xla-cpu"
    for asked, told in (("xla-cpu@0.0.1", "xla-cpu is not known as of 0.0.1"), ("xla-cpu@", "xla-cpu is not known as of no release")):
        with pytest.raises(UserError, match=told) as caught:
            policy_named(asked)
        assert caught.value.help == "there is " + " and ".join(f"xla-cpu@{name}" for name in releases)
