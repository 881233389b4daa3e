"""What of a product PyTorch's passes make one call, and what they leave beside it; where memory has to be copied for a call."""
from __future__ import annotations

from itertools import pairwise

import pytest

from irscope.expand import expand
from irscope.fusion.inductor.policy import POLICY
from irscope.fusion.logs.torch_replay import aligned
from irscope.graph import Module
from tests.fusion.inductor_texts import graph, plan, tensor, verdict


def stored(module: Module) -> list[tuple[str, tuple[str, ...]]]:
    """The operations before any is joined: the kind of each, and what it reads."""
    scheduler = POLICY.prepared(expand(module).main()).scheduler
    return [(kernel.buffers[0].kind, tuple(sorted({d.buffer for d in kernel.reads}))) for kernel in scheduler.kernels]


def after_product(lines: str, added: str, result: str = "z", rows: str = tensor(64, 128)) -> Module:
    return graph({"x": rows, "w": tensor(128, 96), "b": added}, f"y = aten::matmul(%x, %w)\n{lines}", result)


@pytest.mark.parametrize("shape", [(96,), (64, 96), (64, 1), (1, 96), (1,)])
def test_what_is_added_to_a_product_is_given_to_the_call(shape: tuple[int, ...]) -> None:
    module = after_product("a = aten::add(%y, %b, 1)\nz = aten::relu(%a)", tensor(*shape))
    assert stored(module) == [("extern", ("%b", "%w", "%x")), ("pointwise", ("buf0",))]
    assert verdict(plan(module), "a", "z").rule == "extern-kernel"


def test_what_is_added_is_stored_before() -> None:
    module = after_product("e = aten::exp(%b)\na = aten::add(%e, %y, 1)\nz = aten::relu(%a)", tensor(64, 96))
    assert stored(module) == [("pointwise", ("%b",)), ("extern", ("%w", "%x", "buf0")), ("pointwise", ("buf1",))]


@pytest.mark.parametrize("lines", ["a = aten::add(%y, 1.0, 1)\nz = aten::relu(%a)", "a = aten::sub(%y, %b, 1)\nz = aten::relu(%a)"])
def test_numbers_and_differences_stay_outside(lines: str) -> None:
    kinds = [kind for kind, _ in stored(after_product(lines, tensor(96)))]
    assert kinds == ["extern", "pointwise"]
    assert verdict(plan(after_product(lines, tensor(96))), "a", "z").fused == "all"


def test_a_product_that_is_read_twice_is_only_a_product() -> None:
    module = after_product("a = aten::add(%y, %b, 1)\nz = aten::relu(%y)", tensor(96), "a, z")
    assert stored(module) == [("extern", ("%w", "%x")), ("pointwise", ("%b", "buf0")), ("pointwise", ("buf0",))]


def test_products_over_more_than_rows_are_added_to_outside() -> None:
    module = after_product("a = aten::add(%y, %b, 1)\nz = aten::relu(%a)", tensor(96), rows=tensor(2, 32, 128))
    assert stored(module) == [("extern", ("%w", "%x")), ("pointwise", ("%b", "buf0"))]


def test_of_two_products_the_second_takes_the_first() -> None:
    module = graph({"x": tensor(64, 128), "w": tensor(128, 96), "v": tensor(128, 96)},
                   "y = aten::mm(%x, %w)\nu = aten::mm(%x, %v)\na = aten::add(%y, %u, 1)", "a")
    assert stored(module) == [("extern", ("%w", "%x")), ("extern", ("%v", "%x", "buf0"))]


def linear(line: str, x: str) -> Module:
    return graph({"x": x, "w": tensor(96, 32), "b": tensor(96)}, f"{line}\ny = aten::linear(%t, %w, %b)\nz = aten::relu(%y)", "z")


def test_a_linear_layer_over_turned_rows_copies_them_and_adds_its_bias_afterwards() -> None:
    assert stored(linear("t = aten::transpose(%x, 0, 1)", tensor(2, 6, 32))) == [
        ("pointwise", ("%x",)), ("extern", ("%w", "buf0")), ("pointwise", ("%b", "buf1"))]


def test_a_linear_layer_over_rows_in_order_is_one_call() -> None:
    assert stored(linear("t = aten::detach(%x)", tensor(2, 6, 32))) == [("extern", ("%b", "%w", "%x")), ("pointwise", ("buf0",))]


def test_a_linear_layer_over_a_turned_matrix_is_one_call() -> None:
    assert stored(linear("t = aten::t(%x)", tensor(32, 6))) == [("extern", ("%b", "%w", "%x")), ("pointwise", ("buf0",))]


def test_a_reversed_operand_is_copied() -> None:
    module = graph({"x": tensor(64, 128), "w": tensor(128, 96)}, "f = aten::flip(%w, [0])\ny = aten::mm(%x, %f)", "y")
    assert stored(module) == [("pointwise", ("%w",)), ("extern", ("%x", "buf0"))]


def test_a_norm_begins_with_rows_in_order() -> None:
    """``layer_norm`` of a turned tensor gives rows in order, so that the linear layer behind it is one call."""
    module = graph({"x": tensor(2, 32, 6), "g": tensor(32), "w": tensor(96, 32), "b": tensor(96)}, """
        t = aten::transpose(%x, 1, 2)
        n = aten::layer_norm(%t, [32], %g, %g, 1e-05, True)
        y = aten::linear(%n, %w, %b)
        z = aten::relu(%y)""", "z")
    assert [kind for kind, _ in stored(module)][-2:] == ["extern", "pointwise"]
    assert stored(module)[-1][1] == (stored_name(module, -2),)


def stored_name(module: Module, place: int) -> str:
    return POLICY.prepared(expand(module).main()).scheduler.kernels[place].buffers[0].name


def test_attention_reads_queries_keys_values_and_then_the_mask() -> None:
    shape = tensor(2, 4, 16, 8)
    module = graph({"q": shape, "k": shape, "v": shape, "m": tensor(16, 16)}, """
        n = aten::neg(%m)
        a = aten::neg(%q)
        b = aten::neg(%k)
        c = aten::neg(%v)
        z = aten::scaled_dot_product_attention(%a, %b, %c, %n, 0.0, False, None, False)""", "z")
    assert [reads for _, reads in stored(module)[:4]] == [("%q",), ("%k",), ("%v",), ("%m",)]


@pytest.mark.parametrize(("first", "second", "pairs"), [
    ("", "", []), ("a", "", []), ("", "ab", []), ("abc", "abc", [(0, 0), (1, 1), (2, 2)]), ("abcd", "acd", [(0, 0), (2, 1), (3, 2)]),
    ("xaxbxc", "abc", [(1, 0), (3, 1), (5, 2)]), ("abab", "baba", 3), ("aaab", "baaa", 3), ("abcabba", "cbabac", 4),
])
def test_alignment_finds_as_many_as_there_are(first: str, second: str, pairs: list[tuple[int, int]] | int) -> None:
    found = aligned(first, second)
    assert all(first[a] == second[b] for a, b in found)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(found))
    assert len(found) == pairs if isinstance(pairs, int) else found == pairs


def test_sequences_that_have_little_in_common_are_aligned_in_runs() -> None:
    first = [("a", i) for i in range(3000)]
    second = [*(("b", i) for i in range(3000)), *first[-5:]]
    assert aligned(first, second) == [(2995 + i, 3000 + i) for i in range(5)]
