"""Types that a Relay text leaves open: the data's shape is enough where operators tell their weights'."""
from __future__ import annotations

import pytest

import irscope
from irscope.expand import bind_types
from irscope.graph import Module
from irscope.source import UserError
from tests.conftest import Cli

FREE = """def @main(%x, %w1, %b1, %w2) {
  %0 = nn.conv2d(%x, %w1, padding=[1, 1], channels=16, kernel_size=[3, 3]);
  %1 = nn.bias_add(%0, %b1);
  %2 = nn.global_avg_pool2d(nn.relu(%1));
  nn.dense(nn.batch_flatten(%2), %w2, units=10)
}
"""
FUSED = """def @main(%x: Tensor[(?, 8), float32], %w) -> Tensor[(?, 4), float32] {
  %1 = fn (%p0: Tensor[(?, 8), float32], %p1, Primitive=1) {
    nn.relu(nn.dense(%p0, %p1, units=4))
  };
  %1(%x, %w)
}
"""
STATIC = """def @main(%x: Tensor[(1, 8), float32], %w: Tensor[(4, 8), float32]) -> Tensor[(1, 4), float32] {
  %0 = nn.dense(%x, %w, units=4) /* ty=Tensor[(1, 4), float32] */;
  tanh(%0) /* ty=Tensor[(1, 4), float32] */
}
"""
UNDETERMINED = """def @main(%x: Tensor[(1, 8), float32], %s, %w) {
  %0 = multiply(%x, %s);
  nn.dense(%0, %w, units=None)
}
"""


def bound(text: str, **shapes: tuple[int, ...]) -> Module:
    return bind_types(irscope.load(text).module(), shapes)


def types(module: Module) -> dict[str, str]:
    return {p.name: str(p.type) for p in module.main().params}


def test_weights_follow_from_the_data() -> None:
    made = bound(FREE, x=(2, 3, 8, 8))
    assert types(made) == {"x": "f32[2,3,8,8]", "w1": "f32[16,3,3,3]", "b1": "f32[16]", "w2": "f32[10,16]"}
    assert str(made.main().result().type) == "f32[2,10]"


def test_open_dimensions_are_bound_inside_functions_too() -> None:
    made = bound(FUSED, x=(5, 8))
    assert types(made)["w"] == "f32[4,8]"
    assert str(made.main().result().type) == "f32[5,4]"
    assert "result" not in made.main().notes


def test_another_size_than_the_text_says_makes_all_types_anew() -> None:
    before = irscope.load(STATIC).module()
    made = bind_types(before, {"x": (32, 8)})
    assert [str(n.type) for n in made.main().nodes][-2:] == ["f32[32,4]", "f32[32,4]"]
    assert str(before.main().result().type) == "f32[1,4]"


def test_another_element_type_does_too() -> None:
    made = bind_types(irscope.load(STATIC).module(), {}, {"x": "f16", "w": "f16"})
    assert str(made.main().result().type) == "f16[1,4]"


def test_shapes_that_do_not_fit_are_refused_with_the_rule_and_the_line() -> None:
    with pytest.raises(UserError, match=r"nn.dense: data axis -1 is 9, weight axis 1 is 8 \(line 2\)"):
        bound(STATIC, x=(1, 9))


def test_compile_and_run_needs_the_data_alone(cli: Cli) -> None:
    result = cli("compile-and-run", "-", "--shape", "x=1,3,8,8", "--check", input=FREE)
    assert result.exit_code == 0, result.stderr
    assert "f32[1,10]" in result.stdout


def test_what_does_not_follow_is_named_with_the_way_to_give_it(cli: Cli) -> None:
    first = cli("compile-and-run", "-", input=UNDETERMINED)
    assert first.exit_code == 2
    assert "input %s has no type in the text, and none follows: multiply in line 2 reads it with f32[1,8]" in first.stderr
    assert "--shape s=1,8" in first.stderr
    second = cli("compile-and-run", "-", "--shape", "s=8", input=UNDETERMINED)
    assert "nn.dense in line 3 reads it with f32[1,8]" in second.stderr and "--shape w=UNITS,8" in second.stderr
    assert cli("compile-and-run", "-", "--shape", "s=8", "--shape", "w=3,8", "--check", input=UNDETERMINED).exit_code == 0


def test_opt_infers_and_prints_types(cli: Cli) -> None:
    result = cli("opt", "-", "--infer", "--shape", "x=1,3,8,8", "--verify", input=FREE)
    assert result.exit_code == 0, result.stderr
    assert "%w2: Tensor[(10, 16), float32]" in result.stdout
    assert "/* ty=Tensor[(1, 16, 8, 8), float32] */" in result.stdout


def test_styles(cli: Cli) -> None:
    printed = cli("opt", "-", "--style", "relay", input=STATIC).stdout
    assert printed.startswith('#[version = "0.0.5"]\n') and "return" not in printed
    assert "return %1;" in cli("opt", "-", "--style", "course", input=printed).stdout
