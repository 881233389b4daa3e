"""Branches and loops on data over lists, dicts, Optionals, and variables that a way does not set."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.source import UserError
from tests.expand.torchscript_runs import Array, graph, primitive, run

SIGNS = [np.array([[0.5, 1.2], [-1.0, 0.1]], np.float32), np.array([[-0.5, -1.2], [-1.0, 0.1]], np.float32),
         np.array([[-0.5, 3.2], [-1.0, 0.1]], np.float32)]
HEAD = """
    %none : NoneType = prim::Constant()
    %zero : int = prim::Constant[value=0]()
    %one : int = prim::Constant[value=1]()
    %two : int = prim::Constant[value=2]()
    %true : bool = prim::Constant[value=1]()
    %many : int = prim::Constant[value=9223372036854775807]()
    %ten : float = prim::Constant[value=10.]()
    %sum : Tensor = aten::sum(%x, %none)
    %positive : Tensor = aten::gt(%sum, %zero)
    %c : bool = aten::Bool(%positive)
"""


def program(body: str) -> str:
    return graph(HEAD + body)


LIST = program("""
    %out : Tensor[] = prim::ListConstruct()
    %rows : Tensor[] = aten::unbind(%x, %zero)
    %n : int = aten::len(%rows)
     = prim::Loop(%n, %true)
      block0(%i : int):
        %row : Tensor = aten::__getitem__(%rows, %i)
        %s : Tensor = aten::sum(%row, %none)
        %p : Tensor = aten::gt(%s, %zero)
        %up : bool = aten::Bool(%p)
         = prim::If(%up)
          block0():
            %twice : Tensor = aten::mul(%row, %two)
            %l1 : Tensor[] = aten::append(%out, %twice)
            -> ()
          block1():
            %l2 : Tensor[] = aten::append(%out, %row)
            -> ()
        -> (%true)
    %y : Tensor = aten::stack(%out, %zero)
    return (%y)
""")


@pytest.mark.parametrize("x", SIGNS)
def test_both_ways_append_to_a_list(x: Array) -> None:
    assert run(LIST, x=x)[0].tolist() == np.where(x.sum(1, keepdims=True) > 0, x * 2, x).tolist()


TWO_LISTS = program("""
    %a : Tensor[] = prim::ListConstruct(%x)
    %b : Tensor[] = prim::ListConstruct(%x)
    %twice : Tensor = aten::mul(%x, %two)
     = prim::If(%c)
      block0():
         = aten::_set_item(%a, %zero, %twice)
        %l1 : Tensor[] = aten::append(%b, %twice)
        -> ()
      block1():
        %l2 : Tensor[] = aten::append(%b, %x)
        -> ()
    %first : Tensor = aten::__getitem__(%a, %zero)
    %last : Tensor = aten::__getitem__(%b, %one)
    return (%first, %last)
""")


@pytest.mark.parametrize("x", SIGNS[:2])
def test_one_way_changes_a_list_and_both_another(x: Array) -> None:
    kept = x * (1 + (x.sum() > 0))
    assert [y.tolist() for y in run(TWO_LISTS, x=x)] == [kept.tolist(), kept.tolist()]


DICT = program("""
    %key : str = prim::Constant[value="a"]()
    %other : str = prim::Constant[value="b"]()
    %d : Dict(str, Tensor) = prim::DictConstruct(%key, %x)
     = prim::If(%c)
      block0():
        %more : Tensor = aten::add(%x, %one, %one)
         = aten::_set_item(%d, KEY, %more)
        -> ()
      block1():
        -> ()
    %y : Tensor = aten::__getitem__(%d, %key)
    return (%y)
""")


@pytest.mark.parametrize("x", SIGNS)
def test_one_way_sets_an_item_of_a_dict(x: Array) -> None:
    assert run(DICT.replace("KEY", "%key"), x=x)[0].tolist() == (x + (x.sum() > 0)).tolist()


def test_a_key_of_one_way_is_refused_by_name() -> None:
    with pytest.raises(UserError, match=r"a dict with the keys \['a', 'b'\], the other \['a'\], and data decides"):
        primitive(DICT.replace("KEY", "%other"), {"x": SIGNS[0]})


OPTIONAL = program("""
    %y : Tensor? = prim::If(%c)
      block0():
        %more : Tensor = aten::add(%x, %one, %one)
        -> (%more)
      block1():
        -> (%none)
    %has : bool = aten::__isnot__(%y, %none)
    %r : Tensor = prim::If(%has)
      block0():
        %sure : Tensor = prim::unchecked_cast(%y)
        -> (%sure)
      block1():
        -> (%x)
    return (%r)
""")


@pytest.mark.parametrize("x", SIGNS)
def test_an_optional_that_data_decides_carries_a_flag(x: Array) -> None:
    assert run(OPTIONAL, x=x)[0].tolist() == (x + (x.sum() > 0)).tolist()


def test_an_optional_is_no_tensor() -> None:
    text = OPTIONAL.replace("%sure : Tensor = prim::unchecked_cast(%y)", "%sure : Tensor = aten::relu(%y)")
    with pytest.raises(UserError, match=r"no overload of aten::relu takes \(f32\[2,2\] or None, which depends on data\)"):
        primitive(text, {"x": SIGNS[0]})


def test_an_optional_is_no_result() -> None:
    text = OPTIONAL.replace("return (%r)", "return (%y)")
    with pytest.raises(UserError, match="returns an Optional, and data decides whether it is None"):
        primitive(text, {"x": SIGNS[0]})


FIRST = program("""
    %best : Tensor?, %y : Tensor = prim::Loop(%many, %true, %none, %x)
      block0(%i : int, %b : Tensor?, %v : Tensor):
        %w : Tensor = aten::add(%v, %one, %one)
        %s : Tensor = aten::sum(%w, %none)
        %go : Tensor = aten::lt(%s, %ten)
        %on : bool = aten::Bool(%go)
        %p : Tensor = aten::gt(%s, %two)
        %large : bool = aten::Bool(%p)
        %next : Tensor? = prim::If(%large)
          block0():
            -> (%w)
          block1():
            -> (%b)
        -> (%on, %next, %w)
    %no : bool = aten::__is__(%best, %none)
    %r : Tensor = prim::If(%no)
      block0():
        -> (%x)
      block1():
        %sure : Tensor = prim::unchecked_cast(%best)
        -> (%sure)
    return (%r)
""")


@pytest.mark.parametrize("x", [*SIGNS, SIGNS[0] - 100])
def test_a_loop_on_data_fills_an_optional(x: Array) -> None:
    value, best = x, None
    while True:
        value = value + 1
        best = value if value.sum() > 2 else best
        if value.sum() >= 10:
            break
    np.testing.assert_allclose(run(FIRST, x=x)[0], x if best is None else best, rtol=1e-6)


EARLY = program("""
    %unset : Tensor = prim::Uninitialized()
    %done : bool, %early : Tensor = prim::If(%c)
      block0():
        %more : Tensor = aten::add(%x, %one, %one)
        -> (%true, %more)
      block1():
        -> (%false, %unset)
    %y : Tensor = prim::If(%done)
      block0():
        -> (%early)
      block1():
        %less : Tensor = aten::sub(%x, %one, %one)
        -> (%less)
    return (%y)
""".replace("%unset : Tensor", "%false : bool = prim::Constant[value=0]()\n    %unset : Tensor"))


@pytest.mark.parametrize("x", SIGNS)
def test_a_variable_that_one_way_does_not_set(x: Array) -> None:
    assert run(EARLY, x=x)[0].tolist() == (x + (1 if x.sum() > 0 else -1)).tolist()


ITEMS = program("""
    %twice : Tensor = aten::mul(%x, %two)
    %out : Tensor[] = prim::ListConstruct(%x, %twice)
    %y : Tensor = prim::Loop(%many, %c, %x)
      block0(%i : int, %v : Tensor):
        %w : Tensor = aten::add(%v, %one, %one)
        %s : Tensor = aten::sum(%w, %none)
        %go : Tensor = aten::lt(%s, %ten)
        %on : bool = aten::Bool(%go)
        %l : Tensor[] = CHANGE
        -> (%on, %w)
    %a : Tensor = aten::__getitem__(%out, %zero)
    %b : Tensor = aten::__getitem__(%out, %one)
    return (%a, %b, %y)
""")


@pytest.mark.parametrize("x", SIGNS)
def test_a_loop_on_data_sets_items_of_a_list(x: Array) -> None:
    value, first, go = x, x, bool(x.sum() > 0)
    while go:
        value = first = value + 1
        go = bool(value.sum() < 10)
    a, b, y = run(ITEMS.replace("CHANGE", "aten::_set_item(%out, %zero, %w)"), x=x)
    assert (a.tolist(), b.tolist(), y.tolist()) == (first.tolist(), (x * 2).tolist(), value.tolist())


def test_lists_that_grow_with_data_are_refused_by_what_they_are() -> None:
    with pytest.raises(UserError, match=r"carries \[f32\[2,2\], f32\[2,2\]\], and a trip makes \[f32\[2,2\], f32\[2,2\], f32\[2,2\]\] of it"):
        primitive(ITEMS.replace("CHANGE", "aten::append(%out, %w)"), {"x": SIGNS[0]})
    text = LIST.replace("%l2 : Tensor[] = aten::append(%out, %row)", "%l2 : Tensor[] = prim::ListConstruct(%row)")
    with pytest.raises(UserError, match="one way has a list of 1, the other a list of 0, and data decides which is taken"):
        primitive(text, {"x": SIGNS[0]})


def test_a_way_that_raises_leaves_lists_as_they_were() -> None:
    text = program("""
        %out : Tensor[] = prim::ListConstruct(%x)
         = prim::If(%c)
          block0():
            %l1 : Tensor[] = aten::append(%out, %x)
            %m : str = prim::Constant[value="no"]()
             = prim::RaiseException(%m)
            -> ()
          block1():
            %neg : Tensor = aten::neg(%x)
            %l2 : Tensor[] = aten::append(%out, %neg)
            -> ()
        %n : int = aten::len(%out)
        %y : Tensor = aten::stack(%out, %zero)
        return (%n, %y)
    """)
    n, y = run(text, x=SIGNS[1])
    assert n.item() == 2
    assert y.tolist() == [SIGNS[1].tolist(), (-SIGNS[1]).tolist()]


@pytest.mark.parametrize("x", SIGNS)
def test_attributes_that_a_way_sets(x: Array) -> None:
    text = graph(HEAD + """
         = prim::SetAttr[name="k"](%self, %one)
         = prim::If(%c)
          block0():
             = prim::SetAttr[name="k"](%self, %two)
            -> ()
          block1():
            -> ()
        %k : int = prim::GetAttr[name="k"](%self)
        %y : Tensor = aten::mul(%x, %k)
        return (%y)
    """, "%self : __torch__.M, %x : Tensor")
    assert run(text, x=x)[0].tolist() == (x * (2 if x.sum() > 0 else 1)).tolist()


@pytest.mark.parametrize("x", SIGNS)
def test_a_constant_that_a_branch_asks_for_first(x: Array) -> None:
    text = program("""
        %k : Double(requires_grad=0, device=cpu) = prim::Constant[value={3}]()
        %y : Tensor = prim::If(%c)
          block0():
            %a : Tensor = aten::mul(%x, %k)
            -> (%a)
          block1():
            -> (%x)
        %z : Tensor = aten::add(%y, %k, %one)
        return (%z)
    """)
    assert run(text, x=x)[0].tolist() == (x * (3 if x.sum() > 0 else 1) + 3).tolist()


def test_lists_extend_in_place_and_numbers_divide() -> None:
    text = program("""
        %twice : Tensor = aten::mul(%x, %two)
        %out : Tensor[] = prim::ListConstruct(%x)
        %more : Tensor[] = prim::ListConstruct(%twice)
        %same : Tensor[] = aten::add_(%out, %more)
        %five : int = prim::Constant[value=5]()
        %q : int, %r : int = aten::divmod(%five, %two)
        %y : Tensor = aten::stack(%out, %zero)
        return (%y, %q, %r)
    """)
    y, q, r = run(text, x=SIGNS[0])
    assert y.tolist() == np.stack([SIGNS[0], SIGNS[0] * 2]).tolist()
    assert (q.item(), r.item()) == (2, 1)


SEARCH = """graph(%s : __torch__.Search,
      %x.1 : Tensor,
      %n.1 : int):
  %3 : int = prim::Constant[value=1]()
  %4 : NoneType = prim::Constant()
  %5 : int = prim::Constant[value=2]()
  %6 : int = prim::Constant[value=0]()
  %7 : int = prim::Constant[value=3]()
  %8 : float = prim::Constant[value=1000.]()
  %9 : int = prim::Constant[value=9223372036854775807]()
  %10 : float = prim::Constant[value=1.]()
  %11 : float = prim::Constant[value=0.5]()
  %12 : bool = prim::Constant[value=0]()
  %13 : bool = prim::Constant[value=1]()
  %14 : Tensor = prim::Uninitialized()
  %15 : bool = prim::Uninitialized()
  %y.1 : Tensor = aten::zeros_like(%x.1, %4, %4, %4, %4, %4)
  %17 : bool = aten::gt(%n.1, %6)
  %y.51 : Tensor, %19 : int = prim::Loop(%9, %17, %y.1, %6)
    block0(%20 : int, %y.49 : Tensor, %22 : int):
      %23 : int = aten::remainder(%22, %5)
      %24 : bool = aten::eq(%23, %6)
      %25 : bool, %26 : bool, %27 : Tensor, %y.47 : Tensor = prim::If(%24)
        block0():
          %29 : float = aten::Float(%22)
          %30 : Tensor = aten::mul(%x.1, %29)
          %y.5 : Tensor = aten::add(%y.49, %30, %3)
          -> (%12, %15, %14, %y.5)
        block1():
          %32 : bool = aten::eq(%22, %7)
          %33 : bool, %34 : bool, %35 : Tensor, %y.45 : Tensor = prim::If(%32)
            block0():
              -> (%13, %13, %y.49, %y.49)
            block1():
              %37 : Tensor = aten::abs(%x.1)
              %38 : Tensor = aten::sqrt(%37)
              %y.11 : Tensor = aten::sub(%y.49, %38, %3)
              %40 : Tensor = aten::sum(%y.11, %4)
              %41 : Tensor = aten::gt(%40, %8)
              %42 : bool = aten::Bool(%41)
              %43 : bool, %44 : bool, %45 : Tensor = prim::If(%42)
                block0():
                  -> (%13, %12, %y.11)
                block1():
                  -> (%12, %15, %14)
              -> (%43, %44, %45, %y.11)
          -> (%33, %34, %35, %y.45)
      %46 : bool, %47 : Tensor = prim::If(%25)
        block0():
          -> (%26, %27)
        block1():
          -> (%13, %y.47)
      %48 : int = aten::add(%22, %3)
      %49 : bool = aten::lt(%48, %n.1)
      %50 : bool = aten::__and__(%49, %46)
      -> (%50, %47, %48)
  %51 : Tensor = aten::abs(%y.51)
  %52 : Tensor = aten::max(%51)
  %53 : Tensor = aten::gt(%52, %10)
  %54 : bool = aten::Bool(%53)
  %y : Tensor = prim::Loop(%9, %54, %y.51)
    block0(%56 : int, %y.53 : Tensor):
      %y.39 : Tensor = aten::mul(%y.53, %11)
      %59 : Tensor = aten::abs(%y.39)
      %60 : Tensor = aten::max(%59)
      %61 : Tensor = aten::gt(%60, %10)
      %62 : bool = aten::Bool(%61)
      -> (%62, %y.39)
  return (%y)
"""
"""A loop with break and continue, as torch prints it: what they leave unset is uninitialised on the other ways."""


def search(x: Array, n: int) -> Array:
    y = np.zeros_like(x)
    for i in range(n):
        if i % 2 == 0:
            y = y + x * i
        elif i == 3:
            continue
        else:
            y = y - np.sqrt(np.abs(x))
            if y.sum() > 1000:
                break
    while np.abs(y).max() > 1:
        y = y * np.float32(0.5)
    return y


@pytest.mark.parametrize("x", [*SIGNS, SIGNS[2] * -4000])
@pytest.mark.parametrize("n", [0, 1, 6])
def test_break_and_continue_on_data(x: Array, n: int) -> None:
    number = f"):\n  %n.1 : int = prim::Constant[value={n}]()\n"
    got = run(SEARCH.replace(",\n      %n.1 : int):\n", number).replace("%x.1", "%x"), x=x)[0]
    np.testing.assert_allclose(got, search(x, n), rtol=1e-5, atol=1e-6)


CARRIED = """
    %a : str = prim::Constant[value="a"]()
    %b : str = prim::Constant[value="b"]()
    %unset : Tensor = prim::Uninitialized()
    %hundred : float = prim::Constant[value=100.]()
    %maybe : Tensor? = prim::If(%c)
      block0():
        -> (%x)
      block1():
        -> (%none)
    %y : Tensor, %w : TYPE = prim::Loop(%many, %c, %x, START)
      block0(%i : int, %v : Tensor, %u : TYPE):
        %v2 : Tensor = aten::mul(%v, %two)
        %s : Tensor = aten::sum(%v2, %none)
        %go : Tensor = aten::lt(%s, %hundred)
        %on : bool = aten::Bool(%go)
        -> (%on, %v2, NEXT)
"""
USE = """
    %no : bool = aten::__is__(%w, %none)
    %r : Tensor = prim::If(%no)
      block0():
        -> (%y)
      block1():
        %sure : Tensor = prim::unchecked_cast(%w)
        %m : Tensor = aten::neg(%sure)
        -> (%m)
    return (%r)
"""


def carried(type: str, start: str, next: str, use: str = USE) -> str:
    """A loop, whose first trip depends on data, that doubles %x up to a sum of 100 and carries something beside it."""
    return program(CARRIED.replace("TYPE", type).replace("START", start).replace("NEXT", next) + use)


def doubled(x: Array) -> tuple[Array, Array | None]:
    """The last value, and the one before; None where no trip is made."""
    value, before = x, None
    while x.sum() > 0 and (before is None or value.sum() < 100):
        value, before = value * 2, value
    return value, before


@pytest.mark.parametrize("x", SIGNS[:2])
@pytest.mark.parametrize(("start", "next", "last"), [
    ("%none", "%v2", "value"), ("%none", "%v", "before"), ("%none", "%none", None), ("%maybe", "%none", None), ("%maybe", "%v", "before"),
    ("%maybe", "%u", "x"),
])
def test_a_loop_on_data_carries_what_may_be_none(start: str, next: str, last: str | None, x: Array) -> None:
    value, before = doubled(x)
    kept = None if before is None or last is None else {"value": value, "before": before, "x": x}[last]
    np.testing.assert_allclose(run(carried("Tensor?", start, next), x=x)[0], value if kept is None else -kept, rtol=1e-6)


@pytest.mark.parametrize("x", SIGNS[:2])
def test_a_loop_on_data_carries_a_string_that_stays(x: Array) -> None:
    use = """
    %same : bool = aten::eq(%w, %a)
    %r : Tensor = prim::If(%same)
      block0():
        -> (%y)
      block1():
        -> (%x)
    return (%r)
"""
    np.testing.assert_allclose(run(carried("str", "%a", "%a", use), x=x)[0], doubled(x)[0], rtol=1e-6)
    with pytest.raises(UserError, match="a loop whose end depends on data carries "):
        run(carried("str", "%a", "%b", use), x=x)


@pytest.mark.parametrize("x", SIGNS[:2])
@pytest.mark.parametrize(("start", "next"), [("%unset", "%v"), ("%unset", "%unset"), ("%x", "%unset")])
def test_a_loop_on_data_carries_what_one_way_does_not_set(start: str, next: str, x: Array) -> None:
    """Whoever reads it, does so only where it is set."""
    use = """
    %r : Tensor = prim::If(%c)
      block0():
        %m : Tensor = USED
        -> (%m)
      block1():
        -> (%y)
    return (%r)
""".replace("USED", "aten::neg(%w)" if next == "%v" else "aten::neg(%y)")
    value, before = doubled(x)
    wanted = value if before is None else -(before if next == "%v" else value)
    np.testing.assert_allclose(run(carried("Tensor", start, next, use), x=x)[0], wanted, rtol=1e-6)
