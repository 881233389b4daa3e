"""Data types and recursion in Relay programs: gone where constructors are known, refused with the place where only data know them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irscope.source import UserError
from tests.expand.relay_runs import primitive, run

V = "Tensor[(3), float32]"
LIST = "type List[A] { Cons(A, List[A]), Nil, }\n"
PRELUDE = LIST + f"""
type Option[A] {{ Some(A), None, }}
def @map[A, B](%f: fn(A) -> B, %xs: List[A]) -> List[B] {{
  match (%xs) {{ Cons(%x, %rest) => Cons(%f(%x), @map(%f, %rest)), Nil => Nil, }}
}}
def @foldl[A, B](%f: fn(B, A) -> B, %z: B, %xs: List[A]) -> B {{
  match (%xs) {{ Cons(%x, %rest) => @foldl(%f, %f(%z, %x), %rest), Nil => %z, }}
}}
def @length[A](%xs: List[A]) -> int32 {{ match (%xs) {{ Cons(_, %rest) => 1 + @length(%rest), Nil => 0, }} }}
def @second[A](%xs: List[A]) -> Option[A] {{ match (%xs) {{ Cons(_, Cons(%x, _)) => Some(%x), _ => None, }} }}
def @or[A](%o: Option[A], %x: A) -> A {{ match (%o) {{ Some(%y) => %y, None => %x, }} }}
def @relu(%x: {V}) -> {V} {{ nn.relu(%x) }}
def @plus(%x: {V}, %y: {V}) -> {V} {{ add(%x, %y) }}
"""
X, Y = np.array([1, -2, 3], "f"), np.array([-5, 7, 11], "f")


def main(body: str, result: str = V) -> str:
    return f"{PRELUDE}def @main(%x: {V}, %y: {V}, %c: bool) -> {result} {{ {body} }}"


@pytest.mark.parametrize(("body", "wanted"), [
    ("let %l = Cons(%x, Cons(%y, Nil)); @foldl(@plus, %x, @map(@relu, %l))", [X + np.maximum(X, 0) + np.maximum(Y, 0)]),
    ("@length(Cons(%x, Cons(%y, Cons(%x, Nil))))", [np.int32(3)]),
    ("@or(@second(Cons(%x, Cons(%y, Nil))), %x)", [Y]),
    ("@or(@second(Cons(%x, Nil)), %x)", [X]),
    ("let %f = Some; match ((%f(%x), Nil)) { (Some(%a), Cons(_, _)) => negative(%a), (Some(%a), Nil) => %a }", [X]),
    ("@map(fn (%a: Tensor[(3), float32]) { add(%a, %y) }, Cons(%x, Cons(%y, Nil)))", [X + Y, Y + Y]),
    ("let %o = if (%c) { Some(%x) } else { Some(%y) }; @or(%o, %x)", [Y]),
    ("match? (Some(%x)) { Some(%a) => { let %b = add(%a, %y); multiply(%b, %b) } }", [(X + Y) ** 2]),
])
def test_what_constructors_made_is_matched_while_the_program_is_built(body: str, wanted: list[Any]) -> None:
    got = run(main(body), X, Y, np.bool_(False))
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def test_nothing_of_a_data_type_is_left() -> None:
    graph = primitive(main("@foldl(@plus, %x, Cons(%x, Cons(%y, Nil)))")).main()
    assert [n.op.name for n in graph.nodes if n.op.name != "parameter"] == ["add", "add"]


def test_an_accumulator_may_be_a_function() -> None:
    text = LIST + """
    def @sum(%f: fn(int32) -> int32, %k: List[int32]) -> int32 {
      match (%k) { Cons(%x, %rest) => %0 = fn(%n) { %x + %f(%n) }; @sum(%0, %rest), Nil => %f(0), }
    }
    def @id[A](%x: A) -> A { %x }
    def @main(%a: int32, %b: int32) -> int32 { @sum(@id, Cons(%a, Cons(%b, Cons(%b, Nil)))) }
    """
    assert run(text, np.int32(3), np.int32(10)) == [23]


def test_a_list_may_be_long() -> None:
    n = 1500
    lines = "".join(f"  let %l{i + 1} = Cons(%x, %l{i});\n" for i in range(n))
    text = f"{PRELUDE}def @main(%x: {V}) {{\n  let %l0 = Nil;\n{lines}  @foldl(@plus, %x, @map(@relu, %l{n}))\n}}"
    np.testing.assert_array_equal(run(text, X)[0], X + n * np.maximum(X, 0))


def test_a_recursion_over_what_is_known_is_inlined() -> None:
    text = """
    def @fib(%n: int32, %x: int32) -> int32 {
      %0 = less(%n, 2);
      if (%0) { %x } else { @fib(subtract(%n, 1), %x) + @fib(subtract(%n, 2), %x) }
    }
    def @main(%x: int32) -> int32 { @fib(7, %x) }
    """
    assert run(text, np.int32(2)) == [42]


def test_data_choose_inside_a_recursion_over_a_list() -> None:
    text = LIST + """
    def @find(%xs: List[int32], %x: int32, %i: int32) -> int32 {
      match (%xs) { Cons(%h, %t) => if (equal(%h, %x)) { %i } else { @find(%t, %x, add(%i, 1)) }, Nil => -1, }
    }
    def @main(%x: int32) -> int32 { @find(Cons(4, Cons(7, Cons(9, Nil))), %x, 0) }
    """
    assert [run(text, np.int32(x))[0] for x in (4, 7, 9, 1)] == [0, 1, 2, -1]


def test_a_loop_hands_data_from_trip_to_trip() -> None:
    text = f"""
    type Pair {{ Pair({V}, {V}), }}
    def @go(%i: int32, %n: int32, %p: Pair) -> {V} {{
      if (less(%i, %n)) {{ match (%p) {{ Pair(%a, %b) => @go(add(%i, 1), %n, Pair(%b, add(%a, %b))) }} }}
      else {{ match (%p) {{ Pair(%a, _) => %a }} }}
    }}
    def @main(%n: int32, %x: {V}) -> {V} {{ @go(0, %n, Pair(%x, %x)) }}
    """
    known = text.replace("@go(0, %n,", "@go(0, 4,")
    np.testing.assert_array_equal(run(known, np.int32(0), X)[0], 5 * X)
    loop = text.replace("match (%p) { Pair(%a, %b) => @go(add(%i, 1), %n, Pair(%b, add(%a, %b))) }",
                        "%0 = match (%p) { Pair(%a, %b) => Pair(%b, add(%a, %b)) }; @go(add(%i, 1), %n, %0)")
    assert "while" in {n.op.name for n in primitive(loop).main().nodes}
    for n, factor in ((0, 1), (4, 5), (6, 13)):
        np.testing.assert_array_equal(run(loop, np.int32(n), X)[0], factor * X)


@pytest.mark.parametrize("c", [True, False])
def test_a_reference_that_one_branch_writes_holds_what_was_chosen(c: bool) -> None:
    body = "let %r = ref(%x); let %z = if (%c) { ref_write(%r, add(%x, %y)); %x } else { %y }; subtract(ref_read(%r), %z)"
    np.testing.assert_array_equal(run(main(body), X, Y, np.bool_(c))[0], Y if c else X - Y)


def test_functions_call_each_other_as_deep_as_they_like() -> None:
    text = f"""
    def @even(%n: int32, %x: {V}) -> {V} {{ if (less(%n, 1)) {{ %x }} else {{ @odd(subtract(%n, 1), add(%x, 1f)) }} }}
    def @odd(%n: int32, %x: {V}) -> {V} {{ if (less(%n, 1)) {{ negative(%x) }} else {{ @even(subtract(%n, 1), add(%x, 1f)) }} }}
    def @main(%x: {V}) -> {V} {{ @even(601, %x) }}
    """
    np.testing.assert_array_equal(run(text, X)[0], -(X + 601))


@pytest.mark.parametrize(("text", "words"), [
    (f"{PRELUDE}def @main(%l: List[{V}]) {{ @length(%l) }}", ("input %l has the type List", "build the value in @main")),
    (main("let %o =\nif (%c) { Some(%x) } else { None }; @or(%o, %x)"), ("the branches give Some and None (line 16)", "choose between the arrays")),
    (main("\nadd(Some(%x), %x)"), ("add takes arrays, but gets Some, a value of a data type (line 16)",)),
    (main("let %f = fn (%a: Tensor[(2), float32]) { %a };\non_device((%f, %x))"), ("on_device takes arrays, but gets a function (line 16)",)),
    (main("\nmatch (%x) { Some(%a) => %a, None => %y }"), ("a pattern Some is compared with an array (line 16)",)),
    (main("\nmatch? (Some(%x)) { None => %y }"), ("no pattern matches Some, a value of a data type (line 16)", "the patterns are None")),
    (main("\nCons(%x)"), ("Cons takes 2 fields, and gets 1 (line 16)",)),
    (main("\n%x(%y)"), ("calls an array, which is not a function (line 16)",)),
    (f"def @f(%x: {V}) {{ add(@f(%x), %x) }} def @main(%x: {V}) {{ @f(%x) }}", ("@f calls itself in front of any choice",)),
    (f"def @f(%x: {V}) {{ @g(%x) }} def @g(%x: {V}) {{ @f(%x) }} def @main(%x: {V}) {{ @f(%x) }}", ("calls itself more than 5000 deep",)),
    ("def @f(%n: int32) { if (less(%n, 2)) { %n } else {\n@f(%n - 1) * @f(%n - 2) } } def @main(%n: int32) { @f(%n) }",
     ("@f calls itself in a branch that depends on data, so the number of calls is unknown (line 1)", "becomes a loop")),
    (f"def @main(%n: int32, %x: {V}) {{ let %r = ref(%x); let %f = fn (%i: int32) {{ if (less(%i, %n)) {{ ref_write(%r, add(%x, 1f)); "
     "%f(add(%i, 1)) } else { ref_read(%r) } }; %f(0) }", ("writes a reference from around it", "hand the value from trip to trip")),
    (LIST + "def @f(%n: int32, %l: List[int32]) { if (less(%n, 2)) { @f(add(%n, 1), Cons(%n, %l)) } else { %l } } "
     "def @main(%n: int32) { @f(%n, Nil) }", ("the loop @f carries Nil, and its next trip Cons", "same constructors")),
])
def test_what_only_data_know_is_refused_with_its_place(text: str, words: tuple[str, ...]) -> None:
    with pytest.raises(UserError) as raised:
        primitive(text)
    told = f"{raised.value} {raised.value.help}"
    assert all(w in told for w in words), told
