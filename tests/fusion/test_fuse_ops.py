"""fuse-ops groups as TVM's FuseOps does, rule by rule; the policy tvm gives the reason where it does not."""
from __future__ import annotations

import irscope
from irscope.diff import compare
from irscope.formats.relay import print_module
from irscope.fusion.fuse_ops import FuseOps
from irscope.fusion.tvm import POLICY
from irscope.graph import Module
from irscope.passes import pass_named
from irscope.passes.manager import run_passes
from tests.passes.relay_runs import meaning_stays

X = "%x: Tensor[(1, 16, 8, 8), float32]"
W = "%w: Tensor[(16, 16, 3, 3), float32]"
CONV = "nn.conv2d({}, {}, padding=[1, 1], channels=16, kernel_size=[3, 3])"


def module_of(signature: str, *lines: str) -> Module:
    body = "\n".join(f"  {line}" for line in lines)
    reading = irscope.load(f"def @main({signature}) {{\n{body}\n}}\n")
    assert reading.ok, [f.message for f in reading.findings]
    return reading.module()


def groups(module: Module, options: str = "") -> list[list[str]]:
    """The operators of each function that fuse-ops makes, in order; the numbers stay."""
    *_, last = run_passes(module, ["fuse-ops" + options])
    assert not last.broke
    text = print_module(last.after)
    again = irscope.load(text).module()
    assert compare(last.after, again).same, text
    meaning_stays(module, last.after)
    bodies = [n.bodies[0] for n in last.after.main().nodes if n.op.name == "fn"]
    return [[n.op.name for n in body.nodes if n.op.name not in ("parameter", "constant")] for body in bodies]


def reasons(module: Module) -> dict[tuple[str, str], str]:
    return {v.names: v.rule for plan in POLICY.plan_module(module) for v in plan.verdicts if v.fused == "none"}


def test_a_chain_of_elementwise_operators_is_one_function() -> None:
    assert groups(module_of("%x: Tensor[(10), float32]", "%0 = add(%x, 1f);", "%1 = exp(%0);", "squeeze(%1, axis=None)")) == [
        ["add", "exp", "squeeze"]]


def test_what_follows_a_convolution_joins_it_and_what_comes_before_does_not() -> None:
    module = module_of(f"{X}, {W}", "%0 = exp(%x);", "%1 = " + CONV.format("%0", "%w") + ";", "%2 = nn.relu(%1);", "tanh(%2)")
    assert groups(module) == [["exp"], ["nn.conv2d", "nn.relu", "tanh"]]
    assert reasons(module) == {("0", "1"): "prologue"}


def test_a_diamond_behind_a_convolution_is_one_group() -> None:
    module = module_of(f"{X}, {W}", "%0 = " + CONV.format("%x", "%w") + ";", "%1 = nn.relu(%0);", "add(%0, %1)")
    assert groups(module) == [["nn.conv2d", "nn.relu", "add"]]


def test_two_convolutions_meet_and_the_first_in_order_takes_the_sum() -> None:
    module = module_of(f"{X}, {W}, %v: Tensor[(16, 16, 3, 3), float32]", "%0 = " + CONV.format("%x", "%w") + ";",
                       "%1 = " + CONV.format("%x", "%v") + ";", "%2 = add(%0, %1);", "nn.relu(%2)")
    assert sorted(groups(module)) == [["nn.conv2d"], ["nn.conv2d", "add", "nn.relu"]]
    assert reasons(module) == {("1", "2"): "two-complex"}


def test_a_convolution_does_not_take_what_changes_the_shape() -> None:
    module = module_of(f"{X}, {W}, %b: Tensor[(4, 16, 8, 8), float32]", "%0 = " + CONV.format("%x", "%w") + ";", "%1 = add(%0, %b);", "tanh(%1)")
    assert groups(module) == [["nn.conv2d"], ["add", "tanh"]]
    assert reasons(module) == {("0", "1"): "complex-into-shape"}


def test_a_result_that_is_a_tuple_is_not_fused_and_stays_outside() -> None:
    module = module_of("%x: Tensor[(4), float32]", "%0 = exp(%x);", "%1 = tanh(%0);", "(%0, %1)")
    assert groups(module) == [["exp"], ["tanh"]]
    assert reasons(module)["0", "1"] == "multi-consumer"


def test_a_tuple_inside_a_group_goes_with_it() -> None:
    module = module_of("%x: Tensor[(2, 4), float32]", "%0 = exp(%x);", "%1 = tanh(%x);", "%2 = (%0, %1);", "%3 = concatenate(%2, axis=1);", "nn.relu(%3)")
    assert groups(module) == [["exp", "tanh", "tuple", "concatenate", "nn.relu"]]


def test_a_reduction_takes_what_comes_before_and_ends_its_group() -> None:
    module = module_of("%x: Tensor[(2, 4), float32]", "%0 = exp(%x);", "%1 = sum(%0, axis=[1]);", "tanh(%1)")
    assert groups(module) == [["exp", "sum"], ["tanh"]]
    assert list(reasons(module).values()) == ["reduce-out"]


def test_movement_does_not_go_into_a_reduction() -> None:
    module = module_of("%x: Tensor[(2, 4), float32]", "%0 = transpose(%x, axes=[1, 0]);", "sum(%0, axis=[1])")
    assert groups(module) == [["transpose"], ["sum"]]
    assert list(reasons(module).values()) == ["injective-into-reduce"]


def test_opaque_operators_stand_alone() -> None:
    module = module_of("%x: Tensor[(2, 4), float32]", "%0 = exp(%x);", "%1 = cumsum(%0, axis=1);", "tanh(%1)")
    assert groups(module) == [["exp"], ["cumsum"], ["tanh"]]
    assert set(reasons(module).values()) == {"opaque"}


def test_stop_fusion_ends_a_group_and_is_gone() -> None:
    module = module_of("%x: Tensor[(4), float32]", "%0 = exp(%x);", "%1 = annotation.stop_fusion(%0);", "tanh(%1)")
    assert groups(module) == [["exp"], ["tanh"]]


def test_no_group_is_larger_than_allowed() -> None:
    lines = ["%0 = exp(%x);", *(f"%{i} = tanh(%{i - 1});" for i in range(1, 9)), "tanh(%8)"]
    module = module_of("%x: Tensor[(4), float32]", *lines)
    assert [len(g) for g in groups(module)] == [10]
    assert [len(g) for g in groups(module, "{max-depth=4}")] == [4, 4, 2]


def test_constants_stay_outside_unless_asked_for() -> None:
    text = ('def @main(%x: Tensor[(2), float32]) {\n  %0 = take(%x, meta[relay.Constant][0] /* ty=Tensor[(1), int64] */);\n'
            '  exp(%0)\n}\n')
    module = irscope.load(text).module()
    for options, parameters in (("", 2), ("{link-params}", 1)):
        made = pass_named("fuse-ops" + options).run(module)
        body = next(n.bodies[0] for n in made.main().nodes if n.op.name == "fn")
        assert len(body.params) == parameters
        assert sum(n.op.name == "constant" for n in body.nodes) == 2 - parameters


def test_what_is_a_kernel_already_stays() -> None:
    module = module_of("%x: Tensor[(4), float32]", "%0 = exp(%x);", "tanh(%0)")
    once = pass_named("fuse-ops").run(module)
    assert compare(once, pass_named("fuse-ops").run(once)).same


def test_a_function_that_calls_itself_calls_what_it_became() -> None:
    text = """def @f(%n: int32, %x: Tensor[(3), float32]) -> Tensor[(3), float32] {
  if (less(%n, 10)) { @f(add(%n, 1), multiply(nn.relu(%x), add(2f, 3f))) } else { negative(nn.relu(%x)) }
}
def @main(%n: int32, %x: Tensor[(3), float32]) -> Tensor[(3), float32] { @f(%n, multiply(%x, 1f)) }
"""
    before = irscope.load(text).module()
    after = list(run_passes(before, ["fuse-ops"]))[-1].after
    shown = print_module(after)
    assert shown.count("def @") == 2 and "hlo." not in shown
    assert not [line for line in shown.splitlines() if line.endswith(" = 1f;")], "constants stand where they are used"
    meaning_stays(before, after)


def test_the_policy_judges_hlo_by_the_kinds_of_its_operators() -> None:
    module = irscope.load("ENTRY main {\n  p = f32[4] parameter(0)\n  e = f32[4] exponential(p)\n  ROOT r = f32[4] negate(e)\n}\n").module()
    assert [g.kind for plan in POLICY.plan_module(module) for g in plan.groups] == ["map"]
    assert POLICY.remarks(module)


def test_modules_of_other_formats_stay_as_they_are() -> None:
    module = irscope.load("ENTRY main {\n  p = f32[4] parameter(0)\n  ROOT e = f32[4] exponential(p)\n}\n").module()
    assert FuseOps().run(module) is module


def test_what_is_bound_to_a_name_is_computed_there_still() -> None:
    module = module_of("%x: Tensor[(4), float32]", "let %a = exp(%x);", "%0 = tanh(%a);", "add(%0, %a)")
    assert groups(module) == [["exp"], ["tanh", "add"]]
    assert reasons(module) == {("a", "0"): "let", ("a", "add.4"): "let"}
    made = pass_named("fuse-ops").run(module).main()
    [bound] = made.notes["lets"]
    assert bound in made.nodes and bound.op.name == "call" and bound.origin[0].name == "a"


def test_one_of_several_results_is_taken_inside_unless_the_operator_is_opaque() -> None:
    split = module_of("%x: Tensor[(4, 4), float32]", "%0 = split(%x, indices_or_sections=2, axis=0);", "%0.0")
    assert groups(split) == [["split", "get-tuple-element"]]
    largest = module_of("%x: Tensor[(4, 4), float32]", '%0 = topk(%x, k=2, axis=1, dtype="int32");', "%0.0")
    assert groups(largest) == [["topk"]]


def test_values_without_a_type_are_counted() -> None:
    assert POLICY.remarks(module_of("%x: Tensor[(4), float32]", "exp(%x)")) == []
    text = "def @main(%x: Tensor[(4), float32]) {\n  %0 = exp(%x);\n  %1 = unheard_of(%0);\n  tanh(%1)\n}\n"
    assert POLICY.remarks(irscope.load(text).module()) == [
        "2 values have no type: broadcasts among them are taken for ones that change the shape"]
