"""Two products in a row as letters: which dimensions meet, what each order costs, and the attributes of the products."""
from __future__ import annotations

import numpy as np
import pytest

from irscope import api
from irscope.analysis.einsum import Chain, chain, contracted, dot_attrs
from irscope.graph import Node

SHAPES = {"a": (3, 2, 4), "b": (3, 4, 5), "c": (3, 5, 7)}
BATCHED = "lhs_batch_dims={0}, rhs_batch_dims={0}, "
PLAIN = """HloModule m
ENTRY e {
  a = f32[2,4] parameter(0)
  b = f32[4,5] parameter(1)
  c = f32[5,7] parameter(2)
"""


def outer(*lines: str, head: str = PLAIN) -> Node:
    return api.load(head + "".join(f"  {line}\n" for line in lines[:-1]) + f"  ROOT {lines[-1]}\n}}\n", format="hlo").module().main().result()


LEFT = ("ab = f32[2,5] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "r = f32[2,7] dot(ab, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
RIGHT = ("bc = f32[4,7] dot(b, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
         "r = f32[2,7] dot(a, bc), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
TURNED = ("ab = f32[2,5] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "t = f32[5,2] transpose(ab), dimensions={1,0}",
          "u = f32[2,5] transpose(t), dimensions={1,0}", "v = f32[5,2] transpose(u), dimensions={1,0}",
          "r = f32[2,7] dot(v, c), lhs_contracting_dims={0}, rhs_contracting_dims={0}")


@pytest.mark.parametrize(("lines", "side", "order"), [(LEFT, 0, "abc"), (RIGHT, 1, "bca"), (TURNED, 0, "abc")], ids=["left", "right", "transposed"])
def test_each_order_costs_two_flops_a_product(lines: tuple[str, ...], side: int, order: str) -> None:
    found = chain(outer(*lines), side)
    assert isinstance(found, Chain)
    assert "".join(factor.name for factor in found.factors) == order
    cost = {frozenset("ab"): 2 * 2 * 4 * 5 + 2 * 2 * 5 * 7, frozenset("bc"): 2 * 4 * 5 * 7 + 2 * 2 * 4 * 7, frozenset("ac"): 2 * 2 * 4 * 5 * 7 * 2}
    for i, j in ((0, 1), (1, 2), (0, 2), (1, 0)):
        assert found.flops(i, j) == cost[frozenset((order[i], order[j]))]
    assert chain(outer(*lines), 1 - side) is None


@pytest.mark.parametrize("side", [0, 1])
def test_the_letters_of_a_chain_are_an_einsum(side: int) -> None:
    head = "HloModule m\nENTRY e {\n" + "".join(f"  {name} = f32[{','.join(map(str, shape))}] parameter({i})\n" for i, (name, shape) in
                                              enumerate(SHAPES.items()))
    first = f"p = f32[3,2,5] dot(a, b), {BATCHED}lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}"
    last = (f"r = f32[3,2,7] dot(p, c), {BATCHED}lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}" if side == 0 else
            f"r = f32[3,7,2] dot(c, p), {BATCHED}lhs_contracting_dims={{1}}, rhs_contracting_dims={{2}}")
    found = chain(outer(first, last, head=head), side)
    assert found is not None
    random = np.random.default_rng(3)
    a, b, c = (random.standard_normal(shape) for shape in SHAPES.values())
    one, two, three, result = ("".join(chr(ord("a") + letter) for letter in letters) for letters in (*found.letters, found.result))
    whole = np.einsum(f"{one},{two},{three}->{result}", a, b, c)
    np.testing.assert_allclose(whole, a @ b @ c if side == 0 else (a @ b @ c).swapaxes(1, 2))
    assert {letter: found.sizes[letter] for letter in found.result} == dict(zip(found.result, whole.shape, strict=True))
    assert found.flops(0, 1) == 2 * 3 * 2 * 4 * 5 + 2 * 3 * 2 * 5 * 7


@pytest.mark.parametrize(("lines", "side"), [
    (("n = f32[2,4] negate(a)", "r = f32[2,5] dot(n, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"), 0),
    (("p = f32[] dot(a, a), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}", "s = f32[] parameter(3)", "r = f32[] dot(p, s)"), 0),
], ids=["no product", "scalars"])
def test_other_operands_are_no_chain(lines: tuple[str, ...], side: int) -> None:
    assert chain(outer(*lines), side) is None


@pytest.mark.parametrize(("one", "two", "needed", "result", "attrs"), [
    ((0, 1), (1, 2), set(), (0, 2), ((), (), (1,), (0,))),
    ((0, 1, 2), (0, 2, 3), {0}, (0, 1, 3), ((0,), (0,), (2,), (1,))),
    ((2, 0, 1), (1, 2, 3), {1, 2}, (2, 1, 0, 3), ((0, 2), (1, 0), (), ())),
    ((0,), (1,), set(), (0, 1), ((), (), (), ())),
])
def test_letters_of_a_product(one: tuple[int, ...], two: tuple[int, ...], needed: set[int], result: tuple[int, ...],
                              attrs: tuple[tuple[int, ...], ...]) -> None:
    assert contracted(one, two, needed) == result
    assert tuple(dot_attrs(one, two, needed).values()) == attrs
    assert list(dot_attrs(one, two, needed)) == ["lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims"]
