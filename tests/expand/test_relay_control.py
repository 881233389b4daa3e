"""Relay's functions, branches and loops become one primitive graph; what cannot is refused with its place."""

from __future__ import annotations

import numpy as np
import pytest

from irscope.graph import Module
from irscope.source import UserError
from tests.expand.relay_runs import primitive, run

VECTOR = "Tensor[(3), float32]"


def ops(module: Module) -> set[str]:
    return {node.op.name for node in module.main().nodes}


LOOP = """
def @main(%n: int32, %x: {V}, %k: {V}) {{
  let %loop = fn (%i: int32, %a: {V}) -> {V} {{
    %0 = less(%i, {limit});
    if (%0) {{ %1 = add(%i, 1); %loop(%1, multiply(%a, %k)) }} else {{ nn.relu(%a) }}
  }};
  %loop(0, %x)
}}
"""


def test_a_function_that_ends_by_calling_itself_is_a_loop() -> None:
    text = LOOP.format(V=VECTOR, limit="%n")
    assert "while" in ops(primitive(text))
    x, k = np.array([1, -2, 3], "f"), np.array([2, 2, 3], "f")
    for n in (0, 1, 4):
        (got,) = run(text, np.int32(n), x, k)
        np.testing.assert_allclose(got, np.maximum(x * k**n, 0))


def test_a_loop_whose_end_is_known_is_run() -> None:
    module = primitive(LOOP.format(V=VECTOR, limit="3"))
    assert "while" not in ops(module)
    assert sum(n.op.name == "multiply" for n in module.main().nodes) == 3


def test_a_condition_that_is_known_takes_one_branch() -> None:
    text = f"def @main(%x: {VECTOR}) {{ %0 = less(1, 2); if (%0) {{ add(%x, 1f) }} else {{ negative(%x) }} }}"
    assert ops(primitive(text)).isdisjoint(("conditional", "negate"))


def test_branches_take_values_from_around_them() -> None:
    text = f"def @main(%c: bool, %x: {VECTOR}, %y: {VECTOR}) {{ %0 = add(%x, %y); if (%c) {{ (%0, %x) }} else {{ (%y, multiply(%0, %y)) }} }}"
    x, y = np.array([1, 2, 3], "f"), np.array([5, 7, 11], "f")
    np.testing.assert_array_equal(run(text, np.bool_(True), x, y), [x + y, x])
    np.testing.assert_array_equal(run(text, np.bool_(False), x, y), [y, (x + y) * y])


def test_a_function_that_data_choose_is_refused_with_its_place() -> None:
    with pytest.raises(UserError, match="cannot be chosen by data .line 3.$"):
        primitive("def @a() { 1 }\ndef @b() { 2 }\ndef @main(%p: bool) { %0 = if (%p) { @a } else { @b }; %0() }")


def test_functions_are_values() -> None:
    text = f"""
    def @twice(%f: fn ({VECTOR}) -> {VECTOR}, %x: {VECTOR}) -> {VECTOR} {{ %f(%f(%x)) }}
    def @main(%x: {VECTOR}, %y: {VECTOR}) {{ let %g = fn (%a: {VECTOR}) {{ add(%a, %y) }}; @twice(%g, %x) }}
    """
    np.testing.assert_array_equal(run(text, np.zeros(3, "f"), np.ones(3, "f"))[0], np.full(3, 2, "f"))


def test_references_are_cells() -> None:
    text = f"def @main(%x: {VECTOR}) {{ let %r = ref(%x); ref_write(%r, add(%x, 1f)); ref_read(%r) }}"
    np.testing.assert_array_equal(run(text, np.zeros(3, "f"))[0], np.ones(3, "f"))


def test_shapes_that_are_operands_are_computed() -> None:
    text = "def @main(%x: Tensor[(2, 6), float32], %y: Tensor[(3, 4), float32]) { %0 = shape_of(%y); dyn.reshape(%x, %0) }"
    assert str(primitive(text).main().result().type) == "f32[3,4]"


@pytest.mark.parametrize(("text", "words"), [
    (f"def @f(%x: {VECTOR}) -> {VECTOR} {{ add(@f(%x), %x) }} def @main(%x: {VECTOR}) {{ @f(%x) }}", "calls itself"),
    (f"def @main(%x: {VECTOR}) {{ vm.invoke_tvm_op(%x, %x, %x) }}", "has no meaning that irscope could compile"),
    (f"def @main(%x: {VECTOR}, %y: Tensor[(4), float32]) {{ add(%x, %y) }}", "axis -1 is 3 and 4 (line 1)"),
    ("def @main(%x) { nn.relu(%x) }", "input %x has no type"),
    ("def @main(%x: Tensor[(?, 3), float32]) { nn.relu(%x) }", "open dimension"),
    (f"def @main(%x: {VECTOR}, %n: int32) {{ %0 = expand_dims(%n, axis=0); dyn.reshape(%x, %0) }}", "depends on data"),
])
def test_what_cannot_be_compiled_says_why(text: str, words: str) -> None:
    with pytest.raises(UserError) as raised:
        primitive(text)
    assert words in str(raised.value)
