"""Writes in place through views and copies: what torch recorded, and what is refused because the text does not decide it."""
from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from irscope.source import UserError
from tests.expand.torchscript_runs import graph, primitive, run
from tests.oracle.torch_cases import Case, by_reference, differences, read_cases

FILE = Path(__file__).resolve().parent.parent / "data" / "torch_aliases.npz"
X = np.arange(24, dtype=np.float32).reshape(4, 6) - 7
REFUSED = re.compile(r"may share its memory with another one|has several elements in one place|changes in place in a branch or loop"
                     r"|a later trip knows by another name|size of the result depends on data")
MAY_BE_REFUSED = frozenset((
    "expand", "unfold_over", "as_strided_over", "einsum", "einsum_diag", "cartesian", "block", "matrix_power", "rot0", "masked_select",
    "if_alias", "if_chain", "if_dict_alias", "if_list_alias", "if_optional_alias", "if_pair", "if_t", "if_view_write", "reshape_chain",
    "while_carry", "while_fresh", "while_inner_alias", "while_list_alias", "while_read_before", "while_rebind", "while_swap",
))
"""Views of elements that repeat, results whose strides are not known, aliases that depend on data."""


@cache
def recorded() -> tuple[Case, ...]:
    return tuple(read_cases(FILE))


def test_the_record_covers_views_and_writes() -> None:
    operators = {op for case in recorded() for op in case.operators()}
    assert {f"aten::{name}" for name in (
        "reshape contiguous flatten to as_strided unfold diagonal expand real imag view_as_complex movedim tensor_split type_as t_ squeeze_ "
        "copy_ fill_ index_put_ masked_fill_ relu_ fill_diagonal_ clamp_ index_fill_ transpose_").split()} <= operators
    assert len(recorded()) >= 350


@pytest.mark.parametrize("part", range(4))
def test_writes_reach_what_torch_lets_them_reach(part: int) -> None:
    wrong = []
    for case in recorded()[part::4]:
        try:
            fault = differences(by_reference(case), case.outputs)
        except UserError as error:
            fault = "" if REFUSED.search(error.message) and case.name.partition(".")[0] in MAY_BE_REFUSED else error.message
        if fault:
            wrong.append(f"{case.name}: {fault}\n{case.text}")
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong[:3])


def write_of(view: str, given: str = "%x : Tensor") -> str:
    """A text that writes ones to a view of a clone of x and returns the clone."""
    return graph(f"""
        %none : NoneType = prim::Constant()
        %zero : int = prim::Constant[value=0]()
        %one : int = prim::Constant[value=1]()
        %two : int = prim::Constant[value=2]()
        %false : bool = prim::Constant[value=0]()
        %six : int[] = prim::Constant[value=[6]]()
        %c : Tensor = aten::clone(%x, %zero)
        {view}
        %w : Tensor = aten::fill_(%y, %one)
        return (%c)
    """, given)


COPIES = {
    "contiguous": "%t : Tensor = aten::t(%c)\n        %y : Tensor = aten::contiguous(%t, %zero)",
    "reshape": "%t : Tensor = aten::t(%c)\n        %y : Tensor = aten::reshape(%t, %six)",
    "flatten": "%t : Tensor = aten::t(%c)\n        %y : Tensor = aten::flatten(%t, %zero, %one)",
    "clone": "%y : Tensor = aten::clone(%c, %none)",
}
SHARED = {
    "contiguous": "%y : Tensor = aten::contiguous(%c, %zero)",
    "reshape": "%y : Tensor = aten::reshape(%c, %six)",
    "to": "%s : int = prim::Constant[value=6]()\n        %y : Tensor = aten::to(%c, %s, %false, %false, %none)",
    "dropout": "%p : float = prim::Constant[value=0.5]()\n        %y : Tensor = aten::dropout(%c, %p, %false)",
    "unfold": "%y : Tensor = aten::unfold(%c, %one, %one, %one)",
    "as_strided": "%s : int[] = prim::Constant[value=[3, 2]]()\n        %r : int[] = prim::Constant[value=[1, 3]]()\n"
                  "        %y : Tensor = aten::as_strided(%c, %s, %r, %zero)",
}


@pytest.mark.parametrize("name", COPIES)
def test_a_write_to_a_copy_stays_there(name: str) -> None:
    x = X[:2, :3]
    assert run(write_of(COPIES[name]), x=x)[0].tolist() == x.tolist()


@pytest.mark.parametrize("name", SHARED)
def test_a_write_to_a_view_reaches_its_base(name: str) -> None:
    assert run(write_of(SHARED[name]), x=X[:2, :3])[0].tolist() == [[1, 1, 1]] * 2


def test_the_strides_that_the_text_states_for_an_input_count() -> None:
    turned = "%x : Float(2, 3, strides=[1, 2], requires_grad=0, device=cpu)"
    text = write_of(SHARED["reshape"]).replace("aten::reshape(%c", "aten::reshape(%x").replace("return (%c)", "return (%x)")
    x = X[:2, :3].copy()
    assert run(text, x=x)[0].tolist() == [[1, 1, 1]] * 2
    assert run(text.replace("%x : Tensor", turned), x=x)[0].tolist() == x.tolist()


UNKNOWN = graph("""
    %zero : int = prim::Constant[value=0]()
    %one : int = prim::Constant[value=1]()
    %six : int[] = prim::Constant[value=[6]]()
    %n : Tensor = aten::linalg_inv(%x)
    %p : Tensor = aten::slice(%n, %zero, %zero, %one, %one)
    %s : int[] = prim::Constant[value=[9]]()
    %y : Tensor = aten::reshape(%n, %s)
    %w : Tensor = aten::fill_(%y, %one)
    return (RESULT)
""")


def test_a_view_or_copy_that_strides_decide_which_nobody_knows_is_refused_only_where_it_shows() -> None:
    x = np.eye(3, dtype=np.float32) * 2
    assert run(UNKNOWN.replace("RESULT", "%y"), x=x)[0].tolist() == [1] * 9
    for result in ("%n", "%p"):
        with pytest.raises(UserError, match=r"may share its memory with another one: %y = aten::reshape links them") as raised:
            primitive(UNKNOWN.replace("RESULT", result), {"x": x})
        assert "clone() the tensor before the write" in raised.value.help


def test_a_write_to_elements_that_share_a_place_is_refused() -> None:
    text = write_of("%s : int[] = prim::Constant[value=[4, 2, 3]]()\n        %y : Tensor = aten::expand(%c, %s, %false)")
    with pytest.raises(UserError, match="several elements in one place of memory"):
        primitive(text, {"x": X[:2, :3]})


def test_as_strided_reads_the_storage_and_not_the_tensor() -> None:
    text = graph("""
        %size : int[] = prim::Constant[value=[2, 3]]()
        %stride : int[] = prim::Constant[value=[2, 1]]()
        %one : int = prim::Constant[value=1]()
        %t : Tensor = aten::t(%x)
        %y : Tensor = aten::as_strided(%t, %size, %stride, %one)
        return (%y)
    """)
    assert run(text, x=X)[0].tolist() == [[-6, -5, -4], [-4, -3, -2]]
    with pytest.raises(UserError, match="reach beyond 4 elements"):
        primitive(text, {"x": X[:2, :2].copy()})


@pytest.mark.parametrize(("call", "shape", "result"), [
    ("aten::diagonal(%x, %zero, %zero, %one)", (0, 3, 2), (2, 0)),
    ("aten::diagonal(%x, %zero, %one, %zero)", (3, 0, 0), (0, 0)),
    ("aten::index_select(%x, %zero, %none)", (0, 2), (0, 2)),
    ("aten::gather(%x, %zero, %none, %false)", (0,), (0,)),
    ("aten::take(%x, %none)", (0, 2), (0,)),
])
def test_nothing_is_taken_from_an_empty_dimension(call: str, shape: tuple[int, ...], result: tuple[int, ...]) -> None:
    text = graph(f"""
        %zero : int = prim::Constant[value=0]()
        %one : int = prim::Constant[value=1]()
        %false : bool = prim::Constant[value=0]()
        %y : Tensor = {call}
        return (%y)
    """, "%x : Tensor, %none : Tensor")
    assert run(text, x=np.zeros(shape, np.float32), none=np.zeros(0, np.int64))[0].shape == result


def test_a_write_into_a_slice_of_everything_is_no_copy() -> None:
    """``x[:, 1] = y`` is a slice and a select in a trace."""
    text = """
graph(%x : Float(4, 6), %y : Float(4)):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %end : int = prim::Constant[value=9223372036854775807]()
  %no : bool = prim::Constant[value=0]()
  %all : Float(4, 6) = aten::slice(%x, %zero, %zero, %end, %one)
  %column : Float(4) = aten::select(%all, %one, %one)
  %w : Float(4) = aten::copy_(%column, %y, %no)
  return (%x)
"""
    y = np.ones(4, np.float32)
    ops = [node.op.name for node in primitive(text, {"x": X, "y": y}).main().nodes]
    assert ops.count("dynamic-update-slice") == 1
    want = X.copy()
    want[:, 1] = 1
    np.testing.assert_array_equal(run(text, x=X, y=y)[0], want)
